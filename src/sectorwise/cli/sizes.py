"""Turns sizes as people write them, `48K` or `2GiB`, into bytes."""

from __future__ import annotations

import re
from typing import Final

from sectorwise.errors import ArgumentError

_UNITS: Final = {"": 0, "B": 0, "K": 1, "KB": 1, "KIB": 1, "M": 2, "MB": 2, "MIB": 2, "G": 3, "GB": 3, "GIB": 3}
"""Powers of 1024."""


def parse_size(text: str, option: str) -> int:
    """Bytes, written plainly or with K, M or G (binary): `49152`, `48K`, `48KiB`; `option` is where they were given."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", text.strip().replace("_", ""))
    power = _UNITS.get(match[2].upper()) if match else None
    if match is None or power is None:
        raise ArgumentError(f"{option}: {text!r} is no size; write bytes, or 48K or 48KiB")
    size = float(match[1]) * (1 << 10 * power)
    if not size.is_integer():
        raise ArgumentError(f"{option}: {text!r} is no whole number of bytes")
    return int(size)
