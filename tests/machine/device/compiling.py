"""Turns the probes into a cubin for a target, without those that need a later one."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from sectorwise.frontends.base import CompileRequest
from sectorwise.frontends.cuda import CudaFrontend
from tests.machine.device.record import SOURCE

_BODY = re.compile(r"^PROBE\(\w+, \w+, (?P<since>\d+)\) \{.*?^\}\n", re.MULTILINE | re.DOTALL)


def compile_probes(target: str) -> bytes:
    """The cubin of the probes that a target can run."""
    number = int(target.removeprefix("sm_").rstrip("af"))
    text = _BODY.sub(
        lambda found: found[0] if int(found["since"]) <= number else "", SOURCE.read_text(encoding="utf-8")
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / SOURCE.name
        path.write_text(text, encoding="utf-8")
        return CudaFrontend().compile(path, CompileRequest(target)).cubin
