"""Turns the name of a kernel, as its author wrote it, into the kernel of a cubin, or the names nearest."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from sectorwise.errors import UnknownKernelError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sectorwise.binary.ir import Cubin, Kernel
    from sectorwise.frontends.base import Compilation
    from sectorwise.launch.config import LaunchConfig


def find_kernel(cubin: Cubin, compilation: Compilation, config: LaunchConfig) -> Kernel:
    """The kernel that a launch names: by its symbol, as its author wrote it, or without namespace and arguments.

    Raises:
        UnknownKernelError: the cubin has none of that name, or several; the text names the nearest.
    """
    symbol = compilation.kernel_names.get(config.kernel, config.kernel)
    found: list[Kernel] = []
    for spell in (lambda kernel: kernel.name, _spell, lambda kernel: shorten_name(_spell(kernel))):
        found = found or [kernel for kernel in cubin.kernels if spell(kernel) == symbol.replace(" ", "")]
    if len(found) == 1:
        return found[0]
    origin = f"{config.span.origin}: " if config.span is not None else ""
    if found:
        raise UnknownKernelError(
            f"{origin}{config.kernel!r} may be any of {', '.join(_spell(kernel) for kernel in found)}"
        )
    from sectorwise.frontends.signatures import find_template_parameters

    parameters = find_template_parameters(compilation.source_text or "").get(config.kernel)
    if parameters is not None:
        raise UnknownKernelError(
            f"{origin}{config.kernel!r} is a template: say of what, as in {config.kernel}<{parameters}>, with values"
        )
    known = [_spell(kernel) for kernel in cubin.kernels]
    raise UnknownKernelError(f"{origin}there is no kernel {config.kernel!r}; {suggest(config.kernel, known)}")


def _spell(kernel: Kernel) -> str:
    return (kernel.readable_name or kernel.name).replace(" ", "")


def shorten_name(name: str) -> str:
    """`scale` for `ns::scale<float>`: a kernel's name without namespaces and template arguments."""
    return name.partition("<")[0].rpartition("::")[2]


def suggest(name: str, known: Sequence[str]) -> str:
    """The names that are nearest to one that is not there, or all."""
    if not known:
        return "there are no kernels at all"
    nearest = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    return f"the nearest: {', '.join(nearest)}" if nearest else f"there are: {', '.join(known)}"
