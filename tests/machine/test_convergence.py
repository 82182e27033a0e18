from __future__ import annotations

import numpy as np
import pytest

from sectorwise.machine.execution import Waiting
from tests.machine.launching import Run, run, run_assembly
from tests.machine.native.agreement import list_differences

PROLOGUE = """
    S2R R0, SR_TID.X
    LDC.64 R2, c[0x0][0x210]
    IMAD.WIDE R2, R0, 0x4, R2
    LOP3.LUT R4, R0, 0x1, RZ, 0xc0, !PT
    ISETP.NE.AND P0, PT, R4, RZ, PT
    LOP3.LUT R5, R0, 0x2, RZ, 0xc0, !PT
    ISETP.NE.AND P1, PT, R5, RZ, PT
    MOV R7, 0x1
"""


def _executed(done: Run) -> list[int]:
    return [site.executed for site in done.execution.sites]


def test_lanes_meet_only_where_they_are_told_to() -> None:
    code = f"""{PROLOGUE}
        @P0 BRA `(odd)
        STG.E [R2.64], R7
        BRA `(out)
      odd:
        STG.E [R2.64+0x80], R7
      out:
        STG.E [R2.64+0x100], R7
        EXIT
    """
    # Without BSSY and BSYNC the two sides stay apart, though they come to the same place.
    assert _executed(run_assembly(code, "k<<<3, 32>>>(i32[96])")) == [3, 3, 6]


@pytest.mark.parametrize("inner", [0, 1])
def test_nested_barrier_registers_of_both_sides_do_not_mix(inner: int) -> None:
    # Both sides of the outer branch use the same inner register at the same time.
    code = f"""{PROLOGUE}
        BSSY B{1 - inner}, `(joined)
        @P0 BRA `(odd)
        BSSY B{inner}, `(even_joined)
        @P1 BRA `(even_joined)
        STG.E [R2.64], R7
      even_joined:
        BSYNC B{inner}
        STG.E [R2.64+0x80], R7
        BRA `(joined)
      odd:
        BSSY B{inner}, `(odd_joined)
        @P1 BRA `(odd_joined)
        STG.E [R2.64+0x100], R7
      odd_joined:
        BSYNC B{inner}
        STG.E [R2.64+0x180], R7
      joined:
        BSYNC B{1 - inner}
        STG.E [R2.64+0x200], R7
        EXIT
    """
    done = run_assembly(code, "k<<<2, 64>>>(i32[192])")
    assert _executed(done) == [4] * 5
    assert [site.lanes // 4 for site in done.execution.sites] == [8, 16, 8, 16, 32]


def test_broken_lanes_are_waited_for_no_more() -> None:
    code = f"""{PROLOGUE}
        BSSY B0, `(joined)
        @P0 BREAK B0
        @P0 BRA `(away)
      joined:
        BSYNC B0
        STG.E [R2.64], R7
        EXIT
      away:
        STG.E [R2.64+0x80], R7
        WARPSYNC 0xaaaaaaaa
        STG.E [R2.64+0x100], R7
        EXIT
    """
    done = run_assembly(code, "k<<<1, 32>>>(i32[96])")
    assert _executed(done) == [1, 1, 1]
    assert [site.lanes for site in done.execution.sites] == [16, 16, 16]
    assert done.execution.limitations == ()


def test_exited_lanes_are_waited_for_no_more() -> None:
    code = f"""{PROLOGUE}
        BSSY B0, `(joined)
        @P1 BRA `(joined)
        @P0 EXIT
        STG.E [R2.64], R7
      joined:
        BSYNC B0
        STG.E [R2.64+0x80], R7
        EXIT
    """
    done = run_assembly(code, "k<<<1, 32>>>(i32[96])")
    assert [(site.executed, site.lanes) for site in done.execution.sites] == [(1, 8), (1, 24)]


def test_saved_barrier_register_is_what_it_was() -> None:
    code = f"""{PROLOGUE}
        BSSY B0, `(joined)
        @P0 BRA `(joined)
        BMOV.32.CLEAR R8, B0
        BSSY B0, `(inner)
        @P1 BRA `(inner)
        STG.E [R2.64], R7
      inner:
        BSYNC B0
        BMOV.32 B0, R8
        STG.E [R2.64+0x80], R7
      joined:
        BSYNC B0
        STG.E [R2.64+0x100], R7
        EXIT
    """
    done = run_assembly(code, "k<<<1, 32>>>(i32[96])")
    assert [(site.executed, site.lanes) for site in done.execution.sites] == [(1, 8), (1, 16), (1, 32)]


def test_collective_joins_groups_for_one_instruction_only() -> None:
    code = f"""{PROLOGUE}
        MOV R10, 0xffffffff
        @P0 BRA `(odd)
        WARPSYNC.COLLECTIVE R10, `(even_behind)
        SHFL.BFLY PT, R9, R0, 0x1, 0x1f
        ENDCOLLECTIVE
      even_behind:
        STG.E [R2.64], R9
        EXIT
      odd:
        WARPSYNC.COLLECTIVE R10, `(odd_behind)
        SHFL.BFLY PT, R9, R0, 0x1, 0x1f
        ENDCOLLECTIVE
      odd_behind:
        STG.E [R2.64], R9
        EXIT
    """
    done = run_assembly(code, "k<<<2, 64>>>(i32[64])")
    assert [(site.executed, site.lanes) for site in done.execution.sites] == [(4, 64), (4, 64)]
    np.testing.assert_array_equal(done.output(0), np.arange(64) ^ 1)
    shuffles = [i.index for i in done.bound.kernel.instructions if i.opcode == "SHFL"]
    assert sorted(done.execution.issued[shuffles].tolist()) == [0, 4]


def test_groups_that_wait_for_each_other_at_different_places_go_on_apart() -> None:
    code = f"""{PROLOGUE}
        @P0 BRA `(odd)
        WARPSYNC.ALL
        STG.E [R2.64], R7
        EXIT
      odd:
        WARPSYNC.ALL
        STG.E [R2.64], R7
        EXIT
    """
    done = run_assembly(code, "k<<<1, 32>>>(i32[32])")
    assert _executed(done) == [1, 1]
    assert done.execution.limitations == ()


WAITS = """{prologue}
        BSSY B0, `(joined)
        @P0 BRA `(odd)
      joined:
        {waits}
        STG.E [R2.64], R7
        EXIT
      odd:
        WARPSYNC 0xffffffff
        EXIT
"""


def test_a_convergence_barrier_holds_nobody_when_all_of_the_warp_waits() -> None:
    """As an H200 does: compilers jump out of irreducible loops without BREAK."""
    done = run_assembly(WAITS.format(prologue=PROLOGUE, waits="BSYNC B0"), "k<<<1, 32>>>(i32[32])")
    assert done.output(0)[::2].any()
    assert not done.output(0)[1::2].any()
    assert done.execution.limitations == ()


def test_lanes_that_never_come_are_said() -> None:
    done = run_assembly(WAITS.format(prologue=PROLOGUE, waits="BAR.SYNC 0x0"), "k<<<1, 32>>>(i32[32])")
    assert not done.output(0).any()
    assert [(hang.instruction, hang.waiting) for hang in done.execution.hangs] == [
        (10, Waiting.BLOCK_BARRIER),
        (13, Waiting.LANES),
    ]
    assert all(hang.is_certain for hang in done.execution.hangs)
    assert "the block's barrier" in done.execution.hangs[0].message
    assert "lanes that never come" in done.execution.hangs[1].message


REDUCTION = r"""
extern "C" __global__ void sums(const int* in, int* out, int n) {
  int i = threadIdx.x, v = in[i];
  if (v % 3) { for (int j = 0; j < in[i] % 7; ++j) { if (in[j] == i) break; v += in[j]; } }
  for (int d = 16; d; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  unsigned many = __ballot_sync(0xffffffffu, in[i] > n);
  out[i] = v + many;
}
"""


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_shuffles_behind_a_loop_that_lanes_leave_one_by_one(target: str) -> None:
    done = run(REDUCTION, "sums<<<1, 96>>>(i32[96]=perm(3), i32[96], 40)", target=target)
    given = done.given(0)
    value = given.copy()
    for i in range(96):
        if given[i] % 3:
            for j in range(given[i] % 7):
                if given[j] == i:
                    break
                value[i] += given[j]
    sums = value.reshape(3, 32).sum(axis=1, dtype=np.int32)
    many = ((given.reshape(3, 32) > 40) << np.arange(32)).sum(axis=1).astype(np.uint32).view(np.int32)
    np.testing.assert_array_equal(done.output(1).reshape(3, 32), np.repeat((sums + many)[:, None], 32, axis=1))


def test_a_branch_marked_uniform_is_taken_by_all_lanes_or_by_none() -> None:
    # flag-gems' topk has one, guarded by a predicate that one lane of a warp has not: counted on an H200, none leaves.
    code = """
        S2R R0, SR_TID.X
        LDC.64 R2, c[0x0][0x210]
        IMAD.WIDE R2, R0, 0x4, R2
        ISETP.GE.U32.AND P0, PT, R0, 0x28, PT
        @P0 BRA.U `(out)
        STG.E [R2.64], R0
      out:
        STG.E [R2.64+0x200], R0
        EXIT
    """
    done = run_assembly(code, "k<<<1, 96>>>(i32[256])")
    # Of the second warp 24 lanes have the predicate, of the third all.
    assert [(site.executed, site.lanes) for site in done.execution.sites] == [(2, 64), (3, 96)]
    assert list_differences(done.bound) == []
