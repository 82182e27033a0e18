"""Turns the symbol of a kernel into the name that its author wrote, and into the types of its parameters.

The symbols follow the Itanium C++ ABI, section 5.1 (External Names). What kernels' names are made of is read: nested
names, templates with their arguments, substitutions, builtin types, pointers, arrays and functions. A symbol with
anything else (expressions, ...) stays as it is: no name is better than a wrong one.
"""

from __future__ import annotations

from msgspec import Struct, field

from sectorwise.errors import SectorwiseError

_BUILTINS = {
    "v": "void",
    "w": "wchar_t",
    "b": "bool",
    "c": "char",
    "a": "signed char",
    "h": "unsigned char",
    "s": "short",
    "t": "unsigned short",
    "i": "int",
    "j": "unsigned int",
    "l": "long",
    "m": "unsigned long",
    "x": "long long",
    "y": "unsigned long long",
    "n": "__int128",
    "o": "unsigned __int128",
    "f": "float",
    "d": "double",
    "e": "long double",
    "g": "__float128",
    "z": "...",
}
_EXTENDED_BUILTINS = {"Dn": "decltype(nullptr)", "Di": "char32_t", "Ds": "char16_t", "Du": "char8_t", "Da": "auto"}
_STANDARD = {
    "St": "std",
    "Sa": "std::allocator",
    "Sb": "std::basic_string",
    "Ss": "std::string",
    "Si": "std::istream",
    "So": "std::ostream",
    "Sd": "std::iostream",
}
_QUALIFIERS = {"K": "const", "V": "volatile", "r": "__restrict__"}
_REFERENCES = {"P": "*", "R": "&", "O": "&&"}
_LITERAL_SUFFIXES = {"j": "u", "l": "l", "m": "ul", "x": "ll", "y": "ull"}
_DIGITS = "0123456789"
_DEEPEST = 64


class KernelName(Struct, frozen=True):
    """A kernel's name as written (`ns::transpose<32>`) and its parameters' types; None: the symbol does not tell."""

    readable: str
    parameter_types: tuple[str, ...] | None


class _UnknownFormError(SectorwiseError):
    """The symbol has a form that is not read here; caught in this module."""


class _Reader(Struct):
    """A place in a symbol, with what substitutions and template parameters refer to (a pack is several types)."""

    text: str
    at: int = 0
    depth: int = 0
    is_naming: bool = True
    known: list[str] = field(default_factory=list)
    arguments: list[tuple[str, ...]] = field(default_factory=list)


def read_kernel_name(symbol: str) -> KernelName:
    """Read a symbol: `_Z9transposeILi32EEvPKfPf` is `transpose<32>` with parameters `const float*` and `float*`.

    A symbol that is not mangled (`extern "C"`), or not of a form that is read here, is its own name.
    """
    if not symbol.startswith("_Z"):
        return KernelName(symbol, None)
    reader = _Reader(symbol, at=2)
    try:
        name, is_template = _read_name(reader)
        # From here on `T_` means the kernel's own template arguments, whatever templates its parameters are made of.
        reader.is_naming = False
        if is_template:
            _read_type(reader)
        types = _read_parameters(reader)
    except (_UnknownFormError, IndexError, ValueError):
        return KernelName(symbol, None)
    return KernelName(name, types)


def _read_parameters(reader: _Reader) -> tuple[str, ...]:
    types: list[str] = []
    while reader.at < len(reader.text) and reader.text[reader.at] not in ".$":
        types += _read_types(reader)
    return () if types == ["void"] else tuple(types)


def _take(reader: _Reader, prefix: str) -> bool:
    if not reader.text.startswith(prefix, reader.at):
        return False
    reader.at += len(prefix)
    return True


def _expect(reader: _Reader, prefix: str) -> None:
    if not _take(reader, prefix):
        raise _UnknownFormError(reader.text)


def _read_number(reader: _Reader) -> int:
    start = reader.at
    while reader.at < len(reader.text) and reader.text[reader.at] in _DIGITS:
        reader.at += 1
    return int(reader.text[start : reader.at])


def _read_name(reader: _Reader) -> tuple[str, bool]:
    """Return a name, and whether it ends in template arguments."""
    if _take(reader, "N"):
        return _read_nested(reader)
    if reader.text.startswith("S", reader.at) and not reader.text.startswith("St", reader.at):
        name = _read_substitution(reader)
    else:
        name = f"std::{_read_part(reader)}" if _take(reader, "St") else _read_part(reader)
        if reader.text.startswith("I", reader.at):
            reader.known.append(name)
    if reader.text.startswith("I", reader.at):
        return name + _read_template_arguments(reader), True
    return name, False


def _read_nested(reader: _Reader) -> tuple[str, bool]:
    while reader.text[reader.at] in _QUALIFIERS:
        reader.at += 1
    name = ""
    is_template = False
    while not _take(reader, "E"):
        if reader.text.startswith("I", reader.at):
            name += _read_template_arguments(reader)
            is_template = True
        elif reader.text.startswith("S", reader.at):
            name = "std" if _take(reader, "St") else _read_substitution(reader)
            is_template = False
            continue
        elif reader.text.startswith("T", reader.at):
            name = ", ".join(_read_template_parameter(reader))
            is_template = False
        else:
            part = _read_part(reader)
            name = f"{name}::{part}" if name else part
            is_template = False
        if not reader.text.startswith("E", reader.at):
            reader.known.append(name)
    return name, is_template


def _read_part(reader: _Reader) -> str:
    _take(reader, "L")  # internal linkage, as compilers mark it
    length = _read_number(reader)
    part = reader.text[reader.at : reader.at + length]
    if len(part) < length or not length:
        raise _UnknownFormError(reader.text)
    reader.at += length
    return "(anonymous namespace)" if part.startswith("_GLOBAL__N_") else part


def _read_substitution(reader: _Reader) -> str:
    for code, name in _STANDARD.items():
        if _take(reader, code):
            return name
    _expect(reader, "S")
    end = reader.text.index("_", reader.at)
    digits = reader.text[reader.at : end]
    reader.at = end + 1
    return reader.known[int(digits, 36) + 1 if digits else 0]


def _read_template_parameter(reader: _Reader) -> tuple[str, ...]:
    _expect(reader, "T")
    number = 0 if reader.text.startswith("_", reader.at) else _read_number(reader) + 1
    _expect(reader, "_")
    return reader.arguments[number]


def _read_parameter_type(reader: _Reader) -> str:
    name = _remember(reader, ", ".join(_read_template_parameter(reader)))
    if reader.text.startswith("I", reader.at):
        return _remember(reader, name + _read_template_arguments(reader))
    return name


def _read_template_arguments(reader: _Reader) -> str:
    _expect(reader, "I")
    arguments: list[tuple[str, ...]] = []
    while not _take(reader, "E"):
        if _take(reader, "J"):
            pack: list[str] = []
            while not _take(reader, "E"):
                pack.append(_read_argument(reader))
            arguments.append(tuple(pack))
        else:
            arguments.append((_read_argument(reader),))
    if reader.is_naming:
        reader.arguments = arguments
    return f"<{', '.join(argument for pack_or_one in arguments for argument in pack_or_one)}>"


def _read_argument(reader: _Reader) -> str:
    if not _take(reader, "L"):
        return _read_type(reader)
    if _take(reader, "_Z"):
        raise _UnknownFormError(reader.text)
    code = reader.text[reader.at]
    kind = _read_type(reader)
    end = reader.text.index("E", reader.at)
    value = reader.text[reader.at : end].replace("n", "-")
    reader.at = end + 1
    if kind == "bool":
        return {"0": "false", "1": "true"}[value]
    if kind == "int":
        return value
    if code in _LITERAL_SUFFIXES:
        return value + _LITERAL_SUFFIXES[code]
    return f"({kind}){value}"


def _read_types(reader: _Reader) -> list[str]:
    """Read one type, or the types of a pack (`DpT_`)."""
    if not _take(reader, "Dp"):
        return [_read_type(reader)]
    pack = _read_template_parameter(reader)
    _remember(reader, ", ".join(pack))
    return list(pack)


def _read_type(reader: _Reader) -> str:
    reader.depth += 1
    if reader.depth > _DEEPEST:
        raise _UnknownFormError(reader.text)
    try:
        return _read_type_here(reader)
    finally:
        reader.depth -= 1


def _read_type_here(reader: _Reader) -> str:
    letter = reader.text[reader.at]
    if letter in _BUILTINS:
        reader.at += 1
        return _BUILTINS[letter]
    if letter == "D":
        return _read_extended(reader)
    if letter in _REFERENCES:
        reader.at += 1
        return _remember(reader, _refer(_read_type(reader), _REFERENCES[letter]))
    if letter in _QUALIFIERS:
        return _remember(reader, _read_qualified(reader))
    if letter == "T":
        return _read_parameter_type(reader)
    if letter == "F":
        return _remember(reader, _read_function(reader))
    if letter == "A":
        reader.at += 1
        length = "" if reader.text.startswith("_", reader.at) else str(_read_number(reader))
        _expect(reader, "_")
        return _remember(reader, f"{_read_type(reader)} [{length}]")
    return _read_class(reader)


def _read_qualified(reader: _Reader) -> str:
    words: list[str] = []
    while reader.text[reader.at] in _QUALIFIERS:
        words.append(_QUALIFIERS[reader.text[reader.at]])
        reader.at += 1
    inner = _read_type(reader)
    if inner.endswith(("*", "&")):
        return f"{inner} {' '.join(reversed(words))}"
    return f"{' '.join(reversed(words))} {inner}"


def _read_function(reader: _Reader) -> str:
    _expect(reader, "F")
    result = _read_type(reader)
    parameters: list[str] = []
    while not _take(reader, "E"):
        parameters += _read_types(reader)
    return f"{result} ({'' if parameters == ['void'] else ', '.join(parameters)})"


def _read_extended(reader: _Reader) -> str:
    for code, name in _EXTENDED_BUILTINS.items():
        if _take(reader, code):
            return name
    if _take(reader, "DF16_"):
        return "_Float16"
    if _take(reader, "DF16b"):
        return "__bf16"
    raise _UnknownFormError(reader.text)


def _read_class(reader: _Reader) -> str:
    is_plain_substitution = reader.text.startswith("S", reader.at) and not reader.text.startswith("St", reader.at)
    start = reader.at
    name, is_template = _read_name(reader)
    if is_plain_substitution and not is_template:
        return name
    if reader.text[start] == "S" and not is_template and name in reader.known:
        return name
    return _remember(reader, name)


def _refer(inner: str, mark: str) -> str:
    if "(" in inner and inner.endswith(")") and not inner.startswith("("):
        head, _, tail = inner.partition(" (")
        return f"{head} ({mark})({tail}"
    if inner.endswith("]"):
        head, _, tail = inner.rpartition(" [")
        return f"{head} ({mark}) [{tail}"
    return f"{inner}{mark}"


def _remember(reader: _Reader, name: str) -> str:
    reader.known.append(name)
    return name
