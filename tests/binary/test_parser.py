"""Turns operand texts into operands and back: by a table, on compiled code for every target, on mutated encodings."""

from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sectorwise.binary.cubin import read_cubin
from sectorwise.binary.disassembly import find_disassembler
from sectorwise.binary.ir import (
    Address,
    AddressHalf,
    Constant,
    ConvergenceBarrier,
    FloatImmediate,
    Handle,
    Immediate,
    Instruction,
    Keyword,
    Operand,
    OtherOperand,
    Predicate,
    Register,
    Scoreboard,
    SpecialRegister,
    Target,
)
from sectorwise.binary.listing import read_listing
from sectorwise.binary.parser import parse_operand, parse_statement, split_operands
from sectorwise.frontends.base import CompileRequest
from sectorwise.frontends.cuda import CUDA

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMS = Path(__file__).parent / "forms.cu"
TARGETS = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_103", "sm_120", "sm_121")
RZ = Register(255)
URZ = Register(255, uniform=True)

OPERANDS: dict[str, Operand] = {
    "R7": Register(7),
    "R7.reuse": Register(7),
    "-RZ": Register(255, negate=True),
    "~UR63": Register(63, uniform=True, invert=True),
    "-|R2|": Register(2, negate=True, absolute=True),
    "|R2|.reuse.H1_H1": Register(2, absolute=True, suffixes=("H1_H1",)),
    "R4.reuse.H0_H0": Register(4, suffixes=("H0_H0",)),
    "R14.B1": Register(14, suffixes=("B1",)),
    "URZ": URZ,
    "!P3": Predicate(3, negate=True),
    "UPT": Predicate(7, uniform=True),
    "0x10": Immediate(16),
    "-0x40": Immediate(-64),
    "0xfffffff8": Immediate(0xFFFFFFF8),
    "1.5": FloatImmediate(1.5, "1.5"),
    "-126": FloatImmediate(-126.0, "-126"),
    "1.84467440737095516160e+19": FloatImmediate(2.0**64, "1.84467440737095516160e+19"),
    "5.9604644775390625e-08": FloatImmediate(2.0**-24, "5.9604644775390625e-08"),
    "+INF": FloatImmediate(float("inf"), "+INF"),
    "-INF": FloatImmediate(float("-inf"), "-INF"),
    "c[0x0][0x210]": Constant(0, 0x210),
    "c[0x0][RZ]": Constant(0, 0, index=RZ),
    "c[0x2][R0+0xc]": Constant(2, 12, index=Register(0)),
    "c[0x0][UR4+0x2b0]": Constant(0, 0x2B0, index=Register(4, uniform=True)),
    "c[0x3][R2+-0x8]": Constant(3, -8, index=Register(2)),
    "cx[UR4][0x20]": Constant(None, 0x20, descriptor=Register(4, uniform=True)),
    "-|c[0x0][0x164]|": Constant(0, 0x164, negate=True, absolute=True),
    "~c[0x0][0x164]": Constant(0, 0x164, invert=True),
    "c[0x0][0x164].H1_H1": Constant(0, 0x164, suffixes=("H1_H1",)),
    "[R2]": Address(Register(2), None, 0),
    "[R2.64+-0x10]": Address(Register(2), None, -16, base_is_wide=True),
    "desc[UR4][R2.64+0x10]": Address(Register(2), None, 16, base_is_wide=True, descriptor=Register(4, uniform=True)),
    "[R3.X4+UR5+0x80]": Address(Register(3), Register(5, uniform=True), 128, scale=4, base_suffixes=("X4",)),
    "[R3.U32+UR4]": Address(Register(3), Register(4, uniform=True), 0, base_suffixes=("U32",)),
    "[R2+UR4.64]": Address(Register(2), Register(4, uniform=True), 0, uniform_is_wide=True),
    "[UR4]": Address(None, Register(4, uniform=True), 0),
    "[UR4+0x8]": Address(None, Register(4, uniform=True), 8),
    "[R9+URZ]": Address(Register(9), URZ, 0),
    "[RZ]": Address(RZ, None, 0),
    "[0x40]": Address(None, None, 64),
    "SR_TID.X": SpecialRegister("SR_TID.X"),
    "SRZ": SpecialRegister("SRZ"),
    "SR_CgaCtaId": SpecialRegister("SR_CgaCtaId"),
    "`(.L_x_0)": Target(None, ".L_x_0"),
    "`($__internal_0_$__cuda_sm20_div_rn_f64_full)": Target(None, "$__internal_0_$__cuda_sm20_div_rn_f64_full"),
    "B6": ConvergenceBarrier(6),
    "SB0": Scoreboard(0),
    "gdesc[UR4]": Handle("gdesc", Register(4, uniform=True)),
    "tmem[UR6+0x10]": Handle("tmem", Register(6, uniform=True), 16),
    "32@lo($str)": AddressHalf("$str", is_high=False),
    "PR": Keyword("PR"),
    "ARRAY_2D": Keyword("ARRAY_2D"),
    "gsb0": Keyword("gsb0"),
    "{2,1}": Keyword("{2,1}"),
    "???255": OtherOperand("???255"),
}


@pytest.mark.parametrize("text", OPERANDS)
def test_operand(text: str) -> None:
    assert parse_operand(text) == OPERANDS[text]


def test_quiet_nan() -> None:
    parsed = parse_operand("-QNAN")
    assert isinstance(parsed, FloatImmediate)
    assert parsed.value != parsed.value
    assert parsed.text == "-QNAN"


def test_statement() -> None:
    parsed = parse_statement("@!UP2 LDG.E.64.CONSTANT R2, desc[UR4][R2.64+0x10]")
    assert parsed.guard == Predicate(2, uniform=True, negate=True)
    assert (parsed.opcode, parsed.modifiers) == ("LDG", ("E", "64", "CONSTANT"))
    assert parsed.operands == (Register(2), OPERANDS["desc[UR4][R2.64+0x10]"])
    assert parse_statement("EXIT").operands == ()
    assert parse_statement("BRX R2 -0x410").operands == (Register(2), Immediate(-0x410))
    assert parse_statement("RET.REL.NODEC R20 `(k)").operands == (Register(20), Target(None, "k"))
    assert parse_statement("BRA P2, `(.L_x_20)").operands == (Predicate(2), Target(None, ".L_x_20"))


def test_global_addresses_of_sm_75_are_wide_though_not_printed_so() -> None:
    (_, address) = parse_statement("LDG.E.SYS R0, [R6+0x4]").operands
    assert address == Address(Register(6), None, 4, base_is_wide=True)
    (_, address) = parse_statement("LDG.E.64.SYS R6, [R3.U32+UR4]").operands
    assert address == Address(Register(3), Register(4, uniform=True), 0, uniform_is_wide=True, base_suffixes=("U32",))
    (_, address) = parse_statement("LDS R0, [R6+UR4]").operands
    assert address == Address(Register(6), Register(4, uniform=True), 0)


@given(st.text(max_size=40))
def test_any_text_gives_operands_and_no_exception(text: str) -> None:
    parse_statement(text)
    assert all(part.strip(" ,") == part for part in split_operands(text))


def _print_register(register: Register) -> str:
    name = ("U" if register.uniform else "") + "R" + ("Z" if register.index == 255 else str(register.index))
    ending = "".join(f".{suffix}" for suffix in register.suffixes)
    name = f"|{name}|{ending}" if register.absolute else name + ending
    return ("-" if register.negate else "") + ("~" if register.invert else "") + name


def _print_number(value: int) -> str:
    return f"-{-value:#x}" if value < 0 else f"{value:#x}"


def _print_constant(constant: Constant) -> str:
    if constant.descriptor is not None:
        bank = f"cx[{_print_register(constant.descriptor)}]"
    else:
        assert constant.bank is not None
        bank = f"c[{constant.bank:#x}]"
    parts = [_print_register(constant.index)] if constant.index else []
    if constant.offset or not parts:
        parts.append(_print_number(constant.offset))
    text = f"{bank}[{'+'.join(parts)}]"
    ending = "".join(f".{suffix}" for suffix in constant.suffixes)
    text = f"|{text}|{ending}" if constant.absolute else text + ending
    return ("-" if constant.negate else "") + ("~" if constant.invert else "") + text


def _print_address(address: Address, widths: str) -> str:
    parts = []
    if address.base is not None:
        wide = ".64" if address.base_is_wide and widths != "none" else ""
        parts.append(_print_register(address.base) + "".join(f".{suffix}" for suffix in address.base_suffixes) + wide)
    if address.uniform is not None:
        parts.append(_print_register(address.uniform) + (".64" if address.uniform_is_wide and widths == "all" else ""))
    if address.offset or not parts:
        parts.append(_print_number(address.offset))
    descriptor = f"desc[{_print_register(address.descriptor)}]" if address.descriptor else ""
    return f"{descriptor}[{'+'.join(parts)}]"


def _print_operand(operand: Operand, widths: str = "all") -> str:
    match operand:
        case Register():
            return _print_register(operand)
        case Predicate(index, uniform, negate):
            return f"{'!' * negate}{'U' * uniform}P{'T' if index == 7 else index}"
        case Immediate(value):
            return _print_number(value)
        case AddressHalf(symbol, is_high):
            return f"32@{'hi' if is_high else 'lo'}({symbol})"
        case FloatImmediate() | Keyword() | OtherOperand():
            return operand.text
        case Constant():
            return _print_constant(operand)
        case Address():
            return _print_address(operand, widths)
        case SpecialRegister(name):
            return name
        case Target(_, symbol):
            return f"`({symbol})"
        case ConvergenceBarrier(index):
            return f"B{index}"
        case Scoreboard(index):
            return f"SB{index}"
        case Handle(kind, register, offset, suffixes):
            inside = _print_register(register) + (f"+{_print_number(offset)}" if offset else "")
            return f"{kind}[{inside}]" + "".join(f".{suffix}" for suffix in suffixes)


def _differences(text: str, operands: tuple[Operand, ...]) -> list[str]:
    """Operands of one printed statement that do not print as the disassembler printed them."""
    _, _, rest = re.sub(r"^@\S+ ", "", text).partition(" ")
    parts = [part.replace(".reuse", "") for part in split_operands(rest)]
    assert len(parts) == len(operands), text
    wrong = []
    for part, operand in zip(parts, operands, strict=True):
        # Where the widths of a global address are not printed, printing them is the only difference allowed.
        if part not in {_print_operand(operand, widths) for widths in ("all", "base", "none")}:
            wrong.append(f"{text}: {part} became {operand}")
    return wrong


def _compile_forms(target: str) -> Iterator[Instruction]:
    macros = ("WGMMA", "TCGEN") if target.endswith("a") else ()
    compiled = CUDA.compile(FORMS, CompileRequest(target, macros=macros))
    for kernel in read_cubin(compiled.cubin, target).kernels:
        yield from kernel.instructions


@pytest.mark.parametrize("target", TARGETS)
def test_all_that_the_compiler_makes_is_parsed_and_printed_alike(target: str) -> None:
    count = 0
    for instruction in _compile_forms(target):
        count += 1
        assert not [operand for operand in instruction.operands if isinstance(operand, OtherOperand)], instruction.text
        for operand in instruction.operands:
            assert not isinstance(operand, Target) or operand.offset is not None, instruction.text
        assert _differences(instruction.text, parse_statement(instruction.text).operands) == []
    assert count > 1900


@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_90a", "sm_100a", "sm_120"])
def test_instructions_that_no_compiler_made_are_parsed_and_printed_alike(target: str, tmp_path: Path) -> None:
    """Flip bits of real encodings: what the disassembler still accepts has operands in unusual forms."""
    chosen = random.Random(20260131)  # noqa: S311 - any reproducible choice does
    by_opcode: dict[int, list[int]] = {}
    for instruction in _compile_forms(target):
        by_opcode.setdefault(instruction.encoding & 0xFFF, []).append(instruction.encoding)
    mutated = []
    for _ in range(1500):
        encoding = chosen.choice(by_opcode[chosen.choice(sorted(by_opcode))])
        for _ in range(chosen.randint(1, 4)):
            encoding ^= 1 << chosen.randint(12, 104)
        mutated.append(encoding.to_bytes(16, "little"))
    listing = _disassemble_accepted(mutated, target, tmp_path / "mutated.bin")
    statements = [statement for section in listing.values() for statement in section]
    assert len(statements) > 1300
    wrong = [each for text in statements for each in _differences(text, parse_statement(text).operands)]
    # `???7`, `INVALID0`: the disassembler's own words for bits without a meaning.
    assert [each for each in wrong if "INVALID" not in each and "???" not in each] == []


def _disassemble_accepted(mutated: list[bytes], target: str, file: Path) -> dict[str, list[str]]:
    while True:
        file.write_bytes(b"".join(mutated))
        option = "SM" + target.removeprefix("sm_")
        command = [str(find_disassembler().path), "-b", option, "-ndf", str(file)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        refused = {int(at, 16) // 16 for at in re.findall(r"at address (0x[0-9a-f]+)", run.stderr)}
        if not refused:
            assert run.returncode == 0, run.stderr
            text = '\t.section\t.text.mutated,"ax"\n' + run.stdout
            sections = read_listing(text).sections.items()
            return {name: [statement.text for statement in code.statements] for name, code in sections}
        mutated = [encoding for place, encoding in enumerate(mutated) if place not in refused]
