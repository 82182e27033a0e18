"""Turns random numbers into statements on shared, global, constant and generic memory: no two lanes race."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.fuzz.scope import choose_value, write_condition

if TYPE_CHECKING:
    from collections.abc import Callable

    from tools.fuzz.scope import Scope

Output = "Callable[[str, str], None]"

SHARED_WORDS_PER_THREAD = 4
SCRATCH_WORDS_PER_THREAD = 4
TABLE_WORDS = 64

_TYPES = {
    "unsigned char": 1,
    "signed char": 1,
    "unsigned short": 2,
    "short": 2,
    "unsigned": 4,
    "unsigned long long": 8,
    "uint4": 16,
}


def add_memory(scope: Scope, threads: int, output: Callable[[str, str], None], *, atomics: bool = False) -> None:
    """One exchange through memory; `atomics` and reads of rare kinds alone, where asked for."""
    if atomics:
        match scope.stream.below(6):
            case 0 | 1:
                _update_own(scope, output)
            case 2 | 3:
                _update_either(scope, output)
            case 4:
                _read_input(scope, threads, output)
            case _:
                _update_shared_own(scope, output)
        return
    if threads % 32 == 0 and scope.stream.chance(12):
        _move_matrices(scope, output)
        return
    match scope.stream.below(12):
        case 0 | 1 | 2:
            _exchange_shared(scope, threads, output)
        case 3:
            _read_input(scope, threads, output)
        case 4:
            _read_table(scope, output)
        case 5:
            _update_own(scope, output)
        case 6:
            _update_common(scope, threads, output)
        case 7:
            _update_shared(scope, threads, output)
        case 8:
            _choose_space(scope, output)
        case 9:
            _copy_async(scope, threads, output)
        case 10:
            _store_pieces(scope, output)
        case _:
            _count_at_barrier(scope, output)


def _place(scope: Scope, threads: int) -> str:
    stream = scope.stream
    odd = stream.pick((1, 3, 5, 7, 9, 17, 33)) if threads & (threads - 1) == 0 else 1
    return f"((tid * {odd}u + {stream.below(threads)}u) % {threads}u)"


def _new(scope: Scope, kind: str, text: str, output: Callable[[str, str], None], target: str) -> None:
    scope.emit(text)
    scope.fixed.append((kind, target))
    output(kind, target)


def _exchange_shared(scope: Scope, threads: int, output: Callable[[str, str], None]) -> None:
    """Each thread writes its 16 bytes in pieces of one width; after a barrier it reads another's in another width."""
    stream = scope.stream
    written, read = stream.pick(tuple(_TYPES)), stream.pick(tuple(_TYPES))
    for number in range(16 // _TYPES[written]):
        if stream.chance(30) and _TYPES[written] < 16:
            continue
        place = f"(({written}*)shared)[{_place_own(_TYPES[written])} + {number}]"
        if written == "uint4":
            words = ", ".join(choose_value(scope, "u") for _ in range(4))
            scope.emit(f"{place} = make_uint4({words});")
        else:
            scope.emit(f"{place} = ({written}){choose_value(scope, 'd')};")
    scope.emit("__syncthreads();")
    name = scope.name("d")
    count = 16 // _TYPES[read]
    index = f"{_place(scope, threads)} * {count}u"
    if count > 1:
        index += f" + ({choose_value(scope, 'u')} & {count - 1}u)"
    if read == "uint4":
        whole = scope.name("q")
        scope.emit(f"uint4 {whole} = ((uint4*)shared)[{index}];")
        value = f"((unsigned long long)({whole}.x ^ {whole}.z) << 32 | ({whole}.y * 3u + {whole}.w))"
    else:
        value = f"(unsigned long long)(long long)(({read}*)shared)[{index}]"
    _new(scope, "d", f"unsigned long long {name} = {value};", output, name)
    scope.emit("__syncthreads();")


def _place_own(width: int) -> str:
    return f"tid * {16 // width}u"


def _read_input(scope: Scope, threads: int, output: Callable[[str, str], None]) -> None:
    stream = scope.stream
    read = stream.pick(tuple(_TYPES))
    name = scope.name("d")
    count = threads * 80 // _TYPES[read]
    index = f"(({choose_value(scope, 'u')} ^ {stream.below(1000)}u) % {count}u)"
    if read == "uint4":
        value = f"(unsigned long long)((const uint4*)in)[{index}].z"
    else:
        space = stream.pick(("__ldg", "__ldcg", "__ldcs", "__ldcv", "__ldlu", "__ldca", "", ""))
        value = f"(unsigned long long)(long long){space}(((const {read}*)in) + {index})"
        if not space:
            value = f"(unsigned long long)(long long)((const {read}*)in)[{index}]"
    _new(scope, "d", f"unsigned long long {name} = {value};", output, name)


def _read_table(scope: Scope, output: Callable[[str, str], None]) -> None:
    stream = scope.stream
    table = stream.pick(("constant_table", "constant_table", "global_table"))
    read = stream.pick(("unsigned", "unsigned char", "short", "unsigned long long", "signed char"))
    count = TABLE_WORDS * 4 // {"unsigned": 4, "unsigned char": 1, "short": 2, "unsigned long long": 8}.get(read, 1)
    index = f"{choose_value(scope, 'u')} % {count}u" if stream.chance(80) else f"{stream.below(count)}"
    name = scope.name("d")
    text = f"unsigned long long {name} = (unsigned long long)(long long)((const {read}*){table})[{index}];"
    _new(scope, "d", text, output, name)


_VALUE_TYPES = {"d": "unsigned long long", "f": "float", "g": "double", "u": "unsigned"}
_WORD_UPDATES = ("Add", "And", "Or", "Xor", "Min", "Max", "Exch", "Inc", "Dec", "Sub", "MinS", "MaxS", "CAS")


def _write_update(scope: Scope, place: str) -> tuple[str, str]:
    """Kind and expression of an atomic of which the old value is used."""
    stream = scope.stream
    match stream.below(9):
        case 0:
            name = stream.pick(("Add", "Exch", "Min", "Max", "And", "Xor"))
            return "d", f"atomic{name}((unsigned long long*){place}, {choose_value(scope, 'd')})"
        case 1:
            compare = choose_value(scope, "d")
            return "d", f"atomicCAS((unsigned long long*){place}, {compare}, {choose_value(scope, 'd')})"
        case 2:
            return "f", f"atomicAdd((float*){place}, {choose_value(scope, 'f')})"
        case 3 if stream.chance(50):
            kind, half = stream.pick((("h", "f16x2"), ("b", "bf16x2")))
            old = scope.name("u")
            scope.emit(
                f'unsigned {old}; asm volatile("atom.add.noftz.{half} %0, [%1], %2;" : "=r"({old})'
                f' : "l"({place}), "r"({choose_value(scope, kind)}) : "memory");'
            )
            return "u", old
        case 3:
            return "g", f"atomicAdd((double*){place}, {choose_value(scope, 'g')})"
        case _:
            name = stream.pick(_WORD_UPDATES)
            if name == "CAS":
                return "u", f"atomicCAS({place}, {choose_value(scope, 'u')}, {choose_value(scope, 'u')})"
            if name.endswith("S"):
                return "u", f"(unsigned)atomic{name[:-1]}((int*){place}, (int){choose_value(scope, 'u')})"
            return "u", f"atomic{name}({place}, {choose_value(scope, 'u')})"


def _update_own(scope: Scope, output: Callable[[str, str], None]) -> None:
    """Atomics on memory that is one thread's alone: the old value is known."""
    for _ in range(scope.stream.between(1, 3)):
        place = f"(scratch + gid * {SCRATCH_WORDS_PER_THREAD}u + {scope.stream.pick((0, 2))}u)"
        kind, update = _write_update(scope, place)
        if scope.stream.chance(30):
            scope.emit(f"{update};")
            continue
        name = scope.name(kind)
        _new(scope, kind, f"{_VALUE_TYPES[kind]} {name} = {update};", output, name)


def _update_common(scope: Scope, threads: int, output: Callable[[str, str], None]) -> None:
    """Atomics of many threads on one word, of which only the sum of all is looked at, behind a barrier."""
    stream = scope.stream
    del threads, output
    name = stream.pick(("Add", "And", "Or", "Xor", "Min", "Max"))
    # A word of the common part for each operation, as different ones do not commute.
    word = ("Add", "And", "Or", "Xor", "Min", "Max").index(name) * 4
    index = f"{word}u + ({choose_value(scope, 'u')} & 3u)" if stream.chance(60) else f"{word}u"
    call = f"atomic{name}(common + {index}, {choose_value(scope, 'u')});"
    scope.emit(f"if ({write_condition(scope)}) {call}" if stream.chance(40) else call)


def _update_shared(scope: Scope, threads: int, output: Callable[[str, str], None]) -> None:
    """Shared counters that all threads of the block add to, then read."""
    stream = scope.stream
    del threads
    name = stream.pick(("Add", "And", "Or", "Xor", "Min", "Max", "Inc"))
    start = {"And": "0xffffffffu", "Min": "0xffffffffu"}.get(name, "0u")
    scope.emit(f"if (tid < 16u) shared[tid] = {start};")
    scope.emit("__syncthreads();")
    value = {"Inc": "0xffffffffu", "Add": stream.pick(("1u", choose_value(scope, "u")))}.get(name)
    call = f"atomic{name}(shared + ({choose_value(scope, 'u')} & 15u), {value or choose_value(scope, 'u')});"
    scope.emit(f"if ({write_condition(scope)}) {call}" if stream.chance(40) else call)
    scope.emit("__syncthreads();")
    found = scope.name("u")
    _new(scope, "u", f"unsigned {found} = shared[(lane + {stream.below(16)}u) & 15u];", output, found)
    scope.emit("__syncthreads();")
    if stream.chance(50):
        _update_shared_own(scope, output)
        scope.emit("__syncthreads();")


def _update_shared_own(scope: Scope, output: Callable[[str, str], None]) -> None:
    """Atomics on shared memory that is one thread's alone."""
    kind, update = _write_update(scope, "(shared + tid * 4u)")
    if scope.stream.chance(30):
        scope.emit(f"{update};")
        return
    old = scope.name(kind)
    _new(scope, kind, f"{_VALUE_TYPES[kind]} {old} = {update};", output, old)


def _store_pieces(scope: Scope, output: Callable[[str, str], None]) -> None:
    """Stores of every width to global memory that is one thread's alone, and a load of another width."""
    stream = scope.stream
    written, read = stream.pick(tuple(_TYPES)), stream.pick(tuple(_TYPES)[:-1])
    for _ in range(stream.between(1, 3)):
        place = f"(({written}*)(scratch + gid * 4u))[{stream.below(16 // _TYPES[written])}]"
        if written == "uint4":
            scope.emit(f"{place} = make_uint4({', '.join(choose_value(scope, 'u') for _ in range(4))});")
        else:
            scope.emit(f"{place} = ({written}){choose_value(scope, 'd')};")
    fence = stream.pick(("", "", "__threadfence();", "__threadfence_block();", "__threadfence_system();", "prefetch"))
    if fence == "prefetch":
        fence = 'asm volatile("prefetch.global.L2 [%0];" :: "l"(scratch + gid * 4u));'
    scope.emit(fence)
    name = scope.name("d")
    place = f"(({read}*)(scratch + gid * 4u))[{stream.below(16 // _TYPES[read])}]"
    _new(scope, "d", f"unsigned long long {name} = (unsigned long long)(long long){place};", output, name)


def _move_matrices(scope: Scope, output: Callable[[str, str], None]) -> None:
    """Matrices of 16-bit numbers between registers and shared memory, rows in any order."""
    stream = scope.stream
    count, transposed = stream.pick((1, 2, 4)), stream.pick(("", ".trans"))
    if stream.chance(50):
        rows = f"(tid & ~31u) + ((lane * {stream.pick((1, 3, 5, 7))}u + {stream.below(32)}u) & 31u)"
    else:
        rows = f"(tid & ~31u) + ({choose_value(scope, 'u')} & 31u)"
    name, address = scope.name("u"), scope.name("n")
    scope.emit(f"unsigned {address} = (unsigned)__cvta_generic_to_shared(shared + ({rows}) * 4u);")
    words = [f"{name}_{number}" for number in range(count)]
    scope.emit(f"unsigned {', '.join(words)};")
    reads = ", ".join(f"%{number}" for number in range(count))
    outs = ", ".join(f'"=r"({word})' for word in words)
    kind = f"ldmatrix.sync.aligned.m8n8.x{count}{transposed}.shared.b16"
    scope.emit("__syncthreads();")
    scope.emit(f'asm volatile("{kind} {{{reads}}}, [%{count}];" : {outs} : "r"({address}) : "memory");')
    _new(scope, "u", f"unsigned {name} = {' * 3u + '.join(words)};", output, name)
    scope.emit("__syncthreads();")
    if stream.chance(60):
        # Each row of its own, or lanes would race.
        rows = f"(tid & ~31u) + ((lane * {stream.pick((1, 3, 5, 7))}u + {stream.below(32)}u) & 31u)"
        scope.emit(f"{address} = (unsigned)__cvta_generic_to_shared(shared + ({rows}) * 4u);")
        values = ", ".join(f'"r"({choose_value(scope, "u")})' for _ in range(count))
        reads = ", ".join(f"%{number + 1}" for number in range(count))
        kind = f"stmatrix.sync.aligned.m8n8.x{count}{stream.pick(('', '.trans'))}.shared.b16"
        scope.emit(f'asm volatile("{kind} [%0], {{{reads}}};" :: "r"({address}), {values} : "memory");')
        scope.emit("__syncthreads();")


def _choose_space(scope: Scope, output: Callable[[str, str], None]) -> None:
    """One access whose lanes are in different spaces, through generic pointers."""
    if scope.stream.chance(40):
        _update_either(scope, output)
        return
    own, pointer, name = scope.name("a"), scope.name("z"), scope.name("u")
    scope.emit(f"unsigned {own}[4] = {{{', '.join(choose_value(scope, 'u') for _ in range(4))}}};")
    scope.emit(f"shared[tid * 4u] = {choose_value(scope, 'u')};")
    local = f"({own} + ({choose_value(scope, 'u')} & 3u))"
    mine = f"(scratch + gid * {SCRATCH_WORDS_PER_THREAD}u + 1u)"
    scope.emit(
        f"volatile unsigned* {pointer} = ({write_condition(scope)}) ? (shared + tid * 4u) :"
        f" (({write_condition(scope)}) ? {mine} : {local});"
    )
    scope.emit(f"*{pointer} = *{pointer} + {choose_value(scope, 'u')};")
    _new(scope, "u", f"unsigned {name} = *{pointer} ^ {own}[{choose_value(scope, 'u')} & 3u];", output, name)


def _update_either(scope: Scope, output: Callable[[str, str], None]) -> None:
    """Atomics whose lanes are in shared or in global memory."""
    pointer = scope.name("z")
    scope.emit(
        f"unsigned* {pointer} = ({write_condition(scope)}) ? (shared + tid * 4u)"
        f" : (scratch + gid * {SCRATCH_WORDS_PER_THREAD}u + 2u);"
    )
    kind, update = _write_update(scope, pointer)
    if scope.stream.chance(30):
        scope.emit(f"{update};")
        return
    name = scope.name(kind)
    _new(scope, kind, f"{_VALUE_TYPES[kind]} {name} = {update};", output, name)


def _copy_async(scope: Scope, threads: int, output: Callable[[str, str], None]) -> None:
    width = scope.stream.pick((4, 8, 16))
    cached = "cg" if width == 16 and scope.stream.chance(50) else "ca"
    short = f", {scope.stream.between(0, width)}" if scope.stream.chance(30) else ""
    scope.emit(f"{{ unsigned to = (unsigned)__cvta_generic_to_shared(shared + tid * {SHARED_WORDS_PER_THREAD}u);")
    scope.emit(f"const unsigned* from = in + {_place(scope, threads)} * 4u;")
    scope.emit(
        f'asm volatile("cp.async.{cached}.shared.global [%0], [%1], {width}{short};" :: "r"(to), "l"(from) : "memory");'
    )
    scope.emit('asm volatile("cp.async.wait_all;" ::: "memory"); }')
    scope.emit("__syncthreads();")
    name = scope.name("u")
    place = f"{_place(scope, threads)} * {SHARED_WORDS_PER_THREAD}u"
    _new(scope, "u", f"unsigned {name} = shared[{place} + {scope.stream.below(width // 4)}u];", output, name)
    scope.emit("__syncthreads();")


def _count_at_barrier(scope: Scope, output: Callable[[str, str], None]) -> None:
    name = scope.name("u")
    what = scope.stream.pick(("count", "and", "or"))
    _new(scope, "u", f"unsigned {name} = (unsigned)__syncthreads_{what}({write_condition(scope)});", output, name)
