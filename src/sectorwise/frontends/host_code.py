"""Turns CUDA C++ files with host code into the device code in them, every line where it was.

nvcc compiles a file twice, NVRTC only for the device: it stops at `main`, `kernel<<<...>>>` and `std::vector`. So what
no kernel needs is blanked out: kept are kernels, module variables, and whatever they name, directly or through others.
Names are all that is looked at; where two things share one, both stay.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sectorwise.frontends.declarations import (
    Declaration,
    DeclarationKind,
    read_declarations,
    read_macro,
    split_tokens,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sectorwise.tokens import Token

_COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
_HOST_SIGNS = re.compile(
    r"<<<|\bint\s+main\s*\(|\bcuda(?:Malloc|Memcpy|Free|Event|Stream|Device|Get|Error)\w*|\b__host__\b(?!\s*__device__)"
    r"|\bstd::(?:cout|cerr|endl|vector|string|chrono|ofstream|unique_ptr|mt19937|sort)\b|\b(?:at|torch|c10)::"
    r"|#\s*include\s*<(?:iostream|vector|string|chrono|random|fstream|thrust/|torch/|memory|map|iomanip)"
)
_HOST_CALLS = re.compile(
    r"cuda[A-Z]\w*|cu(?:blas|rand|fft|sparse|solver|dnn)[A-Z_]\w*|exit|abort|fopen|fprintf|rand|srand|throw|cout|cerr"
    r"|vector|string|unique_ptr|shared_ptr|ostream|<<<"
)
_HOST_LIBRARY = re.compile(
    r"\s*#\s*include\s*[<\"](?P<library>thrust|torch|ATen|c10|pybind11|cublas\w*|cusparse|cusolver|cufft|cudnn|nvtx3|nccl)[/.]"
)
_KERNEL_WORD = "__global__"
_VARIABLE_WORDS = frozenset({"__constant__", "__device__", "__managed__"})
_DEVICE_WORDS = frozenset({"__device__", "constexpr", "consteval"})


@dataclass(frozen=True, slots=True)
class _Words:
    """Words that mean `__global__`, or `__device__` and its like, in these files: macros may stand for them."""

    kernel: frozenset[str]
    device: frozenset[str]
    variable: frozenset[str]


def has_host_code(text: str) -> bool:
    """Whether something in this text is for the host alone; comments and strings do not count."""
    without = _COMMENT_OR_STRING.sub(lambda found: '""' if found[0].startswith('"') else " ", text)
    return _HOST_SIGNS.search(without) is not None


def drop_host_code(texts: Mapping[str, str]) -> dict[str, str]:
    """Return these files, a source and the headers that it includes, without their host code, by the same names.

    Lines and columns of what stays are as they were; directives stay. A text whose brackets do not match stays whole.
    """
    outlines = {name: read_declarations(text) for name, text in texts.items()}
    declarations = [each for outline in outlines.values() for each in outline or ()]
    whole = [text for name, text in texts.items() if outlines[name] is None]
    words = _find_words(declarations)
    used = _follow_names(declarations, words, whole)
    return {
        name: text if outline is None else _blank_host_code(text, outline, words, used)
        for (name, text), outline in zip(texts.items(), outlines.values(), strict=True)
    }


def _find_words(declarations: Iterable[Declaration]) -> _Words:
    """Return the annotations, with the macros of these files that stand for them (`#define HD __host__ __device__`)."""
    kernel, device, variable = {_KERNEL_WORD}, set(_DEVICE_WORDS), set(_VARIABLE_WORDS)
    for name, replacement in _list_macros(declarations):
        words = {token.text for token in split_tokens(replacement)}
        for known in (kernel, device, variable):
            if words & known:
                known.add(name)
    return _Words(frozenset(kernel), frozenset(device), frozenset(variable))


def _list_macros(declarations: Iterable[Declaration]) -> Iterator[tuple[str, str]]:
    for declaration in declarations:
        for token in declaration.tokens:
            macro = read_macro(token.text) if token.kind == "directive" else None
            if macro is not None:
                yield macro


def _is_root(declaration: Declaration, words: _Words) -> bool:
    """Whether it is a kernel or a module variable, or an operator for the device, which no name refers to."""
    found = declaration.words()
    if found & words.kernel:
        return True
    match declaration.kind:
        case DeclarationKind.OTHER:
            return bool(found & words.variable)
        case DeclarationKind.FUNCTION:
            return declaration.names == ("operator",) and bool(found & words.device)
        case _:
            return False


def _follow_names(declarations: Iterable[Declaration], words: _Words, whole: Iterable[str]) -> frozenset[str]:
    """Return the names that kernels and module variables use, directly or through what they use."""
    users: dict[str, set[str]] = defaultdict(set)
    waiting: set[str] = {token.text for text in whole for token in split_tokens(text)}
    for declaration in declarations:
        if _is_root(declaration, words):
            waiting |= _list_used(declaration)
        elif declaration.kind is not DeclarationKind.DIRECTIVE and not _is_for_host(declaration, words):
            for name in declaration.names:
                users[name] |= _list_used(declaration)
    for name, replacement in _list_macros(declarations):
        users[name] |= {token.text for token in split_tokens(replacement) if token.kind == "name"}
    used: set[str] = set()
    while waiting:
        name = waiting.pop()
        used.add(name)
        waiting |= users.get(name, set()) - used
    return frozenset(used)


def _list_used(declaration: Declaration) -> set[str]:
    """Return the names in a declaration, a function's own apart: a host function may be called as its kernel is."""
    own = declaration.names if declaration.kind is DeclarationKind.FUNCTION else ()
    return set(declaration.words()).difference(own)


def _is_for_host(declaration: Declaration, words: _Words) -> bool:
    """Whether a function says that it is for the host, or does what only the host does, such as launching a kernel."""
    if declaration.kind is not DeclarationKind.FUNCTION or declaration.words() & (words.device | words.kernel):
        return False
    return any(token.text == "__host__" or _HOST_CALLS.fullmatch(token.text) for token in declaration.tokens)


def _blank_host_code(text: str, outline: Iterable[Declaration], words: _Words, used: frozenset[str]) -> str:
    characters = list(text)
    for declaration in outline:
        if declaration.kind in {DeclarationKind.DIRECTIVE, DeclarationKind.OPENING}:
            continue
        if _is_using_namespace(declaration):
            _name_namespace_first(characters, declaration)
        elif not _is_root(declaration, words) and (
            _is_for_host(declaration, words) or not used.intersection(declaration.names)
        ):
            _blank(characters, declaration)
        elif declaration.kind is DeclarationKind.TYPE:
            for method in _find_host_methods(text, declaration, words):
                _blank(characters, method)
    for include in _find_host_includes(outline, used):
        _blank_range(characters, include.start, include.end)
    return "".join(characters)


def _find_host_includes(outline: Iterable[Declaration], used: frozenset[str]) -> Iterator[Token]:
    """Yield the includes of libraries for the host that no kernel names; NVRTC does not compile their headers."""
    for declaration in outline:
        for token in declaration.tokens:
            found = _HOST_LIBRARY.match(token.text) if token.kind == "directive" else None
            if found is not None and found["library"] not in used:
                yield token


def _is_using_namespace(declaration: Declaration) -> bool:
    return [token.text for token in declaration.tokens[:2]] == ["using", "namespace"]


def _name_namespace_first(characters: list[str], declaration: Declaration) -> None:
    """Open the namespace before it is used: its header may have been for the host, and is not there."""
    name = "".join(token.text for token in declaration.tokens[2:-1])
    if name and name != "cg":
        characters[declaration.start] = f"namespace {name} {{}} {characters[declaration.start]}"


def _blank(characters: list[str], declaration: Declaration) -> None:
    kept = [token for token in declaration.tokens if token.kind == "directive"]
    at = declaration.start
    for token in kept:
        _blank_range(characters, at, token.start)
        at = token.end
    _blank_range(characters, at, declaration.end)


def _blank_range(characters: list[str], start: int, end: int) -> None:
    for index in range(start, end):
        if characters[index] != "\n":
            characters[index] = " "


def _find_host_methods(text: str, declaration: Declaration, words: _Words) -> Iterator[Declaration]:
    """Yield the methods of a class that call the host's functions and do not say that they are for the device."""
    if declaration.body is None:
        return
    start = declaration.tokens[declaration.body].end
    closing = next((token for token in reversed(declaration.tokens) if token.text == "}"), None)
    inside = read_declarations(" " * start + text[start : closing.start]) if closing is not None else None
    for method in inside or ():
        calls_host = any(_HOST_CALLS.fullmatch(token.text) for token in method.tokens)
        if method.kind is DeclarationKind.FUNCTION and calls_host and not method.words() & words.device:
            yield method
