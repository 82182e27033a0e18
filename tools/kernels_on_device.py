"""Turns the tests of the package's kernels into tests on this machine's GPU: the same plans, launched there.

python -m pytest -n0 -p tools.kernels_on_device tests/kernels/test_movement.py tests/kernels/test_gemv.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sectorwise.kernels.launching import launch, make_current, open_library
from sectorwise.kernels.plan import Pointer, TensorMap
from sectorwise.verify.driver import allocate, call, download, release, upload
from tests.kernels import engine

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from sectorwise.kernels.plan import KernelPlan

_DEVICE = 0


def run_on_device(
    plan: KernelPlan, memories: Mapping[str, npt.NDArray[Any]], offsets: Mapping[str, int] | None = None
) -> dict[str, npt.NDArray[np.uint8]]:
    """The bytes of each operand's memory after the launch on the GPU."""
    driver = open_library()
    names = list(dict.fromkeys(each.operand for each in plan.arguments if isinstance(each, Pointer | TensorMap)))
    with make_current(_DEVICE):
        held = {name: allocate(driver, memories[name].nbytes) for name in names}
        for name, address in held.items():
            upload(driver, address, np.ascontiguousarray(memories[name]).tobytes())
        addresses = {name: address + (offsets or {}).get(name, 0) for name, address in held.items()}
        launch(plan, addresses, _DEVICE, 0)
        call(driver, "cuCtxSynchronize")
        left = {name: np.frombuffer(download(driver, held[name], memories[name].nbytes), np.uint8) for name in names}
        for address in held.values():
            release(driver, address)
    return left


engine.RUNNERS.append(run_on_device)
