"""What goes to a GPU is one file that needs nothing else, and what comes back is read as it was written."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

from sectorwise.machine.program import HINTS, INLINE_CONTROL, TERMINATORS
from sectorwise.machine.semantics.table import SEMANTICS
from tools.fuzz.coverage import ENOUGH
from tools.fuzz.parcels import pack_batch, read_results, write_results

PAGE = Path(__file__).parents[2] / "docs" / "coverage.md"
ROW = re.compile(
    r"^\| `(?P<form>[^`]+)` \| (?P<count>[\d,]+) \| (?P<kernels>[\d,]+) \| (?P<claim>[a-z ]+) \|$", re.MULTILINE
)


@pytest.mark.parametrize("name", ["results", "results.tar"])
def test_results_are_read_as_they_were_written(tmp_path: Path, name: str) -> None:
    content = {"device": "a GPU", "files": {"0250": {"8000": "00ff"}}, "slots": {"0250": {"8000": "ab"}}}
    words = {"8000_words": np.arange(12, dtype=np.uint32).reshape(3, 4), "8000_scratch": np.zeros(5, np.uint32)}
    write_results(tmp_path / name, content, words)
    found, differing = read_results(tmp_path / name)
    assert found == content
    assert sorted(differing) == sorted(words)
    for key, value in words.items():
        np.testing.assert_array_equal(differing[key], value)


def test_a_parcel_holds_all_that_runs_it(tmp_path: Path) -> None:
    batch = tmp_path / "prepared"
    batch.mkdir()
    (batch / "0250.json").write_text(json.dumps({"launches": []}))
    (batch / "0250.cubin.xz").write_bytes(b"code")
    assert pack_batch(batch, tmp_path / "fuzz.tar") == 1
    there = tmp_path / "there"
    with tarfile.open(tmp_path / "fuzz.tar") as parcel:
        for entry in parcel.getmembers():
            content = parcel.extractfile(entry)
            assert content is not None
            path = there / entry.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.read())
    assert (there / "batch" / "0250.cubin.xz").read_bytes() == b"code"
    code = (
        f"import sys; sys.path[:0] = [{str(there)!r}]; from tools.fuzz import on_device\n"
        "print([name for name in sys.modules if name.split('.')[0] == 'sectorwise'], on_device.__file__)"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, cwd=there)
    assert done.stdout.strip() == f"[] {there / 'tools' / 'fuzz' / 'on_device.py'}"


def test_the_page_claims_no_more_than_was_measured() -> None:
    text = PAGE.read_text()
    rows = [match.groupdict() for match in ROW.finditer(text)]
    assert len(rows) > 1000
    for row in rows:
        wanted = "measured" if int(row["count"].replace(",", "")) >= ENOUGH else "rarely measured"
        assert row["claim"] == wanted, row
    few = sum(row["claim"] == "rarely measured" for row in rows)
    assert f"{len(rows) - few:,} forms;" in text
    assert f"but fewer times: {few:,} forms;" in text
    met = {row["form"].split(".")[0] for row in rows}
    listed = set(re.findall(r"`(\w+)`", text[text.index("## Opcodes by definition only") :]))
    assert listed == {*SEMANTICS, *TERMINATORS, *INLINE_CONTROL, *HINTS} - met
