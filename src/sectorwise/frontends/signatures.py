"""Turns CUDA C++ text into its kernels' parameters, as they are spelled there, and into where it launches them.

A cubin has sizes and offsets of parameters but no types, and the name of an `extern "C"` kernel tells none either. What
is read here is used for checking what a person passes, so doubt means silence: a kernel whose parameters cannot be read
with certainty (macros in the list, two kernels of one name that differ) is left out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sectorwise.launch.sketch import is_plain, sketch_launch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
_KERNEL = re.compile(r"\b__global__\b")
_TEMPLATE = re.compile(r"\btemplate\s*<([^;{}()]+)>\s*(?:(?:static|inline)\s+)*$")
_NAME = re.compile(r"([A-Za-z_]\w*)\s*\($")
_ATTRIBUTE = re.compile(r"__launch_bounds__|__cluster_dims__|__maxnreg__|__block_size__|__attribute__")
_QUALIFIERS = frozenset({"__restrict__", "__restrict", "restrict", "__grid_constant__"})
_WORDS = frozenset(
    {"const", "volatile", "unsigned", "signed", "char", "short", "int", "long", "float", "double", "bool", "void"}
    | {"struct", "class", "enum", "union", "half", "auto"}
)
_CALL = re.compile(r"([A-Za-z_]\w*)\s*(?:<[^<>;{}]*>)?\s*<<<([^;{}]*?)>>>\s*\(", re.DOTALL)
_BRACKET = re.compile(r"[()]|__global__")
_TOKEN = re.compile(r"[A-Za-z_]\w*|::|[*&<>,\[\]()]|\d+|\S")


def find_parameter_types(text: str) -> dict[str, tuple[str, ...]]:
    """Return the parameter types of each kernel in `text` by its plain name, such as `("const float *", "int")`."""
    return _read_kernels(text, _read_type)


def find_parameter_names(text: str) -> dict[str, tuple[str, ...]]:
    """Return the parameter names of each kernel in `text` by its plain name, such as `("in", "n")`."""
    return _read_kernels(text, _read_name)


def find_calls(text: str) -> dict[str, str]:
    """Return what stands between `<<<` and `>>>` where `text` first launches each kernel, by its plain name."""
    calls: dict[str, str] = {}
    for name, shape in _CALL.findall(_strip_comments(text)):
        calls.setdefault(name, re.sub(r"\bdim3 ?\(", "(", " ".join(shape.split())))
    return calls


def find_template_parameters(text: str) -> dict[str, str]:
    """Return what stands between `template <` and `>` before each kernel that is a template, by its plain name."""
    bare = _strip_comments(text)
    heads = ((_TEMPLATE.search(bare[: found.start()]), found.end()) for found in _KERNEL.finditer(bare))
    named = ((head, _find_parameter_list(bare, end)) for head, end in heads)
    return {kernel[0]: " ".join(head[1].split()) for head, kernel in named if head is not None and kernel is not None}


def sketch_source(text: str, kernels: Sequence[tuple[str, tuple[str, ...]]]) -> list[str]:
    """Return a comment with a launch to fill in for each kernel (name, types), and how the text itself launches it."""
    templates, names, calls = find_template_parameters(text), find_parameter_names(text), find_calls(text)
    lines = []
    for name, types in kernels:
        shape = calls.get(name)
        begin = f"{name}<{templates[name]}>" if name in templates else name
        lines.append(f"// sectorwise: launch {sketch_launch(begin, types, names.get(name, ()), shape)}")
        if shape is not None and not is_plain(shape):
            lines.append(f"   (there it is launched as {name}<<<{shape}>>>; here grid and block are numbers)")
    return lines


def _strip_comments(text: str) -> str:
    return _COMMENT_OR_STRING.sub(lambda found: " " if found[0].startswith("/") else '""', text)


def _read_kernels(text: str, read: Callable[[list[str]], str | None]) -> dict[str, tuple[str, ...]]:
    """What `read` makes of each parameter's tokens, by kernel."""
    bare = _strip_comments(text)
    kernels: dict[str, tuple[str, ...] | None] = {}
    for found in _KERNEL.finditer(bare):
        named = _find_parameter_list(bare, found.end())
        if named is None:
            continue
        name, inside = named
        parameters = _split_parameters(inside, read)
        kernels[name] = parameters if name not in kernels or kernels[name] == parameters else None
    return {name: parameters for name, parameters in kernels.items() if parameters is not None}


def _find_parameter_list(text: str, start: int) -> tuple[str, str] | None:
    at = start
    while (opening := text.find("(", at)) >= 0:
        closing = _find_closing(text, opening)
        if closing is None or ";" in text[start:opening] or "{" in text[start:opening]:
            return None
        name = _NAME.search(text[start : opening + 1])
        if name is None:
            return None
        if not _ATTRIBUTE.match(name[1]):
            return name[1], text[opening + 1 : closing]
        at = closing + 1
        start = at
    return None


def _find_closing(text: str, opening: int) -> int | None:
    depth = 0
    for found in _BRACKET.finditer(text, opening):
        if found[0] == "__global__":
            return None
        depth += 1 if found[0] == "(" else -1
        if depth == 0:
            return found.start()
    return None


def _split_parameters(inside: str, read: Callable[[list[str]], str | None]) -> tuple[str, ...] | None:
    parts: list[list[str]] = [[]]
    depth = 0
    for word in _TOKEN.findall(inside):
        if word in "<([":
            depth += 1
        elif word in ">)]":
            depth -= 1
        if word == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(word)
    if parts in ([[]], [["void"]]):
        return ()
    found = [read(part) for part in parts]
    return None if any(spelled is None for spelled in found) else tuple(spelled for spelled in found if spelled)


def _read_name(tokens: list[str]) -> str | None:
    """Return the name of one parameter, or None where it has none, or one that is hard to tell from its type."""
    plain = tokens[: tokens.index("[")] if "[" in tokens else tokens
    plain = plain[: plain.index("=")] if "=" in plain else plain
    named = len(plain) > 1 and re.fullmatch(r"[A-Za-z_]\w*", plain[-1]) and plain[-1] not in _WORDS | _QUALIFIERS
    return plain[-1] if named and "(" not in tokens else None


def _read_type(tokens: list[str]) -> str | None:
    """Return the type of one parameter, or None where it is no plain `type name`, `type *name` or `type name[]`."""
    tokens = [token for token in tokens if token not in _QUALIFIERS]
    if "=" in tokens or "(" in tokens or "&" in tokens or not tokens:
        return None
    is_array = tokens[-1] == "]"
    if is_array:
        tokens = tokens[: tokens.index("[")]
    if tokens and re.fullmatch(r"[A-Za-z_]\w*", tokens[-1]) and len(tokens) > 1 and tokens[-1] not in _WORDS:
        tokens = tokens[:-1]
    if is_array:
        tokens = [*tokens, "*"]
    return re.sub(r"\s*(::|<|>|,)\s*", r"\1", " ".join(tokens)) or None
