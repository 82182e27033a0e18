"""Turns counts of a memory instruction into the figures that reports show: averages a request, efficiency, words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sectorwise.counting.request import Operation, Space

if TYPE_CHECKING:
    from sectorwise.analysis.data import MemorySite


@dataclass(frozen=True, slots=True)
class Figures:
    """Averages over the requests of a memory instruction; None where they do not apply or are not known.

    `efficiency` is ideal over real: of sectors, of wavefronts, or the worse of the two where both apply.
    """

    sectors: float | None
    sectors_ideal: float | None
    wavefronts: float | None
    wavefronts_ideal: float | None
    efficiency: float | None


def compute_figures(site: MemorySite) -> Figures:
    """Figures of a site; local memory has sectors and no ideal, since its layout is the compiler's."""
    sectors, sectors_ideal = site.sectors, site.sectors_ideal
    if site.space is Space.LOCAL:
        sectors, sectors_ideal = site.sectors_local, None
    has_sectors = site.space is not Space.SHARED
    has_wavefronts = site.space in {Space.SHARED, Space.GENERIC} or site.operation is Operation.ASYNC_COPY
    ratios = [
        _divide(sectors_ideal, sectors) if has_sectors else None,
        _divide(site.wavefronts_ideal, site.wavefronts) if has_wavefronts else None,
    ]
    return Figures(
        sectors=_divide(sectors, site.executed) if has_sectors else None,
        sectors_ideal=_divide(sectors_ideal, site.executed) if has_sectors else None,
        wavefronts=_divide(site.wavefronts, site.executed) if has_wavefronts else None,
        wavefronts_ideal=_divide(site.wavefronts_ideal, site.executed) if has_wavefronts else None,
        efficiency=min((ratio for ratio in ratios if ratio is not None), default=None),
    )


def _divide(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else part / whole


def write_ratio(value: float | None, *, absent: str = "-") -> str:
    """`4.0`, `32.0`, `1.03`, `0.12`: one decimal, two below 1 or where one would hide a difference from a whole."""
    if value is None:
        return absent
    one = f"{value:.1f}"
    hides = one.endswith(".0") and abs(value - round(value)) >= 0.005
    return f"{value:.2f}" if hides or 0 < value < 0.995 else one


def write_percent(value: float | None, *, absent: str = "-") -> str:
    """`12 %`: rounded down, so that 100 % means all of it."""
    return absent if value is None else f"{int(value * 100 + 1e-9)} %"


def write_bytes(count: int) -> str:
    """`4 KiB`, `9,600 B`: whole kibibytes where it is whole, else bytes."""
    return f"{count >> 10:,} KiB" if count and count % 1024 == 0 else f"{count:,} B"


def name_operation(site: MemorySite) -> str:
    """`global load`, `shared matrix load`, `global async copy`."""
    return f"{site.space} {site.operation}".replace("_", " ")
