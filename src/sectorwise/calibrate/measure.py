"""Turns a GPU into readings: what each of our kernels took, or reached, at each of its settings."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING, Final

from sectorwise.calibrate.driver import Gpu, Shape, allocate, clear, load_module, make_launch, read_back, time_launch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sectorwise.calibrate.driver import Argument

STREAM_BYTES: Final = 4 << 30
RANDOM_BYTES: Final = 16 << 20
"""What the L2 of any device that matters keeps, and its L1s do not."""

UNIT_BYTES: Final = 512
LINE_BYTES: Final = 128
RING_KIB: Final = (64, 96, 112, 128, 144, 160, 176, 192, 208, 216, 224, 232, 240, 248, 256, 272, 288, 320, 384)
"""Around the sizes that L1 has on one device or another."""

UNITS: Final = 1 << 22
"""Two gigabytes of them: far above any L2."""

STEPS: Final = 8000
TIMED_STEPS: Final = 200_000
RESULT_BYTES: Final = 32
ONE_BLOCK_BYTES: Final = 100_000
"""Dynamic shared memory of which an SM has room for two blocks at most."""

QUANTILES: Final = (
    *(0.0, 0.001, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8),
    *(0.85, 0.9, 0.925, 0.95, 0.97, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 1.0),
)
BACKGROUNDS: Final = (
    *((0, 0), (256, 3000), (256, 1000), (512, 1000), (512, 300), (1024, 1000), (768, 300)),
    *((512, 0), (1024, 300), (768, 0), (896, 0), (1024, 0)),
)
"""Threads an SM that read as a background, and the cycles that they pause after each read."""

PIPES: Final = (
    *("ffma", "fadd", "fmnmx", "imad", "lop3", "shf", "prmt", "popc", "mufu", "f2i", "i2f", "hfma2", "dfma", "shfl"),
    "sel",
)
INSTRUCTIONS_A_ROUND: Final = 64


@dataclass(frozen=True, slots=True)
class Reading:
    """What a kernel gave: its name, the setting it ran at, and a number (its unit is part of the name)."""

    name: str
    setting: tuple[tuple[str, int], ...]
    value: float

    def get(self, key: str) -> int:
        """A part of the setting."""
        return dict(self.setting)[key]


@dataclass(frozen=True, slots=True)
class _Bench:
    """A GPU with our kernels and the memory that they work on."""

    gpu: Gpu
    module: ctypes.c_void_p
    stream: ctypes.c_uint64
    units: ctypes.c_uint64
    result: ctypes.c_uint64

    def prepare(self, kernel: str, shape: Shape, *arguments: Argument) -> Callable[[], None]:
        """A launch of a kernel."""
        return make_launch(self.gpu, self.module, kernel, shape, arguments)

    def read_result(self) -> tuple[int, int, int, int]:
        """Cycles, nanoseconds, warps that streamed, and how long they did, of the last launch."""
        numbers = [int(value) for value in read_back(self.gpu, self.result, "uint64", 4)]
        return numbers[0], numbers[1], numbers[2], numbers[3]


def measure(gpu: Gpu, cubin: bytes) -> Iterator[Reading]:
    """All readings, in about ten seconds; needs seven gigabytes of the GPU's memory."""
    bench = _Bench(
        gpu,
        load_module(gpu, cubin),
        allocate(gpu, STREAM_BYTES),
        allocate(gpu, UNITS * UNIT_BYTES),
        allocate(gpu, RESULT_BYTES + 32),
    )
    for part in (
        _measure_latencies,
        _measure_rings,
        _measure_steps,
        _measure_loaded,
        _measure_loops,
        _measure_bandwidths,
        _measure_strides,
        _measure_blocks,
        _measure_atomics,
        _measure_pipes,
        _measure_places,
    ):
        yield from part(bench)


def compile_kernels(gpu: Gpu) -> bytes:
    """The cubin of `kernels.cu` for this GPU."""
    from importlib import resources

    from sectorwise.frontends.base import CompileRequest
    from sectorwise.frontends.cuda import CUDA

    target = f"sm_{gpu.attributes['major']}{gpu.attributes['minor']}"
    with resources.as_file(resources.files("sectorwise.calibrate").joinpath("kernels.cu")) as path:
        return CUDA.compile(path, CompileRequest(target)).cubin


def _wide(value: int) -> ctypes.c_uint64:
    return ctypes.c_uint64(value)


def _fill(bench: _Bench, units: int, unit_words: int) -> None:
    bench.prepare("fill_chain", Shape(4096, 256), bench.units, units, unit_words)()


def _measure_latencies(bench: _Bench) -> Iterator[Reading]:
    """One warp chases through ever more memory: L1, L2, and beyond."""
    for size_kib in (8, 32, 64, 128, 256, 1024, 4096, 16384, 32768, 65536, 262144):
        units = size_kib * 1024 // UNIT_BYTES
        _fill(bench, units, UNIT_BYTES // 4)
        steps = max(2048, min(units, 1 << 17))
        where = (bench.units, units - 1, UNIT_BYTES // 4)
        bench.prepare("chase_cached", Shape(1, 32), *where, steps, bench.result)()
        yield Reading("chase_cycles", (("kib", size_kib),), bench.read_result()[0] / steps)


def _measure_rings(bench: _Bench) -> Iterator[Reading]:
    """One warp goes round ever more lines, in the same order each time: how many of them its L1 still has."""
    for size_kib in RING_KIB:
        units = size_kib * 1024 // LINE_BYTES
        step = next(each for each in range(round(0.618 * units), units) if gcd(each, units) == 1)
        bench.prepare("fill_ring", Shape(64, 256), bench.units, units, LINE_BYTES // 4, step)()
        steps = 8 * units
        bench.prepare("chase_cached", Shape(1, 32), bench.units, units - 1, LINE_BYTES // 4, steps, bench.result)()
        yield Reading("ring_cycles", (("kib", size_kib),), bench.read_result()[0] / steps)


def _measure_steps(bench: _Bench) -> Iterator[Reading]:
    """Each step of a chase by itself: how latencies spread."""
    _fill(bench, UNITS, UNIT_BYTES // 4)
    bench.prepare("time_steps", Shape(1, 32), bench.units, UNITS - 1, UNIT_BYTES // 4, TIMED_STEPS, bench.stream)()
    cycles = sorted(int(value) for value in read_back(bench.gpu, bench.stream, "uint32", TIMED_STEPS))
    yield Reading("timed_step_cycles_mean", (), sum(cycles) / len(cycles))
    for quantile in QUANTILES:
        place = int(quantile * (len(cycles) - 1))
        yield Reading("timed_step_cycles", (("per_10000", round(10_000 * quantile)),), cycles[place])


def _measure_loaded(bench: _Bench) -> Iterator[Reading]:
    """A chase while all other SMs read at a rate that their warps and pauses set."""
    gpu = bench.gpu
    words = _wide(STREAM_BYTES // 16)
    stop = ctypes.c_uint64(bench.result.value + RESULT_BYTES)
    for threads, pause in BACKGROUNDS:
        clear(gpu, bench.result, RESULT_BYTES + 32)
        shape = Shape(gpu.attributes["sm_count"] if threads else 1, max(threads, 32), 2 * ONE_BLOCK_BYTES)
        seed = threads * 7 + pause
        bench.prepare(
            *("chase_128", shape, bench.units, UNITS - 1, UNIT_BYTES, STEPS, seed),
            *(bench.stream, words, pause, bench.result, stop),
        )()
        cycles, ns, warps, streamed_ns = bench.read_result()
        setting = (("threads", threads), ("pause", pause))
        yield Reading("loaded_ns", setting, ns / STEPS)
        yield Reading("loaded_cycles", setting, cycles / STEPS)
        yield Reading("background_gbs", setting, warps * 512 / streamed_ns if threads else 0.0)
    bench.prepare(
        *("chase_512", Shape(1, 32), bench.units, UNITS - 1, UNIT_BYTES, STEPS, 99),
        *(bench.stream, words, 0, bench.result, stop),
    )()
    yield Reading("wide_cycles", (("bytes", 512),), bench.read_result()[0] / STEPS)


def _measure_loops(bench: _Bench) -> Iterator[Reading]:
    for adds in (4, 16):
        for _ in range(2):
            bench.prepare(f"loop_{adds}", Shape(1, 32), 10_000, bench.result)()
        yield Reading("loop_cycles", (("adds", adds),), bench.read_result()[0] / 10_000)


def _measure_bandwidths(bench: _Bench) -> Iterator[Reading]:
    gpu = bench.gpu
    blocks = 2 * gpu.attributes["sm_count"]
    step_bytes = blocks * 1024 * 4 * 16
    for steps in (1, 2, 3):
        words, rounds = steps * step_bytes // 16, 50
        launch = bench.prepare("read_all", Shape(blocks, 1024), bench.stream, _wide(words), rounds, bench.result)
        moved = steps * step_bytes * rounds
        yield Reading("l2_read_gbs", (("kib", steps * step_bytes >> 10),), moved / time_launch(gpu, launch))
    for blocks_per_sm in (2, 4, 8):
        shape = Shape(blocks_per_sm * gpu.attributes["sm_count"], 1024 if blocks_per_sm == 2 else 256)
        setting = (("blocks_per_sm", blocks_per_sm),)
        moved = STREAM_BYTES // 2
        launch = bench.prepare("read_all", shape, bench.stream, _wide(moved // 16), 1, bench.result)
        yield Reading("read_gbs", setting, moved / time_launch(gpu, launch))
        other = ctypes.c_uint64(bench.stream.value + moved)
        launch = bench.prepare("copy_all", shape, bench.stream, other, _wide(moved // 16))
        yield Reading("copy_gbs", setting, 2 * moved / time_launch(gpu, launch))
        launch = bench.prepare("write_all", shape, bench.stream, _wide(moved // 16))
        yield Reading("write_gbs", setting, moved / time_launch(gpu, launch))


def _measure_strides(bench: _Bench) -> Iterator[Reading]:
    """Places apart: 64-byte blocks of DRAM by themselves; lines of stores, on few SMs and on all; words at random."""
    gpu, sms = bench.gpu, bench.gpu.attributes["sm_count"]
    for pitch in (16, 32, 64, 128):
        words = STREAM_BYTES // 4
        launch = bench.prepare("read_strided", Shape(8 * sms, 256), bench.stream, _wide(words), pitch, bench.result)
        yield Reading("lone_block_gbs", (("pitch_bytes", 4 * pitch),), words / pitch * 64 / time_launch(gpu, launch))
    for pitch in (8, 32):
        for used in (8, sms):
            words, rounds = used * 2048 * pitch, 40
            launch = bench.prepare("write_strided", Shape(used, 1024), bench.stream, _wide(words), pitch, rounds)
            ns = time_launch(gpu, launch)
            setting = (("pitch_bytes", 4 * pitch), ("sms", used))
            yield Reading("store_ns_a_request_and_sm", setting, ns * used * 32 / (words / pitch * rounds))

    for size_bytes, rounds in ((RANDOM_BYTES, 32), (STREAM_BYTES, 16)):
        shape = Shape(2 * sms, 1024)
        launch = bench.prepare("read_random", shape, bench.stream, size_bytes // 4 - 1, rounds, bench.result)
        lanes = 4 * rounds * shape.blocks * shape.threads
        yield Reading("read_random_ns_a_lane", (("kib", size_bytes >> 10),), time_launch(gpu, launch) / lanes)


def _measure_blocks(bench: _Bench) -> Iterator[Reading]:
    gpu, sms = bench.gpu, bench.gpu.attributes["sm_count"]
    for blocks in (sms * 1024, sms * 4096):
        for threads in (64, 256, 1024):
            launch = bench.prepare("do_nothing", Shape(blocks, threads), bench.result)
            yield Reading("empty_blocks_ns", (("blocks", blocks), ("threads", threads)), time_launch(gpu, launch))
    for waves in (32, 128):
        launch = bench.prepare("do_nothing", Shape(waves * sms, 256, 2 * ONE_BLOCK_BYTES), bench.result)
        yield Reading("empty_waves_ns", (("waves", waves),), time_launch(gpu, launch))


def _measure_atomics(bench: _Bench) -> Iterator[Reading]:
    """Reductions: on one word, on the words of a line, coalesced, scattered over what the L2 holds, and at random."""
    gpu, sms = bench.gpu, bench.gpu.attributes["sm_count"]
    settings: Sequence[tuple[int, int, int]] = (
        *((1, 0, 2), (1, 31, 8), (1, 255, 8), (1, 4095, 8), (1, (1 << 20) - 1, 32)),
        *((8, (1 << 22) - 1, 8), (33, (1 << 20) - 1, 8), (1021, (1 << 20) - 1, 8)),
    )
    for pitch, mask, rounds in settings:
        shape = Shape(2 * sms, 1024)
        launch = bench.prepare("add_all", shape, bench.stream, pitch, mask, rounds)
        lanes = shape.blocks * shape.threads * rounds
        yield Reading("add_ns_a_lane", (("pitch", pitch), ("mask", mask)), time_launch(gpu, launch) / lanes)
    rounds = 16
    launch = bench.prepare("add_random", Shape(2 * sms, 1024), bench.stream, RANDOM_BYTES // 4 - 1, rounds)
    ns = time_launch(gpu, launch) / (2 * sms * 1024 * rounds)
    yield Reading("add_random_ns_a_lane", (("kib", RANDOM_BYTES >> 10),), ns)


def _measure_pipes(bench: _Bench) -> Iterator[Reading]:
    for name in PIPES:
        operands: tuple[Argument, Argument] = (3, 5)
        if name in {"ffma", "fadd", "fmnmx", "mufu"}:
            operands = (1.0, 0.5)
        elif name == "dfma":
            operands = (ctypes.c_double(1.0), ctypes.c_double(0.5))
        bench.prepare(f"pipe_{name}", Shape(1, 1024), 32, bench.result, *operands)()
        lanes = 1024 * 32 * INSTRUCTIONS_A_ROUND / bench.read_result()[0]
        yield Reading("pipe_lanes_a_cycle", (("pipe", PIPES.index(name)),), lanes)


def _measure_places(bench: _Bench) -> Iterator[Reading]:
    """On which SM each block runs, and when it begins: one block an SM, eight, and eight that are short."""
    gpu, sms = bench.gpu, bench.gpu.attributes["sm_count"]
    begin = ctypes.c_uint64(bench.stream.value + (1 << 20))
    end = ctypes.c_uint64(bench.stream.value + (2 << 20))
    for kind, (threads, shared, blocks, cycles) in enumerate(
        (
            (256, 2 * ONE_BLOCK_BYTES, 4 * sms, 20_000),
            (256, 0, 24 * sms, 20_000),
            (256, 0, 24 * sms, 500),
        )
    ):
        bench.prepare("place_blocks", Shape(blocks, threads, shared), bench.stream, begin, end, cycles)()
        where = read_back(gpu, bench.stream, "uint32", blocks)
        begun = read_back(gpu, begin, "uint64", blocks)
        first = int(begun.min())
        for block in range(blocks):
            setting = (("kind", kind), ("block", block))
            yield Reading("block_sm", setting, int(where[block]))
            yield Reading("block_begin_ns", setting, int(begun[block]) - first)
