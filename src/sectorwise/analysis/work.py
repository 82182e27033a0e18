"""Turns two launches into whether they do the same work: what both leave in their buffers, and how much they store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sectorwise.analysis.outputs import compare_buffer, doubt_outputs
from sectorwise.counting.request import Operation, Space

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.analysis.data import KernelAnalysis, MemorySite
    from sectorwise.analysis.verification import BufferComparison


@dataclass(frozen=True, slots=True)
class OutputChange:
    """A buffer after one launch and after the other, both executed here.

    `differing` elements differ by more than rounding, `rounded` by less (floats alone: sums in another order);
    `first` is the index of the first that differs, with its two values as text.
    """

    argument: str
    dtype: str
    elements: int
    differing: int
    rounded: int
    first: int | None
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Work:
    """Whether two launches do the same work, as far as that was seen.

    `outputs` are their buffers; None where they were not compared, `because` of what (None: documents have none).
    `stored_bytes_before` and `_after` are what lanes and bulk copies store to global memory, atomics included; the same
    place counts as often as it is stored to. None: not known.
    """

    outputs: tuple[OutputChange, ...] | None
    because: str | None
    stored_bytes_before: int | None
    stored_bytes_after: int | None

    @property
    def agrees(self) -> bool | None:
        """Whether both leave the same but for rounding; None where that is not told."""
        return None if self.outputs is None else not any(each.differing for each in self.outputs)


def compare_work(old: KernelAnalysis, new: KernelAnalysis) -> Work:
    """What two launches leave and store; outputs are compared where both analyses kept them."""
    outputs, because = _compare_outputs(old, new)
    return Work(outputs, because, _count_stored_bytes(old), _count_stored_bytes(new))


_NOT_KEPT: Final = "buffers are not compared, since they were not kept (those of large launches are not)"


def _compare_outputs(old: KernelAnalysis, new: KernelAnalysis) -> tuple[tuple[OutputChange, ...] | None, str | None]:
    if old.bound is None or new.bound is None:
        return None, None
    doubt = doubt_outputs(old) or doubt_outputs(new)
    if doubt is not None:
        return None, doubt
    if old.outputs is None or new.outputs is None:
        return None, _NOT_KEPT
    types = [each.buffer.dtype for each in old.bound.allocations]
    shapes = [[(output.argument, output.values.size) for output in side.outputs or ()] for side in (old, new)]
    if types != [each.buffer.dtype for each in new.bound.allocations] or shapes[0] != shapes[1]:
        return None, "buffers are not compared, since the two launches are given other ones"
    if not any(output.values.any() for side in (old, new) for output in side.outputs or ()):
        return None, "all buffers hold zeros, before and after: give them contents, such as `=uniform(1)`, to compare"
    return tuple(
        _describe(compare_buffer(first.argument, dtype, first.values, second.values))
        for first, second, dtype in zip(old.outputs, new.outputs, types, strict=True)
    ), None


def _describe(found: BufferComparison) -> OutputChange:
    return OutputChange(
        argument=found.argument,
        dtype=found.dtype,
        elements=found.elements,
        differing=found.differing,
        rounded=found.rounded,
        first=found.first,
        before=found.executed,
        after=found.on_device,
    )


_STORES = frozenset((Operation.STORE, Operation.ATOMIC, Operation.REDUCTION))


def _count_stored_bytes(kernel: KernelAnalysis) -> int | None:
    """Bytes that are stored to global memory; None where an instruction that may do so is not known."""
    stored = list(_list_stored_bytes(kernel))
    return None if None in stored else sum(each for each in stored if each is not None)


def _list_stored_bytes(kernel: KernelAnalysis) -> Iterator[int | None]:
    for site in kernel.sites:
        if site.operation in _STORES and _reaches_global(site):
            yield None if site.lanes is None else site.lanes * site.width_bytes
    for copies in kernel.copies:
        if copies.target == "global":
            yield copies.written_bytes


def _reaches_global(site: MemorySite) -> bool:
    return site.space is Space.GLOBAL or (site.space is Space.GENERIC and site.sectors != 0)
