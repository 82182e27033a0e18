"""Turns an instruction into the action that executes it, by one explicit table of opcodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.machine.operands import UnsupportedFormError
from sectorwise.machine.semantics import (
    atomics,
    conversions,
    float32,
    float64,
    half,
    integer,
    logic,
    memory,
    minima,
    moves,
    packed,
    pairs,
    predicates,
    tensor,
    warp,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sectorwise.binary.ir import Instruction
    from sectorwise.machine.operands import Action


def _is_packed(instruction: Instruction) -> bool:
    return any(modifier.endswith(("16x2", "8x4")) for modifier in instruction.modifiers)


def _add(instruction: Instruction) -> Action:
    """IADD3, VIADD and their kin, on words or on parts of one."""
    if _is_packed(instruction):
        return packed.add(instruction)
    return integer.add_saturated(instruction) if instruction.has("ISAT") else integer.add3(instruction)


def _minimum_maximum(instruction: Instruction) -> Action:
    """VIMNMX and its kin, on words or on two halves of one."""
    if _is_packed(instruction):
        return packed.minimum_maximum(instruction)
    if instruction.has("U64") or instruction.has("S64"):
        return minima.minimum_maximum_long(instruction)
    adds = "ADD" in instruction.opcode
    return minima.add_minimum_maximum(instruction) if adds else minima.minimum_maximum(instruction)


SEMANTICS: Mapping[str, Callable[[Instruction], Action]] = {
    # Integers.
    "IADD": integer.add3,
    "IADD3": integer.add3,
    "UIADD3": integer.add3,
    "VIADD": _add,
    "UVIADD": _add,
    "IMAD": integer.multiply_add,
    "UIMAD": integer.multiply_add,
    "IMUL": integer.multiply_add,
    "LEA": integer.shift_add,
    "ULEA": integer.shift_add,
    "ISCADD": integer.shifted_add,
    "IMNMX": _minimum_maximum,
    "VIMNMX": _minimum_maximum,
    "UIMNMX": _minimum_maximum,
    "UVIMNMX": _minimum_maximum,
    "VIMNMX3": _minimum_maximum,
    "UVIMNMX3": _minimum_maximum,
    "VIADDMNMX": _minimum_maximum,
    "UVIADDMNMX": _minimum_maximum,
    "IABS": minima.absolute,
    "UIABS": minima.absolute,
    "UVABSDIFF": minima.absolute_difference,
    "VABSDIFF": minima.absolute_difference,
    "VABSDIFF4": packed.absolute_difference_bytes,
    "IDP": packed.dot_product,
    "POPC": integer.count_bits,
    "UPOPC": integer.count_bits,
    "FLO": integer.find_leading_one,
    "UFLO": integer.find_leading_one,
    # Logic.
    "LOP3": logic.logic3,
    "ULOP3": logic.logic3,
    "PLOP3": logic.predicate_logic3,
    "UPLOP3": logic.predicate_logic3,
    "SHF": logic.funnel_shift,
    "USHF": logic.funnel_shift,
    "SHL": logic.shift_word,
    "USHL": logic.shift_word,
    "SHR": logic.shift_word,
    "USHR": logic.shift_word,
    "BREV": logic.reverse,
    "UBREV": logic.reverse,
    "BMSK": logic.bit_mask,
    "UBMSK": logic.bit_mask,
    "SGXT": logic.extend_field,
    "USGXT": logic.extend_field,
    "PRMT": logic.permute_bytes,
    "UPRMT": logic.permute_bytes,
    # Predicates.
    "ISETP": predicates.set_predicate,
    "UISETP": predicates.set_predicate,
    "P2R": predicates.predicates_to_register,
    "UP2UR": predicates.predicates_to_register,
    "R2P": predicates.register_to_predicates,
    # Moves.
    "MOV": moves.move,
    "RPCMOV": moves.move,
    "UMOV": moves.move,
    "SEL": moves.choose,
    "USEL": moves.choose,
    "R2UR": moves.to_uniform,
    "S2R": moves.read_special,
    "S2UR": moves.read_special_uniform,
    "CS2R": moves.read_special_pair,
    "LEPC": moves.load_code_address,
    "CS2UR": moves.read_special_pair,
    "LDC": moves.load_constant,
    "ULDC": moves.load_constant,
    "LDCU": moves.load_constant,
    # Conversions.
    "I2F": conversions.integer_to_float,
    "I2FP": conversions.integer_to_float,
    "UI2F": conversions.integer_to_float,
    "UI2FP": conversions.integer_to_float,
    "UF2I": conversions.float_to_integer,
    "UF2F": conversions.float_to_float,
    "UF2FP": conversions.pack_floats,
    "UFRND": conversions.round_integral,
    "UI2I": conversions.integer_to_integer,
    "UI2IP": packed.pack_integers,
    "UF2IP": packed.pack_floats_as_integers,
    "F2I": conversions.float_to_integer,
    "F2F": conversions.float_to_float,
    "F2FP": conversions.pack_floats,
    "FRND": conversions.round_integral,
    "I2IP": packed.pack_integers,
    "F2IP": packed.pack_floats_as_integers,
    "I2I": conversions.integer_to_integer,
    # Single precision.
    "FADD": float32.add,
    "UFADD": float32.add,
    "FMUL": float32.multiply,
    "UFMUL": float32.multiply,
    "FFMA": float32.multiply_add,
    "UFFMA": float32.multiply_add,
    "FSETP": float32.set_predicate,
    "UFSETP": float32.set_predicate,
    "FSET": float32.set_register,
    "UFSET": float32.set_register,
    "FMNMX": float32.minimum_maximum,
    "UFMNMX": float32.minimum_maximum,
    "FMNMX3": float32.minimum_maximum,
    "FSEL": float32.choose,
    "UFSEL": float32.choose,
    "MUFU": float32.approximate,
    "FCHK": float32.check_division,
    "FADD2": pairs.add,
    "FMUL2": pairs.multiply,
    "FFMA2": pairs.multiply_add,
    "FHADD": pairs.add_half,
    "FHFMA": pairs.multiply_add_halves,
    # Double precision.
    "DADD": float64.add,
    "DMUL": float64.multiply,
    "DFMA": float64.multiply_add,
    "DSETP": float64.set_predicate,
    "DMNMX": float64.minimum_maximum,
    # Half precision.
    "HADD2": half.add,
    "HMUL2": half.multiply,
    "HFMA2": half.multiply_add,
    "HSETP2": half.set_predicate,
    "HSET2": half.set_register,
    "HMNMX2": half.minimum_maximum,
    "VHMNMX": half.minimum_maximum,
    # Lanes together.
    "SHFL": warp.shuffle,
    "VOTE": warp.vote,
    "VOTEU": warp.vote,
    "MATCH": warp.match_lanes,
    "REDUX": warp.reduce_warp,
    "CREDUX": warp.reduce_warp,
    "ELECT": warp.elect,
    # Memory.
    "LDG": memory.load,
    "LDS": memory.load,
    "LDL": memory.load,
    "LD": memory.load,
    "STG": memory.store,
    "STS": memory.store,
    "STL": memory.store,
    "ST": memory.store,
    "QSPC": memory.query_space,
    "LDGSTS": memory.copy_async,
    "LDSM": memory.load_matrix,
    "STSM": memory.store_matrix,
    "MOVM": memory.transpose_matrix,
    "ATOM": atomics.update_memory,
    "ATOMG": atomics.update_memory,
    "ATOMS": atomics.update_memory,
    "RED": atomics.update_memory,
    "REDG": atomics.update_memory,
    "REDS": atomics.update_memory,
    # Textures and surfaces.
    "TEX": memory.touch_unknown,
    "TLD": memory.touch_unknown,
    "TLD4": memory.touch_unknown,
    "TXD": memory.touch_unknown,
    "SULD": memory.touch_unknown,
    "SUST": memory.touch_unknown,
    "SUATOM": memory.touch_unknown,
    "SURED": memory.touch_unknown,
    # Tensor cores.
    "HMMA": tensor.multiply_matrices,
    "IMMA": tensor.multiply_matrices,
    "DMMA": tensor.multiply_matrices,
    "BMMA": tensor.multiply_matrices,
    # What only orders, waits or hints.
    "NOP": moves.do_nothing,
    "DEPBAR": moves.do_nothing,
    "LDGDEPBAR": moves.do_nothing,
    "LDSDEPBAR": moves.do_nothing,
    "MEMBAR": moves.do_nothing,
    "ERRBAR": moves.do_nothing,
    "FENCE": moves.do_nothing,
    "CCTL": moves.do_nothing,
    "CCTLL": moves.do_nothing,
    "CCTLT": moves.do_nothing,
    "PMTRIG": moves.do_nothing,
    "CGAERRBAR": moves.do_nothing,
    "ACQBULK": moves.do_nothing,
    "PREEXIT": moves.do_nothing,
    "USETMAXREG": moves.take_registers,
    "UTMACMDFLUSH": moves.do_nothing,
    "UTMACCTL": moves.do_nothing,
    "WARPGROUP": moves.do_nothing,
    "UVIRTCOUNT": moves.do_nothing,
}
"""Opcode to the function that decodes it. Control flow is the engine's; what is missing is unknown."""


def decode(instruction: Instruction) -> Action | None:
    """The action of an instruction: decode once, run for every issue.

    None where the opcode is not in the table, or the form of a known opcode has no meaning here: then what it
    writes, `effects.destinations`, is unknown.
    """
    semantic = SEMANTICS.get(instruction.opcode)
    if semantic is None:
        return None
    try:
        return semantic(instruction)
    except (UnsupportedFormError, ValueError, IndexError):
        # An operand list that does not fit the opcode shows as one of these when it is taken apart.
        return None
