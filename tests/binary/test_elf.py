"""Turns real, cut and damaged cubins into tables or into errors that name a byte, never into anything else."""

from __future__ import annotations

import io
import re
import struct
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection
from hypothesis import given, settings
from hypothesis import strategies as st

from sectorwise.binary import cubin
from sectorwise.binary.cubin import read_cubin
from sectorwise.binary.disassembly import disassemble
from sectorwise.binary.elf import read_elf
from sectorwise.errors import CorruptBinaryError, SectorwiseError

MEASURED = Path(__file__).parents[1] / "measured" / "h200"
CUBINS = sorted(MEASURED.glob("*.sm_90.cubin"))
SAMPLE = (MEASURED / "generic.sm_90.cubin").read_bytes()
SECTION_TABLE = struct.unpack_from("<Q", SAMPLE, 40)[0]
CODE = next(section for section in read_elf(SAMPLE, "sample").sections if section.name.startswith(".text."))


@pytest.mark.parametrize("path", CUBINS, ids=lambda path: path.name)
def test_tables_equal_pyelftools(path: Path) -> None:
    data = path.read_bytes()
    image = read_elf(data, path.name)
    other = ELFFile(io.BytesIO(data))
    assert [(s.name, s.size_bytes, s.info, s.link) for s in image.sections] == [
        (s.name, s["sh_size"], s["sh_info"], s["sh_link"]) for s in other.iter_sections()
    ]
    for section in image.sections:
        assert image.content(section) == (b"" if section.kind == 8 else other.get_section(section.index).data())
    symbols = other.get_section_by_name(".symtab")
    assert isinstance(symbols, SymbolTableSection)
    assert [(s.name, s.value, s.size_bytes) for s in image.symbols] == [
        (s.name, s["st_value"], s["st_size"]) for s in symbols.iter_symbols()
    ]
    relocations = [
        (section["sh_info"], r["r_offset"], r["r_info_type"], r["r_info_sym"], r["r_addend"])
        for section in other.iter_sections()
        if isinstance(section, RelocationSection)
        for r in section.iter_relocations()
    ]
    assert [(r.section, r.offset, r.kind, r.symbol, r.addend) for r in image.relocations] == relocations


@pytest.mark.parametrize(
    ("damage", "byte", "says"),
    [
        (lambda data: data[:0], "0x0", "64 bytes and the file ends here"),
        (lambda data: data[:63], "0x3f", "64 bytes and the file ends here"),
        (lambda data: b"MZ" + data[2:], "0x0", "a cubin starts with"),
        (lambda data: data[:4] + b"\x01" + data[5:], "0x4", "64-bit little-endian"),
        (lambda data: data[:18] + b"\x3e\x00" + data[20:], "0x12", "ELF machine 62 is not CUDA's (190)"),
        (lambda data: data[:60] + b"\x00\x00" + data[62:], "0x3c", "counts no sections"),
        (lambda data: data[:60] + b"\xff\xff" + data[62:], f"{len(SAMPLE):#x}", "goes past the end"),
        (lambda data: data[:58] + b"\x3f\x00" + data[60:], "0x3a", "a section header has 64 bytes, this file says 63"),
        (lambda data: data[:62] + b"\xff\x00" + data[64:], "0x3e", "section 255 should hold the names"),
        (lambda data: data[: len(data) // 2], f"{len(SAMPLE) // 2:#x}", "goes past the end of the file"),
        (lambda data: data[:48] + b"\x00\x00" + data[50:], "0x30", "name no target"),
    ],
)
def test_damage_is_named_with_its_byte(damage: object, byte: str, says: str) -> None:
    assert callable(damage)
    with pytest.raises(CorruptBinaryError) as caught:
        read_cubin(damage(SAMPLE), "broken.cubin")
    assert str(caught.value).startswith(f"broken.cubin: not a readable cubin at byte {byte}: ")
    assert says in str(caught.value)


def test_section_that_claims_more_than_the_file_has() -> None:
    at = SECTION_TABLE + 64 * CODE.index + 32
    says = rf"section {CODE.index} claims 0x7fffffff bytes at {CODE.file_offset:#x}, past the end"
    with pytest.raises(CorruptBinaryError, match=says):
        read_cubin(SAMPLE[:at] + struct.pack("<Q", 0x7FFFFFFF) + SAMPLE[at + 8 :], "broken.cubin")


@settings(max_examples=120)
@given(cut=st.integers(0, len(SAMPLE) - 1))
def test_no_truncation_is_readable(cut: int) -> None:
    with pytest.raises(CorruptBinaryError, match=r"at byte 0x[0-9a-f]+: "):
        read_cubin(SAMPLE[:cut], "cut.cubin")


def _read_or_say_why(data: bytes, origin: str) -> str | None:
    """Read a cubin; where it is refused with an error of ours, return the text. Anything else fails the test."""
    try:
        read_cubin(data, origin)
    except SectorwiseError as error:
        return str(error)
    return None


REFUSAL = re.compile(
    r"changed\.cubin: not a readable cubin at byte 0x[0-9a-f]+: "
    r"|changed\.cubin is compiled for sm_\d+: code for sm_75 and"
)
positions = st.one_of(st.integers(0, len(SAMPLE) - 1), st.integers(SECTION_TABLE, len(SAMPLE) - 1), st.integers(0, 63))


@settings(max_examples=400)
@given(changes=st.lists(st.tuples(positions, st.integers(0, 255)), min_size=1, max_size=8))
def test_changed_bytes_give_kernels_or_an_error_of_ours(changes: list[tuple[int, int]]) -> None:
    listing = disassemble(SAMPLE, "sample")
    data = bytearray(SAMPLE)
    for at, value in changes:
        data[at] = value
    with pytest.MonkeyPatch.context() as patched:
        # The disassembler costs a third of a second: here it says what it said of the whole file.
        patched.setattr(cubin, "disassemble", lambda *_: listing)
        said = _read_or_say_why(bytes(data), "changed.cubin")
        assert said is None or REFUSAL.match(said)


@settings(max_examples=8)
@given(
    start=st.integers(CODE.file_offset, CODE.file_offset + CODE.size_bytes - 64),
    noise=st.binary(min_size=16, max_size=64),
)
def test_noise_in_the_code_gives_kernels_or_an_error_of_ours(start: int, noise: bytes) -> None:
    said = _read_or_say_why(SAMPLE[:start] + noise + SAMPLE[start + len(noise) :], "noise.cubin")
    assert said is None or re.match(r"noise\.cubin: .* at byte 0x[0-9a-f]+: ", said)


@settings(max_examples=200)
@given(data=st.binary(max_size=300))
def test_random_bytes_are_no_cubin(data: bytes) -> None:
    with pytest.raises(CorruptBinaryError):
        read_elf(b"\x7fELF\x02\x01" + data, "random")
