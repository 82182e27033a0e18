"""Stores that an mbarrier waits for (st.async) are no requests: an H200's profiler lists and counts none."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from sectorwise.binary.cubin import read_cubin
from sectorwise.binding import bind
from sectorwise.device import load_device
from sectorwise.launch.config import ScalarArgument
from sectorwise.launch.files import read_launch_file
from sectorwise.machine.execution import ExecutionOptions
from sectorwise.machine.numpy_engine import execute
from sectorwise.model.totals import sum_totals

FOLDER = Path(__file__).parent / "tiles"
COUNTS = ("executed", "tag_requests", "sectors", "sectors_ideal", "sectors_local", "wavefronts", "wavefronts_ideal")
WORDS = {"sent4": (0,), "sent8": (0, 7), "sent16": (0, 7, 0, 7)}
"""What a thread sends, beyond its number."""


def test_every_launch_counts_what_the_profiler_counts_and_leaves_what_was_sent() -> None:
    kernels = {each.name: each for each in read_cubin((FOLDER / "sent.sm_90.cubin").read_bytes(), "sent").kernels}
    measured = {case["name"]: case["measured"] for case in json.loads((FOLDER / "sent.json").read_text())["cases"]}
    launches = read_launch_file(FOLDER / "sent.json").cases
    assert len(launches) == 39
    for launch in launches:
        bound = bind(kernels[launch.kernel], launch, load_device("h200"))
        done = execute(bound, ExecutionOptions())
        assert (done.limitations, done.faults, done.hangs) == ((), (), ())
        row = measured[str(launch.case)]
        mine = [{name: getattr(site, name) for name in COUNTS} for site in done.sites]
        assert mine == [{name: each.get(name, 0) for name in COUNTS} for each in row["memory_instructions"]], (
            launch.case
        )
        totals = sum_totals(done.sites, 0)
        assert totals.shared_load_wavefronts == row["totals"]["shared_load_wavefronts"]
        assert totals.shared_store_wavefronts == row["totals"].get("shared_store_wavefronts", 0) == 0
        words, step, lanes = (each.value for each in launch.arguments[2:5] if isinstance(each, ScalarArgument))
        left = done.read_buffer(0).view(np.uint32).reshape(4, int(words))
        for thread in range(128) if step else ():
            place = thread * int(step) // 4
            if thread % 32 < int(lanes) and place + len(WORDS[launch.kernel]) <= words:
                sent = [thread + more for more in WORDS[launch.kernel]]
                assert left[:, place : place + len(sent)].tolist() == [sent] * 4
