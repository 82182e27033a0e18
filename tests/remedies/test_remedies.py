"""Remedies of real kernels: what is proposed, what it changes, and what is refused and why."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sectorwise.analyze import analyze
from sectorwise.launch.notation import parse_launch
from sectorwise.remedies import workshop
from sectorwise.report.page import Page
from sectorwise.report.terminal import render

if TYPE_CHECKING:
    import pytest

    from sectorwise.analysis.data import KernelAnalysis
    from sectorwise.findings import Remedy
    from sectorwise.model.kernel_model import KernelModel

KERNELS = Path(__file__).parent / "kernels"
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "transpose.cu"
TILE = "transpose_tile<<<(4, 4), (32, 8)>>>(f32[128*128]=arange, f32[128*128], n=128)"


def find_remedies(kernel: KernelAnalysis, code: str) -> dict[str, Remedy]:
    """Remedies of a code's findings, by the first two words of their titles."""
    remedies = [remedy for finding in kernel.findings if finding.code == code for remedy in finding.remedies]
    return {" ".join(remedy.title.split()[:2]): remedy for remedy in remedies}


def analyze_file(name: str, code: str) -> dict[str, Remedy]:
    (kernel,) = analyze(KERNELS / f"{name}.cu", remedies=True).kernels
    return find_remedies(kernel, code)


def test_transpose_is_padded_by_a_word_or_swizzled() -> None:
    (kernel,) = analyze(EXAMPLE, TILE, remedies=True).kernels
    remedies = find_remedies(kernel, "SW201")
    padding, swizzle = remedies["pad the"], remedies["swizzle tile:"]
    assert padding.title == "pad the rows of tile by 1 element (4 B)"
    assert padding.change == "__shared__ float tile[kTile][kTile + 1];"
    assert (padding.before, padding.after) == (16 * (32 + 32 * 32), 16 * (32 + 32))
    assert swizzle.title == "swizzle tile: Swizzle<5,2,5> on byte offsets"
    assert swizzle.after == padding.after


def test_literal_extents_are_padded_as_people_write_them(tmp_path: Path) -> None:
    source = tmp_path / "transpose.cu"
    source.write_text(EXAMPLE.read_text(encoding="utf-8").replace("[kTile][kTile];", "[32][32];"), encoding="utf-8")
    (kernel,) = analyze(source, TILE, remedies=True).kernels
    assert find_remedies(kernel, "SW201")["pad the"].change == "__shared__ float tile[32][33];"


def test_rows_of_matrices_are_padded_by_eight_halves_or_swizzled_by_chunks() -> None:
    remedies = analyze_file("matrices", "SW203")
    padding, swizzle = remedies["pad the"], remedies["swizzle tile:"]
    assert padding.change == "__shared__ unsigned short tile[32][72];"
    assert swizzle.title == "swizzle tile: Swizzle<3,4,3> on byte offsets"
    assert swizzle.change == "tile[row][column ^ (row % 8 * 8)]  // for tile[row][column], everywhere"
    stores, loads = 4 * 8 * 4, 4 * 8 * 4
    assert (padding.before, padding.after) == (stores + 8 * loads, stores + loads)
    assert swizzle.after == padding.after
    assert [text.split(":")[0] for text in padding.refused] == [
        f"pad the rows of tile by {pad} element{'s' if pad > 1 else ''} ({2 * pad} B)" for pad in (1, 2, 4)
    ]
    assert all("access of 16 B" in text and "not a multiple" in text for text in padding.refused)


def test_transposed_tile_of_a_product_is_padded_by_four_words_and_not_by_one() -> None:
    remedies = analyze_file("sgemm", "SW202")
    padding = remedies["pad the"]
    assert padding.change == "__shared__ float rows[kDepth][kTile + 4];"
    assert padding.after < padding.before
    refused = dict(text.split(": ", 1) for text in padding.refused)
    one = refused["pad the rows of rows by 1 element (4 B)"]
    assert one.startswith("an access of 16 B in line 2")
    assert "is not a multiple of the access width, 16 bytes" in one
    assert "pad the rows of rows by 2 elements (8 B)" in refused


def test_each_array_of_a_product_is_mended_where_its_own_lanes_meet() -> None:
    """Loads of one array take 16 of each 32 bytes of a row, which no padding mends; stores to the other go down."""
    (kernel,) = analyze(KERNELS / "sgemm.cu", remedies=True).kernels
    titles = {
        code: {
            tuple(remedy.title for remedy in finding.remedies) for finding in kernel.findings if finding.code == code
        }
        for code in ("SW201", "SW202")
    }
    assert titles["SW201"] == {("swizzle columns: Swizzle<3,4,3> on byte offsets",)}
    assert titles["SW202"] == {
        ("pad the rows of rows by 4 elements (16 B)", "swizzle rows: Swizzle<3,4,5> on byte offsets")
    }
    swizzle = find_remedies(kernel, "SW201")["swizzle columns:"]
    assert swizzle.change.startswith("columns[row][column ^ ((row * kTile + column) / 32 % 8 * 4)]")
    loads, passes_saved = 2 * 128, 4  # two lines, 16 bytes a lane: 8 passes become 4
    assert swizzle.before - swizzle.after == loads * passes_saved


def test_a_remedy_is_written_out_once() -> None:
    lines = [
        line.strip() for line in render(analyze(KERNELS / "sgemm.cu", remedies=True), Page(width=200)).splitlines()
    ]
    padding = "pad the rows of rows by 4 elements (16 B)"
    assert sum(line.startswith(f"remedy, proven: {padding}: ") for line in lines) == 1
    assert lines.count(f"remedy, as above: {padding}") == 3


def test_what_was_proven_on_a_small_kernel_is_called_so() -> None:
    shown = render(analyze(KERNELS / "wrapped.cu", remedies=True), Page(width=200))
    where = "a small kernel that makes the first request of each access to shared memory, not on this one"
    assert f"remedy, proven on {where}: pad rows of 128 B by 4 B: 132 to 8 L1 wavefronts shared" in shown


def test_pitch_of_a_flat_array_is_padded_in_its_indices() -> None:
    padding = analyze_file("flat", "SW201")["pad the"]
    assert padding.title == "pad the rows of tile by 1 element: a pitch of (kPitch + 1)"
    assert (padding.before, padding.after) == (4 * (32 + 32 * 32), 4 * (32 + 32))


def test_pitch_of_dynamic_shared_memory_is_padded_with_its_size() -> None:
    padding = analyze_file("dynamic", "SW201")["pad the"]
    assert padding.title == "pad the rows of tile by 1 element: a pitch of 33, and 4,224 B of dynamic shared memory"
    assert (padding.before, padding.after) == (16 * (32 + 32 * 32), 16 * (32 + 32))
    assert parse_launch(padding.launch).dynamic_shared_bytes == 4224


def test_accesses_that_cannot_be_rewritten_are_shown_in_a_small_kernel(tmp_path: Path) -> None:
    remedies = analyze_file("wrapped", "SW201")
    padding, swizzle = remedies["pad rows"], remedies["exchange words"]
    assert padding.change == "row * 132 + column  // in bytes, for row * 128 + column"
    assert padding.quantity == "L1 wavefronts shared"
    assert padding.proven_on == "a small kernel that makes the first request of each access to shared memory"
    # Four stores of a row and four loads of a column, a request each.
    assert (padding.before, padding.after) == (4 + 4 * 32, 4 + 4)
    assert (swizzle.before, swizzle.after) == (padding.before, padding.after)
    assert_that_it_stands_alone(padding, tmp_path)


def test_matrices_that_cannot_be_rewritten_need_rows_of_whole_chunks(tmp_path: Path) -> None:
    remedies = analyze_file("wrapped_matrices", "SW203")
    padding, swizzle = remedies["pad rows"], remedies["exchange chunks"]
    assert padding.change.startswith("row * 144 + column")
    assert [text.partition(":")[0] for text in padding.refused] == [f"pad rows of 128 B by {pad} B" for pad in (4, 8)]
    assert swizzle.after == padding.after < padding.before
    assert any(text.startswith("exchange words by the row") for text in swizzle.refused)
    assert_that_it_stands_alone(swizzle, tmp_path)


def assert_that_it_stands_alone(remedy: Remedy, folder: Path) -> None:
    """The kernel of a remedy compiles and runs by itself, and its conflicts are gone."""
    source = folder / "accesses.cu"
    source.write_text(remedy.source_text, encoding="utf-8")
    (kernel,) = analyze(source, ignore=["SW4"]).kernels
    assert kernel.faults == ()
    assert [finding.code for finding in kernel.findings if finding.code.startswith("SW2")] == []


def test_rows_of_threads_are_loaded_by_warps_and_summed_in_order() -> None:
    remedy = analyze_file("gemv", "SW101")["let each"]
    assert remedy.title.startswith("let each warp load 32 rows of matrix together, along k, through shared memory")
    # Before: 32 sectors for each of 100 steps of 4 warps, and one for x. After: each row of 400 bytes is read whole,
    # from a multiple of 16 bytes on, in pieces of 128 bytes.
    pieces = sum(
        -(-(400 * row + min(128 * piece + 128, 400)) // 32) - (400 * row + 128 * piece) // 32
        for row in range(128)
        for piece in range(4)
    )
    x_and_y = 4 * 100 + 4 * 4
    assert remedy.before == 4 * 100 * 32 + x_and_y
    assert remedy.after == pieces + x_and_y
    assert "sum += staged[warp][lane][k - k_0] * x[k];" in remedy.change


def test_rows_of_halves_are_staged_a_word_apart(tmp_path: Path) -> None:
    """33 halves a row would let the lanes of a column meet in a bank."""
    source = tmp_path / "gemv.cu"
    source.write_text(
        "// sectorwise: launch gemv<<<1, 64>>>(u16[64*96]=uniform(1), u16[96]=uniform(2), u32[64], 96)\n"
        'extern "C" __global__ void gemv(const unsigned short* w, const unsigned short* x, unsigned* y, int n) {\n'
        "    int row = threadIdx.x;\n"
        "    unsigned sum = 0;\n"
        "    for (int k = 0; k < n; ++k) sum += w[row * n + k] * x[k];\n"
        "    y[row] = sum;\n"
        "}\n",
        encoding="utf-8",
    )
    (kernel,) = analyze(source, remedies=True).kernels
    remedy = find_remedies(kernel, "SW101")["let each"]
    assert "__shared__ unsigned short staged[2][32][34];" in remedy.change
    # Two warps write and read 96 rows of 32 halves each, a pass a request.
    assert remedy.title.endswith(f"which costs {2 * (96 + 96)} wavefronts")


def test_rows_are_not_staged_where_a_value_would_change(tmp_path: Path) -> None:
    """With a column of blocks the rows of a warp's lanes are not neighbours: lane 1 would get the row of another."""
    source = tmp_path / "gemv.cu"
    text = (KERNELS / "gemv.cu").read_text(encoding="utf-8")
    source.write_text(text.replace("blockIdx.x * blockDim.x + threadIdx.x", "threadIdx.x * gridDim.x + blockIdx.x"))
    (kernel,) = analyze(source, remedies=True).kernels
    assert "let each" not in find_remedies(kernel, "SW101")


def test_lanes_change_axes_where_no_value_changes() -> None:
    remedy = analyze_file("product", "SW101")["let threadIdx.x"]
    assert remedy.title == "let threadIdx.x and threadIdx.y change places, and launch blocks of (32, 16)"
    assert remedy.after < remedy.before / 2


def test_outputs_are_not_asked_for_where_other_axes_save_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source = tmp_path / "apart.cu"
    body = "out[threadIdx.x * 1024 + threadIdx.y * 64] = threadIdx.x * threadIdx.y;"
    source.write_text(f"__global__ void apart(int* out) {{ {body} }}", encoding="utf-8")
    compared: list[str] = []

    def compare(before: KernelModel, _: KernelModel) -> list[tuple[str, bool]]:
        compared.append(before.bound.kernel.name)
        return [("out", False)]

    monkeypatch.setattr(workshop, "_compare", compare)
    (kernel,) = analyze(source, "apart<<<1, (16, 16)>>>(i32[16384])", remedies=True).kernels
    assert "SW101" in [finding.code for finding in kernel.findings]
    assert compared == []
    assert not analyze_file("product", "SW101")
    assert "product" in compared


def test_records_are_aligned_so_that_one_access_takes_each() -> None:
    remedy = analyze_file("points", "SW105")["align Point"]
    assert remedy.change == "struct __align__(16) Point {"
    assert (remedy.before, remedy.after) == (16 * (4 * 16 + 4), 16 * (16 + 4))


def test_nothing_is_proposed_where_a_launch_is_wrong() -> None:
    short = TILE.replace("f32[128*128], n", "f32[100*128], n")
    (kernel,) = analyze(EXAMPLE, short, remedies=True).kernels
    assert kernel.faults
    assert [finding.remedies for finding in kernel.findings] == [()] * len(kernel.findings)


def test_runs_become_vectors_where_buffers_are_aligned() -> None:
    remedy = analyze_file("runs", "SW105")["promise the"]
    assert remedy.change.splitlines() == [
        "in = static_cast<const float*>(__builtin_assume_aligned(in, 16));",
        "out = static_cast<float*>(__builtin_assume_aligned(out, 16));",
    ]
    assert (remedy.before, remedy.after) == (528 * 2 * 4 * 16, 528 * 2 * 16)


def test_a_loop_that_waits_is_unrolled() -> None:
    remedy = analyze_file("waiting", "SW406")["unroll the"]
    assert remedy.change == "#pragma unroll 8\nfor (int k = 0; k < 128; ++k) sum = sum * 0.5f + in[k * 132 * 64 + i];"
    assert remedy.after > 4 * remedy.before


def test_a_transpose_is_staged_and_both_sides_are_told() -> None:
    naive = TILE.replace("transpose_tile", "transpose_naive")
    (kernel,) = analyze(EXAMPLE, naive, remedies=True).kernels
    remedy = find_remedies(kernel, "SW101")["stage through"]
    assert remedy.title.endswith("in 4 x 4 blocks of 32 x 8 threads, which costs 1,024 wavefronts")
    assert (remedy.before, remedy.after) == (512 * (4 + 32), 512 * (4 + 4))
    assert "__shared__ float tile[32][33];" in remedy.change


def test_a_staged_transpose_has_the_names_of_its_kernel(tmp_path: Path) -> None:
    """Sizes by their parameters, elements of two bytes a word apart, and no variable called like a parameter."""
    source = tmp_path / "turn.cu"
    source.write_text(
        "// sectorwise: launch turn<<<(2, 3), (32, 8)>>>(u16[64*96]=arange, u16[64*96], 64, 96)\n"
        'extern "C" __global__ void turn(const unsigned short* x, unsigned short* y, int rows, int columns) {\n'
        "    int r = blockIdx.x * 32 + threadIdx.x;\n"
        "    for (int j = 0; j < 32; j += 8) {\n"
        "        int c = blockIdx.y * 32 + threadIdx.y + j;\n"
        "        y[c * rows + r] = x[r * columns + c];\n"
        "    }\n"
        "}\n",
        encoding="utf-8",
    )
    (kernel,) = analyze(source, remedies=True).kernels
    remedy = find_remedies(kernel, "SW101")["stage through"]
    assert "__shared__ unsigned short tile[32][34];" in remedy.change
    assert "if (x_ < columns && y_ + j < rows) tile[threadIdx.y + j][threadIdx.x] = x[(y_ + j) * columns + x_];" in (
        remedy.change
    )
    requests = 64 * 96 // 32
    assert remedy.title.endswith(f"which costs {2 * requests} wavefronts")
    assert (remedy.before, remedy.after) == (requests * (32 + 2), requests * (2 + 2))
