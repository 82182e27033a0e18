"""Turns the text of one launch argument (`f32[1 << 20]=uniform(1)`, `n=512`, `{...}`, `ptr(a, 64)`) into its data."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from typing import TYPE_CHECKING

from sectorwise.launch.carets import name_nearest
from sectorwise.launch.config import (
    BufferArgument,
    BytesArgument,
    Contents,
    PointerArgument,
    ScalarArgument,
    StructArgument,
)
from sectorwise.launch.dtypes import ELEMENT_TYPES, LONG_NAMES, find_misfit, find_trouble
from sectorwise.launch.expressions import Scope, parse_number, parse_whole, read_float
from sectorwise.launch.tensor_maps import find_map_trouble, make_tensor_map, parse_options
from sectorwise.launch.tokens import find_span

if TYPE_CHECKING:
    from pathlib import Path

    from sectorwise.launch.config import Argument, TensorMapArgument
    from sectorwise.tokens import Cursor, Token

_C_TYPES = {
    "double": "f64",
    "float": "f32",
    "half": "f16",
    "__half": "f16",
    "__nv_bfloat16": "bf16",
    "int": "i32",
    "unsigned": "u32",
    "short": "i16",
    "char": "i8",
    "long": "i64",
    "size_t": "u64",
}
"""What people write out of habit, for the hint only."""

_KINDS = ("zeros", "arange", "perm", "uniform", "noise")


def parse_argument(cursor: Cursor, scope: Scope, folder: Path | None) -> Argument:
    """Return the argument at the cursor, with its name if it has one, and its span."""
    first = cursor.token
    name = None
    if first.kind == "name" and cursor.following.text == "=":
        name = first.text
        cursor.take()
        cursor.take()
    value = _parse_value(cursor, scope, folder)
    return dataclasses.replace(value, name=name, span=find_span(cursor, first))


def _parse_value(cursor: Cursor, scope: Scope, folder: Path | None) -> Argument:
    token = cursor.token
    opening = cursor.following.text
    if cursor.at("{"):
        return _parse_struct(cursor, scope.deeper(cursor), folder)
    if token.kind == "name":
        dtype = LONG_NAMES.get(token.text, token.text)
        match dtype, opening:
            case "bytes", "(":
                return _parse_bytes(cursor)
            case "ptr", "(":
                return _parse_pointer(cursor, scope)
            case "tensor_map", "(":
                return _parse_tensor_map(cursor, scope, folder)
            case "nullptr", _ if token.text not in scope.definitions:
                cursor.take()
                return ScalarArgument(0, "u64")
            case _, "[" if dtype in ELEMENT_TYPES:
                return _parse_buffer(cursor, scope, dtype, folder)
            case _, "(" if dtype in ELEMENT_TYPES:
                return _parse_typed_scalar(cursor, scope, dtype)
        if opening in {"(", "["} or token.text in _C_TYPES:
            raise cursor.error(_explain_unknown_type(token))
    value = parse_number(cursor, scope, "an argument, such as f32[1024] or n=512")
    literal = cursor.tokens[cursor.index - 1]
    is_single = literal.text.endswith(("f", "F")) and read_float(literal) is not None
    return ScalarArgument(value, "f32" if is_single else None)


def _explain_unknown_type(token: Token) -> str:
    known = _C_TYPES.get(token.text)
    hint = f"; write {known}" if known else name_nearest(token.text, (*ELEMENT_TYPES, "bytes", "ptr", "tensor_map"))
    return f"expected a type ({' '.join(ELEMENT_TYPES)}), got {token}{hint}"


def _parse_buffer(cursor: Cursor, scope: Scope, dtype: str, folder: Path | None) -> BufferArgument:
    first = cursor.take()
    cursor.expect("[")
    size_token = cursor.token
    shape = [parse_whole(cursor, scope, "a number of elements")]
    while cursor.accept(","):
        shape.append(parse_whole(cursor, scope, "a number of elements"))
    count = math.prod(shape)
    if min(shape) < 1:
        raise cursor.error(f"expected at least one element, got {min(shape)}", size_token)
    cursor.expect("]")
    contents_token = cursor.token
    contents = Contents()
    if cursor.accept("="):
        contents_token = cursor.token
        contents = _parse_contents(cursor, scope, folder)
    sizes = tuple(shape) if len(shape) > 1 else None
    buffer = BufferArgument(dtype, count, contents, span=find_span(cursor, first), shape=sizes)
    trouble = find_trouble(buffer)
    if trouble:
        raise cursor.error(trouble, contents_token)
    return buffer


def _parse_contents(cursor: Cursor, scope: Scope, folder: Path | None) -> Contents:
    token = cursor.take()
    if token.kind == "path":
        return Contents("file", path=_read_path(cursor, token, folder))
    match token.text:
        case "zeros" | "arange" | "noise":
            return Contents(token.text)
        case "perm" | "uniform":
            cursor.expect("(", f"'(' and a seed, as in {token.text}(1)")
            seed_token = cursor.token
            seed = parse_whole(cursor, scope, "a seed")
            if seed < 0:
                raise cursor.error(f"expected a seed of 0 or more, got {seed}", seed_token)
            below = None
            if token.text == "uniform" and cursor.accept(","):
                below = parse_whole(cursor, scope, "a bound that the numbers stay below")
            cursor.expect(")")
            return Contents(token.text, seed=seed, below=below)
    hint = name_nearest(token.text, _KINDS)
    wanted = "zeros, arange, perm(seed), uniform(seed), uniform(seed, below), noise or @file.npy"
    raise cursor.error(f"expected contents ({wanted}), got {token}{hint}", token)


def _read_path(cursor: Cursor, token: Token, folder: Path | None) -> str:
    path = token.text[1:]
    if path.startswith('"'):
        try:
            path = json.loads(path, strict=False)
        except ValueError:
            raise cursor.error('expected a path in quotes, with \\\\ and \\" as the only escapes', token) from None
    if not path or "\0" in path:
        raise cursor.error("expected a path after '@'", token)
    return str(folder / path) if folder is not None else path


def _parse_typed_scalar(cursor: Cursor, scope: Scope, dtype: str) -> ScalarArgument:
    cursor.take()
    cursor.expect("(")
    token = cursor.token
    value = parse_number(cursor, scope)
    cursor.expect(")")
    trouble = find_misfit(value, ELEMENT_TYPES[dtype])
    if trouble:
        raise cursor.error(trouble, token)
    return ScalarArgument(float(value) if ELEMENT_TYPES[dtype].is_float else value, dtype)


def _parse_struct(cursor: Cursor, scope: Scope, folder: Path | None) -> StructArgument:
    cursor.expect("{")
    fields = [parse_argument(cursor, scope, folder)]
    while cursor.accept(","):
        fields.append(parse_argument(cursor, scope, folder))
    cursor.expect("}", "',' or '}'")
    return StructArgument(tuple(fields))


def _parse_tensor_map(cursor: Cursor, scope: Scope, folder: Path | None) -> TensorMapArgument:
    cursor.take()
    cursor.expect("(")
    first = cursor.token
    buffer = parse_argument(cursor, scope, folder)
    if not isinstance(buffer, BufferArgument):
        raise cursor.error("expected the buffer that the map is of, such as f16[64, 64]", first)
    options = parse_options(cursor, scope)
    cursor.expect(")", "',' or ')'")
    made = make_tensor_map(buffer, *options)
    trouble = find_map_trouble(made)
    if trouble is not None:
        raise cursor.error(f"{trouble[0]}: {trouble[1]}", first)
    return made


def _parse_bytes(cursor: Cursor) -> BytesArgument:
    cursor.take()
    opening = cursor.expect("(")
    end = cursor.text.find(")", opening.end)
    end = len(cursor.text) if end < 0 else end
    # Hexadecimal is read from the text: as tokens, `00 1e+2` would be numbers.
    written = cursor.text[opening.end : end]
    digits = "".join(written.split())
    while cursor.token.kind != "end" and cursor.token.start < end:
        cursor.take()
    cursor.expect(")")
    if not digits or len(digits) % 2 or not re.fullmatch(r"[0-9a-fA-F]+", digits):
        what = f"'{written.strip()}'" if written.strip() else "nothing"
        raise cursor.error(
            f"expected bytes as pairs of hexadecimal digits, got {what}", cursor.tokens[cursor.index - 2]
        )
    return BytesArgument(bytes.fromhex(digits))


def _parse_pointer(cursor: Cursor, scope: Scope) -> PointerArgument:
    cursor.take()
    cursor.expect("(")
    target = cursor.token
    if target.kind != "name":
        raise cursor.error(f"expected the name of a buffer, got {target}")
    cursor.take()
    offset = parse_whole(cursor, scope, "an offset in bytes") if cursor.accept(",") else 0
    cursor.expect(")", "',' or ')'")
    return PointerArgument(target.text, offset)
