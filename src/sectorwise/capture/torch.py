"""Turns tensors of PyTorch that a script puts on a GPU into tensors on the CPU that say they are on one.

Below autograd each operation passes a mode of dispatch, which sees the device that is asked for. What is asked for on
CUDA is made on the CPU, and the memory is marked; the result of an operation on marked memory is marked as well. The
answers to a person's questions (`is_cuda`, `device`) come from the mark. So values are there, indices that kernels load
are real, and gradients flow as ever; PyTorch's own kernels for GPUs are not run, and which were passed over is counted.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from sectorwise.capture.replacement import Replacement, replace_all
from sectorwise.capture.torch_cuda import list_cuda_replacements

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from sectorwise.device import DeviceSpec

_MARK: Final = "_sectorwise_on_cuda"
_EMPTY: Final = ("aten::empty", "aten::new_empty")
_NO_KERNEL: Final = ("aten::empty", "aten::new_empty", "aten::detach", "aten::lift_fresh", "aten::_local_scalar_dense")
"""How operators begin that run no kernel of PyTorch's on a GPU: they allocate, or read one number."""


@contextmanager
def capture_torch(device: DeviceSpec, passed_over: Counter[str]) -> Iterator[tuple[str, ...]]:
    """Within the `with`, tensors asked for on CUDA are on the CPU; the names of all that is replaced are given.

    `passed_over` counts PyTorch's own operations on such tensors, each by the name of the operator.
    """
    import torch
    import torch._dynamo  # PyTorch brings it in later, and then would take what is replaced for its own

    replacements = [*_list_tensor_replacements(torch), *_list_makers(torch), *list_cuda_replacements(torch, device)]
    with replace_all(replacements), _make_mode(torch, passed_over):
        yield ("torch (tensors on cuda are made on the CPU)", *(each.name for each in replacements if each.name))


def _make_mode(torch: Any, passed_over: Counter[str]) -> Any:  # noqa: ANN401 - PyTorch's own types
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    class DeviceMode(TorchDispatchMode):  # type: ignore[misc] # PyTorch's types are not read
        """Runs each operation on the CPU, and marks the memory of what would be on the device."""

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
            del types
            named = dict(kwargs or {})
            wanted = named.get("device")
            is_on_device = wanted is not None and torch.device(wanted).type == "cuda"
            if is_on_device:
                named["device"] = torch.device("cpu")
            elif wanted is None or func.name() == "aten::_to_copy":
                # What is copied into memory of the host stays there, wherever it comes from. Autograd converts
                # gradients to the type and device of what they are of, which is the CPU to it.
                given = args[:1] if func.name() == "aten::copy_" else tree_leaves((args, named))
                is_on_device = any(is_marked(torch, each) for each in given)
            if named.get("pin_memory"):
                named["pin_memory"] = False
            result = _allocate(torch, func, args, named) if func.name().startswith(_EMPTY) else func(*args, **named)
            if is_on_device:
                if _runs_kernel(func, args, result):
                    passed_over[func.name()] += 1
                for each in tree_leaves(result):
                    set_mark(torch, each)
            return result

    return DeviceMode()


def _allocate(torch: Any, func: Any, args: Any, named: dict[str, Any]) -> Any:  # noqa: ANN401 - PyTorch's own types
    """Zeros: what was not written must not differ from run to run."""
    if func is torch.ops.aten.empty.memory_format and named.get("memory_format") is None:
        plain = {name: value for name, value in named.items() if name != "memory_format"}
        return torch.ops.aten.zeros.default(*args, **plain)  # memory that is not touched costs nothing
    return func(*args, **named).zero_()


def _runs_kernel(func: Any, args: Any, result: Any) -> bool:  # noqa: ANN401 - PyTorch's own types
    """Whether an operator computes something, rather than to look at memory, allocate it or move it."""
    name = func.name()
    if name == "aten::_to_copy":
        return bool(args[0].dtype != result.dtype)
    return not (func.is_view or name.startswith(_NO_KERNEL))


def is_marked(torch: Any, value: object) -> bool:  # noqa: ANN401 - the module
    """Whether a value is a tensor in memory that stands for a GPU's."""
    return isinstance(value, torch.Tensor) and hasattr(_storage_of(value), _MARK)


def set_mark(torch: Any, value: object, *, is_on_device: bool = True) -> None:  # noqa: ANN401 - the module
    """Let the memory of a tensor stand for a GPU's, or no longer; nothing happens to other values."""
    storage = _storage_of(value) if isinstance(value, torch.Tensor) else None
    if storage is None:
        return
    if is_on_device:
        setattr(storage, _MARK, True)
    elif hasattr(storage, _MARK):
        delattr(storage, _MARK)


def _storage_of(tensor: Any) -> object:  # noqa: ANN401 - PyTorch's own type
    """The memory of a tensor, None for kinds without one (sparse ones)."""
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):
        return None


def _list_tensor_replacements(torch: Any) -> list[Replacement]:  # noqa: ANN401 - the module
    """What a tensor says of where it is, and how it is moved."""
    base = torch._C.TensorBase  # noqa: SLF001 - where PyTorch keeps what `torch.Tensor` inherits
    cuda = torch.device("cuda", 0)

    def move(self: Any, *args: object, **named: Any) -> Any:  # noqa: ANN401 - as `Tensor.to` takes
        target, rest, named = _split_device(torch, args, named)
        return base.to(self, *rest, **named) if target is None else place(self, target, named)

    def place(self: Any, target: str, named: dict[str, Any]) -> Any:  # noqa: ANN401 - PyTorch's own type
        if target not in {"cpu", "cuda"}:
            return base.to(self, torch.device(target), **named)
        if (target == "cuda") == is_marked(torch, self):
            return base.to(self, **named) if named else self
        moved = base.to(self, **{**named, "copy": True})
        set_mark(torch, moved, is_on_device=target == "cuda")
        return moved

    def to_cuda(self: Any, device: object = None, non_blocking: object = False, **_named: object) -> Any:  # noqa: ANN401, FBT002
        del device, non_blocking
        return place(self, "cuda", {})

    def to_cpu(self: Any, *_args: object, **_named: object) -> Any:  # noqa: ANN401 - PyTorch's own type
        return place(self, "cpu", {})

    def ask(name: str, here: object) -> property:
        there = getattr(base, name)
        return property(lambda self: here if is_marked(torch, self) else there.__get__(self))

    def get_device(self: Any) -> int:  # noqa: ANN401 - PyTorch's own type
        return 0 if is_marked(torch, self) else int(base.get_device(self))

    def new_tensor(self: Any, data: object, **named: Any) -> Any:  # noqa: ANN401 - PyTorch's own type
        device = named.pop("device", None) or self.device
        made = base.new_tensor(self, data, **named)
        return made if torch.device(device).type != "cuda" else place(made, "cuda", {})

    stand_ins: dict[str, object] = {
        "is_cuda": ask("is_cuda", here=True),
        "is_cpu": ask("is_cpu", here=False),
        "device": ask("device", cuda),
        "get_device": get_device,
        "new_tensor": new_tensor,
        "to": move,
        "cuda": to_cuda,
        "cpu": to_cpu,
        "pin_memory": _keep,
        "record_stream": _keep,
    }
    return [Replacement(f"torch.Tensor.{name}", torch.Tensor, name, value) for name, value in stand_ins.items()]


def _list_makers(torch: Any) -> list[Replacement]:  # noqa: ANN401 - the module
    """The functions that turn data into tensors: they look for a GPU before the operations that the mode sees."""

    def make(name: str) -> Any:  # noqa: ANN401 - a function of PyTorch's
        original = getattr(torch, name)

        def make_tensor(data: object, *args: object, device: Any = None, **named: object) -> Any:  # noqa: ANN401
            wanted = torch.get_default_device() if device is None else torch.device(device)
            if wanted.type != "cuda":
                return original(data, *args, device=device, **named)
            if is_marked(torch, data):
                return original(data, *args, **named)
            with torch.device("cpu"):
                made = original(data, *args, **named)
                fresh = made if name == "tensor" else made.clone()  # the others may share memory with what they take
            set_mark(torch, fresh)
            return fresh

        return make_tensor

    return [Replacement(f"torch.{name}", torch, name, make(name)) for name in ("tensor", "as_tensor", "asarray")]


def _keep(self: Any, *_args: object, **_named: object) -> Any:  # noqa: ANN401 - PyTorch's own type
    """What changes nothing here."""
    return self


def _split_device(
    torch: Any,  # noqa: ANN401 - the module
    args: tuple[Any, ...],
    named: dict[str, Any],
) -> tuple[str | None, tuple[Any, ...], dict[str, Any]]:
    """Return the kind of device that `Tensor.to` is asked for, and its other arguments.

    With a device all others have names; without one, None, they are as they were.
    """
    others = dict(named)
    order: tuple[str, ...] = ("dtype", "non_blocking", "copy")
    first, rest = others.pop("device", None), args
    if first is None and args and isinstance(args[0], str | int | torch.device | torch.Tensor):
        first, rest = args[0], args[1:]
    if first is None or isinstance(first, bool):
        return None, args, named
    if isinstance(first, torch.Tensor):
        others["dtype"] = first.dtype
        first, order = first.device, order[1:]
    elif isinstance(first, int):
        first = torch.device("cuda", first)
    others |= {name: value for name, value in zip(order, rest, strict=False) if value is not None}
    return str(torch.device(first).type), (), others
