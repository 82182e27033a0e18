"""Turns the entry points of a framework into others for a while, and back."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sectorwise.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Record = Callable[..., None]
"""Takes a kernel object and, by name, `grid`, `block`, `positional`, `named`, `dynamic_shared_bytes`, `case`."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """An attribute of a module or class, under the name that people know it by, and what stands there meanwhile."""

    name: str
    owner: Any
    attribute: str
    value: object


@contextmanager
def replace_all(replacements: Iterable[Replacement]) -> Iterator[None]:
    """Put the replacements in place, and what was there back at the end."""
    before: list[tuple[Any, str, object, bool]] = []
    try:
        for each in replacements:
            original = getattr(each.owner, each.attribute)
            before.append((each.owner, each.attribute, original, _is_inherited(each.owner, each.attribute)))
            setattr(each.owner, each.attribute, each.value)
        yield
    finally:
        for owner, attribute, value, is_inherited in reversed(before):
            if is_inherited:
                delattr(owner, attribute)
            else:
                setattr(owner, attribute, value)


def _is_inherited(owner: object, attribute: str) -> bool:
    """Whether a class has an attribute from a class above it alone: taking it away brings that one back."""
    if not isinstance(owner, type) or attribute in vars(owner):
        return False
    return any(attribute in vars(base) for base in owner.__mro__[1:])


def refuse(name: str) -> Callable[..., object]:
    """A function that says that `name` needs a GPU and is not replaced."""

    def refuse_call(*_args: object, **_named: object) -> object:
        raise make_error(name)

    return refuse_call


def make_error(name: str) -> CaptureError:
    """The error for an entry point that is not replaced."""
    return CaptureError(f"{name} needs a GPU, and has no replacement while launches are captured")
