"""Turns the local memory instructions of a kernel into spills and arrays, and either into a finding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sectorwise.binary.ir import Address
from sectorwise.counting.request import Operation, Space
from sectorwise.findings import Evidence, Finding, Severity
from sectorwise.rules.costs import price_sectors

if TYPE_CHECKING:
    from sectorwise.binary.ir import Instruction
    from sectorwise.machine.execution import Site
    from sectorwise.model.kernel_model import KernelModel

LOCAL_SECTORS = "L2 theoretical sectors local"
"""What the profiler's source view calls the sectors of a local memory instruction."""

_STACK_POINTER = 1


@dataclass(frozen=True, slots=True)
class StackUse:
    """Local memory sites by what they are for; one list is empty, as a stack with an indexed array counts as such."""

    spills: tuple[Site, ...]
    arrays: tuple[Site, ...]


def find_stack_use(model: KernelModel) -> StackUse:
    """The sites that access the stack of a thread, by local or generic addresses."""
    sites = tuple(
        site
        for site in model.execution.sites
        if site.unknown_because is None and (site.access.space is Space.LOCAL or site.sectors_local)
    )
    instructions = model.bound.kernel.instructions
    if not all(_is_fixed(instructions[site.instruction]) for site in sites):
        return StackUse(spills=(), arrays=sites)
    covered = {site: _cover(instructions[site.instruction], site) for site in sites}
    loaded = {at for site, places in covered.items() if site.access.operation is Operation.LOAD for at in places}
    # What is stored and never read back is no spill: arguments of a call, such as those of printf.
    return StackUse(spills=tuple(site for site in sites if not loaded.isdisjoint(covered[site])), arrays=())


def report_local(model: KernelModel, sites: tuple[Site, ...], code: str, what: str, advice: str) -> Finding:
    """The finding on these sites together, the dearest first."""
    ordered = sorted(sites, key=lambda site: -site.sectors_local)
    sectors, requests = sum(site.sectors_local for site in sites), sum(site.executed for site in sites)
    frame_bytes = model.bound.local_bytes_per_thread
    return Finding(
        code=code,
        severity=Severity.WARNING,
        message=(
            f"{what}: {len(sites)} instructions on a stack of {frame_bytes:,} B a thread, {sectors:,} local sectors"
        ),
        advice=advice,
        instructions=tuple(site.instruction for site in ordered),
        evidence=Evidence(LOCAL_SECTORS, sectors, None, requests),
        cost_ns=price_sectors(model, sectors),
    )


def _cover(instruction: Instruction, site: Site) -> range:
    """The bytes of the stack that an instruction at a fixed place of it accesses."""
    offset = next(operand.offset for operand in instruction.operands if isinstance(operand, Address))
    return range(offset, offset + site.access.width_bytes)


def _is_fixed(instruction: Instruction) -> bool:
    """Whether the address is the stack pointer and a constant."""
    for operand in instruction.operands:
        if isinstance(operand, Address):
            return operand.base is not None and operand.base.index == _STACK_POINTER and operand.uniform is None
    return False
