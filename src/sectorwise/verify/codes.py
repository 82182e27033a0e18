"""Turns two listings of a kernel's SASS, ours and a profiler's, into the first instruction in which they differ."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sectorwise.binary.control import INSTRUCTION_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

_LABEL: Final = re.compile(r"`\([^)]*\)(?:\s+0x[0-9a-f]+)?|(?<=\s)\(\*[^)]*\*\)")
"""Targets of branches: label and address depend on who lists the code, and from where on."""

_SYMBOL: Final = re.compile(r"32@(?:lo|hi)\(.*\)")
_JUMPS: Final = frozenset({"BRA", "BSSY", "CALL", "JMP", "RET", "BRX", "JMX", "BREAK", "WARPSYNC", "BMOV", "LEPC"})
_HALF: Final = "32@"
_WORD: Final = re.compile(r"!?\b(?:U?R(?:\d+|Z)|U?P(?:\d|T)|SR_[A-Z0-9_.]+|B\d+)\b")
_NUMBER: Final = re.compile(r"(?<![\w.])0x[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class CodeDifference:
    """The first instruction that differs: its place, and its text on both sides (None: the code has ended)."""

    index: int
    ours: str | None
    theirs: str | None

    @property
    def offset_bytes(self) -> int:
        """Offset of the instruction in the kernel's code."""
        return self.index * INSTRUCTION_BYTES


def find_opcode(sass: str) -> str:
    """`LDG.E.64` of `@!P0 LDG.E.64 R2, desc[UR4][R2.64]`: the opcode with its modifiers, without guard."""
    return next((word for word in sass.split() if not word.startswith("@")), "")


def find_difference(ours: Sequence[str], theirs: Sequence[str]) -> CodeDifference | None:
    """The first difference of two listings of the same kernel; None where they are the same code.

    Guard, opcode, registers and numbers are compared, in any order of operands: versions of the disassembler print
    some instructions differently. What pads the code behind its last instruction does not count.
    """
    mine, other = strip_padding(ours), strip_padding(theirs)
    for index in range(max(len(mine), len(other))):
        left = mine[index] if index < len(mine) else None
        right = other[index] if index < len(other) else None
        if left is None or right is None or not _is_same(left, right):
            return CodeDifference(index, left, right)
    return None


def _is_same(left: str, right: str) -> bool:
    *mine, numbers = _take_apart(left)
    *other, others = _take_apart(right)
    # Half of an address: a symbol in the file, a number once the code is loaded.
    is_filled_in = _HALF in left or _HALF in right
    return mine == other and (is_filled_in or numbers == others)


def strip_padding(code: Sequence[str]) -> list[str]:
    """The listing with blanks made single, without the NOPs at its end."""
    lines = [" ".join(line.replace(";", " ").split()) for line in code]
    while lines and lines[-1] in {"NOP", ""}:
        lines.pop()
    return lines


def _take_apart(text: str) -> tuple[str, str, tuple[str, ...], tuple[int, ...]]:
    guard, _, rest = text.partition(" ") if text.startswith("@") else ("", "", text)
    opcode, _, operands = rest.strip().partition(" ")
    operands = _SYMBOL.sub(" ", _LABEL.sub(" ", operands))
    is_jump = opcode.split(".")[0] in _JUMPS
    numbers = () if is_jump else tuple(sorted(int(number, 16) for number in _NUMBER.findall(operands)))
    return guard, opcode, tuple(sorted(_WORD.findall(operands))), numbers
