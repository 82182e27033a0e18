"""Turns compiled probes into the constants that they load, which must be where the table says, for every target."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from sectorwise.binary.abi import find_driver_constants
from sectorwise.binary.cubin import read_cubin
from sectorwise.binary.ir import Constant, Kernel, Register, SpecialRegister
from sectorwise.errors import UnsupportedDeviceError
from sectorwise.frontends.base import CompileRequest
from sectorwise.frontends.cuda import CUDA

PROBES = Path(__file__).parent / "probes.cu"
TARGETS = (
    "sm_75",
    "sm_80",
    "sm_86",
    "sm_87",
    "sm_88",
    "sm_89",
    "sm_90",
    "sm_90a",
    "sm_100",
    "sm_100a",
    "sm_103",
    "sm_110",
    "sm_120",
    "sm_120a",
    "sm_121",
)


@cache
def _probes(target: str) -> dict[str, Kernel]:
    compiled = CUDA.compile(PROBES, CompileRequest(target))
    return {kernel.name: kernel for kernel in read_cubin(compiled.cubin, target).kernels}


def _bank_0_offsets(kernel: Kernel) -> set[int]:
    """Byte offsets of all words of bank 0 below the parameters that the kernel reads."""
    words: set[int] = set()
    for instruction in kernel.instructions:
        for operand in instruction.operands:
            if isinstance(operand, Constant) and operand.bank == 0:
                first = operand.offset
                wide = "64" in instruction.modifiers or "WIDE" in instruction.modifiers
                words.update([first, first + 4] if wide else [first])
    return words


def _own(target: str, probe: str) -> set[int]:
    """What this probe reads from bank 0 and the plain store does not."""
    kernels = _probes(target)
    return _bank_0_offsets(kernels[probe]) - _bank_0_offsets(kernels["k_store"]) - _parameters(kernels[probe])


def _parameters(kernel: Kernel) -> set[int]:
    ends = [parameter.offset_bytes + parameter.size_bytes for parameter in kernel.parameters]
    return set(range(kernel.parameter_base, kernel.parameter_base + max(ends)))


def _words(offset: int, size_bytes: int = 8) -> set[int]:
    return set(range(offset, offset + size_bytes, 4))


@pytest.mark.parametrize("target", TARGETS)
def test_dimensions(target: str) -> None:
    constants = find_driver_constants(target)
    for axis, letter in enumerate("xyz"):
        assert _own(target, f"k_block_{letter}") == {constants.block_dimensions + 4 * axis}
        assert _own(target, f"k_grid_{letter}") == {constants.grid_dimensions + 4 * axis}


@pytest.mark.parametrize("target", TARGETS)
def test_stack_descriptor_and_parameters(target: str) -> None:
    constants = find_driver_constants(target)
    store = _probes(target)["k_store"]
    stack = next(each for each in store.instructions if each.operands[0] == Register(1))
    assert [o.offset for o in stack.operands if isinstance(o, Constant)] == [constants.stack_pointer]
    assert store.parameter_base == constants.parameters
    descriptor = set() if constants.descriptor is None else _words(constants.descriptor)
    assert _bank_0_offsets(store) - _parameters(store) == {constants.stack_pointer} | descriptor
    assert (constants.descriptor is None) == (target == "sm_75")


@pytest.mark.parametrize("target", TARGETS)
def test_address_windows(target: str) -> None:
    constants = find_driver_constants(target)
    assert _own(target, "k_local_to_generic") == _words(constants.local_window)
    assert _own(target, "k_generic_to_local") == _words(constants.local_window)
    assert _own(target, "k_constant_to_generic") == _words(constants.constant_window)
    assert _own(target, "k_parameter_to_generic") == _words(constants.parameter_window)
    shared = _probes(target)["k_shared_to_generic"]
    read = {o.name for each in shared.instructions for o in each.operands if isinstance(o, SpecialRegister)}
    if constants.shared_window is None:
        assert _own(target, "k_shared_to_generic") == set()
        assert "SR_SWINHI" in read
    else:
        assert _own(target, "k_shared_to_generic") == _words(constants.shared_window)
        assert "SR_SWINHI" not in read


@pytest.mark.parametrize("target", TARGETS)
def test_where_the_parameter_window_starts(target: str) -> None:
    """The probe stores the generic address of its second parameter, at byte 8: what it adds to the window tells."""
    constants = find_driver_constants(target)
    kernel = _probes(target)["k_parameter_to_generic"]
    texts = [instruction.text for instruction in kernel.instructions]
    if constants.parameter_window_start == 0:
        assert any(text.startswith(("MOV", "IMAD.MOV")) and text.endswith("0x160") for text in texts)
        assert kernel.constants[2] == (8).to_bytes(8, "little")
    else:
        assert constants.parameter_window_start == constants.parameters
        assert any(text.startswith(("MOV", "IMAD.MOV")) and text.endswith(", 0x8") for text in texts)


@pytest.mark.parametrize("target", TARGETS)
def test_other_words(target: str) -> None:
    constants = find_driver_constants(target)
    assert _own(target, "k_dynamic_shared") == {constants.dynamic_shared_bytes}
    assert _own(target, "k_grid_number") == _words(constants.grid_number)
    assert _own(target, "k_multiprocessors") == {constants.multiprocessors}
    assert _own(target, "k_environment") == {constants.environment, constants.environment + 8}
    reserved = set() if constants.reserved_shared_bytes is None else {constants.reserved_shared_bytes}
    assert _own(target, "k_total_shared") == reserved


@pytest.mark.parametrize("target", [target for target in TARGETS if int(target[3:].rstrip("a")) >= 90])
def test_clusters(target: str) -> None:
    cluster = find_driver_constants(target).cluster
    assert cluster is not None
    for axis, letter in enumerate("xyz"):
        assert _own(target, f"k_cluster_blocks_{letter}") == {cluster.blocks + 4 * axis}
        assert _own(target, f"k_clusters_{letter}") == {cluster.clusters + 4 * axis}
        assert cluster.block_reciprocals + 4 * axis in _own(target, f"k_cluster_block_{letter}")
    assert _own(target, "k_cluster_blocks_total") == {cluster.blocks_total}


@pytest.mark.parametrize("target", ["sm_70", "sm_130", "gfx942", "", "sm_90x"])
def test_unknown_target(target: str) -> None:
    with pytest.raises(UnsupportedDeviceError, match="known for sm_75 to sm_121"):
        find_driver_constants(target)
