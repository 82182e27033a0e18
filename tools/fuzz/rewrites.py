"""Turns instructions of a compiled kernel into others of their opcode that compilers hardly write, by their modifiers.

An instruction's modifiers are bits of its 128; where they stand was read from how compiled instructions differ. What a
rewritten kernel computes is no longer what its source says: it is whatever the machine code says, here and on a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sectorwise.binary.elf import read_elf
from tools.fuzz.catalogue.families import choose_character
from tools.fuzz.stream import Stream

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sectorwise.binary.elf import ElfImage, Section
    from sectorwise.binary.ir import Instruction, Kernel

_INSTRUCTION_BYTES = 16
_OWN_STREAM = 0x52455752
_EXCHANGING = ("atomics", "memory")
"""Characters whose threads own places in memory: were those computed otherwise, threads would race for them."""

_HARMLESS = ("ATOM", "LDG", "LDGSTS", "REDG", "STG", "VOTEU")
"""Opcodes whose results are no part of the address of such a place."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How instructions of one opcode are rewritten: the bits in `mask` become those of one of `values`.

    It holds for instructions that have all modifiers that are `needed` and none that is `barred`; `percent` of these
    are rewritten.
    """

    opcode: str
    mask: int
    values: tuple[int, ...]
    needed: frozenset[str] = frozenset()
    barred: frozenset[str] = frozenset()
    percent: int = 70


def rewrite(cubin: bytes, kernels: Mapping[str, Kernel], seeds: Mapping[str, int]) -> bytes:
    """The cubin with instructions of its kernels rewritten; `seeds` gives each kernel's seed by its name."""
    image = read_elf(cubin, "fuzz.cubin")
    made = bytearray(cubin)
    for name, seed in seeds.items():
        section = _find_code(image, name)
        stream = Stream(seed ^ _OWN_STREAM)
        keeps_places = choose_character(seed) in _EXCHANGING
        for instruction in kernels[name].instructions:
            rule = _choose_rule(stream, instruction, keeps_places=keeps_places)
            if rule is None or instruction.offset >= section.size_bytes:
                continue
            at = section.file_offset + instruction.offset
            word = int.from_bytes(made[at : at + _INSTRUCTION_BYTES], "little")
            word = word & ~rule.mask | stream.pick(rule.values)
            made[at : at + _INSTRUCTION_BYTES] = word.to_bytes(_INSTRUCTION_BYTES, "little")
    return bytes(made)


def restore(cubin: bytes, plain: bytes, names: Iterable[str]) -> bytes:
    """The rewritten cubin with the code of these kernels as it was in the `plain` one."""
    image = read_elf(plain, "fuzz.cubin")
    made = bytearray(cubin)
    for name in names:
        section = _find_code(image, name)
        place = slice(section.file_offset, section.file_offset + section.size_bytes)
        made[place] = plain[place]
    return bytes(made)


def _find_code(image: ElfImage, name: str) -> Section:
    return next(section for section in image.sections if section.name == f".text.{name}")


def _choose_rule(stream: Stream, instruction: Instruction, *, keeps_places: bool) -> Rule | None:
    if keeps_places and instruction.opcode not in _HARMLESS:
        return None
    modifiers = set(instruction.modifiers)
    fitting = [
        rule for rule in _RULES.get(instruction.opcode, ()) if rule.needed <= modifiers and not rule.barred & modifiers
    ]
    rule = stream.pick(fitting) if fitting else None
    return rule if rule is not None and stream.chance(rule.percent) else None


def _encode(bits: Mapping[str, int], forms: str, default: int = 0) -> tuple[int, ...]:
    """The bits of forms (`GE.OR LT.U32.AND`): of each the sum of its modifiers'; a modifier may take bits away."""
    return tuple(default + sum(bits[name] for name in form.split(".")) for form in forms.split())


_SIGNED = 1 << 73
_ORDER = {name: number << 76 for number, name in enumerate(("LT", "EQ", "LE", "GT", "NE", "GE"), 1)}

_UPDATES = {name: number << 87 for number, name in enumerate(("ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR"))}
_UPDATES |= {"EXCH": 8 << 87}

_WIDTHS = {"U8": 0, "S8": 1 << 73, "U16": 2 << 73, "S16": 3 << 73, "32": 4 << 73, "64": 5 << 73}
_NORMAL = 1 << 84
_POLICIES = {
    "plain": 0,
    "CONSTANT": 1 << 79,
    "SM": 5 << 77,
    "GPU": 7 << 77,
    "SYS": 10 << 77,
    "EF": -_NORMAL,
    "LU": 2 << 84,
}
_LOADS = (
    "U8.GPU U8.SM U8.SYS U8.LU S8.GPU S8.SM S8.SYS S8.EF S8.LU S8.CONSTANT U16.GPU U16.SM U16.SYS U16.EF U16.LU"
    " S16.GPU S16.SM S16.SYS S16.EF S16.LU S16.CONSTANT S16.plain S16.plain S16.plain"
    " 32.GPU 32.SM 32.SYS 32.EF 32.LU"
)
_LOAD = 7 << 73 | 15 << 77 | 7 << 84

_SHIFTS = {"L": 0, "R": 1 << 76, "S64": 0, "U64": 1 << 73, "S32": 2 << 73, "U32": 3 << 73, "W": 1 << 75, "HI": 1 << 80}
_SHIFT = 1 << 76 | 1 << 75 | 3 << 73 | 1 << 80
_CARRIED = 1 << 74
_NO_PREDICATE, _TRUE = 15 << 87, 7 << 87
_NARROW_OR_WIDE = frozenset({"64", "128", "U8", "S8", "U16", "S16"})

_ALL_RULES = (
    Rule(
        "HSETP2",
        15 << 76 | 3 << 69,
        tuple(_ORDER[order] | logic << 69 for order, logic in (("EQ", 1), ("GT", 1), ("GT", 2))),
        barred=frozenset({"BF16_V2"}),
    ),
    *(
        Rule(opcode, mask, _encode(_UPDATES, names), needed=frozenset({"64"}), barred=frozenset({"CAS", "CAST", "F64"}))
        for opcode, mask, names in (
            ("ATOM", 15 << 87, "ADD AND EXCH MAX MIN XOR"),
            ("REDG", 7 << 87, "ADD AND MAX MIN XOR"),
        )
    ),
    Rule(
        "LDG",
        _LOAD,
        _encode(_WIDTHS | _POLICIES, _LOADS, _NORMAL),
        needed=frozenset({"CONSTANT"}),
        barred=_NARROW_OR_WIDE,
        percent=30,
    ),
    Rule(
        "LDG",
        _LOAD,
        _encode(_WIDTHS | _POLICIES, "64.GPU 64.SM 64.SYS 64.EF 64.LU", _NORMAL),
        needed=frozenset({"CONSTANT", "64"}),
        percent=30,
    ),
    Rule("STG", 15 << 77, (_POLICIES["SYS"],), barred=_NARROW_OR_WIDE, percent=5),
    Rule("LDGSTS", 1 << 82, (1 << 82,), barred=frozenset({"64"})),
    Rule("SHF", _SHIFT, _encode(_SHIFTS, "R.W.S32.HI"), percent=10),
    Rule("VOTEU", 1 << 72, (0,), percent=90),
    Rule(
        "IMAD",
        _CARRIED | _NO_PREDICATE,
        (_CARRIED | _NO_PREDICATE, _CARRIED | _TRUE),
        needed=frozenset({"HI", "U32"}),
        percent=30,
    ),
    Rule("IMAD", _SIGNED, (0,), needed=frozenset({"IADD"}), percent=10),
    Rule(
        "LEA",
        _CARRIED | _NO_PREDICATE,
        (_CARRIED | _NO_PREDICATE, _CARRIED | _TRUE),
        barred=frozenset({"HI", "X"}),
        percent=20,
    ),
    Rule("ULDC", 7 << 73, (_WIDTHS["S8"],), barred=_NARROW_OR_WIDE, percent=15),
    Rule(
        "F2I",
        1 << 80 | 3 << 78 | 3 << 75 | 1 << 72,
        (0, 1 << 80 | 1 << 75 | 1 << 72),
        barred=frozenset({"F64", "F16", "BF16", "S64", "U64", "TRUNC"}),
        percent=40,
    ),
)

_RULES = {
    opcode: tuple(rule for rule in _ALL_RULES if rule.opcode == opcode)
    for opcode in sorted({rule.opcode for rule in _ALL_RULES})
}
