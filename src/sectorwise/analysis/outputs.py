"""Turns the bytes that launches left in buffers, executed here or on a GPU, into what differs between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from sectorwise.analysis.verification import BufferComparison
from sectorwise.launch.dtypes import ELEMENT_TYPES
from sectorwise.machine.execution import Certainty

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.analysis.data import KernelAnalysis

    Values = npt.NDArray[np.generic]
    Floats = npt.NDArray[np.float64]

TOLERANCES: Final = {"f64": 2.0**-44, "f32": 2.0**-18, "f16": 2.0**-8, "bf16": 2.0**-5}
"""What floats may differ by, of the greater value or of the buffer's root mean square: a few hundred times what one
operation rounds off, since approximations (MUFU), tensor cores and the order of sums add up."""

_BITS: Final = 24
_BITS_OF_DOUBLE: Final = 53
"""Of the significands of floats and doubles."""


def doubt_outputs(kernel: KernelAnalysis) -> str | None:
    """Why what the launch was executed to leave in memory need not be what a GPU leaves; None where it has to be."""
    if kernel.hangs:
        return "buffers are not compared, since the launch may hang"
    if kernel.limitations:
        return "buffers are not compared, since not all is known of this launch"
    if kernel.coverage.certainty is Certainty.SAMPLED:
        return "buffers are not compared, since a sample of the blocks was executed"
    if any(site.certainty is Certainty.SCHEDULE_DEPENDENT for site in kernel.sites):
        return "buffers are not compared, since what the launch leaves in them depends on the order in which warps run"
    return None


def compare_buffer(argument: str, dtype: str, executed: Values, on_device: Values) -> BufferComparison:
    """Compare two buffers, flat and in the storage type of `dtype`: integers bit for bit, floats within rounding.

    NaNs count as equal, and so do zeros of either sign.
    """
    mine, theirs = executed.reshape(-1), on_device.reshape(-1)
    if mine.shape != theirs.shape:
        message = f"{argument}: {mine.size} elements beside {theirs.size}"
        raise ValueError(message)
    tolerance = TOLERANCES.get(dtype, 0.0)
    unequal = mine.view(_word(mine)) != theirs.view(_word(theirs))
    wrong = unequal
    if ELEMENT_TYPES[dtype].is_float:
        wrong = unequal & ~_is_close(_widen(mine, dtype), _widen(theirs, dtype), tolerance)
    first = int(np.flatnonzero(wrong)[0]) if wrong.any() else None
    return BufferComparison(
        argument=argument,
        dtype=dtype,
        elements=int(mine.size),
        differing=int(wrong.sum()),
        rounded=int((unequal & ~wrong).sum()),
        tolerance=tolerance,
        first=first,
        executed=None if first is None else _show(mine, dtype, first),
        on_device=None if first is None else _show(theirs, dtype, first),
    )


def _word(values: Values) -> str:
    return f"u{values.dtype.itemsize}"


def _widen(values: Values, dtype: str) -> Floats:
    """The numbers as doubles; bf16 is stored as the upper halves of floats."""
    if dtype == "bf16":
        return (values.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    return values.astype(np.float64)


def _is_close(mine: Floats, theirs: Floats, tolerance: float) -> npt.NDArray[np.bool_]:
    finite = np.isfinite(mine) & np.isfinite(theirs)
    known = np.where(finite, mine, 0.0)
    other = np.where(finite, theirs, 0.0)
    # A sum that cancels is as inexact as its addends are: their size shows in the rest of the buffer.
    scale = _find_scale(np.abs(other), tolerance)
    allowed = tolerance * np.maximum(np.maximum(np.abs(known), np.abs(other)), scale)
    same = (np.isnan(mine) & np.isnan(theirs)) | (mine == theirs)
    close: npt.NDArray[np.bool_] = same | (finite & (np.abs(known - other) <= allowed))
    return close


def _find_scale(sizes: Floats, tolerance: float) -> float:
    """The root mean square of a buffer, but for what cannot be of the size of addends: what stands for infinity.

    What is left of addends that cancel is seldom less than their last bit: they are no larger than a quarter of what is
    not zero says.
    """
    some = sizes[sizes > 0]
    if not some.size:
        return 0.0
    bits = _BITS if tolerance >= TOLERANCES["f32"] else _BITS_OF_DOUBLE
    least = float(np.quantile(some, 0.25, method="lower"))
    return float(np.sqrt(np.sum(np.square(some[some <= least * 2.0**bits])) / sizes.size))


def _show(values: Values, dtype: str, index: int) -> str:
    one = values[index : index + 1]
    return f"{_widen(one, dtype)[0]:.9g}" if ELEMENT_TYPES[dtype].is_float else str(one[0])
