"""Turns the instructions that a launch issued into arithmetic operations by data type."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sectorwise.binary.ir import ZERO_REGISTER, Register

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sectorwise.binary.ir import Instruction, Kernel
    from sectorwise.machine.execution import Execution

_LANE_OPERATIONS: Final[Mapping[str, tuple[str, int]]] = {
    "FADD": ("fp32", 1),
    "FMUL": ("fp32", 1),
    "FFMA": ("fp32", 2),
    "FADD2": ("fp32", 2),
    "FMUL2": ("fp32", 2),
    "FFMA2": ("fp32", 4),
    "DADD": ("fp64", 1),
    "DMUL": ("fp64", 1),
    "DFMA": ("fp64", 2),
    "HADD2": ("fp16", 2),
    "HMUL2": ("fp16", 2),
    "HFMA2": ("fp16", 4),
}
"""Data type and operations a lane; a fused multiply-add counts two, comparisons and moves count none."""

_MATRIX_OPCODES: Final[Mapping[str, str]] = {
    "HMMA": "fp16",
    "IMMA": "int8",
    "DMMA": "fp64",
    "QMMA": "fp8",
    "HGMMA": "fp16",
    "IGMMA": "int8",
    "QGMMA": "fp8",
}

_SHAPES: Final[Mapping[str, tuple[int, int, int]]] = {
    "884": (8, 8, 4),
    "8816": (8, 8, 16),
    "8832": (8, 8, 32),
    "1684": (16, 8, 4),
    "1688": (16, 8, 8),
    "16816": (16, 8, 16),
    "16832": (16, 8, 32),
    "16864": (16, 8, 64),
}
"""Rows, columns and depth of a warp's matrix product, as the modifier names them."""


def count_operations(kernel: Kernel, execution: Execution) -> dict[str, int]:
    """Arithmetic operations of a launch by data type (`fp32`, `fp16`, `bf16`, `tf32`, `fp64`, `int8`, `fp8`).

    Lanes count that issued with their warp, also where a guard switched them off. Integer arithmetic outside of
    tensor cores and the multi-function unit do not count.
    """
    totals: dict[str, int] = {}
    for instruction in kernel.instructions:
        found = name_operations(instruction)
        if found is None:
            continue
        data_type, of_lane, of_warp = found
        lanes, warps = int(execution.lanes[instruction.index]), int(execution.issued[instruction.index])
        if count := lanes * of_lane + warps * of_warp:
            totals[data_type] = totals.get(data_type, 0) + count
    return totals


def name_operations(instruction: Instruction) -> tuple[str, int, int] | None:
    """Data type, operations a lane and operations a warp of an instruction; None where it does no arithmetic."""
    opcode, modifiers = instruction.opcode, instruction.modifiers
    # So the compiler moves constants: zero times zero and the constant.
    if opcode == "HFMA2" and all(
        isinstance(each, Register) and each.index == ZERO_REGISTER for each in instruction.operands[1:3]
    ):
        return None
    if opcode in _LANE_OPERATIONS:
        data_type, operations = _LANE_OPERATIONS[opcode]
        return ("bf16" if "BF16_V2" in modifiers else data_type), operations, 0
    if opcode not in _MATRIX_OPCODES:
        return None
    data_type = _MATRIX_OPCODES[opcode]
    data_type = next((name.lower() for name in ("BF16", "TF32") if name in modifiers), data_type)
    for modifier in modifiers:
        if modifier in _SHAPES:
            rows, columns, depth = _SHAPES[modifier]
            return data_type, 0, 2 * rows * columns * depth
        # Four warps issue one product of a warp group together.
        if group := re.fullmatch(r"(\d+)x(\d+)x(\d+)", modifier):
            return data_type, 0, 2 * int(group[1]) * int(group[2]) * int(group[3]) // 4
    return None
