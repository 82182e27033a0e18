"""Turns what a rule has seen into a finding: plain frozen data that says what a fault costs, why, and what to do."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How a finding is meant; the order is from worst to least.

    An error is wrong, not slow; a warning costs sectors, passes or time that other code would not; a note is worth a
    look, and whether it costs depends on more than this launch.
    """

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Scene(StrEnum):
    """What a picture shows the lanes of a warp on."""

    SECTORS = "sectors"
    BANKS = "banks"


@dataclass(frozen=True, slots=True)
class Picture:
    """One request of a warp: the byte offset at which each of the 32 lanes accesses, None for a lane that does not.

    Offsets are relative to a place that is a multiple of 128 bytes, so that offset / 32 is a sector and offset / 4
    modulo 32 a bank. `lanes_per_pass` lanes at a time go over the banks. `requests` of the site lie like this.
    """

    scene: Scene
    width_bytes: int
    lanes: tuple[int | None, ...]
    lanes_per_pass: int
    requests: int

    def _repr_html_(self) -> str:
        return str(show("write_picture", self))


@dataclass(frozen=True, slots=True)
class Evidence:
    """The number that a finding rests on, summed over its instructions.

    `quantity` is the profiler's name for it; `ideal` what it could be (None: there is no such number); `requests` how
    many warp requests it is summed over (None: it is not about requests).
    """

    quantity: str
    real: float
    ideal: float | None = None
    requests: int | None = None
    picture: Picture | None = None


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change that was compiled, executed and found to give the same outputs bit for bit, with what it changes.

    `change` is the code to write; `source_text` the whole source with it, and `launch` the launch that goes with that,
    in launch notation. `before` and `after` are counts of `quantity` over the whole launch. `refused` says which
    neighbouring changes are none, and why. `before_ns` and `after_ns` are what the model of time says of both launches,
    None where caches were not followed. `proven_on` says on what it was proven where that is not the whole launch: then
    counts are of that.
    """

    title: str
    change: str
    quantity: str
    before: int
    after: int
    source_text: str
    launch: str
    refused: tuple[str, ...] = ()
    before_ns: float | None = None
    after_ns: float | None = None
    proven_on: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault of a kernel, or of the instructions `instructions` of it (indices; the dearest first).

    `message` is a plain sentence with this kernel's numbers, `advice` what to do. `cost_ns` is what it costs the
    launch, None where that is not known.
    """

    code: str
    severity: Severity
    message: str
    advice: str
    instructions: tuple[int, ...] = ()
    evidence: Evidence | None = None
    cost_ns: float | None = None
    remedies: tuple[Remedy, ...] = ()


def show(name: str, value: object) -> object:
    """What a function of `report.notebook` makes of a value, when a notebook asks for it.

    The renderers are a layer above, of which data knows no more than this name.
    """
    return getattr(importlib.import_module("sectorwise.report.notebook"), name)(value)
