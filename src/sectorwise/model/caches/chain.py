"""Turns launches that follow each other into places in one memory, in which the later ones find what is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from sectorwise.errors import LaunchError
from sectorwise.model.latency import LINE_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sectorwise.binding import Allocation, BoundLaunch
    from sectorwise.model.caches.held import Held
    from sectorwise.model.caches.window import Window

ALIGNMENT_BYTES: Final = 1 << 20


class Chain(Struct, frozen=True):
    """What a launch finds that earlier ones left: where their buffers lie, and what of them the L2 has (None: nothing).

    `homes` gives the first address and the size in bytes of each buffer that has a name; `free` is the first address
    that no launch used so far. `doubts` say of launches that could not be followed.
    """

    homes: Mapping[str, tuple[int, int]]
    free: int
    held: Held | None
    doubts: tuple[str, ...] = ()

    def skip(self, bound: BoundLaunch) -> Chain:
        """The chain after a launch of which nobody knows what it leaves."""
        doubt = f"what {bound.launch.kernel} leaves in the L2 is not known, and taken to be nothing"
        return replace(self, doubts=(*self.doubts, doubt))


def begin_chain() -> Chain:
    """A chain of no launches, the L2 empty."""
    return Chain({}, 0, None)


class Placing(Struct, frozen=True):
    """A launch's buffers in the memory of its chain.

    `moves` has, of each allocation, its first line, its last, and how many lines further on it lies in the chain.
    `shared` are the names of buffers that earlier launches had.
    """

    moves: tuple[tuple[int, int, int], ...]
    homes: Mapping[str, tuple[int, int]]
    free: int
    shared: tuple[str, ...]


def place_launch(chain: Chain, bound: BoundLaunch) -> Placing:
    """Where the buffers of a launch lie: those with the name of an earlier launch's where that one did, others apart.

    Raises:
        LaunchError: a name is that of an earlier buffer of another size.
    """
    homes, free = dict(chain.homes), chain.free
    first = not homes and not free
    moves, shared = [], []
    for each in bound.allocations:
        name = _name(each)
        known = None if name is None else homes.get(name)
        if known is not None and known[1] != each.size_bytes:
            raise LaunchError(
                f"launch of {bound.launch.kernel}: buffer {name} has {each.size_bytes:,} bytes, and {known[1]:,} in a "
                "launch before it; in a chain of launches one name is one buffer"
            )
        home = known[0] if known is not None else each.base if first else free
        if known is not None:
            shared.append(str(name))
        elif name is not None:
            homes[name] = (home, each.size_bytes)
        # Guard space between buffers stays: no line belongs to two.
        free = max(free, -(-(home + each.size_bytes + LINE_BYTES) // ALIGNMENT_BYTES) * ALIGNMENT_BYTES)
        last = (each.base + max(each.size_bytes, 1) - 1) // LINE_BYTES
        moves.append((each.base // LINE_BYTES, last, (home - each.base) // LINE_BYTES))
    return Placing(tuple(moves), homes, free, tuple(shared))


def _name(allocation: Allocation) -> str | None:
    """What the buffer is called across launches: as the launch says, or as the module's variable that it is."""
    if allocation.buffer.name is not None:
        return allocation.buffer.name
    return None if allocation.argument.startswith("argument ") else f"variable {allocation.argument}"


def move_window(window: Window, placing: Placing) -> Window:
    """The same window, its lines where the chain has them; those of no buffer, as local memory's, stay."""
    line = window.lines.line.copy()
    for first, last, move in placing.moves:
        if move:
            inside = (window.lines.line >= first) & (window.lines.line <= last)
            line[inside] += move
    return replace(window, lines=replace(window.lines, line=line))
