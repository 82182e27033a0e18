"""Turns made-up and compiled code into blocks; post-dominators equal what all paths say."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from sectorwise.binary.control import read_control
from sectorwise.binary.cubin import read_cubin
from sectorwise.binary.flow import Flow, branch_offsets, build_flow, is_conditional
from sectorwise.binary.ir import Instruction, Predicate, Target
from sectorwise.binary.parser import parse_statement

MEASURED = Path(__file__).parents[1] / "measured" / "h200"


def _assemble(*texts: str, branch_targets: dict[int, tuple[int, ...]] | None = None) -> tuple[Instruction, ...]:
    """Make instructions from texts in which a target is the index of an instruction: `BRA `(3)`."""
    made = []
    for index, text in enumerate(texts):
        parsed = parse_statement(text)
        operands = tuple(
            Target(16 * int(operand.symbol)) if isinstance(operand, Target) and operand.symbol else operand
            for operand in parsed.operands
        )
        targets = (branch_targets or {}).get(index, ())
        made.append(
            Instruction(
                index=index,
                offset=16 * index,
                opcode=parsed.opcode,
                modifiers=parsed.modifiers,
                guard=parsed.guard,
                operands=operands,
                text=text,
                encoding=0,
                control=read_control(0),
                location=None,
                branch_targets=tuple(16 * target for target in targets),
            )
        )
    return tuple(made)


def _edges(flow: Flow) -> list[tuple[int, ...]]:
    return [block.successors for block in flow.blocks]


def test_branch_and_join() -> None:
    code = _assemble("BSSY B0, `(4)", "@P0 BRA `(3)", "MOV R0, 0x1", "BSYNC B0", "NOP", "EXIT")
    flow = build_flow(code)
    assert [(block.first, block.end) for block in flow.blocks] == [(0, 2), (2, 3), (3, 6)]
    assert _edges(flow) == [(1, 2), (2,), ()]
    assert flow.post_dominators == (2, 2, None)
    assert flow.block_of == (0, 0, 1, 2, 2, 2)
    assert [block.leaves for block in flow.blocks] == [False, False, True]


def test_guarded_exit_falls_through() -> None:
    flow = build_flow(_assemble("@!P1 EXIT", "NOP", "@PT EXIT"))
    assert _edges(flow) == [(1,), ()]
    assert flow.post_dominators == (None, None)


def test_endless_loop_has_no_way_out() -> None:
    flow = build_flow(_assemble("@P0 EXIT", "BRA `(1)"))
    assert _edges(flow) == [(1,), (1,)]
    assert flow.post_dominators == (None, None)


def test_call_goes_on_behind_it() -> None:
    flow = build_flow(_assemble("CALL.REL.NOINC `(3)", "NOP", "EXIT", "NOP", "RET.REL.NODEC R20 `(0)"))
    assert [(block.first, block.end, block.successors, block.callee) for block in flow.blocks] == [
        (0, 1, (1,), 2),
        (1, 3, (), None),
        (3, 5, (), None),
    ]
    assert flow.post_dominators == (1, None, None)


def test_call_of_what_never_returns_is_a_jump() -> None:
    code = _assemble("MOV R0, 0x1", "@P1 BRA `(3)", "NOP", "@P0 CALL.REL.NOINC `(5)", "BRA `(0)", "BSYNC B1", "EXIT")
    flow = build_flow(code)
    assert [(block.first, block.successors, block.callee) for block in flow.blocks] == [
        (0, (1, 2), None),
        (2, (2,), None),
        (3, (3, 4), None),
        (4, (0,), None),
        (5, (), None),
    ]
    assert flow.post_dominators == (2, 2, 4, 0, None)


def test_indirect_call_has_no_known_callee() -> None:
    flow = build_flow(_assemble("CALL.REL.NOINC R8 `(0)", "EXIT"))
    assert flow.blocks[0].callee is None
    assert _edges(flow) == [(1,), ()]


def test_indirect_branch_with_and_without_table() -> None:
    code = ("BRX R2 -0x10", "EXIT", "EXIT")
    known = build_flow(_assemble(*code, branch_targets={0: (1, 2)}))
    assert _edges(known)[0] == (1, 2)
    assert not known.blocks[0].leaves
    unknown = build_flow(_assemble(*code))
    assert _edges(unknown)[0] == ()
    assert unknown.blocks[0].leaves


def test_conditions() -> None:
    guarded, operand, uniform, always, never = _assemble(
        "@P0 BRA `(0)", "BRA P2, `(0)", "BRA.U UP0, `(0)", "BRA `(0)", "@!PT BRA `(0)"
    )
    assert is_conditional(guarded)
    assert is_conditional(operand)
    assert is_conditional(uniform)
    assert not is_conditional(always)
    assert is_conditional(never)
    assert guarded.guard == Predicate(0)
    assert branch_offsets(guarded) == (0,)


@st.composite
def _programs(draw: st.DrawFn) -> tuple[Instruction, ...]:
    size = draw(st.integers(1, 12))
    targets = st.integers(0, size - 1)
    lines = st.one_of(
        st.just("NOP"),
        st.just("EXIT"),
        st.just("@P0 EXIT"),
        targets.map(lambda target: f"BRA `({target})"),
        targets.map(lambda target: f"@P0 BRA `({target})"),
    )
    return _assemble(*draw(st.lists(lines, min_size=size, max_size=size)))


def _reachable(flow: Flow, start: int, without: int) -> set[int]:
    """Blocks that can be reached from `start` on ways that never enter block `without`."""
    seen: set[int] = set()
    waiting = [start] if start != without else []
    while waiting:
        block = waiting.pop()
        if block in seen:
            continue
        seen.add(block)
        waiting += [successor for successor in flow.blocks[block].successors if successor != without]
    return seen


@given(_programs())
def test_post_dominators_equal_the_definition(code: tuple[Instruction, ...]) -> None:
    flow = build_flow(code)
    ends = {block.index for block in flow.blocks if block.leaves}
    for block in flow.blocks:
        can_end = bool(_reachable(flow, block.index, -1) & ends)
        must_pass = [
            other.index
            for other in flow.blocks
            if other.index != block.index and can_end and not _reachable(flow, block.index, other.index) & ends
        ]
        # Of all blocks that every way passes, the nearest is the one from which the others still must be passed.
        nearest = [
            one for one in must_pass if all(two == one or not _reachable(flow, one, two) & ends for two in must_pass)
        ]
        assert flow.post_dominators[block.index] == (nearest[0] if nearest else None)


@given(_programs())
def test_blocks_cover_the_code_once(code: tuple[Instruction, ...]) -> None:
    flow = build_flow(code)
    assert [place for block in flow.blocks for place in range(block.first, block.end)] == list(range(len(code)))
    for block in flow.blocks:
        assert flow.block_of[block.first : block.end] == (block.index,) * (block.end - block.first)


def test_branches_of_measured_code_join_where_their_barrier_says() -> None:
    """BSSY names where its lanes meet again; unless lanes exit on the way, that is what all ways from it pass."""
    compared = 0
    for path in sorted(MEASURED.glob("*.sm_90.cubin")):
        for kernel in read_cubin(path.read_bytes(), path.name).kernels:
            flow = build_flow(kernel.instructions)
            at = {instruction.offset: instruction.index for instruction in kernel.instructions}
            for instruction in kernel.instructions:
                if instruction.opcode != "BSSY":
                    continue
                (meeting,) = (flow.block_of[at[offset]] for offset in _target_offsets(instruction))
                block = flow.block_of[instruction.index]
                inside = _reachable(flow, block, meeting)
                if any(flow.blocks[each].leaves for each in inside):
                    continue
                passed = set()
                walk: int | None = block
                while walk is not None:
                    passed.add(walk)
                    walk = flow.post_dominators[walk]
                assert meeting in passed, (kernel.name, instruction.text)
                compared += 1
    assert compared > 20


def _target_offsets(instruction: Instruction) -> list[int]:
    targets = [operand for operand in instruction.operands if isinstance(operand, Target)]
    return [target.offset for target in targets if target.offset is not None]
