"""Which memory a generic address is said to be in, as an H200 says it: `device/spaces.json`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.machine.launching import compile_kernels, run

SOURCE = r"""
__device__ unsigned ask(unsigned long long a) {
  unsigned r = 0, q;
#define ASK(space, bit) \
  asm volatile("{ .reg .pred p; isspacep." space " p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(q) : "l"(a)); r |= q << bit;
  ASK("shared", 0) ASK("shared::cta", 1) ASK("shared::cluster", 2) ASK("local", 3) ASK("global", 4)
  return r;
}
__device__ void ask_all(unsigned* out, const int* at) {
  __shared__ int own[64];
  int local[4] = {1, 2, 3, (int)blockIdx.x};
  own[threadIdx.x & 63] = threadIdx.x;
  unsigned rank, ranks;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(ranks));
  unsigned long long other, mine, base = (unsigned long long)own;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(other) : "l"(base), "r"((rank + 1) % ranks));
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(mine) : "l"(base), "r"(rank));
  unsigned long long list[5] = {base, mine, other, (unsigned long long)&local[at[0] & 3], (unsigned long long)out};
  for (int k = 0; k < 5; k++) out[blockIdx.x * 5 + k] = ask(list[k]);
  out[10 + blockIdx.x] = local[at[1] & 3];
}
extern "C" __global__ void __cluster_dims__(2) pair(unsigned* out, const int* at) { ask_all(out, at); }
extern "C" __global__ void single(unsigned* out, const int* at) { ask_all(out, at); }
"""
MEASURED = json.loads((Path(__file__).parent / "device" / "spaces.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["single", "pair"])
def test_addresses_are_in_the_memories_that_an_h200_names(name: str) -> None:
    assert {each.text.split()[0] for each in compile_kernels(SOURCE)[name].instructions} >= {"QSPC.E.S", "QSPC.E.D"}
    found = run(SOURCE, f"{name}<<<2, 1>>>(u32[12], i32[2]=arange)")
    np.testing.assert_array_equal(found.output(0, np.uint32)[:10].reshape(2, 5), MEASURED[name])
