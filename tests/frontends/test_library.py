"""Turns libraries, wheels and fat binaries into lists of kernels, and one of their kernels into counts."""

from __future__ import annotations

import importlib
import json
import random
import struct
import sys
import time
import zipfile
from pathlib import Path

import pytest

from sectorwise.analyze import analyze
from sectorwise.binary.cubin import read_cubin
from sectorwise.binary.elf import read_elf, read_kernel_names
from sectorwise.binary.fatbin import Compression, read_images, unpack_image
from sectorwise.binary.lz4 import unpack_lz4, unpack_lz4_slowly
from sectorwise.cli.main import main
from sectorwise.errors import ArgumentError, CorruptBinaryError, LaunchError, MissingToolError, UnknownKernelError
from sectorwise.frontends.base import CompileRequest
from sectorwise.frontends.library import LIBRARY, list_kernels

SAMPLES = Path(__file__).parent / "samples"
MEASURED = sorted((Path(__file__).parents[1] / "measured" / "h200").glob("*.sm_90.cubin"))
LAUNCH = "gather<8><<<2, 64>>>(f32[1024], f32[128], 128)"


def _make_fatbin(images: list[tuple[int, bytes]]) -> bytes:
    """A container of cubins that are not packed, each for an architecture."""
    entries = []
    for arch, cubin in images:
        padded = cubin + bytes(-len(cubin) % 8)
        header = struct.pack("<HHIQIIHHIIIQQQ", 2, 0x101, 64, len(padded), 0, 0, 8, 1, arch, 0, 0, 0x11, 0, 0)
        entries += [header, padded]
    content = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(content)) + content


@pytest.mark.parametrize("mode", ["size", "speed"])
def test_kernels_are_listed_without_unpacking_a_file(mode: str) -> None:
    kernels = list_kernels(SAMPLES / f"pair.{mode}.fatbin")
    assert {kernel.name: kernel.parameter_types for kernel in kernels} == {
        "gather<1>": ("const float*", "float*", "int"),
        "gather<8>": ("const float*", "float*", "int"),
        "fill": None,
    }
    assert {kernel.targets for kernel in kernels} == {("sm_80", "sm_90", "compute_90")}


@pytest.mark.parametrize("mode", ["size", "speed"])
def test_every_compression_unpacks_to_the_same(mode: str) -> None:
    images = read_images((SAMPLES / f"pair.{mode}.fatbin").read_bytes(), "pair")
    packed = {"size": [Compression.ZSTD] * 3, "speed": [Compression.NONE, Compression.NONE, Compression.LZ4]}
    assert [image.compression for image in images] == packed[mode]
    contents = [unpack_image(image) for image in images]
    assert contents[2].rstrip(b"\0").endswith(b"}\n\n")
    others = read_images((SAMPLES / "pair.size.fatbin").read_bytes(), "pair")
    assert [len(content) for content in contents] == [image.size_bytes for image in others]
    assert contents[:2] == [unpack_image(image) for image in others[:2]]


@pytest.mark.parametrize(("device", "target"), [("h200", "sm_90"), ("a100-80-sxm", "sm_80"), ("b200", "sm_100")])
def test_one_kernel_is_taken_out_and_counted(device: str, target: str) -> None:
    analysis = analyze(SAMPLES / "pair.size.fatbin", LAUNCH, device=device)
    load, store = analysis.kernels[0].sites
    # Lanes step 32 bytes: a sector each; the stores of a warp are four sectors.
    assert (load.sectors, load.sectors_ideal, store.sectors) == (128, 16, 16)
    # For a B200 there is PTX alone, which is assembled.
    assert analysis.device.target == target
    assert analysis.tool.compiler == (None if device != "b200" else "nvJitLink 13.0")


def test_kernels_of_one_launch_list_may_be_in_different_images(tmp_path: Path) -> None:
    path = tmp_path / "libboth.so.1"
    path.write_bytes(
        b"\x7fELF"
        + bytes(100)
        + _make_fatbin([(90, MEASURED[0].read_bytes())])
        + bytes(16)
        + (SAMPLES / "pair.size.fatbin").read_bytes()
    )
    transpose = next(kernel for kernel in list_kernels(path) if kernel.symbol != "fill")
    assert transpose.targets == ("sm_90",)
    analysis = analyze(path, [LAUNCH, "fill<<<1, 32>>>(f32[32], 1.0)"], device="h200")
    assert [kernel.name for kernel in analysis.kernels] == ["gather<8>", "fill"]


def test_a_kernel_alone_is_what_it_is_among_others() -> None:
    data = next(path for path in MEASURED if path.name.startswith("transpose.")).read_bytes()
    names = read_kernel_names(data, "transpose")
    assert names == tuple(symbol.name for symbol in read_elf(data, "transpose").symbols if symbol.is_kernel)
    (alone,) = read_cubin(data, "transpose", (names[2],)).kernels
    among = next(kernel for kernel in read_cubin(data, "transpose").kernels if kernel.name == names[2])
    assert [(each.offset, each.opcode, each.encoding, each.location) for each in alone.instructions] == [
        (each.offset, each.opcode, each.encoding, each.location) for each in among.instructions
    ]
    assert (alone.parameters, alone.resources, alone.constants) == (among.parameters, among.resources, among.constants)


def test_wheels_are_looked_into(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pair-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("pair/__init__.py", "x = 1\n" * 500)
        wheel.writestr("pair/_C.abi3.so", b"\x7fELF" + (SAMPLES / "pair.size.fatbin").read_bytes())
    main(["check", str(path)])
    said = capsys.readouterr().out
    assert "3 kernels\n\npair/_C.abi3.so: sm_80 sm_90 compute_90\n" in said
    assert "\n  gather<8>(const float*, float*, int)\n" in said
    main(["check", str(path), "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    assert [kernel["name"] for kernel in document["kernels"]] == [kernel.name for kernel in list_kernels(path)]
    assert analyze(path, LAUNCH).kernels[0].sites[0].sectors == 128


def test_a_kernel_without_a_launch_says_what_to_pass() -> None:
    with pytest.raises(LaunchError, match=r"gather<8><<<grid, block>>>\(f32\[count\], f32\[count\], i32\(value\)\)"):
        analyze(SAMPLES / "pair.size.fatbin", kernel="gather<8>")


def test_fifty_megabytes_are_listed_in_three_seconds(tmp_path: Path) -> None:
    path = tmp_path / "large.so"
    cubins = [each.read_bytes() for each in MEASURED]
    images = [(arch, cubin) for arch in range(75, 105) for cubin in cubins]
    path.write_bytes(_make_fatbin(images))
    assert path.stat().st_size > 50_000_000
    begin = time.process_time()
    kernels = list_kernels(path)
    assert time.process_time() - begin < 3
    assert sum(len(kernel.targets) for kernel in kernels) > 2_000
    assert len(kernels) == len({name for cubin in cubins for name in read_kernel_names(cubin, "one")})


@pytest.mark.parametrize(
    ("launch", "device", "said"),
    [
        ("gather<9><<<1, 1>>>()", "h200", "there is no kernel 'gather<9>'; the nearest: gather<"),
        ("gather<<<1, 1>>>()", "h200", "'gather' may be any of _Z6gather"),
        (LAUNCH, "t4", "'gather<8>' is there for sm_80, sm_90, compute_90, which sm_75 does not run"),
    ],
)
def test_kernels_that_are_not_there(launch: str, device: str, said: str) -> None:
    with pytest.raises(UnknownKernelError, match=said):
        analyze(SAMPLES / "pair.size.fatbin", launch, device=device)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="there is no file"):
        list_kernels(tmp_path / "none.so")
    (tmp_path / "no.whl").write_text("no archive")
    with pytest.raises(ArgumentError, match="is no wheel"):
        list_kernels(tmp_path / "no.whl")
    (tmp_path / "no.so").write_bytes(b"\x7fELF" + bytes(1000))
    assert list_kernels(tmp_path / "no.so") == ()
    with pytest.raises(UnknownKernelError, match="it has no kernels for NVIDIA GPUs"):
        analyze(tmp_path / "no.so", LAUNCH)
    with pytest.raises(ArgumentError, match="compiled already"):
        LIBRARY.compile(SAMPLES / "pair.size.fatbin", CompileRequest("sm_90", macros=("N=1",), kernels=("fill",)))


def test_damaged_files_end_in_errors(tmp_path: Path) -> None:
    sound = (SAMPLES / "pair.size.fatbin").read_bytes()
    path = tmp_path / "damaged.fatbin"
    generator = random.Random(5)  # noqa: S311 - damage, no secrets
    outcomes = set()
    for _ in range(300):
        damaged = bytearray(sound[: generator.randrange(20, len(sound))] if generator.random() < 0.3 else sound)
        for _ in range(generator.randrange(1, 6)):
            damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        path.write_bytes(damaged)
        outcomes.add(_list_or_refuse(path))
    assert {-1, 3} <= outcomes
    assert -2 not in outcomes


def _list_or_refuse(path: Path) -> int:
    try:
        return len(list_kernels(path))
    except (ArgumentError, CorruptBinaryError) as error:
        return -1 if path.name in str(error) else -2


def test_lz4_in_python_alone() -> None:
    block = importlib.import_module("lz4.block")
    generator = random.Random(3)  # noqa: S311 - contents, no secrets
    for size in (0, 1, 12, 13, 100, 4096, 70_000):
        for letters in (1, 3, 256):
            content = bytes(generator.randrange(letters) for _ in range(size))
            packed = memoryview(block.compress(content, store_size=False))
            assert unpack_lz4_slowly(packed, size) == content
            assert unpack_lz4(packed, size) == content
    assert unpack_lz4_slowly(memoryview(b"\xff\xff"), 100) is None
    assert unpack_lz4_slowly(memoryview(b"\x10a\x05\x00\x00"), 100) is None


def test_what_unpacks_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("zstandard", "compression", "compression.zstd", "lz4", "lz4.block"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingToolError, match=r"pip install 'sectorwise\[libraries\]'"):
        list_kernels(SAMPLES / "pair.size.fatbin")
    assert len(list_kernels(SAMPLES / "pair.speed.fatbin")) == 3
