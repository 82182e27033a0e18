"""Runs that take long go on with better code in the middle, and nothing else changes."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest

from sectorwise.beside import begin
from sectorwise.binding import bind
from sectorwise.device import load_device
from sectorwise.launch.notation import parse_launch
from sectorwise.machine import numpy_engine
from sectorwise.machine.execution import ExecutionOptions
from sectorwise.machine.native import compiler, plan, threads, tiers
from sectorwise.machine.native.session import change_code
from sectorwise.machine.native.tiers import Recipe, Tier, expect_seconds, find_better, is_worth_it
from sectorwise.machine.native_engine import execute_native
from tests.machine.launching import compile_kernels
from tests.machine.native.agreement import list_differences

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sectorwise.beside import Begun
    from sectorwise.binding import BoundLaunch
    from sectorwise.machine.native.compiler import Host, Library
    from sectorwise.machine.native.session import Session

SOURCE = r"""
extern "C" __global__ void rounds(int* out, const int* in, int* total) {
  __shared__ int seen[128];
  int i = blockIdx.x * blockDim.x + threadIdx.x, x = in[i];
  seen[threadIdx.x] = x;
  __syncthreads();
  for (int n = x & 15; n; n--) if (x & n) out[i] = x += seen[x & 127]; else x ^= n;
  atomicAdd(total, x & 1);
  out[i] = x;
}
extern "C" __global__ void sums(float* out, const int* in) {
  __shared__ float bins[4];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x < 4) bins[threadIdx.x] = 0;
  __syncthreads();
  for (int n = in[i] & 3; n; n--) atomicAdd(&bins[(in[i] >> n) & 3], 0.1f * n);
  __syncthreads();
  out[i] = bins[in[i] & 3];
}
"""
ROUNDS = "rounds<<<24, 128>>>(i32[3072], i32[3072]=perm(5), i32[1])"
SUMS = "sums<<<24, 64>>>(f32[1536], i32[1536]=perm(2))"


def _bind(launch: str) -> BoundLaunch:
    config = parse_launch(launch)
    return bind(compile_kernels(SOURCE)[config.kernel], config, load_device("h200"))


@contextmanager
def _begin_and_wait(call: Callable[[], Library]) -> Iterator[Begun[Library]]:
    """As `beside.begin`, but whoever asks next finds it done."""
    with begin(call) as begun:
        begun.thread.join()
        yield begun


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, int]]:
    """Better code pays from the first blocks on; gives the levels at which modules are compiled from now on."""
    made: list[tuple[str, int]] = []
    compile_module = compiler.compile_module

    def note(text: str, host: Host, level: int) -> bytes:
        made.append((text, level))
        return compile_module(text, host, level)

    monkeypatch.setenv("SECTORWISE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compiler, "compile_module", note)
    monkeypatch.setattr(tiers, "is_worth_it", lambda _tier, _seconds, _done: True)
    monkeypatch.setattr(tiers, "begin", _begin_and_wait)
    for module in (threads, plan):
        monkeypatch.setattr(module, "count_threads", lambda _blocks: 2)
    return made


@pytest.mark.parametrize("launch", [ROUNDS, SUMS])
def test_a_run_that_goes_on_with_better_code_is_the_same(
    launch: str, eager: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    changed: list[Library] = []

    def note(session: Session, library: Library) -> None:
        changed.append(library)
        change_code(session, library)

    monkeypatch.setattr(threads, "change_code", note)
    assert list_differences(_bind(launch), ExecutionOptions(sample_above=None), assumes=True) == []
    # With all values, for what is left in buffers, it is another module, which begins anew.
    first, second = [text for text, level in eager if level == 0], [text for text, level in eager if level == 1]
    assert first == second
    assert len(set(first)) == len(first)
    assert len(changed) >= len(first) >= 1


@pytest.mark.usefixtures("eager")
def test_better_code_that_is_in_the_cache_is_used_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    bound, options = _bind(SUMS), ExecutionOptions(sample_above=None)
    before = execute_native(bound, options, assumes=True)
    monkeypatch.setattr(compiler, "compile_module", lambda *_arguments: pytest.fail("compiled again"))
    monkeypatch.setattr(threads, "change_code", lambda *_arguments: pytest.fail("changed on the way"))
    after = execute_native(bound, options, assumes=True)
    assert after.sites == before.sites
    assert (after.issued == before.issued).all()


@pytest.mark.usefixtures("eager")
def test_a_run_whose_better_code_cannot_be_made_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    compile_module = compiler.compile_module

    def fail(text: str, host: Host, level: int) -> bytes:
        if level:
            raise MemoryError
        return compile_module(text, host, level)

    monkeypatch.setattr(compiler, "compile_module", fail)
    monkeypatch.setattr(threads, "change_code", lambda *_arguments: pytest.fail("there is no better code"))
    bound, options = _bind(ROUNDS), ExecutionOptions(sample_above=None)
    assert execute_native(bound, options, assumes=True).sites == numpy_engine.execute(bound, options).sites


def test_runs_that_are_short_are_not_compiled_again(
    eager: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiers, "is_worth_it", is_worth_it)
    # A minute of compiling pays after minutes, which these blocks never take.
    monkeypatch.setattr(plan, "expect_seconds", lambda _seconds, _size: 60.0)
    execute_native(_bind(ROUNDS), ExecutionOptions(sample_above=None))
    assert [level for _, level in eager] == [0]


@pytest.mark.parametrize(
    ("seconds", "done", "pays"),
    [
        (0.0, 0, False),
        (0.9, 1, False),
        (1.1, 1, True),
        (10.0, 50, True),
        (10.0, 60, False),
        (60.0, 95, False),
        (60.0, 100, False),
    ],
)
def test_better_code_pays_if_it_saves_more_than_it_takes(seconds: float, done: int, *, pays: bool) -> None:
    host = compiler.find_host()
    assert host is not None
    with ExitStack() as stack:
        tier = Tier(Recipe("", host, (), 1.0), 100, stack)
        assert is_worth_it(tier, seconds, done) is pays
        if not pays:
            assert find_better(tier, seconds, done) is None
            assert tier.begun is None


def test_what_compiling_may_take_is_known_by_the_first_or_by_the_size() -> None:
    assert expect_seconds(0.25, 1 << 40) == pytest.approx(0.5)
    assert expect_seconds(None, 100_000) == pytest.approx(0.4)
