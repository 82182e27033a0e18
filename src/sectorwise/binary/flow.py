"""Turns a kernel's instructions into basic blocks with their successors, callees and immediate post-dominators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from sectorwise.binary.ir import TRUE_PREDICATE, Instruction, Predicate, Target

if TYPE_CHECKING:
    from collections.abc import Iterable

_JUMPS = frozenset({"BRA", "JMP"})
_INDIRECT_JUMPS = frozenset({"BRX", "JMX", "BRXU", "JMXU"})
_CALLS = frozenset({"CALL"})
_ENDS = frozenset({"EXIT", "RET", "KILL"})


class Block(Struct, frozen=True):
    """A basic block: instructions `first` up to `end` (exclusive), by index.

    `successors` are the blocks that may run next inside the same function; `callee` is the block where the function
    that the last instruction calls starts, None where none is called or it is not known. `leaves` marks a block that
    may end the thread, return, or go where no table tells.
    """

    index: int
    first: int
    end: int
    successors: tuple[int, ...]
    callee: int | None
    leaves: bool


class Flow(Struct, frozen=True):
    """The blocks in address order; `block_of[i]` is the block of instruction i.

    `post_dominators[b]` is the nearest block that every way from block b to an end passes; None where there is none.
    """

    blocks: tuple[Block, ...]
    block_of: tuple[int, ...]
    post_dominators: tuple[int | None, ...]


def is_conditional(instruction: Instruction) -> bool:
    """Whether some lanes may pass a branch or an exit by: it is guarded, or has a predicate among its operands."""
    conditions = [instruction.guard, *(o for o in instruction.operands if isinstance(o, Predicate))]
    return any(condition is not None and not _is_always(condition) for condition in conditions)


def branch_offsets(instruction: Instruction) -> tuple[int, ...]:
    """Return the byte offsets that a jump can reach besides the next instruction, as far as they are known."""
    if instruction.opcode in _INDIRECT_JUMPS:
        return instruction.branch_targets
    if instruction.opcode in _JUMPS:
        return tuple(o.offset for o in instruction.operands if isinstance(o, Target) and o.offset is not None)
    return ()


def build_flow(instructions: tuple[Instruction, ...]) -> Flow:
    """Build the blocks of a whole kernel, called functions included, each function for itself."""
    by_offset = {instruction.offset: instruction.index for instruction in instructions}
    starts = sorted(_find_starts(instructions, by_offset))
    ends = [*starts[1:], len(instructions)]
    number = {start: block for block, start in enumerate(starts)}
    blocks = tuple(
        _make_block(instructions, by_offset, number, index, start, end)
        for index, (start, end) in enumerate(zip(starts, ends, strict=False))
    )
    blocks = tuple(_call_or_jump(instructions, blocks, block) for block in blocks)
    block_of = tuple(block.index for block in blocks for _ in range(block.first, block.end))
    return Flow(blocks, block_of, _find_post_dominators(blocks))


def _call_or_jump(instructions: tuple[Instruction, ...], blocks: tuple[Block, ...], block: Block) -> Block:
    """The block; where what it calls never returns, with that among its successors: so compilers leave some loops."""
    if block.callee is None or _returns(instructions, blocks, block.callee):
        return block
    return replace(block, successors=tuple(dict.fromkeys((*block.successors, block.callee))), callee=None)


def _returns(instructions: tuple[Instruction, ...], blocks: tuple[Block, ...], start: int) -> bool:
    """Whether a return can be reached from a block, not through calls."""
    seen, waiting = {start}, [start]
    while waiting:
        block = blocks[waiting.pop()]
        if instructions[block.end - 1].opcode == "RET":
            return True
        following = [successor for successor in block.successors if successor not in seen]
        seen.update(following)
        waiting += following
    return False


def _is_always(condition: Predicate) -> bool:
    return condition.index == TRUE_PREDICATE and not condition.negate


def _ends_block(instruction: Instruction) -> bool:
    return instruction.opcode in _JUMPS | _INDIRECT_JUMPS | _CALLS | _ENDS


def _called_offset(instruction: Instruction) -> int | None:
    targets = [o for o in instruction.operands if isinstance(o, Target)]
    is_direct = len(instruction.operands) == len(targets) == 1
    return targets[0].offset if instruction.opcode in _CALLS and is_direct else None


def _find_starts(instructions: tuple[Instruction, ...], by_offset: dict[int, int]) -> set[int]:
    starts = {0} if instructions else set()
    for instruction in instructions:
        reached: Iterable[int | None] = (*branch_offsets(instruction), _called_offset(instruction))
        starts.update(by_offset[offset] for offset in reached if offset in by_offset)
        if _ends_block(instruction) and instruction.index + 1 < len(instructions):
            starts.add(instruction.index + 1)
    return starts


def _make_block(
    instructions: tuple[Instruction, ...],
    by_offset: dict[int, int],
    number: dict[int, int],
    index: int,
    start: int,
    end: int,
) -> Block:
    last = instructions[end - 1]
    known = [by_offset[offset] for offset in branch_offsets(last) if offset in by_offset]
    jumps = last.opcode in _JUMPS | _INDIRECT_JUMPS
    falls = not (jumps or last.opcode in _ENDS) or is_conditional(last)
    successors = [*([end] if falls and end in number else []), *known]
    called = _called_offset(last)
    return Block(
        index=index,
        first=start,
        end=end,
        successors=tuple(dict.fromkeys(number[successor] for successor in successors)),
        callee=number[by_offset[called]] if called in by_offset else None,
        leaves=last.opcode in _ENDS or (jumps and not known) or (falls and end not in number),
    )


def _find_post_dominators(blocks: tuple[Block, ...]) -> tuple[int | None, ...]:
    """Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm" (2001), on the reversed graph."""
    exit_block = len(blocks)
    order = _order_backwards(blocks, exit_block)
    rank = {block: position for position, block in enumerate(order)}
    nearest: dict[int, int] = {exit_block: exit_block}
    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            after = [*blocks[block].successors, *([exit_block] if blocks[block].leaves else [])]
            known = [successor for successor in after if successor in nearest]
            chosen = known[0]
            for other in known[1:]:
                chosen = _meet(chosen, other, nearest, rank)
            if nearest.get(block) != chosen:
                nearest[block] = chosen
                changed = True
    found = [nearest.get(block.index, exit_block) for block in blocks]
    return tuple(None if block == exit_block else block for block in found)


def _meet(one: int, other: int, nearest: dict[int, int], rank: dict[int, int]) -> int:
    while one != other:
        while rank[one] > rank[other]:
            one = nearest[one]
        while rank[other] > rank[one]:
            other = nearest[other]
    return one


def _order_backwards(blocks: tuple[Block, ...], exit_block: int) -> list[int]:
    """Return the blocks from which an end can be reached, the end first, in reverse postorder of the reversed graph."""
    before: list[list[int]] = [[] for _ in range(exit_block + 1)]
    for each in blocks:
        for successor in each.successors:
            before[successor].append(each.index)
        if each.leaves:
            before[exit_block].append(each.index)
    seen = {exit_block}
    postorder: list[int] = []
    stack = [(exit_block, iter(before[exit_block]))]
    while stack:
        block, waiting = stack[-1]
        following = next((candidate for candidate in waiting if candidate not in seen), None)
        if following is None:
            postorder.append(block)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(before[following])))
    return postorder[::-1]
