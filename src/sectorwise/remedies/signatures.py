"""Turns the text of a kernel into where its parameters and its body lie."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sectorwise.remedies.arrays import blank_comments

if TYPE_CHECKING:
    from sectorwise.launch.config import LaunchConfig

_POINTER: Final = re.compile(
    r"^(?P<type>[^*&=]+?)\s*\*\s*(?:const\s+)?(?:__restrict__|__restrict|restrict)?\s*(?P<name>\w+)$"
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter as it is written; `pointee` is the type that it points to, None where it is no plain pointer."""

    name: str
    pointee: str | None


@dataclass(frozen=True, slots=True)
class KernelText:
    """Parameters of a kernel, and its body: from after the opening brace to the closing one."""

    parameters: tuple[Parameter, ...]
    start: int
    end: int


def find_kernel_text(text: str, launch: LaunchConfig) -> KernelText | None:
    """Where the kernel of a launch is defined in a source; None where it is not found by its plain name."""
    name = launch.kernel.partition("<")[0].rpartition("::")[2]
    plain = blank_comments(text)
    found = re.search(rf"\b{re.escape(name)}\s*\((?P<parameters>[^{{}};]*)\)\s*\{{", plain)
    if found is None:
        return None
    depth = 0
    for at in range(found.end() - 1, len(plain)):
        depth += {"{": 1, "}": -1}.get(plain[at], 0)
        if depth == 0:
            listed = [part.strip() for part in found["parameters"].split(",") if part.strip()]
            return KernelText(tuple(_read_parameter(part) for part in listed), found.end(), at)
    return None


def _read_parameter(text: str) -> Parameter:
    words = " ".join(text.split())
    pointer = _POINTER.match(words)
    if pointer is None:
        return Parameter(words.rpartition(" ")[2], None)
    return Parameter(pointer["name"], pointer["type"])
