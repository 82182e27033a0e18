"""Turns a seed into a kernel: CUDA C++ that computes from edge values in all lanes, and writes every value out."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tools.fuzz.catalogue.families import (
    FAMILIES,
    FOCUSED_FROM,
    ORDER,
    REWRITTEN_FROM,
    UNIFORM_FROM,
    UNIFORM_SUMS,
    UNIFORMS,
    WHOLE_WARPS,
    choose_character,
)
from tools.fuzz.inputs import WORDS_PER_THREAD
from tools.fuzz.scope import Scope, choose_value
from tools.fuzz.statements import (
    add_call,
    add_chain,
    add_control,
    add_early_exit,
    add_local_array,
    add_operation,
    without_collectives,
)
from tools.fuzz.storage import SHARED_WORDS_PER_THREAD, TABLE_WORDS, add_memory
from tools.fuzz.stream import Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from tools.fuzz.statements import Lists

KERNELS_PER_FILE = 32


@dataclass(frozen=True, slots=True)
class Output:
    """A value that each thread writes: the first word of its place, its kind, its name in the source."""

    slot: int
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class FuzzKernel:
    """A generated kernel, how it is launched, and what it writes: `slots` words a thread, slot by slot."""

    seed: int
    family: str
    name: str
    source: str
    blocks: int
    threads: int
    slots: int
    outputs: tuple[Output, ...]

    @property
    def threads_total(self) -> int:
        """Threads of the launch."""
        return self.blocks * self.threads


@dataclass(frozen=True, slots=True)
class _Writers:
    """How a kernel writes out: `place` gives the statement, `output` adds it, `look` adds it for all that changes."""

    place: Callable[[str, str], str]
    output: Callable[[str, str], None]
    look: Callable[[], None]


def generate(seed: int, *, trace: bool = False) -> FuzzKernel:
    """The kernel of a seed: the same one on every machine.

    With `trace` it also writes all that changes out behind each piece of control flow, to find where runs part.
    """
    family = choose_character(seed)
    if isinstance(family, int):
        return _rename(generate(family, trace=trace), seed)
    stream = Stream(seed)
    lists = FAMILIES[family]
    threads = stream.pick((32, 64, 64, 64, 96, 128, 40, 100))
    # Lanes that part inside of a function that calls itself need not meet again when it returns: an H200 then counts
    # their warp twice at a barrier. So such kernels have no barrier and nothing that warps do together.
    recursive = family in ("control", "mixed") and stream.chance(30)
    if recursive:
        lists = without_collectives(lists)
    if threads % 32:
        lists = tuple(one for one in lists if one not in WHOLE_WARPS)
    blocks = stream.pick((1, 1, 2))
    outputs: list[Output] = []
    lines: list[str] = []
    scope = Scope(stream, _list_inputs(uniform=family == "uniform"), [], lines, [100])
    # Where jumps make a cycle with two ways in, which lanes are together depends on who ran first.
    scope.jumps = family != "converge"
    slots = [0]

    def place(kind: str, value: str) -> str:
        first = slots[0]
        slots[0] += 2 if kind in "dg" else 1
        outputs.append(Output(first, kind, value))
        return _write_store(first, kind, value)

    def output(kind: str, name: str) -> None:
        scope.emit(place(kind, name))

    def look() -> None:
        if trace:
            for kind, name in scope.mutable:
                scope.emit(place(kind, name))

    functions = (
        _write_functions(stream, seed, lists, scope.names, recursive=recursive)
        if family in ("control", "mixed", "memory")
        else []
    )
    chained = seed >= REWRITTEN_FROM and family == "uniform"
    if not chained:
        _declare_mutable(scope)
    names = [name for name, _ in functions]
    _fill(scope, seed, "recursive" if recursive else family, lists, threads, names, _Writers(place, output, look))
    for kind, name in scope.mutable:
        scope.emit(place(kind, name))
    name = f"fuzz_{seed}"
    header = (
        f'extern "C" __global__ void __launch_bounds__(128) {name}(const unsigned* __restrict__ in, unsigned* out,'
        " unsigned* scratch, unsigned param_u, unsigned param_v, float param_f, double param_g,"
        " unsigned long long param_d) {"
    )
    source = "\n".join([*(text for _, text in functions), header, *_write_prologue(threads, blocks), *lines, "}", ""])
    return FuzzKernel(seed, family, name, source, blocks, threads, slots[0], tuple(outputs))


def _rename(kernel: FuzzKernel, seed: int) -> FuzzKernel:
    """The kernel under another seed, from which its inputs are made."""
    source = re.sub(rf"\b(fuzz|function)_{kernel.seed}\b", rf"\g<1>_{seed}", kernel.source)
    source = re.sub(rf"\bfunction_{kernel.seed}_", f"function_{seed}_", source)
    return dataclasses.replace(kernel, seed=seed, name=f"fuzz_{seed}", source=source)


def write_file(kernels: list[FuzzKernel]) -> str:
    """A source file of several kernels, with the tables that they read."""
    words = ", ".join(f"0x{Stream(77 + number).word() & 0xFFFFFFFF:08x}u" for number in range(TABLE_WORDS))
    tables = (
        f"__constant__ __align__(16) unsigned constant_table[{TABLE_WORDS}] = {{{words}}};\n"
        f"__device__ __align__(16) unsigned global_table[{TABLE_WORDS}] = {{{words}}};\n"
    )
    return tables + "\n".join(kernel.source for kernel in kernels)


def _list_inputs(*, uniform: bool) -> list[tuple[str, str]]:
    """What a kernel computes from; `uniform` leaves what all lanes have in common, for the uniform data path."""
    common = [("u", "param_u"), ("u", "param_v"), ("f", "param_f"), ("g", "param_g"), ("d", "param_d")]
    common += [("u", "blockIdx.x"), ("u", "gridDim.x")]
    if uniform:
        return common
    names = [("u", f"in_u{number}") for number in range(4)] + [("f", f"in_f{number}") for number in range(4)]
    names += [(kind, f"in_{kind}{number}") for kind in "dghb" for number in range(2)]
    return [*names, *common, ("u", "lane"), ("u", "tid")]


def _write_prologue(threads: int, blocks: int) -> list[str]:
    total = threads * blocks
    tail = (1 << (threads % 32)) - 1
    full = "0xffffffffu" if threads % 32 == 0 else f"(tid < {threads - threads % 32}u ? 0xffffffffu : 0x{tail:x}u)"
    return [
        f"  __shared__ __align__(16) unsigned shared[{threads * SHARED_WORDS_PER_THREAD}];",
        f"  const unsigned tid = threadIdx.x, lane = tid & 31u, gid = blockIdx.x * {threads}u + tid;",
        f"  const unsigned full = {full}, below = (1u << lane) - 1u;",
        f"  unsigned* common = scratch + {total * 4}u;",
        f"  const unsigned* mine = in + gid * {WORDS_PER_THREAD}u;",
        *(f"  const unsigned in_u{number} = mine[{number}];" for number in range(4)),
        *(f"  const float in_f{number} = __uint_as_float(mine[{number + 4}]);" for number in range(4)),
        *(
            f"  const unsigned long long in_d{number} = *(const unsigned long long*)(mine + {8 + 2 * number});"
            for number in range(2)
        ),
        *(f"  const double in_g{number} = *(const double*)(mine + {12 + 2 * number});" for number in range(2)),
        *(f"  const unsigned in_h{number} = mine[{16 + number}];" for number in range(2)),
        *(f"  const unsigned in_b{number} = mine[{18 + number}];" for number in range(2)),
        "  *(uint4*)(shared + tid * 4u) = make_uint4(in_u0, in_u1, in_u2, in_u3);",
        "  __syncthreads();",
        "  (void)full; (void)below; (void)common;",
    ]


def _write_store(slot: int, kind: str, value: str) -> str:
    total = "(gridDim.x * blockDim.x)"
    match kind:
        case "d":
            words = [f"(unsigned)({value})", f"(unsigned)(({value}) >> 32)"]
        case "g":
            words = [f"(unsigned)__double2loint({value})", f"(unsigned)__double2hiint({value})"]
        case "f":
            words = [f"__float_as_uint({value})"]
        case _:
            words = [f"{value}"]
    return " ".join(f"out[{slot + number}u * {total} + gid] = {word};" for number, word in enumerate(words))


def _declare_mutable(scope: Scope) -> None:
    kinds = {"u": "unsigned", "f": "float", "d": "unsigned long long", "g": "double"}
    for kind in "uuufdg":
        name = scope.name(f"m{kind}")
        scope.emit(f"{kinds[kind]} {name} = {choose_value(scope, kind)};")
        scope.mutable.append((kind, name))


def _fill(
    scope: Scope, seed: int, family: str, lists: Lists, threads: int, functions: list[str], writers: _Writers
) -> None:
    stream = scope.stream
    output, look = writers.output, writers.look
    length = stream.between(14, 26)
    controls = {"control": 35, "recursive": 15, "converge": 40, "mixed": 12, "warp": 15, "memory": 8, "uniform": 3}.get(
        family, 6
    )
    memories = {"memory": 45, "mixed": 8, "matrix": 6, "atomics": 65}.get(family, 0)
    if seed >= FOCUSED_FROM and memories:
        memories = 88
    calls = (25 if family == "recursive" else 10) if functions else 0
    # A kernel that calls through pointers carries every such function of its file: a few kernels in each.
    pointers = seed // len(ORDER) % 3 == 1 and family in ("mixed", "recursive")
    if not scope.mutable:
        # Compilers leave the uniform data path where its values have other uses.
        chains = (UNIFORMS, UNIFORMS, UNIFORMS, UNIFORM_SUMS) if seed >= UNIFORM_FROM else (UNIFORMS,)
        for _ in range(stream.between(2, 5)):
            add_chain(scope, chains, output)
        return
    for _ in range(length):
        drawn = stream.below(100)
        if drawn < controls:
            add_control(scope, lists)
            look()
        elif drawn < controls + memories:
            if stream.chance(88):
                add_memory(scope, threads, output, atomics=family == "atomics")
            else:
                add_local_array(scope, output)
        elif drawn < controls + memories + calls:
            add_call(scope, functions, output, pointers=pointers)
        else:
            add_operation(scope, lists, output)
    if stream.chance(40):
        add_early_exit(scope, writers.place)
        rest = without_collectives(lists)
        for _ in range(stream.between(1, 5)):
            if stream.chance(30):
                add_control(scope, rest)
                look()
            else:
                add_operation(scope, rest, output)


def _write_functions(
    stream: Stream, seed: int, lists: Lists, names: list[int], *, recursive: bool
) -> list[tuple[str, str]]:
    """Functions that are called, not inlined; some call themselves."""
    plain = without_collectives(lists)
    made: list[tuple[str, str]] = []
    for number in range(2):
        name = f"function_{seed}_{number}"
        lines: list[str] = []
        fixed = [("u", "au"), ("f", "af"), ("d", "ad"), ("u", "lane")]
        scope = Scope(stream, fixed, [("u", "ru"), ("f", "rf")], lines, names)
        # Behind such jumps compilers gather the whole warp, also lanes that did not call: those never come.
        scope.jumps = False
        scope.emit("const unsigned lane = threadIdx.x & 31u; unsigned ru = au; float rf = af; (void)lane; (void)depth;")
        if recursive and stream.chance(70):
            scope.emit("if (depth == 0u) return au;")
            scope.emit(f"ru += {name}({choose_value(scope, 'u')}, rf, ad + 1u, depth - 1u);")
        for _ in range(stream.between(2, 5)):
            add_control(scope, plain) if stream.chance(20) else add_operation(scope, plain)
        scope.emit("return ru ^ __float_as_uint(rf) ^ " + choose_value(scope, "u") + ";")
        text = (
            f"static __device__ __noinline__ unsigned {name}(unsigned au, float af, unsigned long long ad,"
            f" unsigned depth) {{\n" + "\n".join(lines) + "\n}"
        )
        made.append((name, text))
    return made
