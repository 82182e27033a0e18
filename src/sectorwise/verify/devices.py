"""Turns what a driver or a report calls a GPU into the device whose numbers stand for it, and says what is not sure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sectorwise.device import list_devices, load_device
from sectorwise.errors import UnknownDeviceError
from sectorwise.verify.counters import VERIFIED_CAPABILITIES

if TYPE_CHECKING:
    from sectorwise.device import DeviceSpec


def find_device(name: str | None, capability: tuple[int, int] | None) -> tuple[DeviceSpec, tuple[str, ...]]:
    """The device of that name, or else the likest of its compute capability, and what a reader has to be told.

    Raises:
        UnknownDeviceError: neither is known; `--device` can name one.
    """
    notes = []
    try:
        spec = load_device(name or "")
    except UnknownDeviceError:
        alike = [each for each in list_devices() if capability is not None and each.compute_capability == capability]
        if not alike:
            known = "" if capability is None else f" of compute capability {capability[0]}.{capability[1]}"
            message = f"the GPU {name!r}{known} is none of the known devices; name one that is like it with --device"
            raise UnknownDeviceError(message) from None
        spec = max(alike, key=lambda each: _count_shared_words(name or "", each.id))
        notes.append(f"{name} is not among the known devices: {spec.id}, of the same compute capability, stands for it")
    return spec, (*notes, *warn_of_architecture(spec.compute_capability))


def _count_shared_words(name: str, identifier: str) -> int:
    """How many words of a device's id begin a word of the driver's name: of `h100-pcie`, two in `NVIDIA H100 PCIe`."""
    words = re.findall(r"[a-z0-9]+", name.casefold())
    return sum(any(word.startswith(part) for word in words) for part in identifier.split("-"))


def warn_of_architecture(capability: tuple[int, int] | None) -> tuple[str, ...]:
    """What to tell a reader of results on a compute capability on which nothing was verified before."""
    if capability in VERIFIED_CAPABILITIES or capability is None:
        return ()
    verified = ", ".join(f"{major}.{minor}" for major, minor in VERIFIED_CAPABILITIES)
    note = (
        f"the counting rules were compared with counters of compute capability {verified} throughout, of "
        f"{capability[0]}.{capability[1]} not or hardly: a difference may be a rule of that architecture"
    )
    return (note,)
