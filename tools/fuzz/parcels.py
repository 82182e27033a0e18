"""Turns a batch, with the modules that run it on a GPU, into one tar, and what the GPU made of it into another.

It needs the standard library and NumPy alone, as all that runs where the GPU is.
"""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

ROOT = Path(__file__).parents[2]
MODULES = (
    "tools/__init__.py",
    "tools/fuzz/__init__.py",
    "tools/fuzz/digests.py",
    "tools/fuzz/inputs.py",
    "tools/fuzz/launches.py",
    "tools/fuzz/on_device.py",
    "tools/fuzz/parcels.py",
    "tools/fuzz/stream.py",
)
"""All that runs on the GPU's machine."""

_PARTS = (_DIGESTS, _WORDS) = ("results.json", "differing.npz")


def pack_batch(batch: Path, target: Path) -> int:
    """Writes the modules and the batch (as `batch/`) into a tar; how many files of kernels it has."""
    files = sorted(batch.glob("*.json"))
    with tarfile.open(target, "w") as parcel:
        for name in MODULES:
            parcel.add(ROOT / name, name)
        for path in files:
            parcel.add(path, f"batch/{path.name}")
            parcel.add(path.with_suffix(".cubin.xz"), f"batch/{path.stem}.cubin.xz")
    return len(files)


def write_results(target: Path, content: dict[str, Any], differing: Mapping[str, npt.NDArray[np.uint32]]) -> None:
    """Writes what a GPU made of a batch into a folder, or into one tar where the name ends in `.tar`."""
    words = io.BytesIO()
    np.savez_compressed(words, **differing)  # type: ignore[arg-type]
    parts = {_DIGESTS: json.dumps(content).encode(), _WORDS: words.getvalue()}
    if target.suffix != ".tar":
        target.mkdir(parents=True, exist_ok=True)
        for name, data in parts.items():
            (target / name).write_bytes(data)
        return
    with tarfile.open(target, "w") as parcel:
        for name, data in parts.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            parcel.addfile(entry, io.BytesIO(data))


def read_results(path: Path) -> tuple[dict[str, Any], dict[str, npt.NDArray[np.uint32]]]:
    """What `write_results` wrote."""
    parts: dict[str, bytes] = {}
    if path.is_dir():
        parts = {name: (path / name).read_bytes() for name in _PARTS}
    else:
        with tarfile.open(path) as parcel:
            for name in _PARTS:
                entry = parcel.extractfile(name)
                parts[name] = b"" if entry is None else entry.read()
    with np.load(io.BytesIO(parts[_WORDS])) as words:
        return json.loads(parts[_DIGESTS]), {name: words[name] for name in words.files}
