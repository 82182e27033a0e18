"""Two listings of one kernel are told to be the same code, and two builds are told apart at the first instruction."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sectorwise.analysis.profile import PROFILE_SCHEMA, Profile
from sectorwise.binary.cubin import read_cubin
from sectorwise.errors import ReportError
from sectorwise.verify.codes import find_difference, find_opcode
from sectorwise.verify.pairing import pair_launches
from tests.measured.compare import analyze_row
from tests.measured.rows import EXACT_FAMILIES, FOLDER, OPEN_FAMILIES, read_rows
from tests.verify.rows import find_row, make_launch

CODE = (
    "MOV R1, c[0x0][0x28]",
    "ISETP.GE.AND P0, PT, R4, 0x40, PT",
    "@P0 EXIT",
    "BRA `(.L_x_3)",
    "NOP",
    "NOP",
)


def test_instructions_of_reports_are_those_of_the_disassembler() -> None:
    """Every memory instruction that Nsight Compute 2025.3 printed is one that our disassembler prints of the cubin."""
    checked = 0
    for family in (*EXACT_FAMILIES, *OPEN_FAMILIES):
        path = FOLDER / f"{family}.sm_90.cubin"
        kernels = {kernel.name: kernel for kernel in read_cubin(path.read_bytes(), path.name).kernels}
        for row in read_rows(family)[:4]:
            ours = [each.text for each in kernels[row.case["kernel"]].instructions]
            for listed in row.instructions:
                alike = [text for text in ours if find_opcode(text) == find_opcode(listed["sass"])]
                assert any(find_difference([text], [listed["sass"]]) is None for text in alike), listed["sass"]
                checked += 1
    assert checked > 500


def test_order_of_operands_labels_and_padding_do_not_matter() -> None:
    other = (
        "MOV R1, c[0x0][0x28] ;",
        "ISETP.GE.AND P0, PT,  R4, 0x40, PT",
        "@P0   EXIT",
        "BRA `(.L_x_0) 0x7f91b4fb36d0",
    )
    assert find_difference(CODE, other) is None
    assert (
        find_difference(
            ["LDGSTS.E.BYPASS.128 [R13], desc[UR6][R4.64]"], ["LDGSTS.E.BYPASS.128 desc[UR6][R4.64], [R13]"]
        )
        is None
    )
    assert find_difference(["MOV R4, 32@lo((k + .L_x_1@srel))"], ["MOV R4, 0x1f0"]) is None


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (0, "MOV R2, c[0x0][0x28]"),
        (0, "MOV R1, c[0x0][0x160]"),
        (1, "ISETP.GT.AND P0, PT, R4, 0x40, PT"),
        (1, "ISETP.GE.AND P0, PT, R4, 0x41, PT"),
        (2, "@!P0 EXIT"),
        (3, "EXIT"),
    ],
)
def test_a_changed_guard_opcode_register_or_number_is_found(index: int, text: str) -> None:
    changed = (*CODE[:index], text, *CODE[index + 1 :])
    found = find_difference(CODE, changed)
    assert found is not None
    assert (found.index, found.offset_bytes, found.ours, found.theirs) == (index, 16 * index, CODE[index], text)


def test_code_that_ends_early_differs_where_it_ends() -> None:
    found = find_difference(CODE, CODE[:2])
    assert found is not None
    assert (found.index, found.ours, found.theirs) == (2, "@P0 EXIT", None)


def profile_rows(*names: str) -> Profile:
    launches = tuple(make_launch(find_row("transpose", name)) for name in names)
    return Profile(schema=PROFILE_SCHEMA, source="some.ncu-rep", reader="rows", launches=launches)


def test_launches_are_found_by_kernel_and_shape_in_their_order() -> None:
    kernels = [analyze_row(find_row("transpose", name)) for name in ("k_tr_tile", "k_copy")]
    profile = profile_rows("k_copy", "k_tr_naive", "k_tr_tile", "k_copy")
    assert pair_launches(kernels, profile) == (profile.launches[2], profile.launches[0])
    again = pair_launches([kernels[1], kernels[1]], profile)
    assert again == (profile.launches[0], profile.launches[3])


def test_of_several_builds_in_a_report_the_own_one_is_taken() -> None:
    """As Triton makes them for the arguments of each launch: one name, one shape, other code."""
    kernel = analyze_row(find_row("transpose", "k_copy"))
    assert kernel.bound is not None
    code = tuple(each.text for each in kernel.bound.kernel.instructions)
    other = (code[0].replace("R1", "R3"), *code[1:])
    assert find_difference(code, other) is not None
    profile = profile_rows("k_copy", "k_copy", "k_copy", "k_copy")
    built = tuple(
        replace(launch, code=text, time_ns=float(number))
        for number, (launch, text) in enumerate(zip(profile.launches, (other, code, other, code), strict=True))
    )
    paired = pair_launches([kernel, kernel, kernel], replace(profile, launches=built))
    assert [launch.time_ns for launch in paired] == [1.0, 3.0, 3.0]


def test_a_report_of_another_kernel_names_those_that_it_has() -> None:
    kernel = analyze_row(find_row("transpose", "k_copy"))
    with pytest.raises(ReportError, match=r"some\.ncu-rep has no launch of k_copy; it has k_tr_naive, k_tr_tile"):
        pair_launches([kernel], profile_rows("k_tr_naive", "k_tr_tile"))


def test_a_report_of_another_launch_names_its_shape() -> None:
    kernel = analyze_row(find_row("transpose", "k_copy"))
    profile = profile_rows("k_copy")
    other = replace(profile, launches=(replace(profile.launches[0], grid=(8, 8, 1)),))
    with pytest.raises(
        ReportError,
        match=r"k_copy with \(8, 8, 1\) blocks of \(32, 8, 1\) threads; the launch to verify has \(16, 16, 1\)",
    ):
        pair_launches([kernel], other)


def test_a_report_of_another_build_names_the_first_instruction_that_differs() -> None:
    kernel = analyze_row(find_row("transpose", "k_copy"))
    assert kernel.bound is not None
    code = [each.text for each in kernel.bound.kernel.instructions]
    profile = profile_rows("k_copy")
    same = replace(profile, launches=(replace(profile.launches[0], code=tuple(code)),))
    assert pair_launches([kernel], same) == same.launches
    place = next(number for number, text in enumerate(code) if text.startswith("LDG"))
    code[place] = code[place].replace("LDG.E", "LDG.E.128")
    built = replace(profile, launches=(replace(profile.launches[0], code=tuple(code)),))
    with pytest.raises(ReportError) as raised:
        pair_launches([kernel], built)
    assert f"of another build of k_copy: instruction {place} at 0x{16 * place:04x} is" in str(raised.value)
    assert code[place] in str(raised.value)
