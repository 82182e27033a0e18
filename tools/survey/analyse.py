"""Turns a cubin of public kernels into one row a kernel: crashes, unknown opcodes, unknown sites, share executed."""

from __future__ import annotations

import time
import traceback
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from sectorwise.binary.cubin import read_cubin
from sectorwise.binding import bind
from sectorwise.device import load_device
from sectorwise.errors import SectorwiseError, StepLimitError
from sectorwise.machine.execution import ExecutionOptions
from sectorwise.machine.forms import access_of
from sectorwise.machine.numpy_engine import execute
from tools.survey.guesses import guess_launches

if TYPE_CHECKING:
    from sectorwise.binary.ir import Instruction, Kernel
    from sectorwise.machine.execution import Execution

DEVICES = {"sm_90": "h200", "sm_80": "a100-80-sxm", "sm_120": "rtx5090"}
STEP_LIMIT = 100_000
ENOUGH_PCT = 60
LONGEST_S = 6
"""Of processor time: no more launches are guessed for a kernel after so much."""


@dataclass(frozen=True, slots=True)
class Row:
    """What came of one kernel: `outcome` is `ok`, or the kind of trouble; memory sites by what is known of them."""

    file: str
    kernel: str
    target: str
    outcome: str
    detail: str
    instructions: int
    executed_pct: int
    memory: int
    analysed: int
    unknown: int
    not_issued: int
    unknown_opcodes: tuple[str, ...]
    faults: int


def survey_cubin(data: bytes, file: str, target: str) -> list[dict[str, object]]:
    """A row for each kernel."""
    try:
        kernels = read_cubin(data, file).kernels
    except Exception as error:  # noqa: BLE001 - crashes are what is looked for
        return [asdict(_fail(file, "*", target, error))]
    return [asdict(survey_kernel(kernel, file, target)) for kernel in kernels]


def survey_kernel(kernel: Kernel, file: str, target: str) -> Row:
    """The launch, of those that are guessed, that executes most of the kernel."""
    best: Row | None = None
    started = time.process_time()
    name = (kernel.readable_name or kernel.name)[:60]
    too_large: set[tuple[int, int]] = set()
    for arguments, launch in guess_launches(kernel, kernel.parameter_types):
        if arguments in too_large:
            continue
        try:
            bound = bind(kernel, launch, load_device(DEVICES[target]), None)
            row = _describe(file, name, target, kernel, execute(bound, ExecutionOptions(step_limit=STEP_LIMIT)))
        except StepLimitError as error:
            row = _fail(file, name, target, error, "step limit")
            too_large.add(arguments)
        except SectorwiseError as error:
            row = _fail(file, name, target, error, "refused")
        except Exception as error:  # noqa: BLE001 - crashes are what is looked for
            return _fail(file, name, target, error)
        if best is None or _rank(row) > _rank(best):
            best = row
        if (best.executed_pct >= ENOUGH_PCT and not best.faults) or time.process_time() - started > LONGEST_S:
            break
    return best or _fail(file, name, target, ValueError("no launch to try"))


def _rank(row: Row) -> tuple[bool, int, bool, int]:
    """A launch that executes enough and touches only its own memory is better than one that executes more."""
    return row.outcome == "ok", min(row.executed_pct, ENOUGH_PCT), not row.faults, row.executed_pct


def _describe(file: str, name: str, target: str, kernel: Kernel, execution: Execution) -> Row:
    real = [each for each in kernel.instructions if each.opcode != "NOP"]
    run = sum(bool(execution.issued[each.index]) for each in real)
    sites = {site.instruction: site for site in execution.sites}
    memory = [each for each in kernel.instructions if access_of(each) is not None]
    analysed = sum(each.index in sites and sites[each.index].unknown_because is None for each in memory)
    unknown = sum(each.index in sites and sites[each.index].unknown_because is not None for each in memory)
    opcodes = {
        kernel.instructions[each.instruction].opcode
        for each in execution.limitations
        if each.because.endswith("its results are taken as unknown")
    }
    # A site without a row was issued by no warp, or only with every lane predicated off.
    silent = sum(each.index not in sites and _is_silent(each, execution) for each in memory)
    said = [*(hang.message for hang in execution.hangs), *(each.because for each in execution.limitations)]
    because = said[0][:120] if said else ""
    return Row(
        file,
        name,
        target,
        "ok" if analysed + unknown + silent == len(memory) else "lost",
        because,
        len(real),
        round(100 * run / max(1, len(real))),
        len(memory),
        analysed,
        unknown,
        silent,
        tuple(sorted(opcodes)),
        len(execution.faults),
    )


def _is_silent(instruction: Instruction, execution: Execution) -> bool:
    """Whether no lane can have accessed memory: no warp issued it, or it is guarded."""
    return not execution.issued[instruction.index] or instruction.guard is not None


def _fail(file: str, name: str, target: str, error: Exception, outcome: str = "crash") -> Row:
    where = traceback.extract_tb(error.__traceback__)[-1] if error.__traceback__ else None
    place = f" ({where.name}:{where.lineno})" if where is not None and outcome == "crash" else ""
    text = f"{type(error).__name__}: {error}{place}".splitlines()[0][:160]
    return Row(file, name, target, outcome, text, 0, 0, 0, 0, 0, 0, (), 0)
