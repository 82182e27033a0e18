"""Turns a plan into launches on the first GPU of this machine: `python -m sectorwise.verify.launcher FOLDER`.

It runs in a process of its own, so that a profiler may be put before it, and so that a kernel that faults takes nothing
along. The driver is called directly; no kernel but those of the plan is launched.
"""

from __future__ import annotations

import ctypes
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sectorwise.errors import DeviceRunError, SectorwiseError
from sectorwise.launch.contents import materialise
from sectorwise.launch.dtypes import size_of
from sectorwise.verify.driver import (
    allocate,
    call,
    describe_gpu,
    download,
    find_variable,
    load_function,
    make_current,
    open_driver,
    release,
    upload,
)
from sectorwise.verify.plan import PLAN_FILE, RESULT_FILE, name_output, read_contents

if TYPE_CHECKING:
    from sectorwise.verify.driver import Driver

Json = dict[str, Any]


def follow_plan(folder: Path) -> Json:
    """Make every launch of the plan in `folder`; return the GPU's name and driver, and the times of each launch.

    Raises:
        DeviceRunError: a launch failed; the text names it.
    """
    plan = json.loads((folder / PLAN_FILE).read_text())
    driver = open_driver()
    gpu = describe_gpu(driver)
    make_current(driver)
    times_ns = []
    for number, launch in enumerate(plan["launches"]):
        try:
            times_ns.append(
                [
                    run_launch(driver, folder, launch, number, keep=plan["keep_outputs"] and not turn)
                    for turn in range(plan["repeats"])
                ]
            )
        except DeviceRunError as error:
            raise DeviceRunError(f"launch {number} ({launch['kernel']}) failed on the GPU: {error}") from None
    return {"gpu": gpu.name, "driver": gpu.driver, "times_ns": times_ns}


def run_launch(driver: Driver, folder: Path, launch: Json, number: int, *, keep: bool) -> float:
    """Load the module afresh, fill the buffers, launch; return the time in ns; `keep` leaves outputs in the folder."""
    module = ctypes.c_void_p()
    call(driver, "cuModuleLoadData", ctypes.byref(module), (folder / launch["cubin"]).read_bytes())
    function = load_function(driver, module, launch["kernel"], launch["dynamic_shared_bytes"])
    buffers = [read_contents(recipe) for recipe in launch["buffers"]]
    addresses = [allocate(driver, size_of(buffer)) for buffer in buffers]
    for buffer, address in zip(buffers, addresses, strict=True):
        upload(driver, address, np.ascontiguousarray(materialise(buffer)).tobytes())
    for variable in launch["variables"]:
        upload(driver, find_variable(driver, module, variable["symbol"])[0], fill(variable, addresses))
    values = [fill(parameter, addresses) for parameter in launch["parameters"]]
    taken_ns = _launch_once(driver, function, launch, values)
    if keep:
        places = dict(enumerate((address, size_of(each)) for each, address in zip(buffers, addresses, strict=True)))
        for place, symbol in enumerate(launch["kept_variables"], len(buffers)):
            # What is local to a source file has no name for the driver; it is not compared.
            with suppress(DeviceRunError):
                places[place] = find_variable(driver, module, symbol)
        for place, (address, size_bytes) in places.items():
            (folder / name_output(number, place)).write_bytes(download(driver, address, size_bytes))
    for address in addresses:
        release(driver, address)
    call(driver, "cuModuleUnload", module)
    return taken_ns


def fill(part: Json, addresses: list[int]) -> bytes:
    """The bytes of a parameter or variable of a plan, with the addresses that the buffers have here."""
    if "contents" in part:
        return np.ascontiguousarray(materialise(read_contents(part["contents"]))).tobytes()
    data = bytearray.fromhex(part["bytes"])
    for offset, buffer, distance in part["pointers"]:
        data[offset : offset + 8] = (addresses[buffer] + distance).to_bytes(8, "little")
    return bytes(data)


def _launch_once(driver: Driver, function: ctypes.c_void_p, launch: Json, values: list[bytes]) -> float:
    held = [ctypes.create_string_buffer(value, max(len(value), 1)) for value in values]
    table = (ctypes.c_void_p * max(len(held), 1))(*[ctypes.cast(value, ctypes.c_void_p) for value in held])
    events = [ctypes.c_void_p(), ctypes.c_void_p()]
    for event in events:
        call(driver, "cuEventCreate", ctypes.byref(event), 0)
    shape = (*launch["grid"], *launch["block"], launch["dynamic_shared_bytes"])
    call(driver, "cuEventRecord", events[0], None)
    call(driver, "cuLaunchKernel", function, *shape, None, table, None)
    call(driver, "cuEventRecord", events[1], None)
    call(driver, "cuCtxSynchronize")
    taken_ms = ctypes.c_float()
    call(driver, "cuEventElapsedTime", ctypes.byref(taken_ms), *events)
    for event in events:
        call(driver, "cuEventDestroy_v2", event)
    return taken_ms.value * 1e6


def main() -> int:
    """Follow the plan of the folder on the command line, and leave the result beside it."""
    folder = Path(sys.argv[1])
    try:
        result = follow_plan(folder)
    except SectorwiseError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    (folder / RESULT_FILE).write_text(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
