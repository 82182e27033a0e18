"""Turns executed instructions into a table: how many of each form, and how many kernels ran one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sectorwise.machine.program import HINTS, INLINE_CONTROL, TERMINATORS
from sectorwise.machine.semantics.table import SEMANTICS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sectorwise.binary.ir import Instruction, Kernel
    from sectorwise.machine.execution import Execution

ENOUGH = 50


@dataclass(slots=True)
class Coverage:
    """Instructions that some lane executed, and kernels in which one did, by form (`IADD3.X`)."""

    instructions: Counter[str] = field(default_factory=Counter)
    kernels: Counter[str] = field(default_factory=Counter)


def name_form(instruction: Instruction) -> str:
    """Opcode and modifiers as printed."""
    return ".".join((instruction.opcode, *instruction.modifiers))


def count_forms(kernel: Kernel, execution: Execution) -> Counter[str]:
    """Instructions of a kernel that at least one lane executed, by form."""
    return Counter(name_form(each) for each in kernel.instructions if execution.lanes[each.index])


def add_forms(coverage: Coverage, forms: Mapping[str, int]) -> None:
    """Add one kernel."""
    coverage.instructions.update(forms)
    coverage.kernels.update(dict.fromkeys(forms, 1))


def write_table(coverage: Coverage, kernels: int, compiler: str) -> str:
    """The table as a page of documentation."""
    rare = [form for form, count in coverage.instructions.items() if count < ENOUGH]
    opcodes = {form.split(".")[0] for form in coverage.instructions}
    text = f"""# Instructions that the fuzzer has compared with a GPU

{kernels:,} generated kernels ({compiler}, sm_90) were executed here and on an H200, and all that they wrote was
compared, bit for bit. The table counts their instructions that at least one lane executed: opcode with its modifiers,
instructions, and kernels that have one. `python -m tools.fuzz_device coverage` writes it.

What is claimed of a form is one of three:

- **measured**: an H200 agreed in {ENOUGH} instructions or more: {len(coverage.instructions) - len(rare):,} forms;
- **rarely measured**: it agreed each time, but fewer times: {len(rare):,} forms;
- **by definition only**: executed as documents and compiled code say, no generated kernel that a GPU has run has one:
  every form that is not in the table, among them all {len(_find_missing(opcodes))} opcodes at the end of the page.

{len(coverage.instructions):,} forms of {len(opcodes)} opcodes were met.

| form | instructions | kernels | claim |
|---|--:|--:|---|
"""
    for form in sorted(coverage.instructions):
        claim = "measured" if coverage.instructions[form] >= ENOUGH else "rarely measured"
        text += f"| `{form}` | {coverage.instructions[form]:,} | {coverage.kernels[form]:,} | {claim} |\n"
    missing = ", ".join(f"`{opcode}`" for opcode in _find_missing(opcodes))
    return f"""{text}
## Opcodes by definition only

No kernel executed them. Most are of other architectures, or have no result that could be compared.

{missing}
"""


def _find_missing(seen: set[str]) -> list[str]:
    return sorted({*SEMANTICS, *TERMINATORS, *INLINE_CONTROL, *HINTS} - seen)
