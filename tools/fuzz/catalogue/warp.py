"""Operations of a whole warp: shuffles, votes, matches, reductions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.fuzz.catalogue.operation import Operation, cpp, ptx

if TYPE_CHECKING:
    from collections.abc import Iterator


def make_shuffles() -> Iterator[Operation]:
    """Shuffles: only where all lanes of the warp take part, as a lane that does not take part gives nothing defined."""
    for mode in ("up", "down", "bfly", "idx"):
        body = (
            f"{{ .reg .pred q; .reg .u32 v, t; shfl.sync.{mode}.b32 v|q, %1, %2, %3, %M;"
            " selp.u32 t, 1, 0, q; mov.b64 %0, {v, t}; }"
        )
        yield ptx(f"shfl.sync.{mode}.b32 variable", "d", "uuu", body, collective=True)
        clamp = 0 if mode == "up" else 31
        for segment in (0, 16, 24, 28, 30):
            body = f"shfl.sync.{mode}.b32 %0, %1, <<i0>>, {segment << 8 | clamp}, %M;"
            yield ptx(f"shfl.sync.{mode}.b32", "u", "u", body, immediates=((0, 31),), collective=True)
        body = f"shfl.sync.{mode}.b32 %0, %1, %2, {clamp}, %M;"
        yield ptx(f"shfl.sync.{mode}.b32 lane", "u", "uu", body, collective=True)


def make_collectives() -> Iterator[Operation]:
    """Votes, matches and reductions, over whichever lanes execute them."""
    for mode in ("all", "any", "uni"):
        body = f"{{ .reg .pred q; setp.ne.u32 q, %1, 0; vote.sync.{mode}.pred q, q, %M; selp.u32 %0, 1, 0, q; }}"
        yield ptx(f"vote.sync.{mode}", "p", "p", body, collective=True)
    body = "{ .reg .pred q; setp.ne.u32 q, %1, 0; vote.sync.ballot.b32 %0, q, %M; }"
    yield ptx("vote.sync.ballot", "u", "p", body, collective=True)
    for bits, letter in (("b32", "u"), ("b64", "d")):
        yield ptx(f"match.any.sync.{bits}", "u", letter, f"match.any.sync.{bits} %0, %1, %M;", collective=True)
        body = (
            f"{{ .reg .pred q; .reg .u32 v, t; match.all.sync.{bits} v|q, %1, %M;"
            " selp.u32 t, 1, 0, q; mov.b64 %0, {v, t}; }"
        )
        yield ptx(f"match.all.sync.{bits}", "d", letter, body, collective=True)
    few = "{ .reg .u32 t; and.b32 t, %1, 3; match.any.sync.b32 %0, t, %M; }"
    yield ptx("match.any.sync.b32 few", "u", "u", few, collective=True)
    for operation in ("add.u32", "add.s32", "min.u32", "min.s32", "max.u32", "max.s32", "and.b32", "or.b32", "xor.b32"):
        yield ptx(f"redux.sync.{operation}", "u", "u", f"redux.sync.{operation} %0, %1, %M;", collective=True)
    elect = (
        "{ .reg .pred q; .reg .u32 v, t; elect.sync v|q, %M; selp.u32 t, 1, 0, q; add.u32 t, t, %1;"
        " mov.b64 %0, {v, t}; }"
    )
    yield ptx("elect.sync", "d", "u", elect, collective=True)
    yield cpp("first lane", "u", "u", "__shfl_sync({mask}, {0}, __ffs((int){mask}) - 1)", collective=True)
    yield cpp("count before", "u", "p", "__popc(__ballot_sync({mask}, (int){0}) & below)", collective=True)
    yield cpp("syncwarp", "u", "u", "(__syncwarp({mask}), {0})", collective=True)
