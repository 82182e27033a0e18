"""Turns launch notation (`transpose<<<(16, 16), (32, 8)>>>(f32[512*512], f32[512*512], n=512)`) into a LaunchConfig.

The grammar, with spaces anywhere between the words:

    launch     kernel <<< dimensions, dimensions [, shared bytes] >>> ( [argument, ...] ) [;] [with variable, ...]
    kernel     transpose     reduce<float, 256>     ns::gather
    dimensions number  |  (number, number [, number])  |  dim3(...)
    argument   [name =] value
    variable   name = value
    value      f32[count] [= contents]   a buffer, passed as its address
               f32[rows, columns]        the same; to Numba and CuPy an array of that shape
               i64(7)   f32(0.5)         a number of that type
               512   0.5   true          a number of the type of the parameter
               {value, ...}              a struct, laid out as C does
               bytes(00ff 3c)            raw bytes
               ptr(name, offset)         an address inside a named buffer, offset in bytes (0 if left out)
               tensor_map(f16[rows, columns], box=(64, 32), swizzle=128)   as cuTensorMapEncodeTiled makes one
               nullptr
    contents   zeros | arange | perm(seed) | uniform(seed [, below]) | noise | @file.npy | @"a file.npy"
    types      f64 f32 f16 bf16 i64 i32 i16 i8 u64 u32 u16 u8, also spelled float32, uint8 and so on

`kernel[dimensions, dimensions](...)`, as Python launches, is read as well. Numbers may be computed, `1 << 20`,
`(n + 255) / 256`, and take the suffixes K, M and G (powers of 1,024). A name in a computation is the scalar argument of
that name, wherever it stands: `copy<<<n / 256, 256>>>(f32[n], f32[n], n=4096)`. After `with`, a buffer is the contents
of the module variable itself: `with table=i32[16]=arange, scale=f32(0.5)`.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from sectorwise.launch.arguments import parse_argument
from sectorwise.launch.carets import launch_error
from sectorwise.launch.config import LaunchConfig, Span
from sectorwise.launch.expressions import Scope, find_definitions, parse_whole
from sectorwise.launch.tokens import find_span, find_span_of, open_cursor
from sectorwise.tokens import LONGEST_QUOTE

if TYPE_CHECKING:
    from pathlib import Path

    from sectorwise.launch.config import Argument
    from sectorwise.tokens import Cursor, Token

_BRACKETS = re.compile(r"\s*[A-Za-z_][\w.]*\s*\[")
_KERNEL = re.compile(r"[A-Za-z_$][\w$:<>,.*&()\[\]+\-~ ]*")


def parse_launch(text: str, origin: str = "launch", folder: Path | None = None) -> LaunchConfig:
    """Return the launch that `text` describes.

    `origin` introduces errors (`--launch`, `transpose.cu:3`); `@file.npy` is taken relative to `folder`, if given.
    Raises LaunchError with a caret under the place. Sizes are not checked against any kernel or device here.
    """
    text = _write_chevrons(text)
    kernel, start = _parse_kernel(text, origin)
    cursor = open_cursor(text, origin, start)
    _require_end_of_shape(cursor)
    scope = Scope(find_definitions(cursor.at_index(_find_arguments(cursor))))
    first = cursor.expect("<<<")
    grid, grid_span = _parse_dimensions(cursor, scope, "a number of blocks")
    cursor.expect(",", "',' and the block's dimensions")
    block, block_span = _parse_dimensions(cursor, scope, "a number of threads")
    shared, shared_span = _parse_shared(cursor, scope)
    cursor.expect(">>>")
    cursor.expect("(", "'(' and the arguments")
    arguments = _parse_arguments(cursor, scope, folder)
    closing = cursor.expect(")", "',' or ')'")
    cursor.accept(";")
    constants = _parse_constants(cursor, scope, folder)
    if cursor.token.kind != "end":
        raise cursor.error(f"expected the end or 'with', got {cursor.token}")
    return LaunchConfig(
        kernel,
        grid,
        block,
        shared,
        arguments,
        constants,
        span=Span(text, text.index(kernel[0]), first.start, origin),
        grid_span=grid_span,
        block_span=block_span,
        shared_span=shared_span,
        arguments_span=find_span_of(cursor, closing),
    )


def _write_chevrons(text: str) -> str:
    """Return `kernel<<<grid, block>>>(...)` for `kernel[grid, block](...)`; where no block stands, it is of one thread.

    Triton and Numba launch so. Triton's block is not the launch's to choose.
    """
    found = _BRACKETS.match(text)
    if found is None or "<<<" in text:
        return text
    depth, commas = 0, 0
    for at, character in enumerate(text[found.end() :], found.end()):
        depth += (character in "([{") - (character in ")]}")
        commas += depth == 0 and character == ","
        if depth < 0:
            shape = text[found.end() : at].rstrip().removesuffix(",")
            block = "" if commas and not text[found.end() : at].rstrip().endswith(",") else ", 1"
            return f"{text[: found.end() - 1]}<<<{shape}{block}>>>{text[at + 1 :]}"
    return text


def _parse_kernel(text: str, origin: str) -> tuple[str, int]:
    """Return the kernel's name, its spaces made one, and the column of `<<<`."""
    start = text.find("<<<")
    written = text[:start] if start >= 0 else text
    lead = len(written) - len(written.lstrip())
    name = " ".join(written.split())
    if start < 0 or not name:
        wanted = "'<<<' after the kernel's name" if name else "a kernel's name"
        end = start if start >= 0 else len(text.rstrip())
        raise launch_error(f"expected {wanted}, as in kernel<<<grid, block>>>(...)", Span(text, end, end + 1, origin))
    if not _KERNEL.fullmatch(name):
        span = Span(text, lead, len(written.rstrip()), origin)
        raise launch_error(f"expected a kernel's name, got '{name[:LONGEST_QUOTE]}'", span)
    return name, start


def _require_end_of_shape(cursor: Cursor) -> None:
    """Raise where `>>` was written for `>>>`, which would else be read as a shift of the block by the arguments."""
    if any(token.text == ">>>" for token in cursor.tokens):
        return
    for token, following in pairwise(cursor.tokens):
        if (token.text, following.text) == (">>", "("):
            raise cursor.error("expected '>>>' after the block's dimensions, got '>>'", token)


def _find_arguments(cursor: Cursor) -> int:
    """Return the index of the parenthesis that opens the arguments, or of the end."""
    for index, token in enumerate(cursor.tokens):
        if token.text == ">>>":
            return index + 1
    return len(cursor.tokens) - 1


def _parse_dimensions(cursor: Cursor, scope: Scope, wanted: str) -> tuple[tuple[int, int, int], Span]:
    """Return three dimensions, those not written being 1; `(a, b)` is dimensions, `(a + b) * c` is arithmetic."""
    first = cursor.token
    if cursor.token.text == "dim3" and cursor.following.text == "(":
        cursor.take()
    elif not (cursor.at("(") and _is_list(cursor)):
        return (parse_whole(cursor, scope, wanted), 1, 1), find_span(cursor, first)
    cursor.expect("(")
    sizes = [parse_whole(cursor, scope, wanted)]
    while cursor.at(","):
        comma = cursor.take()
        if cursor.at(")"):
            break  # (4096,), as Python writes one dimension
        if len(sizes) == 3:
            raise cursor.error("expected at most three dimensions", comma)
        sizes.append(parse_whole(cursor, scope, wanted))
    cursor.expect(")", "',' or ')'")
    x, y, z = (*sizes, 1, 1)[:3]
    return (x, y, z), find_span(cursor, first)


def _is_list(cursor: Cursor) -> bool:
    """Whether the bracket at the cursor holds a comma of its own."""
    depth = 0
    for token in cursor.tokens[cursor.index :]:
        if token.kind == "symbol":
            depth += (token.text in "([{") - (token.text in ")]}")
            if depth == 0:
                return False
            if depth == 1 and token.text == ",":
                return True
    return False


def _parse_shared(cursor: Cursor, scope: Scope) -> tuple[int, Span | None]:
    if not cursor.accept(","):
        if cursor.at(">>>"):
            return 0, None
        raise cursor.error(f"expected ',' or '>>>', got {cursor.token}")
    first = cursor.token
    shared = parse_whole(cursor, scope, "a number of shared bytes")
    span = find_span(cursor, first)
    # A stream may follow, as in CUDA; it changes nothing here.
    if cursor.accept(",") and parse_whole(cursor, scope, "a stream (0)") != 0:
        raise cursor.error("expected stream 0: a launch is looked at alone", cursor.tokens[cursor.index - 1])
    return shared, span


def _parse_arguments(cursor: Cursor, scope: Scope, folder: Path | None) -> tuple[Argument, ...]:
    """Return the arguments up to the closing parenthesis, which is left."""
    arguments: list[Argument] = []
    names: set[str] = set()
    if cursor.at(")"):
        return ()
    while True:
        first = cursor.token
        argument = parse_argument(cursor, scope, folder)
        if argument.name is not None and argument.name in names:
            raise cursor.error(f"the name '{argument.name}' is given twice", first)
        names.add(argument.name or "")
        arguments.append(argument)
        if not cursor.accept(","):
            return tuple(arguments)


def _parse_constants(cursor: Cursor, scope: Scope, folder: Path | None) -> tuple[tuple[str, Argument], ...]:
    constants: list[tuple[str, Argument]] = []
    if cursor.token.text != "with":
        return ()
    cursor.take()
    while True:
        first: Token = cursor.token
        if first.kind != "name" or cursor.following.text != "=":
            raise cursor.error(f"expected the name of a module variable and '=', got {first}")
        value = parse_argument(cursor, scope, folder)
        name = first.text
        if name in dict(constants):
            raise cursor.error(f"the module variable '{name}' is given twice", first)
        constants.append((name, value))
        if not cursor.accept(","):
            return tuple(constants)
