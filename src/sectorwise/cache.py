"""Turns content keys into stored bytes and back, so that what was compiled or disassembled once is not done again.

An entry is a file named by the SHA-256 of what it was made from; its first 32 bytes are the SHA-256 of the rest. It is
written beside its final name and renamed, so that another process sees a whole entry or none. The cache never decides
a result: a missing, damaged or unwritable entry only means that the work is done again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

_DIGEST_BYTES = 32
_OFF = frozenset({"off", "0", "no", "none", "false"})


def make_key(*parts: bytes | str) -> str:
    """Return the key of an entry that was made from `parts`: any change of a part, or of their order, changes it."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        digest.update(len(content).to_bytes(8, "little"))
        digest.update(content)
    return digest.hexdigest()


def find_cache_folder() -> Path | None:
    """Return the folder of the cache, or None where it is switched off or no home is known.

    `SECTORWISE_CACHE_DIR` names it (`off` switches it off), else `XDG_CACHE_HOME`/sectorwise, else ~/.cache/sectorwise.
    """
    chosen = os.environ.get("SECTORWISE_CACHE_DIR")
    if chosen is not None:
        return None if chosen.strip().lower() in _OFF or not chosen.strip() else Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    if base and Path(base).is_absolute():
        return Path(base) / "sectorwise"
    try:
        return Path.home() / ".cache" / "sectorwise"
    except RuntimeError:
        return None


def read_entry(area: str, key: str) -> bytes | None:
    """Return the bytes stored under `key` in `area` (one word, a folder), or None where there is no sound entry."""
    folder = find_cache_folder()
    if folder is None:
        return None
    try:
        stored = (folder / area / key).read_bytes()
    except OSError:
        return None
    digest, content = stored[:_DIGEST_BYTES], stored[_DIGEST_BYTES:]
    return content if hashlib.sha256(content).digest() == digest else None


def write_entry(area: str, key: str, content: bytes) -> None:
    """Store `content` under `key` in `area`; where the cache cannot be written, nothing happens."""
    folder = find_cache_folder()
    if folder is None:
        return
    temporary: str | None = None
    try:
        (folder / area).mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=folder / area, prefix=".new-")
        with os.fdopen(descriptor, "wb") as file:
            file.write(hashlib.sha256(content).digest() + content)
        Path(temporary).replace(folder / area / key)
    except OSError:
        if temporary is not None:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
