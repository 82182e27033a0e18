"""Turns what a driver or a report calls a GPU into the device whose numbers stand for it, and says what is not sure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sectorwise.counting.request import Operation, Space
from sectorwise.device import list_devices, load_device
from sectorwise.errors import ArgumentError, UnknownDeviceError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sectorwise.device import DeviceSpec

    Capability = tuple[int, int]

Kind = tuple[Space, Operation, int]
"""A kind of memory instruction: space, operation, bytes a lane."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Launches of a compute capability that were compared with counters, and the kinds of instructions in them."""

    launches: int
    kinds: frozenset[Kind]


VERIFIED_CAPABILITIES: Final = ((9, 0),)
"""Compute capabilities on which the counting rules were compared with counters throughout (tests/measured)."""

_MOST_NAMED: Final = 6
_LOADS_AND_STORES: Final = (Operation.LOAD, Operation.STORE)
COMPARED: Final = {
    (7, 5): Comparison(
        launches=12,
        kinds=frozenset(
            [(space, operation, 4) for space in (Space.GLOBAL, Space.SHARED) for operation in _LOADS_AND_STORES]
            + [(Space.GENERIC, Operation.REDUCTION, 4)]
        ),
    ),
    (8, 6): Comparison(
        launches=15,
        kinds=frozenset(
            (space, operation, width)
            for space, width in ((Space.GLOBAL, 8), (Space.GENERIC, 4))
            for operation in _LOADS_AND_STORES
        ),
    ),
    (8, 9): Comparison(
        launches=14,
        kinds=frozenset(
            (space, operation, 4) for space in (Space.GLOBAL, Space.SHARED) for operation in _LOADS_AND_STORES
        ),
    ),
}
"""Reports that others published (docs/verify.md, "What was verified elsewhere")."""


def choose_device(gpu: str | None, capability: Capability | None, device: str | None) -> tuple[str, tuple[str, ...]]:
    """The id of the device to predict for, and what has to be told: the named one, or the one that the GPU is.

    Raises:
        ArgumentError: the named one cannot run what the GPU runs.
        UnknownDeviceError: as `find_device`.
    """
    if device is None:
        spec, notes = find_device(gpu, capability)
        return spec.id, notes
    spec = load_device(device)
    ours = spec.compute_capability
    if capability is not None and (ours is None or ours[0] != capability[0]):
        has = "none" if ours is None else write_capability(ours)
        raise ArgumentError(
            f"--device {device}: {spec.name} has compute capability {has}, but {gpu or 'the GPU'}, which counts, has "
            f"{write_capability(capability)}: its code is another"
        )
    return device, ()


def find_device(name: str | None, capability: Capability | None) -> tuple[DeviceSpec, tuple[str, ...]]:
    """The device of that name, or else the likest of its compute capability, and what a reader has to be told.

    Raises:
        UnknownDeviceError: neither is known; `--device` can name one.
    """
    try:
        return load_device(name or ""), ()
    except UnknownDeviceError:
        alike = [each for each in list_devices() if capability is not None and each.compute_capability == capability]
        if not alike:
            known = "" if capability is None else f" of compute capability {write_capability(capability)}"
            message = f"the GPU {name!r}{known} is none of the known devices; name one that is like it with --device"
            raise UnknownDeviceError(message) from None
    spec = max(alike, key=lambda each: _count_shared_words(name or "", each.id))
    note = f"{name} is not among the known devices: {spec.id}, of the same compute capability, stands for it"
    return spec, (note,)


def _count_shared_words(name: str, identifier: str) -> int:
    """How many words of a device's id begin a word of the driver's name: of `h100-pcie`, two in `NVIDIA H100 PCIe`."""
    words = re.findall(r"[a-z0-9]+", name.casefold())
    return sum(any(word.startswith(part) for word in words) for part in identifier.split("-"))


def warn_of_architecture(capability: Capability | None, kinds: Iterable[Kind]) -> tuple[str, ...]:
    """What to tell a reader of results on a compute capability on which little or nothing was verified before.

    `kinds` are those of the memory instructions that are compared now.
    """
    if capability in VERIFIED_CAPABILITIES or capability is None:
        return ()
    throughout = ", ".join(map(write_capability, VERIFIED_CAPABILITIES))
    before = COMPARED.get(capability)
    if before is None:
        told = f"with none of {write_capability(capability)}"
    else:
        new = sorted(set(kinds) - before.kinds)
        more = ", ..." if len(new) > _MOST_NAMED else ""
        without = f", none with a {', '.join(map(write_kind, new[:_MOST_NAMED]))}{more}" if new else ""
        told = f"of {write_capability(capability)} in {before.launches} launches of public reports{without}"
    note = (
        f"the counting rules were compared with counters of compute capability {throughout} throughout, {told}: a "
        "difference may be a rule of that architecture"
    )
    return (note,)


def write_capability(capability: Capability) -> str:
    """`8.6`."""
    return f"{capability[0]}.{capability[1]}"


def write_kind(kind: Kind) -> str:
    """`global async copy of 16 B`."""
    space, operation, width_bytes = kind
    return f"{space} {operation} of {width_bytes} B".replace("_", " ")
