"""Turns names of measured launches, `gemm:k_mm_tile16`, into bound launches."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sectorwise.binary.cubin import read_cubin
from sectorwise.binding import bind
from sectorwise.device import load_device
from sectorwise.launch.files import read_launch_file

if TYPE_CHECKING:
    from sectorwise.binary.ir import Kernel
    from sectorwise.binding import BoundLaunch

FOLDER = Path(__file__).parents[1] / "tests" / "measured" / "h200"

ROWS = (
    "gemm:k_mm_tile16",
    "gemm:k_mm_swapped",
    "gemv:k_gemv_thread_per_row_16384",
    "gemms:t_mm_tile16",
    "gemm_schedule:k_mm64_colstripe_2048",
    "gemvs:t_gemv_tpc_14336",
    "reductions:t_sum_interleaved",
    "streams:t_stencil7_512",
    "streams:t_gather_hash",
    "transposes:t_tr_pad",
)


@cache
def _read_kernels(family: str) -> dict[str, Kernel]:
    cubin = read_cubin((FOLDER / f"{family}.sm_90.cubin").read_bytes(), family)
    return {kernel.name: kernel for kernel in cubin.kernels}


def bind_row(row: str) -> BoundLaunch:
    """The measured launch of this name, for the device on which it was measured."""
    family, _, name = row.partition(":")
    config = next(case for case in read_launch_file(FOLDER / f"{family}.json").cases if case.case == name)
    return bind(_read_kernels(family)[config.kernel], config, load_device("h200"))
