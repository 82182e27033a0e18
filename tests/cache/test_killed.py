"""Processes that share a cache and are killed at random: what is read is whole and right, or it is nothing."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from sectorwise.binding import bind
from sectorwise.cache import read_entry
from sectorwise.device import load_device
from sectorwise.launch.notation import parse_launch
from sectorwise.machine.execution import ExecutionOptions
from sectorwise.machine.native_engine import execute_native
from tests.machine.launching import compile_kernels

if TYPE_CHECKING:
    from pathlib import Path

LEAST_SECONDS = 4.0
MOST_SECONDS = 120.0
LEAST_KILLS = 10
PROCESSES = 8
KEYS = 20

# Reads and writes entries whose content follows from their key; tells of one that is not what it has to be.
WORKER = """
import random, sys
from pathlib import Path
from sectorwise.cache import read_entry, write_entry

numbers, reads = random.Random(int(sys.argv[1])), 0
while True:
    key = str(numbers.randrange(20))
    right = key.encode() * (50_000 * (1 + int(key) % 5))
    found = read_entry("area", key)
    if found is not None:
        reads += 1
        if found != right:
            Path(sys.argv[2], f"wrong-{key}").write_bytes(found)
        if reads == 20:
            Path(sys.argv[2], f"read-{sys.argv[1]}").touch()
    if found is None or numbers.random() < 0.5:
        write_entry("area", key, right)
"""


def test_killed_processes_leave_no_wrong_entry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SECTORWISE_CACHE_DIR", str(tmp_path / "cache"))
    told = tmp_path / "told"
    told.mkdir()
    numbers, begun, kills = random.Random(5), 0, 0  # noqa: S311 - a test's choice, not a secret

    def begin() -> subprocess.Popen[bytes]:
        nonlocal begun
        begun += 1
        return subprocess.Popen([sys.executable, "-c", WORKER, str(begun), str(told)])

    def is_enough() -> bool:
        return kills > LEAST_KILLS and any(path.name.startswith("read-") for path in told.iterdir())

    running = [begin() for _ in range(PROCESSES)]
    try:
        start = time.monotonic()
        # A busy machine takes longer to begin processes that then read anything.
        while (past := time.monotonic() - start) < LEAST_SECONDS or (past < MOST_SECONDS and not is_enough()):
            time.sleep(numbers.uniform(0.05, 0.25))
            place = numbers.randrange(PROCESSES)
            running[place].send_signal(signal.SIGKILL)
            running[place].wait()
            running[place] = begin()
            kills += 1
    finally:
        for process in running:
            process.kill()
            process.wait()
    assert is_enough()
    assert [path.name for path in told.iterdir() if path.name.startswith("wrong-")] == []
    for number in range(KEYS):
        key = str(number)
        assert read_entry("area", key) in (None, key.encode() * (50_000 * (1 + number % 5)))


@pytest.mark.parametrize("damage", ["flipped", "cut", "empty", "unwritable"])
def test_machine_code_that_is_damaged_is_made_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, damage: str
) -> None:
    source = 'extern "C" __global__ void scale(float* x, int n) { x[blockIdx.x * 64 + threadIdx.x * n] *= 2; }'
    kernel = compile_kernels(source)["scale"]
    bound = bind(kernel, parse_launch("scale<<<40, 64>>>(f32[4096], n=1)"), load_device("h200"))
    monkeypatch.setenv("SECTORWISE_CACHE_DIR", str(tmp_path))
    first = execute_native(bound, ExecutionOptions())
    (entry,) = (tmp_path / "native").iterdir()
    whole = entry.read_bytes()
    match damage:
        case "flipped":
            entry.write_bytes(whole[:5000] + bytes([whole[5000] ^ 255]) + whole[5001:])
        case "cut":
            entry.write_bytes(whole[: len(whole) // 2])
        case "empty":
            entry.write_bytes(b"")
        case _:
            monkeypatch.setenv("SECTORWISE_CACHE_DIR", str(entry / "below-a-file"))
    assert execute_native(bound, ExecutionOptions()).sites == first.sites
    assert entry.read_bytes() == whole
