"""Turns a class of annotated names into slotted data, as `dataclasses.dataclass` does, in a sixth of the time.

The standard library writes and compiles up to six functions a class. A short `check` loads some 230 classes of data,
and spent a quarter of its time on that. Here one function is compiled, `__init__`; the others read an instance's slots.
What is seldom asked of a class (`fields`, `replace`, `asdict`, `is_dataclass`) the standard library answers, when it is
asked.
"""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import MISSING, Field, FrozenInstanceError, field
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["dataclass"]

_FIELDS: Final = "__dataclass_fields__"
_PARAMETERS: Final = "__dataclass_params__"
_NOT_OF_SLOTS: Final = frozenset({"__dict__", "__weakref__"})
_NO_FIELDS: Final = ("ClassVar", "InitVar", "KW_ONLY")
_NOT_GIVEN: Final = object()
"""What a parameter of `__init__` is by default where a function makes the value."""


class _Later:
    """An attribute of a class that the standard library makes when it is first asked for."""

    __slots__ = ("body", "frozen", "name")

    def __init__(self, name: str, body: Mapping[str, object], *, frozen: bool) -> None:
        self.name, self.body, self.frozen = name, body, frozen

    def __get__(self, instance: object, owner: type) -> object:
        whole: type = dataclasses.dataclass(frozen=self.frozen)(type(owner.__name__, (), dict(self.body)))
        made: object = getattr(whole, self.name)
        setattr(owner, self.name, made)
        return made


def _make(cls: type, *, frozen: bool) -> type:
    """A class like `cls` whose annotated names are slots, with the methods of data."""
    annotations: dict[str, str] = cls.__annotations__
    fields = {name: _read_field(cls, name) for name in annotations}
    _refuse_others(cls, annotations, fields)
    body = {"__module__": cls.__module__, "__annotations__": annotations, **fields}
    namespace: dict[str, Any] = {
        "__repr__": _show([name for name, each in fields.items() if each.repr]),
        **_compare([name for name, each in fields.items() if each.compare], hashable=frozen),
        **(_FROZEN if frozen else {}),
        **{name: value for name, value in vars(cls).items() if name not in fields and name not in _NOT_OF_SLOTS},
        "__slots__": tuple(fields),
        "__match_args__": tuple(fields),
        "__qualname__": cls.__qualname__,
        _FIELDS: _Later(_FIELDS, body, frozen=frozen),
        _PARAMETERS: _Later(_PARAMETERS, body, frozen=frozen),
    }
    made = type(cls)(cls.__name__, cls.__bases__, namespace)
    made.__init__ = _write_init(made, annotations, fields)  # type: ignore[misc]
    return made


def _read_field(cls: type, name: str) -> Field[Any]:
    default: Any = vars(cls).get(name, MISSING)
    if isinstance(default, Field):
        return default
    if type(default).__hash__ is None:
        raise ValueError(f"{cls.__qualname__}.{name}: all instances would share {default!r}: give a default_factory")
    made: Field[Any] = field(default=default)
    return made


def _refuse_others(cls: type, annotations: Mapping[str, str], fields: Mapping[str, Field[Any]]) -> None:
    """Raises TypeError where a class asks for what is not done here: for that there is the standard library."""
    if any(_FIELDS in vars(base) for base in cls.__mro__[1:]):
        raise TypeError(f"{cls.__qualname__}: data does not inherit from data")
    if "__eq__" in vars(cls) and vars(cls)["__hash__"] is None:
        raise TypeError(f"{cls.__qualname__}: where data says when it is equal, it has to say its hash, too")
    may_be_left_out = False
    for name, each in fields.items():
        if annotations[name].partition("[")[0].rpartition(".")[2] in _NO_FIELDS:
            raise TypeError(f"{cls.__qualname__}.{name}: {annotations[name]} is no field")
        if not each.init or each.kw_only is True or each.hash is not None:
            raise TypeError(f"{cls.__qualname__}.{name}: a field has no options but repr, compare and metadata")
        has_default = each.default is not MISSING or each.default_factory is not MISSING
        if may_be_left_out and not has_default:
            raise TypeError(f"{cls.__qualname__}.{name} has no default, but follows one that has")
        may_be_left_out = has_default


def _write_init(cls: type, annotations: Mapping[str, str], fields: Mapping[str, Field[Any]]) -> Callable[..., None]:
    """`__init__`: a parameter for each field, and its value put into the slot."""
    parameters, lines = ["self"], []
    known: dict[str, object] = {"__not_given": _NOT_GIVEN}
    for name, each in fields.items():
        # A slot's own setter takes two thirds of the time of `object.__setattr__`, which looks for it by name.
        known[f"__set_{name}"] = getattr(cls, name).__set__
        value = name
        if each.default_factory is not MISSING:
            known[f"__make_{name}"] = each.default_factory
            parameters.append(f"{name}=__not_given")
            value = f"__make_{name}() if {name} is __not_given else {name}"
        elif each.default is not MISSING:
            known[f"__default_{name}"] = each.default
            parameters.append(f"{name}=__default_{name}")
        else:
            parameters.append(name)
        lines.append(f"  __set_{name}(self, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("  self.__post_init__()")
    body = "\n".join(lines or ["  pass"])
    text = f"def write({', '.join(known)}):\n def __init__({', '.join(parameters)}):\n{body}\n return __init__"
    made: dict[str, Any] = {}
    exec(text, vars(sys.modules[cls.__module__]), made)  # noqa: S102 - the standard library does the same
    written: Callable[..., None] = made["write"](**known)
    written.__qualname__ = f"{cls.__qualname__}.__init__"
    written.__annotations__ = {**annotations, "return": None}
    return written


def _show(names: Sequence[str]) -> Callable[[Any], str]:
    @recursive_repr()
    def __repr__(self: Any) -> str:  # noqa: ANN401, N807 - a method
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return __repr__


def _compare(names: Sequence[str], *, hashable: bool) -> dict[str, object]:
    read: Callable[[Any], tuple[object, ...]]
    match names:
        case []:
            read = lambda _: ()  # noqa: E731
        case [name]:
            read = lambda data: (getattr(data, name),)  # noqa: E731
        case _:
            read = attrgetter(*names)

    def __eq__(self: Any, other: object) -> bool:  # noqa: ANN401, N807 - a method
        return read(self) == read(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: Any) -> int:  # noqa: ANN401, N807 - a method
        return hash(read(self))

    return {"__eq__": __eq__, "__hash__": __hash__ if hashable else None}


def _refuse_value(self: object, name: str, value: object) -> None:
    del self, value
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_removal(self: object, name: str) -> None:
    del self
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _read_state(self: Any) -> list[object]:  # noqa: ANN401 - a method
    return [getattr(self, name) for name in self.__slots__]


def _write_state(self: Any, state: Sequence[object]) -> None:  # noqa: ANN401 - a method
    for name, value in zip(self.__slots__, state, strict=True):
        object.__setattr__(self, name, value)


_FROZEN: Final = {
    "__setattr__": _refuse_value,
    "__delattr__": _refuse_removal,
    # Copies and pickles set attributes, unless a class says how else.
    "__getstate__": _read_state,
    "__setstate__": _write_state,
}

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(*, frozen: bool = False, slots: bool) -> Callable[[type], type]:
        """The decorator of classes of data; type checkers take it for the standard library's.

        There is nothing but `frozen`, and `slots` has to be true.
        """
        if not slots:
            raise TypeError("data has slots: for others there is the standard library's `dataclass`")
        return lambda cls: _make(cls, frozen=frozen)
