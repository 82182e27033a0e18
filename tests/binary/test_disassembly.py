"""Turns missing, refusing and repeated disassembly into errors for people and into cached listings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sectorwise.binary import disassembly
from sectorwise.binary.cubin import read_cubin
from sectorwise.binary.disassembly import disassemble, find_disassembler
from sectorwise.errors import CorruptBinaryError, MissingToolError

SAMPLE = (Path(__file__).parents[1] / "measured" / "h200" / "generic.sm_90.cubin").read_bytes()


def test_missing_tool_names_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingToolError, match=r"pip install 'sectorwise\[cuda\]'"):
        find_disassembler()


def test_tool_on_the_path_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    packaged = find_disassembler().path
    (tmp_path / "nvdisasm").symlink_to(packaged)
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setenv("PATH", str(tmp_path))
    found = find_disassembler()
    assert found.path == tmp_path / "nvdisasm"
    assert str(packaged.stat().st_size) in found.version


def test_refused_code_is_an_error_with_its_place() -> None:
    at = SAMPLE.index(bytes.fromhex("4d790000000000000000800300ea0f00"))
    broken = SAMPLE[:at] + b"\xff" * 16 + SAMPLE[at + 16 :]
    with pytest.raises(CorruptBinaryError) as caught:
        read_cubin(broken, "broken.cubin")
    assert str(caught.value).startswith("broken.cubin: the disassembler does not accept the code at byte 0x")
    assert "nvdisasm" in str(caught.value)


def test_hanging_tool_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def hang(*_: object, **__: object) -> None:
        raise subprocess.TimeoutExpired("nvdisasm", 1)

    monkeypatch.setenv("SECTORWISE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(subprocess, "run", hang)
    with pytest.raises(CorruptBinaryError, match="did not end within"):
        disassemble(SAMPLE, "slow.cubin")


def test_second_time_comes_from_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SECTORWISE_CACHE_DIR", str(tmp_path))
    first = disassemble(SAMPLE, "generic.cubin")
    calls: list[object] = []

    def record(*arguments: object) -> str:
        calls.append(arguments)
        return ""

    monkeypatch.setattr(disassembly, "_run", record)
    assert disassemble(SAMPLE, "generic.cubin") == first
    assert calls == []
    assert disassemble(SAMPLE + b"\0", "generic.cubin") == ""
    assert len(calls) == 1


def test_the_listing_without_an_analysis_of_dataflow_is_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SECTORWISE_CACHE_DIR", str(tmp_path))
    seen: list[list[str]] = []
    run = subprocess.run

    def record(command: list[str], **options: Any) -> Any:  # noqa: ANN401 - passed on
        seen.append(command)
        return run(command, check=False, **{key: value for key, value in options.items() if key != "check"})

    monkeypatch.setattr(subprocess, "run", record)
    listing = disassemble(SAMPLE, "generic.cubin")
    ((tool, *options, _),) = seen
    assert "-ndf" in options
    image = tmp_path / "image.cubin"
    image.write_bytes(SAMPLE)
    plain = [tool, *(option for option in options if option != "-ndf"), str(image)]
    assert run(plain, capture_output=True, text=True, check=True).stdout == listing


def test_indirect_branches_are_analysed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SECTORWISE_CACHE_DIR", str(tmp_path))
    plain = "        /*0010*/                   BRX R4 -0x20 ;\n"
    asked: list[tuple[str, ...]] = []

    def list_code(_tool: object, _data: bytes, options: tuple[str, ...], *_: object) -> str:
        asked.append(options)
        return plain if "-ndf" in options else plain.replace(";", '(*"BRANCH_TARGETS .L_x_1"*) ;')

    monkeypatch.setattr(disassembly, "_run", list_code)
    assert "BRANCH_TARGETS" in disassemble(SAMPLE, "generic.cubin")
    assert ["-ndf" in options for options in asked] == [True, False]
