"""Measured launches, read as a report would be, are compared number by number, and only what is exact can fail."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sectorwise.analysis.verification import Verdict, View
from sectorwise.counting.request import Operation, Space
from sectorwise.machine.execution import Certainty
from sectorwise.verify.compare import compare_launch, judge, pair_sites
from sectorwise.verify.counters import SITE_COUNTERS, TOTAL_COUNTERS, Noise
from sectorwise.verify.reports import make_site
from tests.measured.compare import analyze_row
from tests.measured.rows import EXACT_TOTALS, PIPE_TOTALS, SITE_COUNTS
from tests.verify.rows import find_row, make_launch

if TYPE_CHECKING:
    from sectorwise.analysis.verification import KernelComparison, Quantity

ROWS = [
    ("transpose", "k_copy"),
    ("transpose", "k_tr_naive"),
    ("transpose", "k_tr_tile"),
    ("local_memory", "k_lm_spill"),
    ("ldmatrix", "k_ldm_x4_pitch160"),
    ("shared_merge", "k_shm_f4_mixpairs"),
    ("global_atomic", "k_red_stride8"),
]


def compare_row(family: str, name: str) -> KernelComparison:
    row = find_row(family, name)
    return compare_launch(analyze_row(row), make_launch(row))


def find_total(compared: KernelComparison, name: str) -> Quantity:
    (total,) = [total for total in compared.totals if total.name == name]
    return total


@pytest.mark.parametrize(("family", "name"), ROWS)
def test_every_exact_quantity_of_measured_launches_is_equal(family: str, name: str) -> None:
    row, compared = find_row(family, name), compare_row(family, name)
    assert compared.passes
    assert len(compared.sites) == len(row.instructions)
    for site, listed in zip(compared.sites, row.instructions, strict=True):
        counted = {quantity.name: quantity.counted for quantity in site.quantities}
        assert counted == {name: listed[name] for name in SITE_COUNTS if listed.get(name)}
        assert {quantity.verdict for quantity in site.quantities} == {Verdict.EQUAL}
        assert {quantity.certainty for quantity in site.quantities} == {Certainty.EXACT}
    for total in compared.totals:
        assert total.counted == row.totals.get(total.name)
        expected = {Verdict.EQUAL, Verdict.NOISE} if total.name == "global_store_sectors" else {Verdict.EQUAL}
        assert total.verdict in (expected if total.counted is not None else {Verdict.NOT_COUNTED})


def test_names_of_counts_are_those_of_the_rows() -> None:
    assert [counter.name for counter in SITE_COUNTERS] == [
        "executed",
        "tag_requests",
        *SITE_COUNTS[1:3],
        "sectors_local",
        *SITE_COUNTS[4:6],
    ]
    named = {counter.name for counter in TOTAL_COUNTERS}
    bulk = {"bulk_load_sectors", "bulk_store_sectors", "bulk_reduction_sectors"}
    assert named == {*EXACT_TOTALS, *PIPE_TOTALS, *bulk, "instructions", "global_store_sectors"}
    by_pipe = {counter.name for counter in TOTAL_COUNTERS if counter.view is View.PIPE}
    assert named - by_pipe == {
        name for name in named if name.startswith(("l1_tag", "l2_theoretical", "shared_wavefronts"))
    }


@pytest.mark.parametrize(
    "counter", ["global_load_sectors", "l2_theoretical_sectors", "shared_wavefronts", "instructions"]
)
def test_one_more_in_an_exact_total_fails(counter: str) -> None:
    row = find_row("transpose", "k_tr_tile")
    wrong = row.totals[counter] + 1
    compared = compare_launch(analyze_row(row), make_launch(row, {counter: wrong}))
    assert not compared.passes
    total = find_total(compared, counter)
    assert (total.verdict, total.difference, total.counted) == (Verdict.DIFFERENT, 1, wrong)
    others = {each.verdict for each in compared.quantities if each is not total}
    assert others <= {Verdict.EQUAL, Verdict.NOISE}


def test_instructions_are_not_certain_where_lanes_may_take_the_slow_path_of_a_quotient() -> None:
    row = find_row("transpose", "k_tr_tile")
    kernel, launch = analyze_row(row), make_launch(row, {"instructions": row.totals["instructions"] + 1})
    assert kernel.coverage.blocks_total > 64
    call = "CALL.REL.NOINC `($__internal_0_$__cuda_sm3x_div_rn_noftz_f32_slowpath)"
    dividing = replace(kernel, instructions=(replace(kernel.instructions[0], sass=call), *kernel.instructions[1:]))
    total = find_total(compare_launch(dividing, launch), "instructions")
    assert (total.certainty, total.difference) == (Certainty.ASSUMED, 1)
    assert compare_launch(dividing, launch).passes
    assert not compare_launch(kernel, launch).passes


def test_one_wavefront_less_in_an_instruction_fails() -> None:
    row = find_row("transpose", "k_tr_tile")
    launch = make_launch(row)
    place = next(number for number, site in enumerate(launch.sites) if site.wavefronts)
    site = launch.sites[place]
    changed = replace(site, wavefronts=(site.wavefronts or 0) - 1)
    sites = (*launch.sites[:place], changed, *launch.sites[place + 1 :])
    compared = compare_launch(analyze_row(row), replace(launch, sites=sites))
    assert not compared.passes
    (wrong,) = [each for each in compared.quantities if each.verdict is Verdict.DIFFERENT]
    assert (wrong.name, wrong.difference) == ("wavefronts", -1)
    assert wrong in compared.sites[place].quantities


def test_replays_raise_shared_wavefronts_without_failing_and_never_lower_them() -> None:
    row = find_row("transpose", "k_tr_tile")
    kernel, right = analyze_row(row), row.totals["shared_load_wavefronts"]
    more = compare_launch(kernel, make_launch(row, {"shared_load_wavefronts": right + 9}))
    assert find_total(more, "shared_load_wavefronts").verdict is Verdict.NOISE
    assert more.passes
    less = compare_launch(kernel, make_launch(row, {"shared_load_wavefronts": right - 1}))
    assert find_total(less, "shared_load_wavefronts").verdict is Verdict.DIFFERENT
    assert not less.passes


@pytest.mark.parametrize(
    ("predicate", "verdict"), [("P0", Verdict.NOISE), ("!P0", Verdict.NOISE), ("P2", Verdict.DIFFERENT)]
)
def test_sectors_that_the_profiler_loses_of_some_copies_are_noise(predicate: str, verdict: Verdict) -> None:
    """Of copies around L1 that predicate 0 makes read or fill; of others none is lost."""
    row = find_row("transpose", "k_copy")
    kernel, launch = (
        analyze_row(row),
        make_launch(row, {"l2_theoretical_sectors": row.totals["l2_theoretical_sectors"] - 16}),
    )
    text = f"LDGSTS.E.BYPASS.128 [R11], desc[UR28][R22.64], {predicate}"
    mine = (replace(kernel.sites[0], sass=text), *kernel.sites[1:])
    sectors = launch.sites[0].sectors
    assert sectors is not None
    lost = replace(launch.sites[0], sass=text, sectors=sectors - 16)
    compared = compare_launch(replace(kernel, sites=mine), replace(launch, sites=(lost, *launch.sites[1:])))
    unequal = [each for each in compared.quantities if each.verdict is not Verdict.EQUAL]
    assert [(each.name, each.difference, each.verdict) for each in unequal] == [
        ("sectors", -16, verdict),
        ("l2_theoretical_sectors", -16, verdict),
    ]


def test_products_of_tensor_cores_are_instructions_of_a_report() -> None:
    """The profiler lists them with the passes that their operands take; else ours would have no partner."""
    counts = {"executed": 32, "wavefronts": 1024, "wavefronts_ideal": 1024}
    site = make_site("HGMMA.64x64x16.F32 R24, gdesc[UR8].tnspB, R24", counts, 0x1600, None)
    assert site is not None
    assert (site.space, site.operation, site.wavefronts) == (Space.SHARED, Operation.MATRIX_LOAD, 1024)
    assert make_site("HMMA.16816.F32 R24, R4, R8, R24", {"executed": 32}, 0, None) is None


def test_an_instruction_that_only_the_profiler_lists_fails() -> None:
    row = find_row("transpose", "k_copy")
    kernel, launch = analyze_row(row), make_launch(row)
    last = replace(launch.sites[-1], offset_bytes=0x7770)
    placed = [
        replace(site, offset_bytes=int(mine.offset, 16)) for site, mine in zip(launch.sites, kernel.sites, strict=True)
    ]
    compared = compare_launch(kernel, replace(launch, sites=(*placed, last)))
    assert len(compared.sites) == len(kernel.sites) + 1
    assert compared.sites[-1].offset == "0x7770"
    assert [each.name for each in compared.sites[-1].quantities if each.verdict is Verdict.DIFFERENT] == [
        "executed",
        "tag_requests",
        "sectors",
        "sectors_ideal",
    ]
    assert not compared.passes


def test_an_instruction_that_only_we_list_fails_and_pairs_stay_right() -> None:
    row = find_row("transpose", "k_copy")
    kernel, launch = analyze_row(row), make_launch(row)
    placed = [
        replace(site, offset_bytes=int(mine.offset, 16)) for site, mine in zip(launch.sites, kernel.sites, strict=True)
    ]
    pairs = pair_sites(kernel.sites, placed[:2] + placed[3:])
    assert [theirs for _, theirs in pairs] == [*placed[:2], None, *placed[3:]]
    compared = compare_launch(kernel, replace(launch, sites=(*placed[:2], *placed[3:])))
    assert not compared.passes
    assert {each.verdict for each in compared.sites[3].quantities} == {Verdict.EQUAL}


def test_a_report_without_the_source_view_gives_totals_alone() -> None:
    row = find_row("transpose", "k_copy")
    compared = compare_launch(analyze_row(row), replace(make_launch(row), has_source_view=False, sites=()))
    assert compared.sites == ()
    assert find_total(compared, "global_load_sectors").verdict is Verdict.EQUAL


@pytest.mark.parametrize(
    ("predicted", "counted", "certainty", "noise", "verdict"),
    [
        (None, 4, None, Noise.NONE, Verdict.NOT_PREDICTED),
        (4, None, Certainty.EXACT, Noise.NONE, Verdict.NOT_COUNTED),
        (4, 4, Certainty.EXACT, Noise.EITHER, Verdict.EQUAL),
        (4, 4, Certainty.ASSUMED, Noise.NONE, Verdict.EQUAL),
        (4, 5, Certainty.EXACT, Noise.NONE, Verdict.DIFFERENT),
        (4, 5, Certainty.MODELLED, Noise.NONE, Verdict.INEXACT),
        (4, 5, None, Noise.NONE, Verdict.INEXACT),
        (4, 5, Certainty.EXACT, Noise.UPWARD, Verdict.NOISE),
        (5, 4, Certainty.EXACT, Noise.UPWARD, Verdict.DIFFERENT),
        (5, 4, Certainty.EXACT, Noise.EITHER, Verdict.NOISE),
    ],
)
def test_verdicts(
    predicted: int | None, counted: int | None, certainty: Certainty | None, noise: Noise, verdict: Verdict
) -> None:
    assert judge(predicted, counted, certainty, noise) is verdict
