"""Turns a library, an archive, a wheel or a fat binary into the cubin of the one kernel that is asked for."""

from __future__ import annotations

import mmap
import zipfile
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from sectorwise.binary.elf import RELOCATABLE, read_kernel_names
from sectorwise.binary.fatbin import Image, read_images, unpack_image
from sectorwise.binary.kinds import HEAD_BYTES, FileKind, describe_kind, identify
from sectorwise.binary.names import read_kernel_name
from sectorwise.errors import ArgumentError, UnknownKernelError
from sectorwise.frontends.base import Compilation, CompileRequest, Outline
from sectorwise.frontends.ptx import find_entries
from sectorwise.frontends.ptxas import assemble, choose_assembler

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SUFFIXES = frozenset({".so", ".a", ".o", ".obj", ".lib", ".dll", ".pyd", ".exe", ".fatbin", ".whl"})
_WHEEL = ".whl"
_MAY_BE_EMPTY = frozenset({FileKind.HOST, FileKind.ARCHIVE, FileKind.WINDOWS, FileKind.FATBIN})
_LEAST_BYTES_OF_A_MEMBER = 1024
_ELF_KIND_AT = 16
_UNLINKED = " (to be linked)"


@dataclass(frozen=True, slots=True)
class LibraryKernel:
    """A kernel of a library: its symbol, its name as written, and for what it is there: `sm_90`, or `compute_90` (PTX).

    `member` is the file of a wheel that it is in, None elsewhere.
    """

    symbol: str
    name: str
    parameter_types: tuple[str, ...] | None
    targets: tuple[str, ...]
    member: str | None = None


@dataclass(frozen=True, slots=True)
class LibraryFrontend:
    """Reads libraries for hosts, object files, archives, wheels and fat binaries; PTX in them is assembled."""

    name: str = "library"

    def accepts(self, path: Path) -> bool:
        """Whether the file's name is that of a library, an archive or a wheel (`libfoo.so.2` too)."""
        return path.suffix in _SUFFIXES or ".so." in path.name

    def outline(self, path: Path) -> Outline:
        """Return the kernels, those whose symbols tell the types of their parameters with them."""
        kernels = {kernel.symbol: kernel.parameter_types or () for kernel in list_kernels(path)}
        return Outline(None, kernels)

    def compile(self, path: Path, request: CompileRequest) -> Compilation:
        """Take the cubin out that has the kernel of the request and is the best for the target.

        Raises:
            ArgumentError: the file cannot be read, or compile options were given, or not one kernel was named.
            UnknownKernelError: no image has that kernel for the target; the text says for what it is there.
            CorruptBinaryError: the file contradicts itself.
            MissingToolError: an image is packed, or PTX, and what unpacks or assembles it is not installed.
        """
        if request.macros or request.include_folders or request.options:
            message = f"{path} is compiled already: macros, include folders and compiler options have no effect on it"
            raise ArgumentError(message)
        if len(request.kernels) != 1:
            raise ArgumentError(f"{path} may hold many cubins: name one kernel, got {len(request.kernels)}")
        image, content, symbol = _choose_image(path, request.kernels[0], _read_target(request.target))
        if image.kind == "cubin":
            return Compilation(content, None, "none (a cubin was given)", kernel_names={request.kernels[0]: symbol})
        ptx = content.rstrip(b"\0").decode(errors="replace")
        assembler = choose_assembler(ptx)
        return Compilation(
            cubin=assemble(assembler, ptx, image.origin, request.target),
            target=request.target,
            compiler=assembler.version,
            options=(f"-arch={request.target}",),
            kernel_names={request.kernels[0]: symbol},
            parameter_types=find_entries(ptx),
        )


def list_kernels(path: Path) -> tuple[LibraryKernel, ...]:
    """Return the kernels of a library, in the order in which they lie in it.

    Raises:
        ArgumentError: the file cannot be read.
        CorruptBinaryError: it contradicts itself.
        MissingToolError: an image is packed, and what unpacks it is not installed.
    """
    targets: dict[tuple[str | None, str], list[str]] = {}
    for member, image in _read_library(path):
        content = unpack_image(image)
        target = _name_target(image) if _is_linked(image, content) else f"{_name_target(image)}{_UNLINKED}"
        for symbol in _list_symbols(image, content):
            known = targets.setdefault((member, symbol), [])
            if target not in known:
                known.append(target)
    kernels = []
    for (member, symbol), known in targets.items():
        name = read_kernel_name(symbol)
        there = tuple(
            each for each in known if each.removesuffix(_UNLINKED) == each or each[: -len(_UNLINKED)] not in known
        )
        kernels.append(LibraryKernel(symbol, name.readable, name.parameter_types, there, member))
    return tuple(kernels)


def _name_target(image: Image) -> str:
    return f"{'compute' if image.kind == 'ptx' else 'sm'}_{image.capability[0]}{image.capability[1]}"


def _is_linked(image: Image, content: bytes) -> bool:
    """Whether it can be launched as it is: `nvcc -dc` leaves cubins to be linked beside those that were."""
    return image.kind == "ptx" or content[_ELF_KIND_AT : _ELF_KIND_AT + 2] != RELOCATABLE.to_bytes(2, "little")


def _read_library(path: Path) -> Iterator[tuple[str | None, Image]]:
    try:
        if path.suffix != _WHEEL:
            yield from ((None, image) for image in _read_file(path))
            return
        with zipfile.ZipFile(path) as wheel:
            for entry in wheel.infolist():
                if _may_hold_kernels(entry):
                    images = read_images(wheel.read(entry), f"{path.as_posix()}: {entry.filename}")
                    yield from ((entry.filename, image) for image in images)
    except FileNotFoundError:
        raise ArgumentError(f"there is no file {path}") from None
    except OSError as error:
        raise ArgumentError(f"{path} cannot be read: {error.strerror or error}") from None
    except zipfile.BadZipFile:
        with path.open("rb") as file:
            kind = describe_kind(file.read(HEAD_BYTES))
        raise ArgumentError(f"{path} is no wheel, which is a zip archive: it is {kind}") from None


def _read_file(path: Path) -> tuple[Image, ...]:
    """The images of a file, which is mapped into memory: libraries of a gigabyte are common."""
    with path.open("rb") as file:
        if not path.stat().st_size:
            raise ArgumentError(f"{path} is empty")
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    images = read_images(content, path.as_posix())
    head = content[:HEAD_BYTES]
    if not images and identify(head) not in _MAY_BE_EMPTY:
        raise ArgumentError(f"{path} is no library, archive or fat binary: it is {describe_kind(head)}")
    return images


def _may_hold_kernels(entry: zipfile.ZipInfo) -> bool:
    name = PurePosixPath(entry.filename).name
    is_library = PurePosixPath(name).suffix in _SUFFIXES - {_WHEEL} or ".so." in name
    return is_library and entry.file_size >= _LEAST_BYTES_OF_A_MEMBER


def _list_symbols(image: Image, content: bytes) -> tuple[str, ...]:
    if image.kind == "cubin":
        return read_kernel_names(content, image.origin)
    return tuple(find_entries(content.decode(errors="replace")))


def _read_target(target: str) -> tuple[int, int]:
    digits = "".join(filter(str.isdigit, target))
    return int(digits[:-1]), int(digits[-1])


def _choose_image(path: Path, wanted: str, target: tuple[int, int]) -> tuple[Image, bytes, str]:
    """Return the image that a driver would take: the nearest cubin of the same major number, else the newest PTX."""
    elsewhere: list[str] = []
    symbols: list[str] = []
    best: tuple[tuple[bool, bool, tuple[int, int]], Image, bytes, str] | None = None
    for _, image in _read_library(path):
        content = unpack_image(image)
        listed = _list_symbols(image, content)
        symbols += listed
        found = [symbol for symbol in listed if _is_called(symbol, wanted)]
        if not found:
            continue
        if len(found) > 1:
            raise UnknownKernelError(f"{path}: {wanted!r} may be any of {', '.join(found)}")
        is_cubin = image.kind == "cubin"
        if image.capability > target or (is_cubin and image.capability[0] != target[0]):
            elsewhere.append(_name_target(image))
            continue
        rank = (_is_linked(image, content), is_cubin, image.capability)
        if best is None or rank > best[0]:
            best = rank, image, content, found[0]
    if best is not None:
        return best[1:]
    if elsewhere:
        known = ", ".join(dict.fromkeys(elsewhere))
        raise UnknownKernelError(
            f"{path}: {wanted!r} is there for {known}, which sm_{target[0]}{target[1]} does not run"
        )
    raise UnknownKernelError(f"{path}: there is no kernel {wanted!r}; {_describe_known(wanted, symbols)}")


def _is_called(symbol: str, wanted: str) -> bool:
    if symbol == wanted:
        return True
    plain = wanted.replace(" ", "")
    readable = read_kernel_name(symbol).readable.replace(" ", "")
    return plain in {readable, readable.partition("<")[0].rpartition("::")[2]}


def _describe_known(wanted: str, symbols: list[str]) -> str:
    import difflib

    names = list(dict.fromkeys(read_kernel_name(symbol).readable for symbol in symbols))
    nearest = difflib.get_close_matches(wanted, names, n=3, cutoff=0.5)
    if nearest:
        return f"the nearest: {', '.join(nearest)}"
    return f"it has {len(names)}; sectorwise check FILE lists them" if names else "it has no kernels for NVIDIA GPUs"


LIBRARY = LibraryFrontend()
