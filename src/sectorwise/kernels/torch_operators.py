"""Turns the functions of the package into custom operators of PyTorch, so that `torch.compile` keeps them as they are.

`register()` makes `torch.ops.sectorwise.gemv(x, weights)` and its kin; `import sectorwise.kernels` calls it where
PyTorch was imported before.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

from sectorwise.kernels import moving, products


@cache
def register() -> bool:
    """Register the operators, once; whether PyTorch is there, imported by someone else, and has custom operators."""
    torch = sys.modules.get("torch")
    library = getattr(torch, "library", None)
    if torch is None or not hasattr(library, "custom_op"):
        return False
    for name, schema, function, fake in _list_operators():
        operator = torch.library.custom_op(
            f"sectorwise::{name}", function, mutates_args=(), device_types="cuda", schema=schema
        )
        operator.register_fake(fake)
    return True


def _list_operators() -> list[tuple[str, str, Any, Any]]:
    """Name, schema, function, and a function that gives a result of the right shape without computing it."""
    product = "(Tensor x, Tensor weights, Tensor scales) -> Tensor"
    return [
        ("copy", "(Tensor a) -> Tensor", moving.copy, lambda a: a.new_empty(a.shape)),
        ("transpose", "(Tensor a) -> Tensor", moving.transpose, _turn),
        ("soa_from_aos", "(Tensor a) -> Tensor", moving.soa_from_aos, _turn),
        ("aos_from_soa", "(Tensor a) -> Tensor", moving.aos_from_soa, _turn),
        ("gemv", "(Tensor x, Tensor weights) -> Tensor", products.gemv, _multiply),
        ("matmul", "(Tensor a, Tensor b) -> Tensor", products.matmul, _multiply_matrices),
        ("gemv_int8", product, products.gemv_int8, _multiply),
        ("gemv_fp8", product, products.gemv_fp8, _multiply),
        ("gemv_int4", product, products.gemv_int4, _multiply_packed),
    ]


def _turn(a: Any) -> Any:  # noqa: ANN401 - a tensor
    return a.new_empty((*a.shape[:-2], a.shape[-1], a.shape[-2]))


def _multiply(x: Any, weights: Any, scales: Any = None) -> Any:  # noqa: ANN401 - tensors
    del scales
    return x.new_empty((*x.shape[:-1], weights.shape[0]))


def _multiply_packed(x: Any, weights: Any, scales: Any) -> Any:  # noqa: ANN401 - tensors
    del weights
    return x.new_empty((*x.shape[:-1], scales.shape[1]))


def _multiply_matrices(a: Any, b: Any) -> Any:  # noqa: ANN401 - tensors
    lead = sys.modules["torch"].broadcast_shapes(a.shape[:-2], b.shape[:-2])  # of sizes that may be symbols
    return a.new_empty((*lead, a.shape[-2], b.shape[-1]))
