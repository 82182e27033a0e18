"""Turns a seed into a kernel that computes indices of its block and thread, and how it is launched.

What a block does hangs on where it lies, in every way that is known to hold or break a proof that blocks are alike:
sums of products, quotients, masks, hashes, comparisons, loops of its own length, tables, early exits.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tools.fuzz.stream import Stream

WORDS = 1 << 18
"""Words of the buffer that is written; of the one that is read."""

_MASK = (1 << 16) - 1
_NUMBERS = (1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 31, 32, 33, 48, 64, 100, 127, 128, 255, 256, 1000, 1024, 4096, 65_537)
_LARGE = (0x9E3779B1, 0x7FFFFFFF, 1 << 20, 3 << 24, 0x01000193)
_INFIX = ("+", "+", "-", "*", "*", "&", "|", "^", "/", "%", ">>", "<<")
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


@dataclass(frozen=True, slots=True)
class IndexKernel:
    """A kernel in CUDA C++ and its launch, in the launch notation."""

    name: str
    source: str
    launch: str


@dataclass(slots=True)
class _Draft:
    """A kernel in the making: its random numbers, the names that may be used, its lines."""

    stream: Stream
    names: list[str] = field(default_factory=lambda: ["b", "b", "t", "n", "m"])
    lines: list[str] = field(default_factory=list)


def generate_indices(seed: int) -> IndexKernel:
    """The kernel of this seed."""
    stream = Stream(seed)
    kind = stream.pick(("int", "unsigned"))
    draft = _Draft(stream)
    if stream.chance(60):
        _add_block_values(draft, kind)
    if stream.chance(50):
        draft.names += ["c", "c"]
    for number in range(stream.between(1, 3)):
        _add_value(draft, f"v{number}", kind)
    for _ in range(stream.between(1, 3)):
        _add_access(draft)
    name = f"indices_{seed}"
    head = f'extern "C" __global__ void {name}(float* out, const float* in, const int* table, {kind} n, {kind} m) {{'
    begin = [
        f"  {kind} b = blockIdx.x, c = blockIdx.y, t = threadIdx.x;",
        "  __shared__ float s[1024];",
        "  for (int k = t; k < 1024; k += blockDim.x) s[k] = k;",
        "  __syncthreads();",
        "  float sum = 0;",
    ]
    source = "\n".join([head, *begin, *draft.lines, f"  out[{WORDS - 1} - t] = sum;", "}"])
    grid = (stream.between(16, 150), stream.between(1, 4))
    block = stream.pick((32, 32, 48, 64, 128))
    arguments = (
        f"f32[{WORDS}], f32[{WORDS}], i32[64]=perm({seed % 7}), {stream.pick(_NUMBERS)}, {stream.between(1, 300)}"
    )
    return IndexKernel(name, source, f"{name}<<<({grid[0]}, {grid[1]}), {block}>>>({arguments})")


def _write_value(draft: _Draft, depth: int) -> str:
    """An expression."""
    stream = draft.stream
    if depth == 0 or stream.chance(15):
        return stream.pick(draft.names) if stream.chance(65) else str(stream.pick(_NUMBERS))
    if stream.chance(6):
        return f"table[{_write_value(draft, depth - 1)} & 63]"
    if stream.chance(8):
        chosen = (_write_value(draft, depth - 1) for _ in range(2))
        return f"({_write_condition(draft)} ? {' : '.join(chosen)})"
    left, operator = _write_value(draft, depth - 1), stream.pick(_INFIX)
    match operator:
        case "<<" | ">>":
            right = str(stream.between(1, 12))
        case "/" | "%":
            # Never by zero: a number, or an argument, which is at least one.
            right = stream.pick(("n", "m", *(str(number) for number in _NUMBERS)))
        case "*" if stream.chance(20):
            right = str(stream.pick(_LARGE))
        case _:
            right = _write_value(draft, depth - 1)
    return f"({left} {operator} {right})"


def _write_condition(draft: _Draft) -> str:
    return f"{_write_value(draft, 1)} {draft.stream.pick(_COMPARISONS)} {_write_value(draft, 1)}"


def _add_block_values(draft: _Draft, kind: str) -> None:
    """Variables that hang on the block alone; blocks may leave, or go another way, by them."""
    stream = draft.stream
    names, draft.names = draft.names, ["b", "b", "b", "c", "n", "m"]
    for number in range(stream.between(1, 2)):
        draft.lines.append(f"  {kind} w{number} = {_write_value(draft, stream.between(1, 3))};")
        if stream.chance(30):
            draft.lines.append(f"  if ({_write_condition(draft)}) w{number} += {_write_value(draft, 1)};")
        draft.names += 2 * [f"w{number}"]
        names += 2 * [f"w{number}"]
    if stream.chance(40):
        draft.lines.append(f"  if ({_write_condition(draft)}) {stream.pick(('return', 'sum += in[t]'))};")
    draft.names = names


def _add_value(draft: _Draft, name: str, kind: str) -> None:
    """A variable, which may be changed again under a condition or in a loop."""
    stream = draft.stream
    draft.lines.append(f"  {kind} {name} = {_write_value(draft, stream.between(1, 3))};")
    if stream.chance(25):
        draft.lines.append(f"  if ({_write_condition(draft)}) {name} = {_write_value(draft, 2)};")
    if stream.chance(25):
        trips = _write_value(draft, 1)
        draft.lines.append(f"  for (unsigned k = 0; k < (({trips}) & 7); k++) {name} += k * {_write_value(draft, 1)};")
    draft.names += [name, name]


def _add_access(draft: _Draft) -> None:
    """A load, a store, shared or global, perhaps behind an exit."""
    stream = draft.stream
    if stream.chance(15):
        draft.lines.append(f"  if ({_write_condition(draft)}) return;")
    if stream.chance(40):
        steps = [f"{each} * {stream.pick(_NUMBERS[:18])}" for each in ("b", "c", "t")]
        place = f"((unsigned)({' + '.join(steps)}) % {WORDS}u)"
        if stream.chance(60):
            place = f"({' + '.join(steps)})"
    else:
        place = f"((unsigned)({_write_value(draft, 2)}) & {_MASK}u)"
    match stream.below(5):
        case 0:
            draft.lines.append(f"  out[{place}] = sum + 1;")
        case 1:
            draft.lines.append(f"  sum += in[{place}];")
        case 2:
            draft.lines.append(f"  sum += ((const float2*)in)[{place} / 2].x;")
        case 3:
            draft.lines.append(f"  sum += s[{place} & 1023];")
        case _:
            draft.lines.append(f"  s[{place} & 1023] = sum;")
