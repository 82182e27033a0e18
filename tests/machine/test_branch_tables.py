from __future__ import annotations

import numpy as np
import pytest

from tests.machine.launching import run

TABLE = r"""
extern "C" __global__ void k(const unsigned* in, unsigned* out) {
  unsigned i = threadIdx.x, r, v = in[i] % 5u;
  asm volatile(
    "{ .reg .u32 t; t0: .branchtargets L0, L1, L2, L3, L4; mov.u32 %0, 0; brx.idx %1, t0;\n"
    "L0: add.u32 %0, %0, 1; bra LE;\n"
    "L1: add.u32 %0, %0, 10;\n"
    "L2: add.u32 %0, %0, 100; bra LE;\n"
    "L3: mul.lo.u32 %0, %1, 1000; bra LE;\n"
    "L4: mov.u32 %0, 7;\n"
    "LE: add.u32 %0, %0, 5; }" : "=r"(r) : "r"(v));
  out[i] = r;
}
"""


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_lanes_take_their_own_ways_through_a_table_and_meet_behind_it(target: str) -> None:
    done = run(TABLE, "k<<<1, 96>>>(u32[96]=perm(3), u32[96])", target=target)
    way = done.given(0) % 5
    wanted = np.select([way == 0, way == 1, way == 2, way == 3], [6, 115, 105, 3005], 12)
    assert (done.output(1, np.uint32) == wanted).all()
    assert any(each.opcode == "BRX" for each in done.bound.kernel.instructions)
    assert done.execution.limitations == ()
