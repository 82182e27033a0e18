"""Tensor-core products of machine code are those of the reference engine, bit for bit, in every form."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import numpy as np
import pytest

from sectorwise.binding import bind
from sectorwise.device import load_device
from sectorwise.launch.notation import parse_launch
from sectorwise.machine import numpy_matrices
from sectorwise.machine.algebra import MatrixForm
from sectorwise.machine.execution import ExecutionOptions
from sectorwise.machine.native.algebra import LlvmAlgebra
from sectorwise.machine.native.compiler import Host, compile_module, find_host, load, restrict_host
from sectorwise.machine.native.routines import find_routines
from sectorwise.machine.native.values import Kind, Operand
from sectorwise.machine.native.writer import VECTOR, Writer
from tests.machine.launching import compile_kernels
from tests.machine.native.agreement import list_differences

if TYPE_CHECKING:
    import numpy.typing as npt

FORMS = {
    (MatrixForm("F16", "F16", "F32"), (4, 2, 4)),
    (MatrixForm("F16", "F16", "F16"), (4, 2, 2)),
    (MatrixForm("F16", "F16", "F32"), (2, 1, 4)),
    (MatrixForm("F16", "F16", "F16"), (2, 1, 2)),
    (MatrixForm("BF16", "BF16", "F32"), (4, 2, 4)),
    (MatrixForm("BF16", "BF16", "F32"), (2, 1, 4)),
    (MatrixForm("TF32", "TF32", "F32"), (4, 2, 4)),
    (MatrixForm("TF32", "TF32", "F32"), (2, 1, 4)),
    (MatrixForm("F64", "F64", "F64"), (2, 2, 4)),
    *(
        (MatrixForm(a, b, "S32", saturates=saturates), sizes)
        for a in ("S8", "U8")
        for b in ("S8", "U8")
        for saturates in (False, True)
        for sizes in ((1, 1, 2), (2, 1, 4), (4, 2, 4))
    ),
}
"""Formats, and words of A, B and C."""

EDGES = np.array(
    [
        *(0, 0x80000000, 0x3F800000, 0x7F800000, 0xFF800000, 0x7FC00123, 0x7F800001, 1, 0x80000001, 0x7F7FFFFF),
        *(0x7FFFFFFF, 0x80008000, 0x7C00FC00, 0x7E01FE55, 0x7BFF7BFF, 0x00010001, 0x3C003C00, 0x7F7F8080, 0xFFFFFFFF),
    ],
    np.uint32,
)


def _hosts() -> list[Host]:
    host = find_host()
    assert host is not None, "the tests need llvmlite"
    return [host, restrict_host(host)]


def _write(form: MatrixForm, sizes: tuple[int, int, int], name: str) -> tuple[str, dict[str, None]]:
    """A function that loads the words of three matrices, multiplies and stores."""
    writer = Writer()
    emitter = writer.emitter
    emitter.lines.append(f"define void @{name}(ptr %in, ptr %out) {{")
    words = []
    for number in range(sum(sizes)):
        place = emitter.result(f"getelementptr i8, ptr %in, i64 {128 * number}")
        text = emitter.result(f"load {VECTOR}, ptr {place}, align 4")
        words.append(Operand(Kind.WORD, lanes=True, text=text))
    a, b, c = words[: sizes[0]], words[sizes[0] : -sizes[2]], words[-sizes[2] :]
    for number, word in enumerate(LlvmAlgebra(writer).multiply_matrices(a, b, c, form)):
        place = emitter.result(f"getelementptr i8, ptr %out, i64 {128 * number}")
        emitter.effect(f"store {writer.typed(word, lanes=True)}, ptr {place}, align 4")
    return "\n".join([*emitter.lines, "  ret void", "}"]), emitter.needed


@pytest.mark.parametrize("number", [0, 1], ids=["host", "short-vectors"])
def test_every_form_gives_the_bits_of_the_reference_engine(number: int) -> None:
    forms = sorted(FORMS, key=str)
    written = [_write(form, sizes, f"f{place}") for place, (form, sizes) in enumerate(forms)]
    needed = {name: None for _, names in written for name in names}
    code = compile_module(find_routines(needed) + "\n".join(text for text, _ in written), _hosts()[number], 0)
    library = load(code, tuple(f"f{place}" for place in range(len(forms))))
    generator = np.random.default_rng(7)
    for place, (form, sizes) in enumerate(forms):
        run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(library.address_of(f"f{place}"))
        for kind in ("any", "edges", "plain"):
            match kind:
                case "any":
                    words = generator.integers(0, 1 << 32, (sum(sizes), 32), np.uint32)
                case "edges":
                    words = generator.choice(EDGES, (sum(sizes), 32))
                case _:
                    numbers = generator.standard_normal((sum(sizes), 64))
                    narrow = {"F16": np.float16, "F64": np.float64}.get(form.a, np.float32)
                    words = numbers.astype(narrow).view(np.uint32)[:, :32].copy()
            got = np.zeros((sizes[2], 32), np.uint32)
            run(words.ctypes.data, got.ctypes.data)
            rows = [word[None] for word in words]
            a, b, c = rows[: sizes[0]], rows[sizes[0] : -sizes[2]], rows[-sizes[2] :]
            with np.errstate(all="ignore"):
                expected = np.concatenate(numpy_matrices.multiply_add(a, b, c, form))
            np.testing.assert_array_equal(got, expected, err_msg=f"{form} {sizes} {kind}")


def test_integer_products_are_those_of_the_matrices() -> None:
    generator = np.random.default_rng(3)
    a, b = generator.integers(-128, 128, (16, 32)), generator.integers(0, 256, (32, 8))
    c = generator.integers(-1000, 1000, (16, 8))
    lanes = np.arange(32)
    words_a = [_pack(a[lanes // 4 + 8 * (word % 2), :], lanes % 4 * 4 + 16 * (word // 2)) for word in range(4)]
    words_b = [_pack(b[:, lanes // 4].T, lanes % 4 * 4 + 16 * word) for word in range(2)]
    words_c = [c[lanes // 4 + 8 * (word // 2), lanes % 4 * 2 + word % 2].astype(np.uint32)[None] for word in range(4)]
    form = MatrixForm("S8", "U8", "S32")
    found = [word[0].view(np.int32) for word in numpy_matrices.multiply_add(words_a, words_b, words_c, form)]
    product = a @ b + c
    for word in range(4):
        np.testing.assert_array_equal(found[word], product[lanes // 4 + 8 * (word // 2), lanes % 4 * 2 + word % 2])


def _pack(rows: npt.NDArray[np.int64], starts: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    """Four bytes of each lane's row [32, depth] from a place on, as a word [1, 32]."""
    parts = [rows[np.arange(32), starts + k] & 0xFF for k in range(4)]
    octets = np.stack(parts, axis=1).astype(np.uint8)
    return octets.view(np.uint32).reshape(1, 32)


SOURCE = r"""
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void fragments(float* out, const __half* a, const __half* b, int n) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  for (int k = 0; k < n; k += 16) {
    wmma::load_matrix_sync(left, a + blockIdx.x * 16 * n + k, n);
    wmma::load_matrix_sync(right, b + k, n);
    wmma::mma_sync(sum, left, right, sum);
  }
  wmma::store_matrix_sync(out + blockIdx.x * 256, sum, 16, wmma::mem_row_major);
}
"""


def test_a_kernel_of_products_leaves_the_same_in_memory() -> None:
    config = parse_launch("fragments<<<3, 32>>>(f32[768], f16[3072]=uniform(1), f16[1024]=uniform(2), n=64)")
    bound = bind(compile_kernels(SOURCE)["fragments"], config, load_device("h200"))
    assert list_differences(bound, ExecutionOptions(sample_above=None)) == []
