"""Turns float operations of every format and rounding direction into LLVM operations that round once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.machine.algebra import Float, Rounding
from sectorwise.machine.native.values import BITS, LANES, Kind, Operand, type_text

if TYPE_CHECKING:
    from sectorwise.machine.native.writer import Writer

_OPERATIONS = {"add": "fadd", "mul": "fmul"}
_INTEGRAL = {
    Rounding.NEAREST: "llvm.roundeven",
    Rounding.ZERO: "llvm.trunc",
    Rounding.DOWN: "llvm.floor",
}
_MASKS = {Kind.HALF: (0x7FFF, 0x0400, 0x8000), Kind.SINGLE: (0x7FFFFFFF, 0x00800000, 0x80000000)}
_DOUBLE_MASKS = (0x7FFFFFFFFFFFFFFF, 0x0010000000000000, 0x8000000000000000)

BRAIN_NAN = 0x7FFF0000


def view_float(writer: Writer, bits: Operand, kind: Float) -> Operand:
    """Bits as a float."""
    emitter, lanes = writer.emitter, bits.lanes
    match kind:
        case Float.F32:
            return writer.cast("bitcast", bits, Kind.SINGLE)
        case Float.F64:
            return writer.cast("bitcast", bits, Kind.DOUBLE)
        case Float.F16:
            narrow = f"<{LANES} x i16>" if lanes else "i16"
            half = emitter.pure(f"trunc {writer.typed(bits, lanes=lanes)} to {narrow}")
            text = emitter.pure(f"bitcast {narrow} {half} to {type_text(Kind.HALF, lanes=lanes)}")
            return Operand(Kind.HALF, lanes, text)
        case Float.BF16:
            word = type_text(Kind.WORD, lanes=lanes)
            count = "splat (i32 16)" if lanes else "16"
            upper = Operand(Kind.WORD, lanes, emitter.pure(f"shl {word} {writer.text(bits, lanes=lanes)}, {count}"))
            return writer.cast("bitcast", upper, Kind.SINGLE)


def call(writer: Writer, routine: str, kind: Kind, *operands: Operand) -> Operand:
    """A routine over vectors of lanes, for what would be long if it stood in line."""
    emitter = writer.emitter
    arguments = ", ".join(writer.typed(operand, lanes=True) for operand in operands)
    result = type_text(kind, lanes=True)
    text = emitter.pure(f"call {result} {emitter.require(routine)}({arguments})")
    return Operand(kind, lanes=True, text=text)


def _raw(value: Operand, *sources: Operand) -> Operand:
    """The value, marked as one whose NaNs have to be mended before their bits are seen."""
    if value.kind is not Kind.DOUBLE:
        sources = ()
    return Operand(value.kind, value.lanes, value.text, raw=True, sources=sources)


def compute(writer: Writer, operation: str, rounding: Rounding, *operands: Operand, flush: bool = False) -> Operand:
    """`add`, `mul` or `fma` in the operands' format; `flush` where it is below the smallest normal before rounding."""
    kind = operands[0].kind
    if flush:
        # Whoever computes other formats than singles flushes them himself.
        return _raw(call(writer, f"flushed.{operation}.float.{rounding}", kind, *operands))
    if kind is Kind.HALF:
        return _compute_half(writer, operation, rounding, *operands)
    # Of several NaNs a double keeps b, else c, else a: the last of these.
    sources = (operands[0], operands[2], operands[1]) if operation == "fma" else operands
    if rounding is not Rounding.NEAREST:
        return _raw(call(writer, f"{operation}.{kind}.{rounding}", kind, *operands), *sources)
    return _raw(_nearest(writer, operation, *operands), *sources)


def _nearest(writer: Writer, operation: str, *operands: Operand) -> Operand:
    if operation == "fma":
        return writer.intrinsic("llvm.fma", operands[0].kind, *operands)
    return writer.binary(_OPERATIONS[operation], *operands)


def _compute_half(writer: Writer, operation: str, rounding: Rounding, *operands: Operand) -> Operand:
    """Halves are computed as singles: sums and products of two are exact enough to be rounded again."""
    wide = [writer.cast("fpext", operand, Kind.SINGLE) for operand in operands]
    match operation:
        case "mul":
            exact = _nearest(writer, "mul", *wide)
        case "add" if rounding is Rounding.NEAREST:
            exact = _nearest(writer, "add", *wide)
        case "add":
            exact = call(writer, f"sum.float.{rounding}", Kind.SINGLE, *wide)
        case _:
            product = _nearest(writer, "mul", *wide[:2])
            exact = call(writer, f"sum.float.{rounding}", Kind.SINGLE, product, wide[2])
    return _raw(narrow(writer, exact, Kind.HALF, rounding))


def narrow(writer: Writer, value: Operand, kind: Kind, rounding: Rounding) -> Operand:
    """A float in a shorter format; NaNs are not mended."""
    if value.kind is Kind.DOUBLE and kind is Kind.HALF:
        value = narrow(writer, value, Kind.SINGLE, Rounding.ODD)
    if rounding is Rounding.NEAREST:
        return writer.cast("fptrunc", value, kind)
    return call(writer, f"fptrunc.{value.kind}.{kind}.{rounding}", kind, value)


def convert(writer: Writer, a: Operand, kind: Float, rounding: Rounding) -> Operand:
    """A float in another format."""
    match kind:
        case Float.BF16:
            single = a if a.kind is Kind.SINGLE else convert(writer, a, Float.F32, Rounding.ODD)
            return _to_brain(writer, single, rounding, cuts_nan=a.kind is Kind.DOUBLE)
        case _:
            target = {Float.F16: Kind.HALF, Float.F32: Kind.SINGLE, Float.F64: Kind.DOUBLE}[kind]
    if a.kind is target:
        return a
    if BITS[a.kind] > BITS[target]:
        if a.kind is Kind.DOUBLE:
            return narrow(writer, writer.settle(a), target, rounding)
        return _raw(narrow(writer, a, target, rounding))
    wider = writer.cast("fpext", writer.settle(a), target)
    return wider if target is Kind.DOUBLE else _raw(wider)


def _to_brain(writer: Writer, single: Operand, rounding: Rounding, *, cuts_nan: bool = False) -> Operand:
    """A single rounded to a bfloat16's precision; a NaN becomes the hardware's, or with `cuts_nan` is cut short."""
    emitter, lanes = writer.emitter, single.lanes
    word, truth = type_text(Kind.WORD, lanes=lanes), type_text(Kind.PREDICATE, lanes=lanes)
    number = type_text(Kind.SINGLE, lanes=lanes)

    def constant(value: int) -> str:
        return f"splat (i32 {value})" if lanes else str(value)

    value = writer.text(single, lanes=lanes)
    bits = emitter.pure(f"bitcast {number} {value} to {word}")
    rest = emitter.pure(f"and {word} {bits}, {constant(0xFFFF)}")
    cut = emitter.pure(f"and {word} {bits}, {constant(0xFFFF0000)}")
    match rounding:
        case Rounding.NEAREST:
            odd = emitter.pure(f"and {word} {emitter.pure(f'lshr {word} {bits}, {constant(16)}')}, {constant(1)}")
            sticky = emitter.pure(f"or {word} {rest}, {odd}")
            up = emitter.pure(f"icmp ugt {word} {sticky}, {constant(0x8000)}")
        case Rounding.UP | Rounding.DOWN:
            some = emitter.pure(f"icmp ne {word} {rest}, {constant(0)}")
            sign = "sgt" if rounding is Rounding.UP else "slt"
            side = emitter.pure(f"icmp {sign} {word} {bits}, {constant(-1 if sign == 'sgt' else 0)}")
            up = emitter.pure(f"and {truth} {some}, {side}")
        case _:
            up = ""
    if up:
        exponent = emitter.pure(f"and {word} {bits}, {constant(0x7F800000)}")
        finite = emitter.pure(f"icmp ne {word} {exponent}, {constant(0x7F800000)}")
        moves = emitter.pure(f"and {truth} {finite}, {up}")
        more = emitter.pure(f"add {word} {cut}, {constant(0x10000)}")
        cut = emitter.pure(f"select {truth} {moves}, {word} {more}, {word} {cut}")
    if not cuts_nan:
        wrong = emitter.pure(f"fcmp uno {number} {value}, {value}")
        cut = emitter.pure(f"select {truth} {wrong}, {word} {constant(BRAIN_NAN)}, {word} {cut}")
    return Operand(Kind.SINGLE, lanes, emitter.pure(f"bitcast {word} {cut} to {number}"))


def flush_denormals(writer: Writer, a: Operand) -> Operand:
    """Denormals become zeros of their sign."""
    if a.kind is Kind.DOUBLE:
        a = writer.settle(a)
    emitter, lanes = writer.emitter, a.lanes
    bits = BITS[a.kind]
    number, integer = type_text(a.kind, lanes=lanes), f"<{LANES} x i{bits}>" if lanes else f"i{bits}"
    size_mask, smallest, sign_mask = _DOUBLE_MASKS if a.kind is Kind.DOUBLE else _MASKS[a.kind]

    def constant(value: int) -> str:
        return f"splat (i{bits} {value})" if lanes else str(value)

    value = emitter.pure(f"bitcast {number} {writer.text(a, lanes=lanes)} to {integer}")
    size = emitter.pure(f"and {integer} {value}, {constant(size_mask)}")
    sign = emitter.pure(f"and {integer} {value}, {constant(sign_mask)}")
    small = emitter.pure(f"icmp ult {integer} {size}, {constant(smallest)}")
    truth = type_text(Kind.PREDICATE, lanes=lanes)
    kept = emitter.pure(f"select {truth} {small}, {integer} {sign}, {integer} {value}")
    return Operand(a.kind, lanes, emitter.pure(f"bitcast {integer} {kept} to {number}"), raw=a.raw)


def from_integer(writer: Writer, a: Operand, kind: Float, rounding: Rounding, *, signed: bool) -> Operand:
    """A word or long as a float."""
    if kind is Float.BF16:
        return _to_brain(writer, from_integer(writer, a, Float.F32, Rounding.ODD, signed=signed), rounding)
    target = {Float.F16: Kind.HALF, Float.F32: Kind.SINGLE, Float.F64: Kind.DOUBLE}[kind]
    operation = "sitofp" if signed else "uitofp"
    if rounding is Rounding.NEAREST and target is not Kind.HALF:
        if a.kind is Kind.WORD or not a.lanes:
            return writer.cast(operation, a, target)
        return call(writer, f"cast.{operation}.i64.{target}", target, a)
    if a.kind is Kind.WORD:
        exact = writer.cast(operation, a, Kind.DOUBLE)
        return exact if target is Kind.DOUBLE else narrow(writer, exact, target, rounding)
    if target is Kind.DOUBLE:
        return call(writer, f"long.{operation}.{rounding}", Kind.DOUBLE, a)
    odd = call(writer, f"long.{operation}.{Rounding.ODD}", Kind.DOUBLE, a)
    return narrow(writer, odd, target, rounding)


def to_integral(writer: Writer, a: Operand, rounding: Rounding) -> Operand:
    """A float rounded to an integral float."""
    value = writer.settle(a)
    kind = value.kind
    if kind is Kind.HALF:
        value = writer.cast("fpext", value, Kind.SINGLE)
    value = writer.intrinsic(_INTEGRAL.get(rounding, "llvm.ceil"), value.kind, value)
    if kind is Kind.DOUBLE:
        return value
    return _raw(writer.cast("fptrunc", value, kind) if kind is Kind.HALF else value)


def to_integer(writer: Writer, a: Operand, bits: int, rounding: Rounding, *, signed: bool) -> Operand:
    """A float as a word or long, saturating; NaN gives zero."""
    value = a if a.kind is not Kind.HALF else writer.cast("fpext", a, Kind.SINGLE)
    if rounding is not Rounding.ZERO:
        value = writer.intrinsic(_INTEGRAL.get(rounding, "llvm.ceil"), value.kind, value)
    operation, target = ("fptosi" if signed else "fptoui"), (Kind.WORD if bits == 32 else Kind.LONG)
    return call(writer, f"saturate.{operation}.{value.kind}.{target}", target, value)


def approximate(writer: Writer, function: str, a: Operand) -> Operand:
    """A MUFU function, as the library computes it."""
    kind = a.kind
    if kind is Kind.HALF:
        value = call(writer, f"approximate.{function}", Kind.DOUBLE, _to_double(writer, a))
        return _raw(narrow(writer, value, Kind.HALF, Rounding.NEAREST))
    if kind is Kind.SINGLE and function in ("RCP", "SQRT"):
        # Correctly rounded in the double is correctly rounded in the single too (Figueroa): one step does it.
        if function == "RCP":
            one = Operand(Kind.SINGLE, a.lanes, "splat (float 1.0)" if a.lanes else "1.0")
            return _raw(writer.binary("fdiv", one, a))
        return _raw(writer.intrinsic("llvm.sqrt", kind, a))
    value = call(writer, f"approximate.{function}", Kind.DOUBLE, _to_double(writer, a))
    return value if kind is Kind.DOUBLE else _raw(writer.cast("fptrunc", value, kind))


def _to_double(writer: Writer, a: Operand) -> Operand:
    settled = writer.settle(a)
    return settled if a.kind is Kind.DOUBLE else writer.cast("fpext", settled, Kind.DOUBLE)
