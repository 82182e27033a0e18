"""Turns random numbers into statements: operations, branches, loops, switches, jumps, calls, memory in every space."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.fuzz.catalogue.families import ACTIVE, WHOLE_WARPS
from tools.fuzz.catalogue.operation import KINDS
from tools.fuzz.scope import Scope, choose_value, write_condition, write_operation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tools.fuzz.catalogue.operation import Operation

Lists = tuple[tuple["Operation", ...], ...]

MOST_DEPTH = 3


def add_operation(scope: Scope, lists: Lists, output: Callable[[str, str], None] | None = None) -> None:
    """One operation; its result is a new value, or goes into a mutable one within a block."""
    stream = scope.stream
    operation = stream.pick(stream.pick(lists))
    targets = [name for kind, name in scope.mutable if kind == operation.result]
    if scope.depth and targets and stream.chance(55):
        scope.emit(write_operation(scope, operation, stream.pick(targets)))
        return
    name = scope.name(operation.result)
    # Written before it is declared as a value: an operation cannot read its own result.
    statement = write_operation(scope, operation, name)
    scope.emit(f"{KINDS[operation.result]} {name}; {statement}")
    if scope.depth:
        scope.local.append((operation.result, name))
    else:
        scope.fixed.append((operation.result, name))
        if output is not None:
            output(operation.result, name)


def add_chain(scope: Scope, lists: Lists, output: Callable[[str, str], None]) -> None:
    """Operations of which lanes see the last result alone: compilers leave them to the uniform data path."""
    stream = scope.stream
    values = [(kind, name) for kind, name in scope.fixed if name in ("param_u", "param_v")]
    chain = Scope(stream, values, [], scope.lines, scope.names)
    for _ in range(stream.between(5, 12)):
        add_operation(chain, lists)
    name = scope.name("u")
    scope.emit(f"unsigned {name} = lane + {chain.fixed[-1][1]};")
    scope.fixed.append(("u", name))
    output("u", name)


def fold(scope: Scope) -> None:
    """Mix a value of the block into a mutable one, so that it lives on."""
    words = [name for kind, name in scope.mutable if kind == "u"]
    if scope.local and words:
        kind, name = scope.stream.pick(scope.local)
        target = scope.stream.pick(words)
        match kind:
            case "f":
                bits = f"__float_as_uint({name})"
            case "g":
                bits = f"(unsigned)__double2hiint({name}) * 3u + (unsigned)__double2loint({name})"
            case "d":
                bits = f"(unsigned){name} + (unsigned)({name} >> 32)"
            case _:
                bits = name
        scope.emit(f"{target} = {target} * 5u + ({bits});")


def add_block(scope: Scope, lists: Lists, length: int) -> None:
    """Operations and control flow within braces."""
    for _ in range(length):
        if scope.depth < MOST_DEPTH and scope.stream.chance(18):
            add_control(scope, lists)
        else:
            add_operation(scope, lists)
    fold(scope)


def add_control(scope: Scope, lists: Lists) -> None:
    """A branch, a loop, a switch or a tangle of jumps."""
    lists = tuple(one for one in lists if one not in WHOLE_WARPS)
    kind = scope.stream.below(10)
    match kind:
        case 0 | 1 | 2:
            add_branch(scope, lists)
        case 3 | 4:
            add_counted_loop(scope, lists)
        case 5 | 6:
            add_open_loop(scope, lists)
        case 9 if scope.jumps:
            add_jumps(scope, lists)
        case _:
            add_switch(scope, lists)


def without_collectives(lists: Lists) -> Lists:
    """The lists less the operations of a whole warp: for places that lanes reach in no order that we could name."""
    kept = tuple(one if one is ACTIVE else tuple(each for each in one if not each.collective) for one in lists)
    return tuple(one for one in kept if one)


def _inner(scope: Scope, condition: str, *, keep: bool = True) -> tuple[Scope, str]:
    """A block whose lanes are those for which `condition` holds, and the name of their mask."""
    mask = scope.name("m")
    scope.emit(f"unsigned {mask} = __ballot_sync({scope.mask or 'full'}, {condition});")
    return scope.inner(mask if keep else None), mask


def add_branch(scope: Scope, lists: Lists) -> None:
    """If, half of them with an else."""
    truth = scope.name("p")
    scope.emit(f"unsigned {truth} = ({write_condition(scope)}) ? 1u : 0u;")
    collective = lists != without_collectives(lists)
    if collective:
        inner, mask = _inner(scope, f"{truth} != 0u")
    else:
        inner, mask = scope.inner(), ""
    scope.emit(f"if ({truth} != 0u) {{")
    add_block(inner, lists, scope.stream.between(1, 5))
    if scope.stream.chance(50):
        scope.emit("} else {")
        other = scope.inner(f"(({scope.mask or 'full'}) & ~{mask})" if collective else None)
        add_block(other, lists, scope.stream.between(1, 5))
    scope.emit("}")


def add_counted_loop(scope: Scope, lists: Lists) -> None:
    """A loop whose lanes go round each as often as its own number says; breaks and continues inside."""
    stream = scope.stream
    plain = without_collectives(lists)
    count, index = scope.name("n"), scope.name("i")
    scope.emit(f"unsigned {count} = {choose_value(scope, 'u')} & {stream.pick((1, 3, 7))}u;")
    if stream.chance(25):
        scope.emit("#pragma unroll 1")
    scope.emit(f"for (unsigned {index} = 0u; {index} < {count}; ++{index}) {{")
    inner = scope.inner()
    inner.local.append(("u", index))
    add_block(inner, plain, stream.between(1, 4))
    if stream.chance(40):
        inner.emit(f"if ({write_condition(inner)}) {stream.pick(('break', 'continue'))};")
        add_block(inner, plain, stream.between(1, 2))
    scope.emit("}")


def add_open_loop(scope: Scope, lists: Lists) -> None:
    """A loop that lanes leave one after the other, the others knowing which remain."""
    stream = scope.stream
    turn, mask = scope.name("i"), scope.name("m")
    # Where lanes arrive in no order that we could name, they cannot know of each other.
    collective = lists != without_collectives(lists)
    if collective:
        scope.emit(f"unsigned {mask} = {scope.mask or 'full'};")
    scope.emit(f"for (unsigned {turn} = 0u; ; ++{turn}) {{")
    inner = scope.inner(mask if collective else None)
    inner.local.append(("u", turn))
    leaves = inner.name("p")
    inner.emit(f"unsigned {leaves} = ({turn} >= {stream.between(1, 6)}u || {write_condition(inner)}) ? 1u : 0u;")
    if collective:
        inner.emit(f"{mask} = __ballot_sync({mask}, {leaves} == 0u);")
    inner.emit(f"if ({leaves} != 0u) break;")
    add_block(inner, lists, stream.between(1, 4))
    scope.emit("}")


def add_switch(scope: Scope, lists: Lists) -> None:
    """A switch with enough cases for a table of branches; some fall through."""
    stream = scope.stream
    plain = without_collectives(lists)
    cases = stream.pick((2, 3, 4, 5, 7, 9, 12, 17))
    scope.emit(f"switch ({choose_value(scope, 'u')} & {stream.pick((3, 7, 15, 31))}u) {{")
    for case in range(cases):
        scope.emit(f"case {case}u: {{")
        add_block(scope.inner(), plain, stream.between(1, 2))
        scope.emit("}" if stream.chance(25) else "} break;")
    scope.emit("default: {")
    add_block(scope.inner(), plain, 1)
    scope.emit("} }")


def add_jumps(scope: Scope, lists: Lists) -> None:
    """Control flow that no loop nest can express: two ways into a cycle of three blocks."""
    stream = scope.stream
    plain = without_collectives(lists)
    label, fuel = scope.name("l"), scope.name("n")
    scope.emit(f"{{ unsigned {fuel} = {stream.between(2, 9)}u;")
    scope.emit(f"if ({write_condition(scope)}) goto {label}_b;")
    for place, target in (("a", "c"), ("b", "a"), ("c", "b")):
        scope.emit(f"{label}_{place}: {{")
        add_block(scope.inner(), plain, stream.between(1, 2))
        scope.emit(f"}} if (--{fuel} == 0u) goto {label}_end;")
        scope.emit(f"if ({write_condition(scope)}) goto {label}_{target};")
    scope.emit(f"{label}_end: ; }}")


def add_local_array(scope: Scope, output: Callable[[str, str], None]) -> None:
    """An array that is indexed by what lanes compute, so that it lies in local memory."""
    stream = scope.stream
    array, size = scope.name("a"), stream.pick((4, 8, 16))
    kind = stream.pick(("unsigned", "unsigned char", "unsigned short", "unsigned long long", "signed char", "short"))
    scope.emit(f"{kind} {array}[{size}];")
    scope.emit("#pragma unroll")
    scope.emit(f"for (int i = 0; i < {size}; ++i) {array}[i] = ({kind})({choose_value(scope, 'u')} * (i + 1));")
    for _ in range(stream.between(1, 3)):
        scope.emit(f"{array}[{choose_value(scope, 'u')} & {size - 1}u] = ({kind}){choose_value(scope, 'd')};")
    for _ in range(2):
        name = scope.name("d")
        index = f"({choose_value(scope, 'u')} + {stream.below(size)}u) & {size - 1}u"
        scope.emit(f"unsigned long long {name} = (unsigned long long)(long long){array}[{index}];")
        scope.fixed.append(("d", name))
        output("d", name)


def add_call(
    scope: Scope, functions: Sequence[str], output: Callable[[str, str], None] | None, *, pointers: bool
) -> None:
    """A call of a function that is not inlined, by name or through a pointer, or of one that calls itself."""
    stream = scope.stream
    name = scope.name("u")
    arguments = f"{choose_value(scope, 'u')}, {choose_value(scope, 'f')}, {choose_value(scope, 'd')}"
    first, second = stream.pick(functions), stream.pick(functions)
    match stream.below(4):
        case 0 | 1 if pointers and first != second:
            pointer = scope.name("z")
            scope.emit(
                f"unsigned (*{pointer})(unsigned, float, unsigned long long, unsigned) ="
                f" ({write_condition(scope)}) ? {first} : {second};"
            )
            scope.emit(f"unsigned {name} = {pointer}({arguments}, {choose_value(scope, 'u')} & 3u);")
        case _:
            scope.emit(f"unsigned {name} = {first}({arguments}, {choose_value(scope, 'u')} & 3u);")
    (scope.local if scope.depth else scope.fixed).append(("u", name))
    if output is not None and not scope.depth:
        output("u", name)


def add_early_exit(scope: Scope, store: Callable[[str, str], str]) -> None:
    """Lanes that write one value and leave for good."""
    scope.emit(f"if ({write_condition(scope)}) {{ {store('u', choose_value(scope, 'u'))} return; }}")
