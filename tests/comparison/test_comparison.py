from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sectorwise.analysis.causes import Cause, split_time
from sectorwise.analysis.comparison import KernelChange, NumberChange, compare_analyses
from sectorwise.analysis.lines import LineCost, list_line_costs, pair_lines
from sectorwise.analyze import analyze
from sectorwise.errors import ArgumentError
from sectorwise.report import comparison as report
from sectorwise.report.comparison import gather_causes, is_changed, shows_shares, write_share
from sectorwise.report.page import Page
from tests.comparison.kernels import analyze_example, find_kernel
from tests.report.samples import UNKNOWN, make_analysis, make_kernel

if TYPE_CHECKING:
    from pathlib import Path

    from sectorwise.analysis.data import KernelAnalysis

NAIVE, TILE, PADDED = (find_kernel(f"transpose_{name}") for name in ("naive", "tile", "padded"))


def compare(before: KernelAnalysis, after: KernelAnalysis) -> KernelChange:
    whole = analyze_example()
    (change,) = compare_analyses(replace(whole, kernels=(before,)), replace(whole, kernels=(after,))).kernels
    return change


@pytest.mark.parametrize("kernel", analyze_example().kernels)
def test_parts_of_the_time_add_up_to_the_estimate(kernel: KernelAnalysis) -> None:
    parts = split_time(kernel)
    assert [part.cause for part in parts] == list(Cause)
    assert kernel.time is not None
    assert sum(part.ns or 0.0 for part in parts) == pytest.approx(kernel.time.estimate_ns, rel=1e-12)
    assert all(part.ns is not None and part.ns >= 0 for part in parts)


def test_parts_are_what_the_ceilings_say() -> None:
    """Conflicts of the tile: 31 further passes in each of 8,192 requests, at L1's rate, above all other levels."""
    levels = {level.level: level for level in TILE.roofline.levels}
    l1 = next(level for name, level in levels.items() if name == "l1")
    others = max(level.least_ns or 0.0 for name, level in levels.items() if name != "l1")
    assert l1.amount is not None
    parts = {part.cause: part for part in split_time(TILE)}
    assert parts[Cause.CONFLICTS].amount == 31 * 8192
    assert parts[Cause.WORK].ns == others
    assert parts[Cause.CONFLICTS].ns == pytest.approx(l1.amount / l1.ceiling_per_ns - others)
    assert parts[Cause.SECTORS].ns == parts[Cause.SPILLS].ns == 0


def test_shares_add_up_to_one_and_name_the_cause() -> None:
    change = compare(TILE, PADDED)
    shares = [cause.share for cause in change.causes]
    assert sum(share for share in shares if share is not None) == pytest.approx(1)
    # Of what the launches wait for besides, one says L1 and the other data.
    fault = next(cause for cause in change.causes if cause.cause is not Cause.PACE)
    assert fault.cause is Cause.CONFLICTS
    assert (fault.amount_before, fault.amount_after) == (253_952, 0)
    gathered = [cause for cause, _ in gather_causes(change.causes)]
    sizes = [abs((cause.ns_after or 0) - (cause.ns_before or 0)) for cause in gathered]
    assert sizes == sorted(sizes, reverse=True)
    assert [cause.cause for cause in gathered[:2]] == [Cause.CONFLICTS, Cause.PACE]
    assert sum(cause.share or 0.0 for cause in gathered) == pytest.approx(1)
    numbers = {number.name: (number.before, number.after) for number in change.numbers}
    assert numbers["shared wavefronts"] == (270_336, 16_384)
    assert numbers["shared memory a block"] == (4096, 4224)
    words = {word.name: (word.before, word.after) for word in change.words}
    assert words["roofline bound"] == (TILE.roofline.bound, PADDED.roofline.bound)


def test_what_goes_wrong_is_a_number_that_changes(tmp_path: Path) -> None:
    source = tmp_path / "copy.cu"
    source.write_text(
        'extern "C" __global__ void copy(const float* in, float* out) {\n'
        "  int i = blockIdx.x * 64 + threadIdx.x;\n"
        "  out[i] = in[i];\n"
        "}\n",
        encoding="utf-8",
    )
    whole, short = (analyze(source, f"copy<<<4, 64>>>(f32[{count}], f32[256])") for count in (256, 192))
    comparison = compare_analyses(whole, short)
    (change,) = comparison.kernels
    assert NumberChange("lanes with a wrong access", "", 0, 64) in change.numbers
    said = "64 lanes more have a wrong access: `check` says where; mend them first"
    assert said in " ".join(report.render(comparison, Page()).split())
    assert "wrong access: `check`" not in report.render(compare_analyses(short, whole), Page())


def test_what_holds_up_differently_is_a_cause_each() -> None:
    paces = [cause for cause in compare(NAIVE, PADDED).causes if cause.cause is Cause.PACE]
    assert {cause.held_up_by for cause in paces} == {NAIVE.time and NAIVE.time.bound, PADDED.time and PADDED.time.bound}
    assert all(0.0 in {cause.ns_before, cause.ns_after} for cause in paces)


def test_equal_analyses_differ_in_nothing() -> None:
    change = compare(TILE, TILE)
    assert {cause.share for cause in change.causes} == {None}
    assert all(number.before == number.after for number in change.numbers)
    assert all(line.before == line.after for line in change.lines)


def test_without_an_estimate_shares_are_unknown_and_parts_still_known() -> None:
    change = compare(replace(TILE, time=None), PADDED)
    assert {cause.share for cause in change.causes} == {None}
    conflicts = next(cause for cause in change.causes if cause.cause is Cause.CONFLICTS)
    assert conflicts.ns_before is not None
    assert conflicts.ns_before > 800
    pace = [cause for cause in change.causes if cause.cause is Cause.PACE]
    assert pace[0].ns_before is None


def test_unknown_site_makes_parts_unknown() -> None:
    assert {part.ns for part in split_time(UNKNOWN)} == {None}
    (cost,) = [cost for cost in list_line_costs(UNKNOWN, {}) if cost.line == 7]
    assert (cost.sectors, cost.executed) == (None, 3 * 2048)


def test_spills_are_a_cause(tmp_path: Path) -> None:
    source = tmp_path / "spill.cu"
    loads = "".join(f"    float v{i} = in[{1024 * i} + threadIdx.x];\n" for i in range(40))
    chain = "".join(f"        sum = sum * v{i} + v{(7 * i + 3) % 40};\n" for i in range(40))
    source.write_text(
        "// sectorwise: launch spill<<<8, 1024>>>(f32[40960], f32[8192], n=3)\n"
        'extern "C" __global__ void __launch_bounds__(1024, LEAST) spill(const float* in, float* out, int n) {\n'
        f"{loads}    float sum = 0;\n    for (int k = 0; k < n; ++k) {{\n{chain}    }}\n"
        "    out[blockIdx.x * 1024 + threadIdx.x] = sum;\n}\n"
    )
    few, many = (analyze(source, macros=[f"LEAST={least}"], follow_caches=True) for least in (1, 2))
    (change,) = compare_analyses(few, many).kernels
    numbers = {number.name: (number.before, number.after) for number in change.numbers}
    assert numbers["occupancy"] == (50, 100)
    (spills,) = [cause for cause in change.causes if cause.cause is Cause.SPILLS]
    assert spills.amount_before == 0
    assert spills.amount_after == many.kernels[0].totals.l2_theoretical_sectors_local
    assert (spills.amount_after or 0) > 8 * 32 * 4
    assert spills.ns_before == 0
    assert (spills.ns_after or 0) > 0


def test_launches_are_paired_by_case_then_by_name() -> None:
    first, second = (make_kernel(), replace(make_kernel(), case="b"))
    before = make_analysis(first, second, replace(first, name="gone"))
    after = make_analysis(replace(second, case="c"), second, replace(first, name="new"))
    found = compare_analyses(before, after)
    assert [(pair.before.case, pair.after.case) for pair in found.kernels] == [(None, "c"), ("b", "b")]
    assert ([side.name for side in found.only_before], [side.name for side in found.only_after]) == (["gone"], ["new"])


def test_nothing_in_common_is_an_error() -> None:
    one, other = make_kernel(), replace(make_kernel(), name="other")
    with pytest.raises(ArgumentError, match="before there are sample, after other, more; choose one of each"):
        compare_analyses(make_analysis(one, one), make_analysis(other, replace(one, name="more")))


def cost(line: int, text: str) -> LineCost:
    return LineCost("a.cu", line, text, 1, 1, 1, 1, 0, 0, 0, None)


def test_lines_find_their_counterparts_by_their_text() -> None:
    olds = [cost(3, "a = in[i];"), cost(4, "tile[y][x] = a;"), cost(9, "out[j] = tile[x][y];"), cost(10, "gone();")]
    news = [
        cost(5, "first = second;"),
        cost(6, "a  = in[i];"),
        cost(8, "tile[y][x ^ y] = a;"),
        cost(12, "out[j] = tile[x][y];"),
    ]
    pairs = [(old and old.line, new and new.line) for old, new in pair_lines(olds, news)]
    assert pairs == [(None, 5), (3, 6), (4, 8), (9, 12), (10, None)]


def test_lines_of_the_time_are_lines_of_the_kernel() -> None:
    costs = list_line_costs(TILE, analyze_example().source_texts)
    assert TILE.time is not None
    assert sum(each.ns or 0.0 for each in costs) == pytest.approx(TILE.time.parts_ns["warps"])
    by_line = {each.line: each for each in costs}
    assert by_line[36].text == "out[(row + j) * n + column] = tile[threadIdx.x][threadIdx.y + j];"
    assert by_line[36].wavefronts == 32 * 8192


def test_shares_are_shown_unless_causes_cancel() -> None:
    change = compare(NAIVE, TILE)
    first = change.causes[0]
    for shares, shown in ((1.0, True), (1.5, True), (-1.4, True), (1.6, False), (-30.0, False)):
        assert shows_shares(replace(change, causes=(replace(first, share=shares),))) is shown
    assert not shows_shares(replace(change, causes=(replace(first, share=None),)))
    (line,) = [line for line in change.lines if line.share][:1]
    assert write_share(replace(line, share=0.42)) == "42 % of the change"
    assert write_share(replace(line, share=13.2)) == write_share(replace(line, share=None)) == ""


@pytest.mark.parametrize(
    ("unit", "before", "after", "changed"),
    [
        ("B", 246e6, 246.01e6, False),
        ("B", 246e6, 246.2e6, True),
        ("ns", 0.0, 1.0, True),
        ("ns", None, 1.0, True),
        ("", 1_000_000, 1_000_001, True),
        ("%", 100.0, 100.0, False),
    ],
)
def test_a_modelled_amount_has_changed_by_more_than_its_rounding(
    unit: str, before: float | None, after: float, *, changed: bool
) -> None:
    assert is_changed(NumberChange("some", unit, before, after)) is changed
