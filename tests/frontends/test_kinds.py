"""Turns files whose names say one thing and whose contents another into errors that say what they are."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from sectorwise.analyze import analyze
from sectorwise.binary.kinds import FileKind, describe_kind, identify
from sectorwise.cli.main import main
from sectorwise.errors import LaunchError

MEASURED = Path(__file__).parents[1] / "measured" / "h200"
CUBIN = (MEASURED / "transpose.sm_90.cubin").read_bytes()
FATBIN = (Path(__file__).parent / "samples" / "pair.size.fatbin").read_bytes()
HOST = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HH", 3, 62) + bytes(64)
PTX = b"// made by hand\n  .version 8.0\n.target sm_90\n.address_size 64\n.func f() { ret; }\n"


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (CUBIN, FileKind.CUBIN),
        (HOST, FileKind.HOST),
        (FATBIN, FileKind.FATBIN),
        (b"!<arch>\nfile", FileKind.ARCHIVE),
        (b"MZ\x90\x00", FileKind.WINDOWS),
        (b"PK\x03\x04\x14", FileKind.ZIP),
        (PTX, FileKind.PTX),
        (b"import triton\n", FileKind.TEXT),
        ("größer".encode()[:3], FileKind.TEXT),
        (b"", FileKind.EMPTY),
        (b"\x00\x01\x02", FileKind.OTHER),
        (b"\xff\xfe\x41", FileKind.OTHER),
    ],
)
def test_contents_tell_the_kind(content: bytes, kind: FileKind) -> None:
    assert identify(content) is kind
    assert describe_kind(content).startswith(kind.value)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.so", b"hello world\n", "is no library, archive or fat binary: it is text that begins with 'hello world'"),
        ("a.so", CUBIN, "it is a cubin, which is read if its name ends in .cubin"),
        ("a.so", b"", "is empty"),
        ("a.fatbin", PTX, "it is PTX, which is read if its name ends in .ptx"),
        ("a.whl", b"hello", "is no wheel, which is a zip archive: it is text that begins with 'hello'"),
        ("a.whl", HOST, "it is an ELF file for the host, which is read if its name ends in .so"),
        ("a.ptx", b"\n\n  hello there, this is no PTX", "is no PTX, which says its .version: it is text that begins"),
        ("a.ptx", CUBIN, "it is a cubin, which is read if its name ends in .cubin"),
        ("a.ptx", PTX, "no kernel is seen in it, and no launch is known"),
        ("a.cubin", FATBIN, "is no cubin: it is a fat binary, which is read if its name ends in .fatbin"),
        ("a.cubin", b"\x00\x01\x02\x03", "not a readable cubin at byte 0x4"),
        ("a.cu", b"int x;\n", "no kernel is seen in it, and no launch is known"),
        ("a.py", b"x = 1\n", "no function with @triton.jit or @cuda.jit is seen in it, and no launch is known"),
    ],
)
def test_a_file_that_is_not_what_its_name_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SystemExit) as stop:
        main(["check", str(tmp_path / name)])
    shown = capsys.readouterr()
    assert (stop.value.code, shown.out) == (2, "")
    assert said in shown.err


def test_a_library_without_kernels_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "host.so").write_bytes(HOST)
    main(["check", str(tmp_path / "host.so")])
    assert capsys.readouterr().out.endswith("host.so: 0 kernels; there is no code for NVIDIA GPUs in it\n")


def test_a_cubin_without_a_launch_lists_its_kernels(tmp_path: Path) -> None:
    path = tmp_path / "transpose.cubin"
    path.write_bytes(CUBIN)
    with pytest.raises(LaunchError, match=r"no launch is known.*:\n  k_tr_xor<<<grid, block>>>\(\.\.\.\)\n"):
        analyze(path)


def test_of_many_kernels_twenty_are_listed() -> None:
    with pytest.raises(LaunchError) as caught:
        analyze(MEASURED / "async_copy.sm_90.cubin")
    lines = str(caught.value).splitlines()
    assert (len(lines), lines[-1]) == (22, "  and 38 kernels more")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("prog.cu", b"int main() {}\n", "prog.cu is no Python script: `sectorwise check "),
        ("libk.so.2", HOST, "libk.so.2 is no Python script: `sectorwise check "),
        ("book.ipynb", b"{}", "book.ipynb is a notebook: put `with sw.capture() as captured:` around its launches"),
        ("prog", HOST, "prog is no Python script: it is an ELF file for the host"),
        ("prog.json", CUBIN, "prog.json is no Python script: it is a cubin"),
    ],
)
def test_what_is_no_script_is_not_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SystemExit) as stop:
        main(["run", str(tmp_path / name)])
    shown = capsys.readouterr()
    assert (stop.value.code, shown.out) == (2, "")
    assert said in shown.err
    assert "Traceback" not in shown.err
