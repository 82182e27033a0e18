"""Recorded machine code carries names of sources, but no folder of the machine that compiled them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_recorded_machine_code_names_no_folder_of_a_machine() -> None:
    recorded = sorted(path for folder in ("tests", "examples") for path in (ROOT / folder).rglob("*.cubin"))
    assert len(recorded) > 100
    carried = {
        path.name: found
        for path in recorded
        if (found := re.findall(rb"/(?:tmp|home|root|work|Users|mnt)/[ -~]*", path.read_bytes()))
    }
    assert carried == {}
