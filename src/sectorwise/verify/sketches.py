"""Turns the launches of a profiler's report into launch notation for a person to fill in: shapes are known there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.binary.names import read_kernel_name
from sectorwise.launch.sketch import sketch_launch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sectorwise.analysis.profile import Profile, ProfiledLaunch

_GAP = "<<<grid, block>>>"


def sketch_launches(profile: Profile, types: Mapping[str, tuple[str, ...]] | None = None) -> tuple[str, ...]:
    """`sum<<<4096, 256>>>(f32[count], i32(value))` for each kernel and shape of the report, in their order.

    `types` has the parameters of kernels as a source declares them. A kernel that is not among these, and whose symbol
    tells no types, has `...` for its arguments.
    """
    return tuple(dict.fromkeys(_sketch(launch, types or {}) for launch in profile.launches))


def _sketch(launch: ProfiledLaunch, types: Mapping[str, tuple[str, ...]]) -> str:
    name = read_kernel_name(launch.symbol)
    shape = f"{_write_extent(launch.grid)}, {_write_extent(launch.block)}"
    if launch.dynamic_shared_bytes:
        shape += f", {launch.dynamic_shared_bytes}"
    taken = name.parameter_types or types.get(name.readable)
    if taken is None:
        return f"{name.readable}<<<{shape}>>>(...)"
    return sketch_launch(name.readable, taken).replace(_GAP, f"<<<{shape}>>>")


def _write_extent(extent: tuple[int, int, int]) -> str:
    x, y, z = extent
    return f"({x}, {y}, {z})" if z != 1 else f"({x}, {y})" if y != 1 else str(x)
