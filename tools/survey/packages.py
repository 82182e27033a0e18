"""Turns names of installed packages with Triton kernels into calls of them, with the shapes of usual models.

Each call is written here and takes what its package asks for; none of their code is. Tensors are on `cuda`, which is
the CPU while launches are captured.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TOKENS: Final = 1024
HIDDEN: Final = 4096
VOCABULARY: Final = 32_000
HEADS: Final = 16
HEAD_SIZE: Final = 128


def list_packages() -> dict[str, Callable[[], Mapping[str, Callable[[], object]]]]:
    """The packages, each with a function that imports it and gives its calls by name."""
    return {"liger-kernel": list_liger_calls, "flag-gems": list_flag_gems_calls}


def make(*shape: int, dtype: str = "bfloat16", grad: bool = False) -> Any:  # noqa: ANN401 - PyTorch's own type
    """A tensor on the device, the same in every run: floats between -1 and 1."""
    import torch

    count = 1
    for size in shape:
        count *= size
    values = torch.arange(count, dtype=torch.float32).remainder(4001).div(2000).sub(1).view(shape)
    return values.to("cuda").to(getattr(torch, dtype)).requires_grad_(grad)


def indices(*shape: int, below: int) -> Any:  # noqa: ANN401 - PyTorch's own type
    """Whole numbers on the device, spread over all below a bound."""
    import torch

    count = 1
    for size in shape:
        count *= size
    return torch.arange(count).mul(7919).remainder(below).view(shape).to("cuda")


def run_backward(result: Any) -> None:  # noqa: ANN401 - a tensor or several
    """Run the backward pass from what a forward pass gave."""
    outputs = result if isinstance(result, tuple | list) else (result,)
    total = sum(each.float().sum() for each in outputs if each is not None and each.requires_grad)
    total.backward()  # type: ignore[union-attr]


def list_liger_calls() -> Mapping[str, Callable[[], object]]:
    """Forward and backward passes of liger-kernel's functions, at the sizes of a 7 B model."""
    ops = importlib.import_module("liger_kernel.ops")

    def row(*, grad: bool = True, width: int = HIDDEN) -> Any:  # noqa: ANN401 - PyTorch's own type
        return make(TOKENS, width, grad=grad)

    def logits() -> Any:  # noqa: ANN401 - PyTorch's own type
        return make(256, VOCABULARY, grad=True)

    def heads(count: int = HEADS) -> Any:  # noqa: ANN401 - PyTorch's own type
        return make(1, count, TOKENS, HEAD_SIZE, grad=True)

    def angles() -> Any:  # noqa: ANN401 - PyTorch's own type
        return make(1, TOKENS, HEAD_SIZE)

    def weight(*shape: int) -> Any:  # noqa: ANN401 - PyTorch's own type
        return make(*(shape or (HIDDEN,)), grad=True)

    targets = indices(256, below=VOCABULARY)
    calls: dict[str, Callable[[], Any]] = {
        "rms_norm": lambda: ops.LigerRMSNormFunction.apply(row(), weight(), 1e-6),
        "rms_norm, gemma": lambda: ops.LigerRMSNormFunction.apply(row(), weight(), 1e-6, 1.0, "gemma"),
        "fused_add_rms_norm": lambda: ops.LigerFusedAddRMSNormFunction.apply(row(), row(), weight(), 1e-6),
        "layer_norm": lambda: ops.LigerLayerNormFunction.apply(row(), weight(), weight(), 1e-5),
        "group_norm": lambda: ops.LigerGroupNormFunction.apply(
            make(16, 64, 1024, grad=True), weight(64), weight(64), 64, 8, 1e-5
        ),
        "poly_norm": lambda: ops.LigerPolyNormFunction.apply(row(), weight(3), make(grad=True)),
        "dyt": lambda: ops.LigerDyTFunction.apply(row(), weight(1), weight(), weight()),
        "swiglu": lambda: ops.LigerSiLUMulFunction.apply(row(width=11008), row(width=11008)),
        "geglu": lambda: ops.LigerGELUMulFunction.apply(row(width=11008), row(width=11008)),
        "relu_squared": lambda: importlib.import_module("liger_kernel.ops.relu_squared").LigerReLUSquaredFunction.apply(
            row()
        ),
        "rope": lambda: ops.LigerRopeFunction.apply(heads(), heads(4), angles(), angles()),
        "qwen2vl_mrope": lambda: ops.LigerQwen2VLMRopeFunction.apply(
            heads(), heads(4), make(3, 1, TOKENS, HEAD_SIZE), make(3, 1, TOKENS, HEAD_SIZE), [16, 24, 24]
        ),
        "llama4_rope": lambda: ops.LigerLlama4RopeFunction.apply(
            make(1, TOKENS, HEADS, HEAD_SIZE, grad=True),
            make(1, TOKENS, 4, HEAD_SIZE, grad=True),
            make(TOKENS, HEAD_SIZE // 2, 2, dtype="float32"),
        ),
        "softmax": lambda: ops.LigerSoftmaxFunction.apply(row()),
        "softmax, long rows": lambda: ops.LigerSoftmaxFunction.apply(make(64, 100_000, grad=True)),
        "sparsemax": lambda: ops.LigerSparsemaxFunction.apply(make(64, 1024, dtype="float32", grad=True), -1),
        "cross_entropy": lambda: ops.LigerCrossEntropyFunction.apply(logits(), targets, None)[0],
        "cross_entropy, smoothed": lambda: ops.LigerCrossEntropyFunction.apply(
            logits(), targets, None, -100, 1e-4, 0.1, "mean", 30.0
        )[0],
        "fused_linear_cross_entropy": lambda: ops.LigerFusedLinearCrossEntropyFunction.apply(
            make(256, 512, grad=True), weight(VOCABULARY, 512), targets
        )[0],
        "jsd": lambda: ops.LigerJSDFunction.apply(logits().float().log_softmax(-1), logits().float().log_softmax(-1)),
        "kl_div": lambda: ops.LigerKLDivLossFunction.apply(logits().float().log_softmax(-1), logits().float(), "mean"),
        "tvd": lambda: ops.LigerTVDLossFunction.apply(logits().softmax(-1), logits().detach().softmax(-1)),
        "fused_neighborhood_attention": lambda: ops.LigerFusedNeighborhoodAttentionFunction.apply(
            *(make(1, 4, 256, 64, grad=True) for _ in range(3))
        ),
        "multi_token_attention": lambda: ops.LigerMultiTokenAttentionFunction.apply(
            make(1, 4, 256, 256, grad=True), make(4, 4, 3, 3, grad=True), None, 1, 1
        ),
        "grpo_loss": lambda: ops.GrpoLossFunction.apply(
            make(2, 129, VOCABULARY, grad=True),
            make(2, 128, dtype="float32"),
            make(2, 128, dtype="float32"),
            indices(2, 128, below=VOCABULARY),
            make(2, dtype="float32"),
            None,
            1.0,
            0.04,
            0.2,
            0.4,
            False,  # noqa: FBT003 - as the function is declared
        )[0],
    }
    return {name: _then_backward(call) for name, call in calls.items()}


def _then_backward(call: Callable[[], Any]) -> Callable[[], None]:
    return lambda: run_backward(call())


_UNARY: Final = (
    *("abs", "acos", "angle", "atan", "bitwise_not", "ceil", "cos", "cosh", "erf", "exp", "exp2", "expm1", "gelu"),
    *("isfinite", "isnan", "log", "log_sigmoid", "logical_not", "logit", "neg", "reciprocal", "relu", "rsqrt"),
    *("sigmoid", "silu", "sin", "softplus", "sqrt", "tan", "tanh", "nan_to_num", "i0", "celu", "elu"),
)
_BINARY: Final = (
    *("add", "sub", "mul", "true_divide", "maximum", "minimum", "eq", "lt", "ge", "pow_tensor_tensor", "atan2"),
    *("floor_divide", "remainder", "logaddexp", "hypot", "copysign"),
)
_ROWS: Final = ("softmax", "log_softmax", "cumsum", "cummax", "cummin", "argmax", "argmin", "any_dim", "all_dim")
_ALL: Final = ("sum", "mean", "max", "min", "prod", "var_mean", "count_nonzero", "argmax", "any", "all")
_INTEGER: Final = frozenset({"bitwise_not"})


def list_flag_gems_calls() -> Mapping[str, Callable[[], object]]:
    """Calls of flag-gems' operators: element by element, along rows, over all, and products of matrices."""
    ops = importlib.import_module("flag_gems").ops
    calls: dict[str, Callable[[], object]] = {}

    def take(name: str, *args: Callable[[], object]) -> None:
        function = getattr(ops, name, None)
        label = name if name not in calls else f"{name}, along a dimension"
        calls[label] = lambda: function(*(arg() for arg in args))  # type: ignore[misc]

    def floats() -> Any:  # noqa: ANN401 - PyTorch's own type
        return make(TOKENS, HIDDEN, dtype="float32")

    def last() -> int:
        return -1

    for name in _UNARY:
        take(name, floats if name not in _INTEGER else lambda: indices(TOKENS, HIDDEN, below=99))
    for name in _BINARY:
        take(name, floats, floats)
    for name in _ALL:
        take(name, floats)
    for name in _ROWS:
        take(name, floats, last)
    calls |= _list_flag_gems_others(ops)
    return calls


def _list_flag_gems_others(ops: Any) -> dict[str, Callable[[], object]]:  # noqa: ANN401 - the module
    def half(*shape: int) -> Any:  # noqa: ANN401 - PyTorch's own type
        return make(*shape, dtype="float16")

    def single(*shape: int) -> Any:  # noqa: ANN401 - PyTorch's own type
        return make(*shape, dtype="float32")

    return {
        "mm": lambda: ops.mm(half(1024, 1024), half(1024, 1024)),
        "mm, long": lambda: ops.mm(half(16, 4096), half(4096, 4096)),
        "addmm": lambda: ops.addmm(half(1024), half(1024, 512), half(512, 1024)),
        "bmm": lambda: ops.bmm(half(8, 256, 256), half(8, 256, 256)),
        "mv": lambda: ops.mv(half(4096, 4096), half(4096)),
        "dot": lambda: ops.dot(single(1 << 20), single(1 << 20)),
        "layer_norm": lambda: ops.layer_norm(half(TOKENS, HIDDEN), [HIDDEN], half(HIDDEN), half(HIDDEN), 1e-5),
        "rms_norm": lambda: ops.rms_norm(half(TOKENS, HIDDEN), [HIDDEN], half(HIDDEN), 1e-5),
        "group_norm": lambda: ops.group_norm(half(16, 64, 32, 32), half(64), half(64), 16, 64, 1024, 8, 1e-5),
        "embedding": lambda: ops.embedding(half(VOCABULARY, HIDDEN), indices(TOKENS, below=VOCABULARY)),
        "index_select": lambda: ops.index_select(single(4096, 1024), 0, indices(1024, below=4096)),
        "gather": lambda: ops.gather(single(1024, 1024), 1, indices(1024, 1024, below=1024)),
        "scatter": lambda: ops.scatter(single(1024, 1024), 1, indices(1024, 1024, below=1024), single(1024, 1024)),
        "masked_fill": lambda: ops.masked_fill(single(1024, 1024), single(1024, 1024) > 0, 0.0),
        "where_self": lambda: ops.where_self(single(1024, 1024) > 0, single(1024, 1024), single(1024, 1024)),
        "triu": lambda: ops.triu(single(1024, 1024)),
        "tril": lambda: ops.tril(single(1024, 1024)),
        "cat": lambda: ops.cat([single(512, 1024), single(512, 1024)], 0),
        "stack": lambda: ops.stack([single(512, 1024), single(512, 1024)], 0),
        "flip": lambda: ops.flip(single(1024, 1024), [1]),
        "repeat": lambda: ops.repeat(single(256, 256), [2, 3]),
        "arange": lambda: ops.arange(1 << 20, device="cuda"),
        "full": lambda: ops.full([1024, 1024], 3.0, device="cuda"),
        "topk": lambda: ops.topk(single(64, 1024), 8),
        "sort": lambda: ops.sort(single(16, 1024)),
        "dropout": lambda: ops.dropout(single(1024, 1024), 0.5, train=True),
        "rand": lambda: ops.rand([1024, 1024], device="cuda"),
        "conv2d": lambda: ops.conv2d(half(2, 32, 32, 32), half(64, 32, 3, 3)),
        "max_pool2d": lambda: ops.max_pool2d_with_indices(single(2, 32, 64, 64), [2, 2]),
        "upsample_nearest2d": lambda: ops.upsample_nearest2d(single(2, 16, 64, 64), [128, 128]),
        "mse_loss": lambda: ops.mse_loss(single(1024, 1024), single(1024, 1024)),
        "scaled_dot_product_attention": lambda: ops.scaled_dot_product_attention(
            *(half(1, HEADS, 512, HEAD_SIZE) for _ in range(3)), is_causal=True
        ),
        "vector_norm": lambda: ops.vector_norm(single(1024, 1024)),
        "kron": lambda: ops.kron(single(32, 32), single(32, 32)),
        "diag": lambda: ops.diag(single(1024)),
        "lerp_tensor": lambda: ops.lerp_tensor(*(single(1024, 1024) for _ in range(3))),
        "addcmul": lambda: ops.addcmul(*(single(1024, 1024) for _ in range(3))),
        "clamp": lambda: ops.clamp(single(1024, 1024), -0.5, 0.5),
        "cross_entropy": lambda: importlib.import_module("flag_gems").cross_entropy_loss(
            single(256, VOCABULARY), indices(256, below=VOCABULARY)
        ),
        "silu_and_mul": lambda: importlib.import_module("flag_gems").silu_and_mul(half(1024, 4096), half(1024, 4096)),
        "skip_layer_norm": lambda: importlib.import_module("flag_gems").skip_layer_norm(
            half(1024, HIDDEN), half(1024, HIDDEN), [HIDDEN], half(HIDDEN), half(HIDDEN)
        ),
    }
