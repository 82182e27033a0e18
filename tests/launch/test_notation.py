from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sectorwise.errors import LaunchError
from sectorwise.launch.config import (
    BufferArgument,
    BytesArgument,
    Contents,
    LaunchConfig,
    PointerArgument,
    ScalarArgument,
    StructArgument,
)
from sectorwise.launch.formatting import format_launch
from sectorwise.launch.notation import parse_launch
from tests.launch.strategies import launches


def test_the_launches_of_the_design_are_read() -> None:
    transpose = parse_launch("transpose<<<(16, 16), (32, 8)>>>(f32[512*512], f32[512*512], n=512)")
    assert transpose == LaunchConfig(
        "transpose",
        (16, 16, 1),
        (32, 8, 1),
        0,
        (
            BufferArgument("f32", 262_144, Contents()),
            BufferArgument("f32", 262_144, Contents()),
            ScalarArgument(512, None, "n"),
        ),
    )
    gather = parse_launch("gather<<<64, 256, 4096>>>(f32[1<<20], i32[16384]=perm(7), f32[16384])")
    assert gather.dynamic_shared_bytes == 4096
    assert gather.arguments[1] == BufferArgument("i32", 16_384, Contents("perm", seed=7))


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1 << 20", 1_048_576),
        ("(1000 + 255) / 256", 4),
        ("2 + 3 * 4", 14),
        ("1 << 2 + 3", 32),  # as in C, a shift binds looser than a sum
        ("-7 / 2", -3),  # as in C, towards zero
        ("-7 // 2", -4),  # as in Python, down
        ("-7 % 3", -1),
        ("64 >> 2 >> 1", 8),
        ("100 - 10 - 1", 89),
        ("0x10 * 0b11", 48),
        ("4K", 4096),
        ("2M", 2 << 20),
        ("1G", 1 << 30),
        ("1'000'000", 1_000_000),
        ("1_000", 1_000),
        ("+ - 5", -5),
        ("true", 1),
        ("18446744073709551615", 2**64 - 1),
    ],
)
def test_numbers_are_computed_as_in_c(written: str, value: int) -> None:
    assert parse_launch(f"k<<<1, 1>>>({written})").arguments == (ScalarArgument(value),)


@pytest.mark.parametrize(
    ("written", "argument"),
    [
        ("0.5", ScalarArgument(0.5)),
        ("-1e-3", ScalarArgument(-1e-3)),
        (".25f", ScalarArgument(0.25, "f32")),
        ("-2.f", ScalarArgument(-2.0, "f32")),
        ("inf", ScalarArgument(float("inf"))),
        ("-inf", ScalarArgument(float("-inf"))),
        ("f16(1)", ScalarArgument(1.0, "f16")),
        ("i64(7)", ScalarArgument(7, "i64")),
        ("u8(255)", ScalarArgument(255, "u8")),
        ("nullptr", ScalarArgument(0, "u64")),
        ("a=bf16[8]=uniform(3)", BufferArgument("bf16", 8, Contents("uniform", seed=3), "a")),
        ("i32[8]=uniform(3, 256)", BufferArgument("i32", 8, Contents("uniform", seed=3, below=256))),
        ("uint8[8]=noise", BufferArgument("u8", 8, Contents("noise"))),
        ("f64[8]=arange", BufferArgument("f64", 8, Contents("arange"))),
        ("f64[8]=@in/a.npy", BufferArgument("f64", 8, Contents("file", path="in/a.npy"))),
        ('f64[8]=@"my, file.npy"', BufferArgument("f64", 8, Contents("file", path="my, file.npy"))),
        ("bytes(00 fF 1e)", BytesArgument(b"\x00\xff\x1e")),
        ("b=bytes(1e99)", BytesArgument(b"\x1e\x99", "b")),
        (
            "p={a=f32[1K], {n=5, 2.5}}",
            StructArgument(
                (
                    BufferArgument("f32", 1024, Contents(), "a"),
                    StructArgument((ScalarArgument(5, None, "n"), ScalarArgument(2.5))),
                ),
                "p",
            ),
        ),
        ("ptr(a)", PointerArgument("a", 0)),
        ("ptr(a, 4 * 16)", PointerArgument("a", 64)),
    ],
)
def test_every_form_of_argument_is_read(written: str, argument: object) -> None:
    assert parse_launch(f"k<<<1, 1>>>({written})").arguments == (argument,)


def test_sizes_may_name_scalars_wherever_they_stand() -> None:
    launch = parse_launch("copy<<<(n + 255) / 256, threads>>>(f32[n * m], n=m << 4, m=i32(64), threads=256, m)")
    assert launch.grid == (4, 1, 1)
    assert launch.block == (256, 1, 1)
    assert launch.arguments[0] == BufferArgument("f32", 65_536, Contents())
    assert launch.arguments[-1] == ScalarArgument(64)


def test_brackets_are_dimensions_only_with_a_comma_of_their_own() -> None:
    assert parse_launch("k<<<(64 + 31) / 32, dim3(8, 4, 2)>>>()").grid == (2, 1, 1)
    assert parse_launch("k<<<(64 + 31) / 32, dim3(8, 4, 2)>>>()").block == (8, 4, 2)
    assert parse_launch("k<<<(8 >> 1, 2), (3)>>>()").grid == (4, 2, 1)


@pytest.mark.parametrize("name", ["transpose<32>", "ns::reduce<float, 256>", "f", "k<(1 << 3)>", "pick<op<int> >"])
def test_kernels_have_the_names_that_cuda_authors_write(name: str) -> None:
    assert parse_launch(f" {name}<<<1, 1>>>() ;").kernel == name


def test_module_variables_follow_with() -> None:
    launch = parse_launch("k<<<1, 1>>>(a=f32[4]) with tab=i32[16]=arange, scale=f32(0.5), base={ptr(a, 8)}")
    assert launch.constants == (
        ("tab", BufferArgument("i32", 16, Contents("arange"), "tab")),
        ("scale", ScalarArgument(0.5, "f32", "scale")),
        ("base", StructArgument((PointerArgument("a", 8),), "base")),
    )


def test_files_are_relative_to_the_folder_of_the_launch() -> None:
    launch = parse_launch("k<<<1, 1>>>(f32[4]=@a.npy)", folder=Path("data"))
    assert launch.arguments == (BufferArgument("f32", 4, Contents("file", path=str(Path("data/a.npy")))),)


def test_spans_cover_what_was_written() -> None:
    text = "k<<<(2, 3), 64 * 2, 1K>>>( f32[4]=arange , n = 5 )"
    launch = parse_launch(text, "a.cu:3")
    spans = [launch.grid_span, launch.block_span, launch.shared_span, *(each.span for each in launch.arguments)]
    assert [text[span.start : span.end] for span in spans if span] == [
        "(2, 3)",
        "64 * 2",
        "1K",
        "f32[4]=arange",
        "n = 5",
    ]
    assert launch.span is not None
    assert launch.span.origin == "a.cu:3"


ERRORS = [
    (
        "transpose<<<(16, x), (32, 8)>>>(f32[512])",
        "expected a number of blocks, got 'x'",
        "                 ^",
    ),
    ("k<<<1, 1>>>(f32[4]", "expected ',' or ')', got the end", "                  ^"),
    ("k<<<1>>>()", "expected ',' and the block's dimensions, got '>>>'", "     ^^^"),
    ("k<<<1, (1, 2, 3, 4)>>>()", "expected at most three dimensions", "               ^"),
    ("k<<<1, 1>>>(float[4])", "got 'float'; write f32", "            ^^^^^"),
    ("k<<<1, 1>>>(f23[4])", "did you mean 'f32'?", "            ^^^"),
    ("k<<<1, 1>>>(f32[0])", "expected at least one element, got 0", "                ^"),
    ("k<<<1, 1>>>(i8(300))", "300 does not fit i8 (-128 to 127)", "               ^^^"),
    ("k<<<1, 1>>>(i32(0.5))", "expected a whole number for i32, got 0.5", "                ^^^"),
    ("k<<<1, 1>>>(f16(70000))", "70000 does not fit f16", "                ^^^^^"),
    ("k<<<1, 1>>>(u8[300]=perm(1))", "a permutation of 300 elements does not fit u8", "                    ^^^^"),
    ("k<<<1, 1>>>(f32[3]=unifrom(1))", "got 'unifrom'; did you mean 'uniform'?", "                   ^^^^^^^"),
    ("k<<<1, 1>>>(f32[3]=perm)", "expected '(' and a seed, as in perm(1), got ')'", "                       ^"),
    ("k<<<1, 1>>>(f32[3]=uniform(1, 9))", "a bound is for whole numbers", "                   ^^^^^^^"),
    ("k<<<1, 1>>>(bytes(0f0))", "pairs of hexadecimal digits, got '0f0'", "                  ^^^"),
    ("k<<<1, 1>>>(n=012)", "a leading zero", "              ^^^"),
    ("k<<<1, 1>>>(n=5, n=6)", "the name 'n' is given twice", "                 ^"),
    ("k<<<1, 1>>>(f32[n], n=m, m=n)", "'n' is defined by itself", "                           ^"),
    ("k<<<1, 1>>>(f32[n], n=0.5)", "got 'n', which is 0.5", "                ^"),
    ("k<<<1, 1>>>(8 / 0)", "division by zero", "                ^"),
    ("k<<<1, 1>>>(1 << 64)", "expected a shift of 0 to 63, got 64", "                 ^^"),
    ("k<<<1, 1>>>(1 << 63 << 1)", "more than 64 bits", "                    ^^"),
    ("k<<<1, 1, 0, 5>>>()", "expected stream 0", "             ^"),
    ("k<<<1, 1>>>() wiht a=3", "expected the end or 'with', got 'wiht'", "              ^^^^"),
    ("k<<<1, 1>>>() with 3", "expected the name of a module variable and '='", "                   ^"),
    ("k<1, 1>()", "expected '<<<' after the kernel's name", "         ^"),
    ("3k<<<1, 1>>>()", "expected a kernel's name, got '3k'", "^^"),
    ("<<<1, 1>>>()", "expected a kernel's name", "^"),
]


@pytest.mark.parametrize(("text", "message", "caret"), ERRORS)
def test_errors_say_what_was_expected_with_a_caret_under_the_place(text: str, message: str, caret: str) -> None:
    with pytest.raises(LaunchError) as caught:
        parse_launch(text, "--launch")
    first, shown, carets = str(caught.value).split("\n")
    assert first.startswith("--launch: ")
    assert message in first
    assert shown == f"  {text}"
    assert carets == f"  {caret}"


def test_long_launches_are_shown_around_the_place() -> None:
    text = f"k<<<1, 1>>>({', '.join(['f32[16]'] * 40)}, oops, {', '.join(['f32[16]'] * 40)})"
    with pytest.raises(LaunchError) as caught:
        parse_launch(text)
    _, shown, carets = str(caught.value).split("\n")
    assert len(shown) < 120
    assert shown[carets.index("^") :].startswith("oops")
    assert carets.strip() == "^^^^"


@settings(max_examples=300, deadline=None)
@given(launches)
def test_what_is_written_out_is_read_back_equal(launch: LaunchConfig) -> None:
    text = format_launch(launch)
    assert parse_launch(text) == launch
    assert format_launch(parse_launch(text)) == text


SYMBOLS = "k <<< >>> << >> ( ) [ ] { } , = ; + - * / // % @"
WORDS = "f32 i8 bytes tensor_map( box= ptr with perm n nullptr true inf dim3 0 1 7 0x 1e5 4K 09 .5f k<<<1,1>>>( f32[ n="
STRANGE = ('"', "\n", "\t", "\x1b[31m", "\u4e2d", "\u0301", "\0", "9" * 30)
FRAGMENTS = st.sampled_from((*SYMBOLS.split(), *WORDS.split(), *STRANGE))


@settings(max_examples=800, deadline=None)
@given(
    st.one_of(st.text(), st.lists(FRAGMENTS, max_size=25).map("".join), st.lists(FRAGMENTS, max_size=25).map(" ".join))
)
@example("k<<<" + "(" * 5000)
@example("k<<<1,1>>>(" + "{" * 5000)
@example("k<<<1,1>>>(" + "-" * 5000 + "1)")
@example("k<<<1,1>>>(" + ",".join(f"a{n}=a{n + 1}+a{n + 1}" for n in range(200)) + ",a200=1)")
@example("k<<<1,1>>>(a=" + "1*" * 5000 + "1)")
def test_any_text_is_a_launch_or_an_error_for_people(text: str) -> None:
    try:
        launch = parse_launch(text)
    except LaunchError as error:
        message = str(error)
        assert message.startswith("launch: ")
        assert all(character.isprintable() or character == "\n" for character in message)
    else:
        assert format_launch(parse_launch(format_launch(launch))) == format_launch(launch)
