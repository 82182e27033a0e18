"""Operations of the tensor cores and on matrices in registers, on numbers for which the order of a sum is no matter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.fuzz.catalogue.operation import Operation, ptx

if TYPE_CHECKING:
    from collections.abc import Iterator

# Two halves that are whole numbers from 0 to 7: what is below 2048 is exact in every format, in any order.
_TO_HALF = "and.b32 {0}, {1}, 0x00070007; or.b32 {0}, {0}, 0x64006400; sub.rn.f16x2 {0}, {0}, k;"
_TO_BRAIN = "and.b32 {0}, {1}, 0x00070007; or.b32 {0}, {0}, 0x43004300; sub.rn.bf16x2 {0}, {0}, k;"
_TO_SINGLE = "and.b32 {0}, {1}, 7; cvt.rn.f32.u32 f, {0}; mov.b32 {0}, f;"


def make_matrices() -> Iterator[Operation]:
    """Matrix products and transpositions, by whole warps only."""
    for a in ("s8", "u8"):
        for b in ("s8", "u8"):
            for more in ("", ".satfinite"):
                yield _integer_product("m16n8k32", 4, 2, f"{more}.s32.{a}.{b}.s32")
                yield _integer_product("m16n8k16", 2, 1, f"{more}.s32.{a}.{b}.s32")
                yield _integer_product("m8n8k16", 1, 1, f"{more}.s32.{a}.{b}.s32")
    for shape, left, right in (("m16n8k16", 4, 2), ("m16n8k8", 2, 1)):
        yield _float_product(f"{shape}.row.col.f32.f16.f16.f32", left, right, 4, _TO_HALF, "0x64006400")
        yield _float_product(f"{shape}.row.col.f16.f16.f16.f16", left, right, 2, _TO_HALF, "0x64006400")
        yield _float_product(f"{shape}.row.col.f32.bf16.bf16.f32", left, right, 4, _TO_BRAIN, "0x43004300")
    yield _float_product("m16n8k8.row.col.f32.tf32.tf32.f32", 4, 2, 4, _TO_SINGLE, "0")
    yield _float_product("m16n8k4.row.col.f32.tf32.tf32.f32", 2, 1, 4, _TO_SINGLE, "0")
    yield ptx("movmatrix", "u", "u", "movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;", collective=True)


def _names(letter: str, count: int) -> str:
    return "{" + ", ".join(f"{letter}{number}" for number in range(count)) + "}"


def _integer_product(shape: str, left: int, right: int, types: str) -> Operation:
    count = 2 if shape == "m8n8k16" else 4
    sources = [f"%{1 + number}" for number in range(4)]
    first, second = ", ".join(sources[:left]), ", ".join(sources[4 - right :])
    third = ", ".join((sources * 2)[1 : 1 + count])
    name = f"mma.sync.aligned.{shape}.row.col{types}"
    fold = "xor.b32 x0, x0, x2; add.u32 x1, x1, x3;" if count == 4 else ""
    body = (
        f"{{ .reg .b32 x0, x1, x2, x3; {name} {_names('x', count)}, {{{first}}}, {{{second}}}, {{{third}}};"
        f" {fold} mov.b64 %0, {{x0, x1}}; }}"
    )
    return ptx(name, "d", "uuuu", body, collective=True)


def _float_product(types: str, left: int, right: int, count: int, convert: str, constant: str) -> Operation:
    sources = [f"%{1 + number % 4}" for number in range(8)]
    names = [f"y{number}" for number in range(left + right + count)]
    to_single = "and.b32 {0}, {1}, 255; cvt.rn.f32.u32 f, {0}; mov.b32 {0}, f;" if count == 4 else convert
    made = [convert.format(names[number], sources[number % 4]) for number in range(left + right)]
    made += [to_single.format(names[left + right + number], sources[(number + 1) % 4]) for number in range(count)]
    first, second = ", ".join(names[:left]), ", ".join(names[left : left + right])
    third = ", ".join(names[left + right :])
    fold = "xor.b32 x0, x0, x2; add.u32 x1, x1, x3;" if count == 4 else ""
    body = (
        f"{{ .reg .f32 f; .reg .b32 k, x0, x1, x2, x3, {', '.join(names)}; mov.b32 k, {constant}; {' '.join(made)}"
        f" mma.sync.aligned.{types} {_names('x', count)}, {{{first}}}, {{{second}}}, {{{third}}};"
        f" {fold} mov.b64 %0, {{x0, x1}}; }}"
    )
    return ptx(f"mma.sync.aligned.{types}", "d", "uuuu", body, collective=True)
