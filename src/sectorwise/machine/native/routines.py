"""Turns names of routines into their LLVM functions: what is too long to stand in line, or needs another rounding."""

from __future__ import annotations

import re

from sectorwise.machine.algebra import Rounding
from sectorwise.machine.native.exchanges import write_exchange_routine
from sectorwise.machine.native.groups import write_group_routine
from sectorwise.machine.native.memory import write_memory_routine
from sectorwise.machine.native.moves import GATHER, LONGS, POINTERS, VECTOR
from sectorwise.machine.native.requests import write_request_routine
from sectorwise.machine.native.sectors import write_sector_routine

V = "<32 x i32>"

# LLVM's numbers of rounding directions (llvm.set.rounding).
_DIRECTIONS = {Rounding.ZERO: 0, Rounding.UP: 2, Rounding.DOWN: 3}
_NEAREST = 1
_SHORT = {"half": "f16", "float": "f32", "double": "f64"}
_INTEGERS = {"half": "i16", "float": "i32", "double": "i64"}
_DYNAMIC = 'metadata !"round.dynamic", metadata !"fpexcept.strict"'

_PERMUTE = f"""define internal {V} @permute({V} %value, {V} %places) noinline {{
  %memory = alloca {V}, align 128
  store {V} %value, ptr %memory, align 128
  %offsets = zext {V} %places to <32 x i64>
  %pointers = getelementptr i32, ptr %memory, <32 x i64> %offsets
  %result = call {V} @llvm.masked.gather.v32i32.v32p0(<32 x ptr> align 4 %pointers, <32 x i1> splat (i1 true), \
{V} poison)
  ret {V} %result
}}
"""

_CONSTANT = f"""define internal {VECTOR} @constant(ptr %ctx, ptr %bank, i32 %size, {VECTOR} %offsets, i32 %mask) \
noinline {{
entry:
  %room = sub i32 %size, 4
  %one = insertelement {VECTOR} poison, i32 %room, i64 0
  %limit = shufflevector {VECTOR} %one, {VECTOR} poison, {VECTOR} zeroinitializer
  %far = icmp ugt {VECTOR} %offsets, %limit
  %far_mask = bitcast <32 x i1> %far to i32
  %bad = and i32 %far_mask, %mask
  %wrong = icmp ne i32 %bad, 0
  br i1 %wrong, label %up, label %on
up:
  call void @give_up(ptr %ctx)
  ret {VECTOR} zeroinitializer
on:
  %active = bitcast i32 %mask to <32 x i1>
  %wide = zext {VECTOR} %offsets to {LONGS}
  %places = getelementptr i8, ptr %bank, {LONGS} %wide
  %result = {GATHER}({POINTERS} %places, i32 1, <32 x i1> %active, {VECTOR} zeroinitializer)
  ret {VECTOR} %result
}}
"""

_LIBRARY = {"SIN": "sin", "COS": "cos", "EX2": "exp2", "LG2": "log2", "TANH": "tanh"}


def find_routines(needed: dict[str, None]) -> str:
    """Text of the routines of these names, and of those that they use themselves."""
    texts: dict[str, str] = {}
    waiting = list(needed)
    while waiting:
        name = waiting.pop()
        if name in texts:
            continue
        text = _routine(name)
        texts[name] = text
        waiting += [used for used in re.findall(r"@([\w.]+)\(", text) if used != name and not used.startswith("llvm.")]
    return "\n".join(texts.values())


def _routine(name: str) -> str:
    match name.split("."):
        case ["permute"]:
            return _PERMUTE
        case ["constant"]:
            return _CONSTANT
        case ["approximate", function]:
            return _approximate(name, function)
        case ["sum", "float", rounding]:
            return _sum(name, Rounding(rounding))
        case [("add" | "mul" | "fma") as operation, kind, rounding]:
            return _directed(name, operation, kind, Rounding(rounding))
        case ["flushed", operation, "float", rounding]:
            return _flushed(name, operation, Rounding(rounding))
        case ["fptrunc", source, target, rounding]:
            return _narrow(name, source, target, Rounding(rounding))
        case ["cast", operation, source, target]:
            return _cast(name, operation, source, target)
        case ["saturate", operation, source, target]:
            return _saturate(name, operation, source, target)
        case ["long", operation, rounding]:
            return _from_long(name, operation, Rounding(rounding))
        case [function] if function in _LIBRARY.values():
            return f"declare double @{function}(double)\n"
        case [
            "note" | "once" | "evict" | "evict_copy" | "sectors" as family,
            *_,
        ]:
            return (write_sector_routine if family == "sectors" else write_request_routine)(name)
        case [
            "resolve" | "place" | "fold" | "leaders" | "winners" | "copy" | "copy_touch" | "matrix" | "product",
            *_,
        ] | ["touch", "whole", _]:
            return write_exchange_routine(name)
        case [
            "load" | "store" | "touch" | "find" | "chunks" | "lanes" | "local" | "written" | "watch",
            *_,
        ] | ["give_up" | "miss"]:
            return write_memory_routine(name)
        case ["run" | "clear"]:
            return ""
        case _:
            return write_group_routine(name)


def _function(name: str, result: str, arguments: str, body: list[str], *, strict: bool = False) -> str:
    attributes = "noinline strictfp" if strict else "noinline"
    lines = "\n".join(f"  {line}" for line in body)
    return f"define internal {result} @{name}({arguments}) {attributes} {{\n{lines}\n}}\n"


def _rounded(call: str, kind: str, rounding: Rounding, tag: str = "") -> list[str]:
    """Lines that set `%r` to a constrained call in a direction, and set the direction back."""

    def under(direction: Rounding, result: str) -> list[str]:
        return [
            f"call void @llvm.set.rounding(i32 {_DIRECTIONS[direction]}) strictfp",
            f"%{result}{tag} = {call}",
        ]

    back = f"call void @llvm.set.rounding(i32 {_NEAREST}) strictfp"
    if rounding is not Rounding.ODD:
        return [*under(rounding, "r"), back]
    vector, integers = f"<32 x {kind}>", f"<32 x {_INTEGERS[kind]}>"
    # Cut off; the last bit says whether anything was: whether rounding up and down differ.
    return [
        *under(Rounding.UP, "up"),
        *under(Rounding.DOWN, "down"),
        *under(Rounding.ZERO, "cut"),
        back,
        f"%differ{tag} = fcmp one {vector} %up{tag}, %down{tag}",
        f"%last{tag} = zext <32 x i1> %differ{tag} to {integers}",
        f"%bits{tag} = bitcast {vector} %cut{tag} to {integers}",
        f"%odd{tag} = or {integers} %bits{tag}, %last{tag}",
        f"%r{tag} = bitcast {integers} %odd{tag} to {vector}",
    ]


def _directed(name: str, operation: str, kind: str, rounding: Rounding) -> str:
    vector, short = f"<32 x {kind}>", _SHORT[kind]
    names = ["%a", "%b", "%c"][: 3 if operation == "fma" else 2]
    arguments = ", ".join(f"{vector} {each}" for each in names)
    word = operation if operation == "fma" else f"f{operation}"
    call = f"call {vector} @llvm.experimental.constrained.{word}.v32{short}({arguments}, {_DYNAMIC}) strictfp"
    return _function(name, vector, arguments, [*_rounded(call, kind, rounding), f"ret {vector} %r"], strict=True)


def _flushed(name: str, operation: str, rounding: Rounding) -> str:
    """A result of singles, made zero where rounding to 24 bits with exponents without end would be below the normals.

    Only a result that is the smallest normal itself is in doubt: then the exact value, 2**64 times as large, tells.
    """
    v, d = "<32 x float>", "<32 x double>"
    names = ["a", "b", "c"][: 3 if operation == "fma" else 2]
    arguments = ", ".join(f"{v} %{each}" for each in names)
    first = f"f{operation} {v} %a, %b" if operation != "fma" else f"call {v} @llvm.fma.v32f32({arguments})"
    if rounding is not Rounding.NEAREST:
        first = f"call {v} @{operation}.float.{rounding}({arguments})"
    exact = f"fmul {d} %wide_a, %wide_b"
    if operation == "fma":
        exact = f"call {d} @add.double.{Rounding.ODD}({d} %product, {d} %wide_c)"
    rounded = f"fptrunc {d} %scaled to {v}"
    if rounding is not Rounding.NEAREST:
        rounded = f"call {v} @fptrunc.double.float.{rounding}({d} %scaled)"
    wide = "\n".join(f"  %wide_{each} = fpext {v} %{each} to {d}" for each in names)
    return f"""define internal {v} @{name}({arguments}) noinline {{
entry:
  %near = {first}
  %bits = bitcast {v} %near to {V}
  %size = and {V} %bits, splat (i32 2147483647)
  %small = icmp ule {V} %size, splat (i32 8388608)
  %mask = bitcast <32 x i1> %small to i32
  %none = icmp eq i32 %mask, 0
  br i1 %none, label %plain, label %check
plain:
  ret {v} %near
check:
{wide}
  %product = fmul {d} %wide_a, %wide_b
  %exact = {exact}
  %scaled = fmul {d} %exact, splat (double 0x43F0000000000000)
  %large = {rounded}
  %large_bits = bitcast {v} %large to {V}
  %large_size = and {V} %large_bits, splat (i32 2147483647)
  %under = icmp ult {V} %large_size, splat (i32 {(127 - 126 + 64) << 23})
  %denormal = icmp ult {V} %size, splat (i32 8388608)
  %smallest = icmp eq {V} %size, splat (i32 8388608)
  %rounded_up = and <32 x i1> %under, %smallest
  %zero = or <32 x i1> %rounded_up, %denormal
  %sign = and {V} %bits, splat (i32 -2147483648)
  %mended = select <32 x i1> %zero, {V} %sign, {V} %bits
  %r = bitcast {V} %mended to {v}
  ret {v} %r
}}
"""


def _narrow(name: str, source: str, target: str, rounding: Rounding) -> str:
    if target == "half":
        return _narrow_to_half(name, rounding)
    short = f"v32{_SHORT[target]}.v32{_SHORT[source]}"
    argument = f"<32 x {source}> %a"
    call = f"call <32 x {target}> @llvm.experimental.constrained.fptrunc.{short}({argument}, {_DYNAMIC}) strictfp"
    body = [*_rounded(call, target, rounding), f"ret <32 x {target}> %r"]
    return _function(name, f"<32 x {target}>", argument, body, strict=True)


def _narrow_to_half(name: str, rounding: Rounding) -> str:
    """Singles as halves, eight at a time: LLVM 20 cannot split a constrained conversion on hosts without AVX-512."""
    direction = Rounding.ZERO if rounding is Rounding.ODD else rounding
    conversion = "@llvm.experimental.constrained.fptrunc.v8f16.v8f32"
    body = [f"call void @llvm.set.rounding(i32 {_DIRECTIONS[direction]}) strictfp"]
    for part in range(4):
        places = ", ".join(f"i32 {8 * part + lane}" for lane in range(8))
        body += [
            f"%a{part} = shufflevector <32 x float> %a, <32 x float> poison, <8 x i32> <{places}>",
            f"%h{part} = call <8 x half> {conversion}(<8 x float> %a{part}, {_DYNAMIC}) strictfp",
        ]
    first, whole = (", ".join(f"i32 {lane}" for lane in range(count)) for count in (16, 32))
    body += [
        f"call void @llvm.set.rounding(i32 {_NEAREST}) strictfp",
        f"%low = shufflevector <8 x half> %h0, <8 x half> %h1, <16 x i32> <{first}>",
        f"%high = shufflevector <8 x half> %h2, <8 x half> %h3, <16 x i32> <{first}>",
        f"%cut = shufflevector <16 x half> %low, <16 x half> %high, <32 x i32> <{whole}>",
    ]
    last = "%cut"
    if rounding is Rounding.ODD:
        body += [
            "%back = fpext <32 x half> %cut to <32 x float>",
            "%differ = fcmp one <32 x float> %back, %a",
            "%last = zext <32 x i1> %differ to <32 x i16>",
            "%bits = bitcast <32 x half> %cut to <32 x i16>",
            "%odd = or <32 x i16> %bits, %last",
            "%result = bitcast <32 x i16> %odd to <32 x half>",
        ]
        last = "%result"
    return _function(name, "<32 x half>", "<32 x float> %a", [*body, f"ret <32 x half> {last}"], strict=True)


def _sum(name: str, rounding: Rounding) -> str:
    """Sum of two singles rounded to odd, so that it can be rounded to a half in the direction named (Knuth)."""
    v = "<32 x float>"
    body = [
        f"%total = fadd {v} %a, %b",
        f"%part = fsub {v} %total, %a",
        f"%other = fsub {v} %total, %part",
        f"%low_a = fsub {v} %a, %other",
        f"%low_b = fsub {v} %b, %part",
        f"%error = fadd {v} %low_a, %low_b",
        f"%bits = bitcast {v} %total to {V}",
        f"%inexact = fcmp one {v} %error, zeroinitializer",
        f"%even_bit = and {V} %bits, splat (i32 1)",
        f"%even = icmp eq {V} %even_bit, zeroinitializer",
        "%moves = and <32 x i1> %inexact, %even",
        f"%more = fcmp ogt {v} %error, zeroinitializer",
        f"%positive = fcmp ogt {v} %total, zeroinitializer",
        "%away = xor <32 x i1> %more, %positive",
        f"%step = select <32 x i1> %away, {V} splat (i32 -1), {V} splat (i32 1)",
        f"%moved = add {V} %bits, %step",
        f"%odd = select <32 x i1> %moves, {V} %moved, {V} %bits",
    ]
    if rounding is Rounding.DOWN:
        # An exact zero sum of opposite signs is negative when rounding down (IEEE 754, 6.3).
        body += [
            f"%minus = fneg {v} %b",
            f"%zero = fcmp oeq {v} %total, zeroinitializer",
            f"%opposite = fcmp oeq {v} %a, %minus",
            f"%bits_a = bitcast {v} %a to {V}",
            f"%bits_b = bitcast {v} %b to {V}",
            f"%either = or {V} %bits_a, %bits_b",
            f"%signed = icmp slt {V} %either, zeroinitializer",
            "%both = and <32 x i1> %zero, %opposite",
            "%negative = and <32 x i1> %both, %signed",
            f"%mended = select <32 x i1> %negative, {V} splat (i32 -2147483648), {V} %odd",
        ]
    last = "%mended" if rounding is Rounding.DOWN else "%odd"
    body += [f"%r = bitcast {V} {last} to {v}", f"ret {v} %r"]
    return _function(name, v, f"{v} %a, {v} %b", body)


def _cast(name: str, operation: str, source: str, target: str) -> str:
    body = [f"%r = {operation} <32 x {source}> %a to <32 x {target}>", f"ret <32 x {target}> %r"]
    return _function(name, f"<32 x {target}>", f"<32 x {source}> %a", body)


def _saturate(name: str, operation: str, source: str, target: str) -> str:
    short = f"v32{target}.v32{_SHORT[source]}"
    body = [
        f"%r = call <32 x {target}> @llvm.{operation}.sat.{short}(<32 x {source}> %a)",
        f"ret <32 x {target}> %r",
    ]
    return _function(name, f"<32 x {target}>", f"<32 x {source}> %a", body)


def _from_long(name: str, operation: str, rounding: Rounding) -> str:
    """A long as a double: its halves are exact, their sum is rounded once."""
    shift = "ashr" if operation == "sitofp" else "lshr"
    d, strict, constrained = "<32 x double>", f"{_DYNAMIC}) strictfp", "@llvm.experimental.constrained"
    call = f"call {d} {constrained}.fadd.v32f64({d} %scaled, {d} %lower, {strict}"
    body = [
        f"%shifted = {shift} <32 x i64> %a, splat (i64 32)",
        f"%high = trunc <32 x i64> %shifted to {V}",
        f"%low = trunc <32 x i64> %a to {V}",
        f"%upper = call {d} {constrained}.{operation}.v32f64.v32i32({V} %high, {strict}",
        f"%lower = call {d} {constrained}.uitofp.v32f64.v32i32({V} %low, {strict}",
        f"%scaled = call {d} {constrained}.fmul.v32f64({d} %upper, {d} splat (double 0x41F0000000000000), {strict}",
        *_rounded(call, "double", rounding),
        f"ret {d} %r",
    ]
    return _function(name, d, "<32 x i64> %a", body, strict=True)


def _approximate(name: str, function: str) -> str:
    d = "<32 x double>"
    match function:
        case "RCP":
            body = [f"%r = fdiv {d} splat (double 1.0), %a"]
        case "SQRT":
            body = [f"%r = call {d} @llvm.sqrt.v32f64({d} %a)"]
        case "RSQ":
            body = [f"%root = call {d} @llvm.sqrt.v32f64({d} %a)", f"%r = fdiv {d} splat (double 1.0), %root"]
        case _ if function in _LIBRARY:
            return _by_library(name, function)
        case _:
            body = [f"%r = fadd {d} splat (double 0x7FF8000000000000), zeroinitializer"]
    return _function(name, d, f"{d} %a", [*body, f"ret {d} %r"])


def _by_library(name: str, function: str) -> str:
    """A loop over lanes that calls the C library; sines take turns, not radians."""
    reduced = "%x"
    steps = []
    if function in ("SIN", "COS"):
        steps = ["%rest = frem double %x, 1.0", "%angle = fmul double %rest, 0x401921FB54442D18"]
        reduced = "%angle"
    lines = "\n".join(f"  {step}" for step in steps)
    return f"""define internal <32 x double> @{name}(<32 x double> %a) noinline {{
entry:
  %memory = alloca <32 x double>, align 256
  store <32 x double> %a, ptr %memory, align 256
  br label %body
body:
  %lane = phi i64 [0, %entry], [%next, %body]
  %place = getelementptr double, ptr %memory, i64 %lane
  %x = load double, ptr %place
{lines}
  %y = call double @{_LIBRARY[function]}(double {reduced})
  store double %y, ptr %place
  %next = add i64 %lane, 1
  %more = icmp ult i64 %next, 32
  br i1 %more, label %body, label %done
done:
  %r = load <32 x double>, ptr %memory, align 256
  ret <32 x double> %r
}}
"""
