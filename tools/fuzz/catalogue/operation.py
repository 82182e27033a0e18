"""Turns one line of PTX or C++ into an operation that a generated kernel can use on values of its kinds."""

from __future__ import annotations

from dataclasses import dataclass

KINDS = {
    "u": "unsigned",
    "d": "unsigned long long",
    "f": "float",
    "g": "double",
    "h": "unsigned",
    "b": "unsigned",
    "p": "unsigned",
}
"""Kinds of values: word, long, float, double, pair of f16, pair of bf16, truth (0 or 1); and their C++ types."""

_CONSTRAINTS = {"u": "r", "d": "l", "f": "f", "g": "d", "h": "r", "b": "r", "p": "r"}


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing to compute: `text` has `{d}` for the result, `{0}`, `{1}` ... for arguments, `{i0}` for immediates.

    `result` and `arguments` are kinds; `immediates` the inclusive ranges of the numbers written into the text;
    `{mask}` are the lanes that execute it, for operations of a whole warp (`collective`).
    """

    name: str
    result: str
    arguments: str
    text: str
    immediates: tuple[tuple[int, int], ...] = ()
    collective: bool = False


def cpp(name: str, result: str, arguments: str, expression: str, **more: object) -> Operation:
    """An operation of an expression in C++."""
    return Operation(name, result, arguments, "{d} = " + expression + ";", **more)  # type: ignore[arg-type]


def ptx(
    instruction: str,
    result: str,
    arguments: str,
    body: str | None = None,
    *,
    immediates: tuple[tuple[int, int], ...] = (),
    collective: bool = False,
) -> Operation:
    """An operation of one PTX instruction, or of a `body` of them over `%0` (the result), `%1` ... (arguments)."""
    if body is None:
        operands = ", ".join(f"%{number}" for number in range(len(arguments) + 1))
        body = f"{instruction} {operands};"
    else:
        body = body.replace("{", "{{").replace("}", "}}").replace("<<", "{").replace(">>", "}")
    inputs = [f'"{_CONSTRAINTS[kind]}"({{{number}}})' for number, kind in enumerate(arguments)]
    mask = ""
    if collective:
        inputs.append('"r"({mask})')
        body = body.replace("%M", f"%{len(arguments) + 1}")
        mask = " volatile"
    text = f'asm{mask}("{body}" : "={_CONSTRAINTS[result]}"({{d}}) : {", ".join(inputs)});'
    return Operation(instruction, result, arguments, text, immediates, collective)


def ptx_half(instruction: str, count: int, *, result: str = "u", source: str = "u") -> Operation:
    """An operation over 16-bit registers: the lower halves of words in, a zero-extended word out."""
    names = [f"x{number}" for number in range(count)]
    reads = " ".join(f"cvt.u16.u32 {name}, %{number + 1};" for number, name in enumerate(names))
    body = f"{{ .reg .b16 r, {', '.join(names)}; {reads} {instruction} r, {', '.join(names)}; cvt.u32.u16 %0, r; }}"
    return ptx(instruction, result, source * count, body)


def ptx_truth(instruction: str, arguments: str) -> Operation:
    """An operation that sets one predicate: `instruction` takes the predicate and the arguments."""
    operands = ", ".join(f"%{number + 1}" for number in range(len(arguments)))
    body = f"{{ .reg .pred q; {instruction} q, {operands}; selp.u32 %0, 1, 0, q; }}"
    return ptx(instruction, "p", arguments, body)
