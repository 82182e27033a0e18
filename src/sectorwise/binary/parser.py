"""Turns the text of a SASS statement into a guard, an opcode with modifiers, and typed operands."""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from sectorwise.binary.ir import (
    RETURN_PLACE,
    TRUE_PREDICATE,
    ZERO_REGISTER,
    Address,
    AddressHalf,
    Constant,
    ConvergenceBarrier,
    FloatImmediate,
    Handle,
    Immediate,
    Keyword,
    Operand,
    OtherOperand,
    Predicate,
    Register,
    Scoreboard,
    SpecialRegister,
    Target,
)

_NAME = r"U?R(?:\d+|Z)"
_SUFFIXES = r"(?:\.[A-Za-z_0-9]+)*"
_OFFSET = r"-?0x[0-9a-f]+"
_REGISTER = re.compile(
    rf"(?P<negate>-)?(?P<invert>~)?(?P<bar>\|)?(?P<name>{_NAME})(?P<inner>{_SUFFIXES})(?(bar)\|)(?P<suffixes>{_SUFFIXES})$"
)
_PREDICATE = re.compile(r"(?P<negate>!)?(?P<uniform>U?)P(?P<index>\d|T)$")
_INTEGER = re.compile(r"(?P<minus>-?)0x(?P<digits>[0-9a-f]+)$")
_FLOAT = re.compile(r"(?P<sign>[+-]?)(?P<body>\d+(?:\.\d*)?(?:e[+-]?\d+)?|INF|QNAN|SNAN|NAN)$")
_CONSTANT = re.compile(
    rf"(?P<negate>-)?(?P<invert>~)?(?P<bar>\|)?c(?P<bindless>x?)\[(?P<bank>0x[0-9a-f]+|{_NAME})\]"
    rf"\[(?:(?P<index>{_NAME})(?P<indexed>{_SUFFIXES}))?\+?(?P<offset>{_OFFSET})?\](?(bar)\|)(?P<suffixes>{_SUFFIXES})$"
)
_ADDRESS = re.compile(
    rf"(?:g?desc\[(?P<descriptor>{_NAME})\])?\[(?:(?P<base>R(?:\d+|Z))(?P<based>{_SUFFIXES}))?"
    rf"\+?(?:(?P<uniform>UR(?:\d+|Z))(?P<uniformed>{_SUFFIXES}))?\+?(?P<offset>{_OFFSET})?\]$"
)
_TARGET = re.compile(r"`\((?P<name>[^)]+)\)$")
_ADDRESS_HALF = re.compile(r"32@(?P<half>lo|hi)\((?P<symbol>.+)\)$")
_BARRIER = re.compile(r"B(?P<index>\d+)$")
_SCOREBOARD = re.compile(r"SB(?P<index>\d+)$")
_SPECIAL = re.compile(r"(?:SR_?[A-Za-z0-9_.]+|SRZ)$")
_HANDLE = re.compile(rf"(?P<kind>[a-z]+)\[(?P<register>{_NAME})\+?(?P<offset>{_OFFSET})?\](?P<suffixes>{_SUFFIXES})$")
_KEYWORD = re.compile(r"(?:U?PR|(?:ARRAY_|A)?(?:[123]D|CUBE)|gsb\d|\{[\d,]*\}|[A-Z][A-Z_]*(?:\.\w+)?)$")
_GUARD = re.compile(r"@(?P<predicate>!?U?P(?:\d|T))\s+(?P<rest>.*)$")
_REUSE = "reuse"
_WIDE = "64"
_NARROW = "U32"
_EXTENDED = "E"
_GLOBAL_ACCESSES = frozenset({"LD", "LDG", "ST", "STG", "ATOM", "ATOMG", "RED", "REDG", "CCTL"})
_SCALE = re.compile(r"X(?P<scale>\d+)$")
_OPENING = "[{("
_CLOSING = "]})"


class ParsedStatement(Struct, frozen=True):
    """A statement taken apart; targets still carry the names of labels."""

    guard: Predicate | None
    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]


@lru_cache(maxsize=1 << 16)
def parse_statement(text: str) -> ParsedStatement:
    """Parse one statement such as `@!P0 LDG.E.64 R2, desc[UR4][R2.64+0x10]`; what is not known is kept as printed."""
    guard: Predicate | None = None
    if found := _GUARD.match(text):
        parsed = parse_operand(found["predicate"])
        guard = parsed if isinstance(parsed, Predicate) else None
        text = found["rest"]
    head, _, rest = text.partition(" ")
    opcode, *modifiers = head.split(".")
    operands = [parse_operand(part) for part in split_operands(rest)]
    if opcode in _GLOBAL_ACCESSES and _EXTENDED in modifiers:
        operands = [_widen(operand) if isinstance(operand, Address) else operand for operand in operands]
    return ParsedStatement(guard, opcode, tuple(modifiers), tuple(operands))


def split_operands(text: str) -> list[str]:
    """Split operands at commas and blanks outside brackets: `R2 -0x410` and `P2, `(.L_x_1)` are two operands each."""
    parts: list[str] = []
    depth = 0
    current = ""
    for character in text:
        if character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= 1
        if depth == 0 and character in ", ":
            if current:
                parts.append(current)
            current = ""
        else:
            current += character
    return [*parts, current] if current else parts


@lru_cache(maxsize=1 << 14)
def parse_operand(text: str) -> Operand:
    """Parse one operand; a form that is not known becomes OtherOperand."""
    if found := _REGISTER.match(text):
        return _make_register(found)
    if found := _PREDICATE.match(text):
        index = TRUE_PREDICATE if found["index"] == "T" else int(found["index"])
        return Predicate(index, uniform=bool(found["uniform"]), negate=bool(found["negate"]))
    if found := _INTEGER.match(text):
        return Immediate(int(found["minus"] + found["digits"], 16))
    if found := _CONSTANT.match(text):
        return _make_constant(found)
    if found := _ADDRESS.match(text):
        return _make_address(found)
    if found := _FLOAT.match(text):
        body = found["body"]
        number = {"INF": "inf", "QNAN": "nan", "SNAN": "nan", "NAN": "nan"}.get(body, body)
        return FloatImmediate(float(found["sign"] + number), text)
    if found := _TARGET.match(text):
        return Target(None, found["name"])
    if found := _BARRIER.match(text):
        return ConvergenceBarrier(int(found["index"]))
    if found := _SCOREBOARD.match(text):
        return Scoreboard(int(found["index"]))
    if _SPECIAL.match(text):
        return SpecialRegister(text)
    if found := _HANDLE.match(text):
        offset = int(found["offset"] or "0", 16)
        suffixes = _suffixes(found["suffixes"])
        return Handle(found["kind"], _plain_register(found["register"]), offset, suffixes)
    if found := _ADDRESS_HALF.match(text):
        return AddressHalf(found["symbol"], is_high=found["half"] == "hi")
    if text in ("Rpc", "Rpc.LO", "Rpc.HI"):
        return Register(RETURN_PLACE + text.endswith("HI"))
    if _KEYWORD.match(text):
        return Keyword(text)
    return OtherOperand(text)


def _widen(address: Address) -> Address:
    """Mark the 64-bit registers of a global address: sm_75 prints `[R2]` for what is 64 bits wide."""
    return replace(
        address,
        base_is_wide=address.base is not None and _NARROW not in address.base_suffixes,
        uniform_is_wide=address.uniform is not None,
    )


def _suffixes(text: str | None) -> tuple[str, ...]:
    return tuple(part for part in (text or "").split(".") if part and part != _REUSE)


def _plain_register(name: str, suffixes: tuple[str, ...] = ()) -> Register:
    digits = name.lstrip("UR")
    return Register(ZERO_REGISTER if digits == "Z" else int(digits), uniform=name.startswith("U"), suffixes=suffixes)


def _make_register(found: re.Match[str]) -> Register:
    plain = _plain_register(found["name"])
    return Register(
        plain.index,
        uniform=plain.uniform,
        negate=found["negate"] is not None,
        absolute=found["bar"] is not None,
        invert=found["invert"] is not None,
        suffixes=_suffixes(found["inner"]) + _suffixes(found["suffixes"]),
    )


def _make_constant(found: re.Match[str]) -> Constant:
    bank = found["bank"]
    is_bindless = not bank.startswith("0x")
    return Constant(
        bank=None if is_bindless else int(bank, 16),
        offset=int(found["offset"] or "0", 16),
        index=_plain_register(found["index"], _suffixes(found["indexed"])) if found["index"] else None,
        descriptor=_plain_register(bank) if is_bindless else None,
        negate=found["negate"] is not None,
        absolute=found["bar"] is not None,
        invert=found["invert"] is not None,
        suffixes=_suffixes(found["suffixes"]),
    )


def _make_address(found: re.Match[str]) -> Address:
    base_suffixes = _suffixes(found["based"])
    scales = [int(scale["scale"]) for scale in map(_SCALE.match, base_suffixes) if scale]
    return Address(
        base=_plain_register(found["base"]) if found["base"] else None,
        uniform=_plain_register(found["uniform"]) if found["uniform"] else None,
        offset=int(found["offset"] or "0", 16),
        base_is_wide=_WIDE in base_suffixes,
        scale=scales[0] if scales else 1,
        uniform_is_wide=_WIDE in _suffixes(found["uniformed"]),
        descriptor=_plain_register(found["descriptor"]) if found["descriptor"] else None,
        base_suffixes=tuple(suffix for suffix in base_suffixes if suffix != _WIDE),
    )
