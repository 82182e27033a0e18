"""Turns cubins of older compilers and of the linker into kernels, and files that are no finished cubins into errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from sectorwise.binary.cubin import read_cubin
from sectorwise.binary.ir import AddressHalf, Immediate, Kernel, OtherOperand, Parameter, Target
from sectorwise.errors import CorruptBinaryError, UnsupportedDeviceError

SAMPLES = Path(__file__).parent / "samples"
SM_75 = SAMPLES / "older.nvrtc-11.8.sm_75.cubin"
LINKED = SAMPLES / "linked.nvjitlink-13.0.sm_90.cubin"
SM_90 = SAMPLES / "older.nvrtc-12.1.sm_90.cubin"


@pytest.fixture(params=[SM_75, SM_90], ids=lambda path: path.name)
def kernel(request: pytest.FixtureRequest) -> Kernel:
    (found,) = read_cubin(request.param.read_bytes(), request.param.name).kernels
    return found


def test_tables(kernel: Kernel) -> None:
    assert kernel.target == {"sm_75": "sm_75", "sm_90": "sm_90"}[kernel.target]
    assert kernel.parameters == (Parameter(0, 0, 8), Parameter(1, 8, 4))
    # Barriers 0 to 2, which these compilers write into the flags of the section.
    assert kernel.resources.barriers == 3
    # The stack of a function that recurs is not known: what stands there is only the kernel's own frame.
    assert kernel.resources.local_bytes_per_thread == 8
    assert 16 <= kernel.resources.registers_per_thread <= 64


def test_no_operand_is_left_unread(kernel: Kernel) -> None:
    operands = [operand for instruction in kernel.instructions for operand in instruction.operands]
    assert not [operand for operand in operands if isinstance(operand, OtherOperand)]
    outside = {operand.symbol for operand in operands if isinstance(operand, Target) and operand.offset is None}
    assert outside == {external.name for external in kernel.externals} == {"vprintf"}


def test_addresses_in_the_code(kernel: Kernel) -> None:
    halves = {
        (operand.symbol, operand.is_high)
        for instruction in kernel.instructions
        for operand in instruction.operands
        if isinstance(operand, AddressHalf)
    }
    assert halves == {(name, is_high) for name in ("counts", "$str") for is_high in (False, True)}
    assert {name for name, _ in halves} <= {variable.name for variable in kernel.variables}


def test_return_address_of_an_absolute_call_is_what_follows_it(kernel: Kernel) -> None:
    call = next(each for each in kernel.instructions if "`(vprintf)" in each.text)
    halves = [each.operands[1] for each in kernel.instructions if "@srel" in each.text]
    assert sorted(each.value for each in halves if isinstance(each, Immediate)) == [0, call.offset + 16]


def test_linked_functions_lie_behind_the_kernel_that_calls_them() -> None:
    kernels = {kernel.name: kernel for kernel in read_cubin(LINKED.read_bytes(), LINKED.name).kernels}
    assert set(kernels["one"].functions) == {"one", "_Z5scalei"}
    both = kernels["both"]
    assert set(both.functions) == {"both", "_Z5scalei", "_Z5climbi", "__cuda_sm20_div_rn_f64_full"}
    starts = {each.offset: each for each in both.instructions}
    assert both.functions["both"] == 0
    assert [each.offset for each in both.instructions] == sorted(starts)
    for name, lines in (("_Z5scalei", {6}), ("_Z5climbi", {9, 10}), ("both", {13, 14})):
        location = starts[both.functions[name]].location
        assert location is not None
        assert location.line in lines
    for call in (each for each in both.instructions if each.opcode == "CALL"):
        (target,) = call.operands
        assert isinstance(target, Target)
        assert target.symbol is not None
        assert target.offset == both.functions[target.symbol]
        assert target.offset in starts


def test_return_addresses_of_linked_code_are_behind_their_calls() -> None:
    kernels = {kernel.name: kernel for kernel in read_cubin(LINKED.read_bytes(), LINKED.name).kernels}
    both = kernels["both"]
    returns = {
        each.operands[1].value
        for each in both.instructions
        if "32@lo" in each.text and isinstance(each.operands[1], Immediate)
    }
    assert returns == {each.offset + 16 for each in both.instructions if each.opcode == "CALL"}


def test_target_that_is_not_read() -> None:
    data = bytearray(SM_75.read_bytes())
    data[48:52] = (0x00460546).to_bytes(4, "little")
    with pytest.raises(UnsupportedDeviceError, match="compiled for sm_70: code for sm_75 and later is read"):
        read_cubin(bytes(data), "volta.cubin")


def test_relocatable_object() -> None:
    data = bytearray(SM_75.read_bytes())
    data[16] = 1
    with pytest.raises(CorruptBinaryError, match=r"relocatable object .*, which has to be linked first"):
        read_cubin(bytes(data), "object.cubin")
