"""Turns the rules that there are into one list, and a kernel model into its findings, the dearest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.findings import Severity
from sectorwise.rules import (
    async_copy_conflicts,
    broken_vectors,
    endless_wait,
    half_used_fetches,
    idle_multiprocessors,
    indexed_local_arrays,
    load_conflicts,
    loads_used_at_once,
    lost_l2_reuse,
    low_occupancy,
    matrix_conflicts,
    misaligned,
    misaligned_vectors,
    narrow_accesses,
    nearly_empty_last_wave,
    out_of_bounds,
    oversized_tiles,
    partly_used_records,
    redundant_loads,
    repeated_stores,
    serialised_atomics,
    shallow_rings,
    short_copied_rows,
    short_rows,
    small_tiles,
    sparse_lanes,
    spilled_registers,
    split_async_copies,
    store_conflicts,
    too_few_bytes_in_flight,
    uncoalesced,
    uneven_blocks,
)
from sectorwise.rules.rule import Rule

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sectorwise.findings import Finding
    from sectorwise.model.kernel_model import KernelModel

_ERROR, _WARNING, _NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE

RULES: Final = (
    Rule("SW101", "uncoalesced-access", _WARNING, uncoalesced.check, uncoalesced.__doc__),
    Rule("SW102", "misaligned-access", _WARNING, misaligned.check, misaligned.__doc__),
    Rule("SW103", "narrow-access", _NOTE, narrow_accesses.check, narrow_accesses.__doc__),
    Rule("SW104", "redundant-loads", _NOTE, redundant_loads.check, redundant_loads.__doc__, follows_caches=True),
    Rule("SW105", "partly-used-records", _WARNING, partly_used_records.check, partly_used_records.__doc__),
    Rule("SW106", "short-rows", _WARNING, short_rows.check, short_rows.__doc__),
    Rule("SW107", "sparse-lanes", _NOTE, sparse_lanes.check, sparse_lanes.__doc__),
    Rule("SW108", "half-used-fetches", _NOTE, half_used_fetches.check, half_used_fetches.__doc__, follows_caches=True),
    Rule("SW109", "split-async-copy", _WARNING, split_async_copies.check, split_async_copies.__doc__),
    Rule("SW110", "repeated-store", _NOTE, repeated_stores.check, repeated_stores.__doc__),
    Rule("SW111", "short-copied-rows", _WARNING, short_copied_rows.check, short_copied_rows.__doc__),
    Rule("SW201", "load-bank-conflict", _WARNING, load_conflicts.check, load_conflicts.__doc__),
    Rule("SW202", "store-bank-conflict", _WARNING, store_conflicts.check, store_conflicts.__doc__),
    Rule("SW203", "matrix-bank-conflict", _WARNING, matrix_conflicts.check, matrix_conflicts.__doc__),
    Rule("SW204", "async-copy-bank-conflict", _WARNING, async_copy_conflicts.check, async_copy_conflicts.__doc__),
    Rule("SW205", "serialised-atomics", _WARNING, serialised_atomics.check, serialised_atomics.__doc__),
    Rule("SW206", "broken-vectors", _NOTE, broken_vectors.check, broken_vectors.__doc__),
    Rule("SW301", "spilled-registers", _WARNING, spilled_registers.check, spilled_registers.__doc__),
    Rule("SW302", "indexed-local-array", _WARNING, indexed_local_arrays.check, indexed_local_arrays.__doc__),
    Rule("SW401", "too-few-bytes-in-flight", _NOTE, too_few_bytes_in_flight.check, too_few_bytes_in_flight.__doc__),
    Rule("SW402", "low-occupancy", _NOTE, low_occupancy.check, low_occupancy.__doc__),
    Rule("SW403", "nearly-empty-last-wave", _NOTE, nearly_empty_last_wave.check, nearly_empty_last_wave.__doc__),
    Rule("SW404", "idle-multiprocessors", _NOTE, idle_multiprocessors.check, idle_multiprocessors.__doc__),
    Rule("SW405", "lost-l2-reuse", _NOTE, lost_l2_reuse.check, lost_l2_reuse.__doc__, follows_caches=True),
    Rule("SW406", "load-used-at-once", _NOTE, loads_used_at_once.check, loads_used_at_once.__doc__),
    Rule("SW407", "uneven-blocks", _NOTE, uneven_blocks.check, uneven_blocks.__doc__),
    Rule("SW408", "shallow-copy-ring", _NOTE, shallow_rings.check, shallow_rings.__doc__),
    Rule("SW501", "oversized-tiles", _NOTE, oversized_tiles.check, oversized_tiles.__doc__),
    Rule("SW502", "small-tiles", _NOTE, small_tiles.check, small_tiles.__doc__),
    Rule("SW901", "out-of-bounds-access", _ERROR, out_of_bounds.check, out_of_bounds.__doc__),
    Rule("SW902", "misaligned-vector", _ERROR, misaligned_vectors.check, misaligned_vectors.__doc__),
    Rule("SW903", "endless-wait", _ERROR, endless_wait.check, endless_wait.__doc__),
)
"""Every rule, in the order of the codes."""

_ORDER: Final = tuple(Severity)


def check_model(model: KernelModel, rules: Iterable[Rule] = RULES) -> tuple[Finding, ...]:
    """What the rules find, the worst severity first, and within it the dearest."""
    found = [finding for rule in rules for finding in rule.check(model)]
    if model.time is not None:
        from sectorwise.rules.prices import price

        found = [price(finding, model) for finding in found]
    return tuple(sorted(found, key=_rank))


def _rank(finding: Finding) -> tuple[int, float, str, tuple[int, ...]]:
    return (_ORDER.index(finding.severity), -(finding.cost_ns or 0), finding.code, finding.instructions)
