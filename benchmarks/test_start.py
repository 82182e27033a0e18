"""Cases for pytest-benchmark: what a person waits for, whole commands by the clock."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from benchmarks.rows import FOLDER

if TYPE_CHECKING:
    from pathlib import Path

CHECK = (
    "check",
    str(FOLDER / "gemm.sm_90.cubin"),
    "--launches",
    str(FOLDER / "gemm.json"),
    "--kernel",
    "k_mm_tile16",
)


def run(*words: str, cache: Path) -> None:
    environment = {**os.environ, "SECTORWISE_CACHE_DIR": str(cache)}
    # As installed: pip leaves byte code beside the modules.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    subprocess.run([sys.executable, "-m", "sectorwise", *words], check=True, capture_output=True, env=environment)


def test_help(benchmark: Any, tmp_path: Path) -> None:  # noqa: ANN401 - a plugin's fixture
    benchmark.pedantic(run, args=("--help",), kwargs={"cache": tmp_path}, rounds=5, warmup_rounds=1)


def test_check_with_an_empty_cache(benchmark: Any, tmp_path: Path) -> None:  # noqa: ANN401 - a plugin's fixture
    caches = iter(range(1000))

    def empty() -> tuple[tuple[str, ...], dict[str, Path]]:
        return CHECK, {"cache": tmp_path / str(next(caches))}

    benchmark.pedantic(run, setup=empty, rounds=5)


def test_check_from_the_cache(benchmark: Any, tmp_path: Path) -> None:  # noqa: ANN401 - a plugin's fixture
    benchmark.pedantic(run, args=CHECK, kwargs={"cache": tmp_path}, rounds=5, warmup_rounds=1)
