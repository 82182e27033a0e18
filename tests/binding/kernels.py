"""Turns a few sizes into a kernel without code, for tests of what a launch has to fit."""

from __future__ import annotations

from sectorwise.binary.ir import Kernel, Parameter, Resources


def make_kernel(
    *sizes_bytes: int,
    target: str = "sm_90",
    base: int = 0x210,
    registers: int = 32,
    static_shared_bytes: int = 0,
    max_threads: int | None = None,
) -> Kernel:
    """A kernel whose parameters have these sizes, each aligned to its size up to 8 bytes."""
    parameters: list[Parameter] = []
    offset = 0
    for ordinal, size_bytes in enumerate(sizes_bytes):
        alignment = size_bytes if size_bytes in {1, 2, 4} else 8
        offset = -(-offset // alignment) * alignment
        parameters.append(Parameter(ordinal, offset, size_bytes))
        offset += size_bytes
    resources = Resources(registers, static_shared_bytes, 0, 0, max_threads)
    return Kernel("k", target, (), tuple(parameters), base, resources)
