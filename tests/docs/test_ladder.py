"""The page of ladders is what sectorwise says of their rungs, and every rung computes what it should."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest

from sectorwise.analyze import analyze
from tools.write_ladder import LADDERS, PAGE, ROOT, analyse_ladder, describe_counts, read_comments

if TYPE_CHECKING:
    from sectorwise.analysis.data import KernelAnalysis

Array = npt.NDArray[Any]
UNKNOWN = {"gemm_hopper": {"HGMMA"}}
"""What is counted, not computed, of a ladder, by instruction."""


@pytest.fixture(scope="module")
def rows() -> list[str]:
    return PAGE.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("name", LADDERS)
def test_the_counts_of_the_page_are_the_tools(name: str, rows: list[str]) -> None:
    begin = rows.index(f"## {LADDERS[name]}")
    told = [row for row in rows[begin + 4 :] if row.startswith(("|", "## "))]
    kernels = analyse_ladder(name, follow_caches=False)
    assert len(kernels) == len(read_comments(name))
    for number, kernel in enumerate(kernels):
        assert {each.because.partition(":")[0] for each in kernel.limitations} == UNKNOWN.get(name, set())
        assert kernel.faults == ()
        assert told[number].startswith(describe_counts(kernel, number + 1))
    assert told[len(kernels) :][:1] == [] or told[len(kernels)].startswith("## ")


def test_the_page_says_what_the_sources_say(rows: list[str]) -> None:
    text = "\n".join(rows)
    for name in LADDERS:
        assert "\n".join(read_comments(name)) in text


def execute(name: str, launches: list[str]) -> list[tuple[KernelAnalysis, list[Array]]]:
    """What launches of a ladder's rungs leave in their buffers."""
    found = []
    for kernel in analyze(ROOT / "examples" / "ladder" / f"{name}.cu", launches, keep_outputs=True).kernels:
        assert kernel.outputs is not None
        found.append((kernel, [each.values for each in kernel.outputs if each.argument.startswith("argument")]))
    return found


def read_bf16(values: Array) -> npt.NDArray[np.float64]:
    """The numbers of 16 bits each."""
    return (values.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)


def test_products_of_matrices() -> None:
    floats = "(f32[64*64]=uniform(1), f32[64*64]=uniform(2), f32[64*64], n=64, k=64)"
    halves = "(u16[64*64]=uniform(1, 16256), u16[64*64]=uniform(2, 16256), f32[64*64], n=64, k=64"
    shapes = {
        "naive": "(4, 4), (16, 16)",
        "swapped": "(4, 4), (16, 16)",
        "shared_tile": "(2, 2), (32, 32)",
        **dict.fromkeys(("register_tile", "vectorised", "stages"), "1, 256"),
    }
    launches = [f"{name}<<<{shape}>>>{floats}" for name, shape in shapes.items()]
    launches += [f"tensor_cores<<<1, 128>>>{halves})", f"block_order<<<1, 128>>>{halves}, down=1)"]
    for kernel, (a, b, c) in execute("gemm", launches):
        left, right = (read_bf16(each) if each.dtype == np.uint16 else each.astype(np.float64) for each in (a, b))
        expected = left.reshape(64, 64) @ right.reshape(64, 64)
        np.testing.assert_allclose(c.reshape(64, 64), expected, rtol=2e-6, err_msg=kernel.name)


def test_products_with_vectors() -> None:
    given = "u16[16*256]=uniform(1, 16256), u16[256]=uniform(2, 16256)"
    launches = [
        *(f"{name}<<<2, 256>>>({given}, f32[16], depth=256)" for name in ("warp_a_row", "sixteen_bytes")),
        f"two_rows<<<1, 256>>>({given}, f32[16], depth=256)",
        f"split<<<16, 128>>>({given}, f32[16], depth=256)",
        "thread_a_row<<<1, 128>>>(u16[128*256]=uniform(1, 16256), u16[256]=uniform(2, 16256), f32[128], depth=256)",
    ]
    for kernel, (w, x, y) in execute("gemv", launches):
        expected = read_bf16(w).reshape(-1, 256) @ read_bf16(x)
        np.testing.assert_allclose(y, expected, rtol=2e-6, err_msg=kernel.name)


def test_transposes() -> None:
    launches = [
        "naive<<<(4, 16), (32, 8)>>>(f32[128*128]=uniform(1), f32[128*128], n=128)",
        *(f"{n}<<<(4, 4), (32, 8)>>>(f32[128*128]=uniform(1), f32[128*128], n=128)" for n in ("tile", "padded")),
        "swizzled<<<(4, 4), (32, 8)>>>(f32[128*128]=uniform(1), f32[128*128], n=128)",
        "vectorised<<<(2, 2), 256>>>(f32[128*128]=uniform(1), f32[128*128], n=128)",
    ]
    for kernel, (given, turned) in execute("transpose", launches):
        np.testing.assert_array_equal(turned.reshape(128, 128), given.reshape(128, 128).T, err_msg=kernel.name)
