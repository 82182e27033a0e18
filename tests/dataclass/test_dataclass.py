"""Classes of data are what the standard library would have made of them, and what they do not do they refuse."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import inspect
import pickle
import pkgutil
from dataclasses import field
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sectorwise
from sectorwise.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")


def write_point() -> type:
    """A class with all that fields may be."""

    class Point:
        """A point."""

        x: int
        y: float
        label: str = "here"
        tags: dict[str, int] = field(default_factory=dict)
        note: str = field(default="", compare=False, repr=False, metadata={"shown": False})

        @property
        def sum(self) -> float:
            """A property stays."""
            return self.x + self.y

    return Point


def write_single() -> type:
    """A class with one field."""

    class Single:
        """One."""

        value: tuple[object, ...] = ()

    return Single


def write_empty() -> type:
    """A class without fields."""

    class Empty:
        """None."""

    return Empty


def write_checked() -> type:
    """A class that does something at the end of `__init__`."""

    class Checked:
        """An interval."""

        low: int
        high: int

        def __post_init__(self) -> None:
            if self.low > self.high:
                raise ValueError(f"{self.low} is above {self.high}")

    return Checked


def write_box() -> type:
    """A class of a type that is told later."""

    class Box(Generic[T]):
        """A box."""

        content: T

    return Box


BODIES = (write_point, write_single, write_empty, write_checked, write_box)


def make_both(write: Callable[[], type], *, frozen: bool) -> tuple[Any, Any]:
    """The class that this package makes of a body, and the standard library's."""
    theirs: Any = dataclasses.dataclass(frozen=frozen, slots=True)(write())
    return dataclass(frozen=frozen, slots=True)(write()), theirs


def list_data() -> Iterator[type]:
    """Every class of data with slots in the package."""
    for module in pkgutil.walk_packages(sectorwise.__path__, "sectorwise."):
        for value in vars(importlib.import_module(module.name)).values():
            if (
                isinstance(value, type)
                and value.__module__ == module.name
                and {"__dataclass_fields__", "__slots__"} <= vars(value).keys()
            ):
                yield value


def remake(cls: type) -> type:
    """The class that the standard library makes of the fields of another."""
    parts: list[tuple[str, Any, Any]] = []
    for each in dataclasses.fields(cls):
        keys = ("default", "default_factory", "compare", "repr", "metadata")
        parts.append((each.name, each.type, field(**{key: getattr(each, key) for key in keys})))
    frozen = cls.__dataclass_params__.frozen  # type: ignore[attr-defined]
    return dataclasses.make_dataclass(cls.__name__, parts, frozen=frozen, slots=True)


def test_all_data_of_the_package_is_as_the_standard_library_makes_it() -> None:
    found = list(list_data())
    assert len(found) > 300
    for cls in found:
        again = remake(cls)
        ours, theirs = inspect.signature(cls).parameters, inspect.signature(again).parameters
        assert list(ours) == list(theirs), cls
        for name, parameter in ours.items():
            other = theirs[name]
            assert parameter.kind == other.kind, cls
            assert (parameter.default is inspect.Parameter.empty) == (other.default is inspect.Parameter.empty), cls
        assert vars(cls)["__match_args__"] == vars(again)["__match_args__"], cls
        assert vars(cls)["__slots__"] == vars(again)["__slots__"], cls
        assert (cls.__hash__ is None) == (again.__hash__ is None), cls


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize("write", BODIES)
def test_classes_tell_the_same_of_themselves(write: Callable[[], type], *, frozen: bool) -> None:
    ours, theirs = make_both(write, frozen=frozen)
    for name in ("__name__", "__qualname__", "__module__", "__doc__", "__match_args__", "__slots__"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert ours.__annotations__ == theirs.__annotations__
    assert get_type_hints(ours.__init__) == get_type_hints(theirs.__init__)
    assert ours.__init__.__qualname__.endswith(f"{theirs.__name__}.__init__")
    shown = [
        [(each.name, each.type, each.repr, each.compare, dict(each.metadata)) for each in dataclasses.fields(cls)]
        for cls in (ours, theirs)
    ]
    assert shown[0] == shown[1]
    assert (ours.__dataclass_params__.frozen, ours.__dataclass_params__.eq) == (frozen, True)
    assert (ours.__hash__ is None) == (theirs.__hash__ is None)


@given(st.integers(), st.floats(), st.text(), st.text(), st.integers(), st.text())
def test_instances_are_the_same(x: int, y: float, label: str, note: str, other_x: int, other_note: str) -> None:
    ours, theirs = make_both(write_point, frozen=True)
    pairs = [
        (cls(x, y, label=label, tags={}, note=note), cls(other_x, y, label, note=other_note)) for cls in (ours, theirs)
    ]
    (first, second), (third, fourth) = pairs
    assert (repr(first), repr(second)) == (repr(third), repr(fourth))
    assert (first == second) == (third == fourth)
    assert first == cls_again(first)
    assert first != third
    assert first.sum == third.sum or y != y  # noqa: PLR0124 - NaN
    assert dataclasses.asdict(first).keys() == dataclasses.asdict(third).keys()


def cls_again(instance: Any) -> Any:  # noqa: ANN401 - of a class that the test made
    """An equal instance, made field by field."""
    return type(instance)(*(getattr(instance, name) for name in type(instance).__match_args__))


@given(st.tuples(st.integers(), st.text()))
def test_hashes_are_the_same(value: tuple[object, ...]) -> None:
    ours, theirs = make_both(write_single, frozen=True)
    assert hash(ours(value)) == hash(theirs(value))
    assert len({ours(value), ours(value), ours()}) == 2
    empty, also_empty = make_both(write_empty, frozen=True)
    assert hash(empty()) == hash(also_empty())
    assert empty() == empty()
    pair, also_pair = make_both(write_checked, frozen=True)
    assert hash(pair(1, 2)) == hash(also_pair(1, 2))


def test_what_a_function_makes_is_made_for_each() -> None:
    ours, _ = make_both(write_point, frozen=False)
    first, second = ours(1, 2.0), ours(1, 2.0)
    first.tags["a"] = 1
    assert (first.tags, second.tags) == ({"a": 1}, {})
    first.x = 5
    assert first.x == 5
    assert dataclasses.asdict(first) == {"x": 5, "y": 2.0, "label": "here", "tags": {"a": 1}, "note": ""}


def test_frozen_data_stays_as_it_is() -> None:
    ours, _ = make_both(write_checked, frozen=True)
    made = ours(1, 2)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'low'"):
        made.low = 3
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'other'"):
        made.other = 3
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'low'"):
        del made.low
    assert dataclasses.replace(made, high=7) == ours(1, 7)
    with pytest.raises(ValueError, match="9 is above 7"):
        ours(9, 7)


@dataclass(frozen=True, slots=True)
class Kept:
    """A class that pickles find by its name."""

    number: int
    words: tuple[str, ...] = ()


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda kept: pickle.loads(pickle.dumps(kept))])  # noqa: S301
def test_data_is_copied_and_pickled(again: Callable[[Kept], Kept]) -> None:
    kept = Kept(3, ("a", "b"))
    assert again(kept) == kept
    assert isinstance(again(kept), Kept)


def test_data_matches_by_position() -> None:
    match Kept(1, ("x",)):
        case Kept(1, (word,)):
            assert word == "x"
        case _:
            pytest.fail("no match")


def test_what_shows_itself_is_shown_once() -> None:
    ours, _ = make_both(write_single, frozen=False)
    made = ours()
    made.value = (made,)
    assert repr(made) == "write_single.<locals>.Single(value=(...,))"


def test_a_missing_value_is_named() -> None:
    with pytest.raises(TypeError, match=r"Kept\.__init__\(\) missing 1 required positional argument: 'number'"):
        Kept()  # type: ignore[call-arg]


def body(**annotated: str) -> type:
    """A class with these annotations."""
    return type("Body", (), {"__annotations__": annotated, "__module__": __name__, "__doc__": "."})


def give(cls: type, **values: object) -> type:
    """The class with these values behind its names."""
    for name, value in values.items():
        setattr(cls, name, value)
    return cls


@pytest.mark.parametrize(
    ("cls", "reason"),
    [
        (body(count="ClassVar[int]"), "is no field"),
        (body(count="typing.ClassVar[a.b]"), "is no field"),
        (body(_="dataclasses.KW_ONLY"), "is no field"),
        (give(body(a="int", b="int"), a=1), "b has no default"),
        (give(body(a="int"), a=field(init=False, default=1)), "no options but"),
        (give(body(a="int"), a=field(kw_only=True)), "no options but"),
        (give(body(a="int"), a=field(hash=False)), "no options but"),
        (type("Child", (Kept,), {"__module__": __name__}), "does not inherit"),
        (type("Same", (), {"__module__": __name__, "__eq__": lambda *_: True}), "its hash"),
    ],
)
def test_what_is_not_done_is_refused(cls: type, reason: str) -> None:
    with pytest.raises(TypeError, match=reason):
        dataclass(frozen=True, slots=True)(cls)


def test_a_value_that_all_would_share_is_refused() -> None:
    with pytest.raises(ValueError, match="all instances would share"):
        dataclass(frozen=True, slots=True)(give(body(a="list[int]"), a=[]))


def test_data_without_slots_is_refused() -> None:
    with pytest.raises(TypeError, match="data has slots"):
        dataclass(frozen=True, slots=False)


def test_the_standard_library_is_asked_late() -> None:
    made: Any = dataclass(frozen=True, slots=True)(body(a="int"))
    assert not isinstance(vars(made)["__dataclass_fields__"], dict)
    assert [each.name for each in dataclasses.fields(made)] == ["a"]
    assert isinstance(vars(made)["__dataclass_fields__"], dict)
