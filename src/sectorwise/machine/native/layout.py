"""Turns the state that machine code and Python share into byte offsets: context, warps, groups, sites, allocations."""

from __future__ import annotations

LANES = 32
WORD_ROW = 4 * LANES
LONG_ROW = 8 * LANES


def _place(*fields: tuple[str, int, int]) -> tuple[dict[str, int], int]:
    """Offsets of fields (name, size, alignment), and the size of it all."""
    offsets: dict[str, int] = {}
    at = 0
    for name, size, alignment in fields:
        at = -(-at // alignment) * alignment
        offsets[name] = at
        at += size
    return offsets, -(-at // 256) * 256


# What lanes said of a BAR.RED at one barrier since it last let them go.
VOTE = {"asked": 0, "yes": 4, "question": 8}
VOTE_BYTES = 16
BARRIERS = 16

# What one thread of the host works with. `addresses` and `data` carry what a memory routine takes and gives; the maps
# say which bytes of shared and local memory were written, where that matters (else they have no bytes). `pattern` is
# that of a request which its site does not remember.
CONTEXT, CONTEXT_BYTES = _place(
    ("addresses", LONG_ROW, 256),
    ("others", LONG_ROW, 256),
    ("sizes", WORD_ROW, 128),
    ("data", 8 * WORD_ROW, 256),
    ("pattern", 64 + LONG_ROW, 64),
    ("votes", VOTE_BYTES * BARRIERS, 16),
    ("passed", 4 * BARRIERS, 4),
    ("mask", 4, 4),
    ("block_numbers", 8, 8),
    ("block_lengths", 8, 8),
    ("block_number", 8, 8),
    ("warp_number", 8, 8),
    ("next_pc", 4, 4),
    ("stop", 4, 4),
    ("stop_pc", 4, 4),
    ("fuel", 8, 8),
    ("limit", 8, 8),
    ("state", 8, 8),
    ("warp", 8, 8),
    ("warps", 8, 8),
    ("states", 8, 8),
    ("threads_special", 8, 8),
    ("special", 8, 8),
    ("launch_special", 8, 8),
    ("block", 16, 16),
    ("banks", 8 * 32, 8),
    ("shared", 8, 8),
    ("shared_bytes", 8, 8),
    ("local", 8, 8),
    ("locals", 8, 8),
    ("local_bytes", 8, 8),
    ("local_start", 8, 8),
    ("allocations", 8, 8),
    ("allocation_count", 8, 8),
    ("sites", 8, 8),
    ("log", 8, 8),
    ("log_used", 8, 8),
    ("log_limit", 8, 8),
    ("wide_log", 8, 8),
    ("wide_used", 8, 8),
    ("wide_limit", 8, 8),
    ("issued", 8, 8),
    ("drain", 8, 8),
    ("fetch", 8, 8),
    ("make", 8, 8),
    ("aside", 8, 8),
    ("shared_window", 8, 8),
    ("local_window", 8, 8),
    ("warp_count", 8, 8),
    ("full_masks", 8, 8),
    ("state_bytes", 8, 8),
    ("grid_x", 8, 8),
    ("grid_y", 8, 8),
    ("local_warp_bytes", 8, 8),
    ("unsettled", 8, 8),
    ("running", 4, 4),
    ("watches", 8, 8),
    ("shared_map", 8, 8),
    ("shared_map_bytes", 8, 8),
    ("local_maps", 8, 8),
    ("local_map", 8, 8),
    ("local_map_bytes", 8, 8),
)

# A warp: lanes that have not exited, its groups in order, and the one that runs; what came of the last vote.
GROUP_BYTES = 32
# `round` counts turns of warps that run in step: a group's is that in which it ran last.
GROUP = {"mask": 0, "pc": 4, "state": 8, "key": 12, "awaited": 16, "round": 20}
WARP = {"live": 0, "count": 4, "current": 8, "steps": 16, "vote": 24, "round": 28, "groups": 64}
WARP_BYTES = 64 + GROUP_BYTES * (LANES + 1) + 32

RUNS, MEETS, BARRIER, TRIES = 0, 1, 2, 3
WARPSYNC_KEY = 16

# A buffer: addresses `base` to before `base + size`; the host's address of its first byte (0: not made yet).
# `made` is null where all of it is made; else it has a word for each chunk, zero for those that are not.
ALLOCATION = {"base": 0, "size": 8, "host": 16, "flags": 24, "made": 32}
ALLOCATION_BYTES = 64
CHUNK_BITS = 16
LOADED, STORED = 1, 2

# A memory instruction: the buffer that it reached last, and address patterns, each with how often it came. `recent`
# holds the number of the pattern that came last for each of some places and masks.
PATTERN = {
    "hits": 0,
    "mask": 8,
    "place": 12,
    "kind": 16,
    "other_place": 20,
    "issued": 24,
    "differences": 64,
    "others": 320,
    "sizes": 448,
}
PATTERN_BYTES = 64 + LONG_ROW
COPY_PATTERN_BYTES = PATTERN_BYTES + 2 * WORD_ROW
PATTERN_BITS = 8
RECENT_BITS = 6
# `reach` points to a byte for each buffer, zero for those that it was thought not to reach. `met` is what it met that
# CUDA leaves undefined (`encounters`); `first_*` are the warp and the addresses of the first request of all. `sum_*`
# (`sum_cost`: sectors or passes) are of patterns that were counted where they stand: those that waste no more than
# `most_excess`. `strange` is how many requests have come in a row that were like none that is remembered. `both` counts
# the groups of lanes of generic atomics that pass over the data pipe once, with lanes in shared memory and others.
SITE = {
    "allocation": 0,
    "number": 8,
    "width": 12,
    "touched": 16,
    "first_mask": 20,
    "first_warp": 24,
    "met": 32,
    "reach": 40,
    "most_excess": 48,
    "sum_cost": 56,
    "sum_ideal": 64,
    "sum_lines": 72,
    "sum_lanes": 80,
    "sum_requests": 88,
    "strange": 96,
    "both": 104,
    "first_addresses": 128,
    "recent": 128 + LONG_ROW,
    "patterns": 128 + LONG_ROW + (4 << RECENT_BITS),
}
SITE_BYTES = SITE["patterns"] + (COPY_PATTERN_BYTES << PATTERN_BITS)

# Kinds of patterns: each lane for itself; all lanes one after the other; one address for all active lanes; the active
# lanes at the places that they have among all lanes one after the other.
SCATTERED, CONSECUTIVE, ONE_PLACE, IN_PLACE = 0, 1, 2, 3

# Columns (i64) of the logs: site, how often, mask, place in the period, 32 differences; a copy has also its
# destination's place, 32 differences and 32 sizes, and the lanes that issue it.
LOG_COLUMNS = 4 + LANES
WIDE_COLUMNS = LOG_COLUMNS + 2 + 2 * LANES
LOG_ROWS = 1 << 14

# Why machine code gives control back.
WAITS, OUT_OF_FUEL, GAVE_UP, STRAYED, MISSED = 0, 1, 2, 3, 4

NOWHERE = 0x7FFFFFFF
