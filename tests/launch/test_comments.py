from __future__ import annotations

from pathlib import Path

import pytest

from sectorwise.errors import LaunchError
from sectorwise.launch.comments import find_launches
from sectorwise.launch.config import BufferArgument, Contents
from sectorwise.launch.formatting import format_launch

SOURCE = """\
// A kernel.
// sectorwise: launch copy<<<4, 256>>>(f32[1024], f32[1024])
//   sectorwise:launch  copy<<<(n + 255) / 256, 256>>>(
//       f32[n],   the continuation goes on until the brackets are closed
//       f32[n], n=4096)
// and this is a remark
extern "C" __global__ void copy(const float* a, float* b) {  // sectorwise: launch copy<<<1, 32>>>(f32[32], f32[32])
}
/* sectorwise: launch copy<<<2, 32>>>(f32[64], f32[64]) */
const char* text = "sectorwise: launch nothing";
const char* link = "https://sectorwise: launch nothing";
// sectorwise: launch copy
// <<<3, 32>>>(f32[96], f32[96]=@in.npy)
// sectorwise: ignore SW101
"""


def test_every_comment_is_a_launch_with_its_line() -> None:
    launches = find_launches(
        SOURCE.replace("   the continuation goes on until the brackets are closed", ""), "copy.cu", Path("src")
    )
    assert [format_launch(launch) for launch in launches] == [
        "copy<<<4, 256>>>(f32[1024], f32[1024])",
        "copy<<<16, 256>>>(f32[4096], f32[4096], n=4096)",
        "copy<<<1, 32>>>(f32[32], f32[32])",
        "copy<<<2, 32>>>(f32[64], f32[64])",
        f"copy<<<3, 32>>>(f32[96], f32[96]=@{Path('src/in.npy')})",
    ]
    assert [launch.span.origin for launch in launches if launch.span] == [
        f"copy.cu:{line}" for line in (2, 3, 7, 9, 12)
    ]


def test_module_variables_may_stand_on_a_line_of_their_own() -> None:
    source = "// sectorwise: launch k<<<1, 32>>>()\n//   with a=i32(1),\n//  b=i32(2)\n// with a remark\n"
    (launch,) = find_launches(source, "k.cu")
    assert [name for name, _ in launch.constants] == ["a", "b"]
    (alone,) = find_launches("// sectorwise: launch k<<<1, 32>>>()\n// with a remark\n", "k.cu")
    assert alone.constants == ()


def test_python_comments_are_read_too() -> None:
    (launch,) = find_launches("x = 1\n# sectorwise: launch k<<<1, 32>>>(f32[\n#   32])\n", "k.py")
    assert launch.arguments == (BufferArgument("f32", 32, Contents()),)


def test_errors_have_file_line_and_caret() -> None:
    with pytest.raises(LaunchError) as caught:
        find_launches("\n\n// sectorwise: launch k<<<1, x>>>()\n", "k.cu")
    assert str(caught.value) == ("k.cu:3: expected a number of threads, got 'x'\n  k<<<1, x>>>()\n         ^")


@pytest.mark.parametrize(
    ("comment", "said"),
    [
        ("// sectorwise: launch k<<<1, 32>>>\n//   (f32[8], n=5)\n", "k<<<1, 32>>>(f32[8], n=5)"),
        ("# sectorwise: launch k[(8,)](f32[8])\n# a remark (with brackets)\n", "k<<<8, 1>>>(f32[8])"),
        ("# sectorwise: launch k\n#   [(8,)](f32[8],\n#   n=5)\n", "k<<<8, 1>>>(f32[8], n=5)"),
        ("/* sectorwise: launch k<<<1, 32>>>(f32[8],\n                n=5) */\n", "k<<<1, 32>>>(f32[8], n=5)"),
        ("/* sectorwise: launch k<<<1, 32>>>(f32[8],\n * n=5)\n * Fast. */\n", "k<<<1, 32>>>(f32[8], n=5)"),
        ("/* sectorwise: launch k<<<1, 32>>>(f32[8]) */\n// , and a remark\n", "k<<<1, 32>>>(f32[8])"),
        ("// sectorwise: launch k<<<1, 32>>>(f32[8], \\\n// n=5)\n", "k<<<1, 32>>>(f32[8], n=5)"),
        ("// sectorwise: launch k<<<1, 32>>>(f32[8])\n\n// , after a gap\n", "k<<<1, 32>>>(f32[8])"),
    ],
)
def test_a_launch_goes_on_until_it_is_whole(comment: str, said: str) -> None:
    (launch,) = find_launches(comment, "k.cu")
    assert format_launch(launch) == said


@pytest.mark.parametrize("line", ["  , n=6)", ")", "k<<<1, 64>>>(f32[8])", "ns::k<4><<<1, 64>>>(f32[8])", "=arange"])
def test_what_would_be_cut_off_is_an_error(line: str) -> None:
    with pytest.raises(LaunchError, match=r"^k\.cu:3: this line is not read: the launch above it ends before"):
        find_launches(f"\n// sectorwise: launch k<<<1, 32>>>(f32[8], n=5)\n//{line}\n", "k.cu")


def test_a_python_launch_on_a_line_below_is_not_passed_over() -> None:
    with pytest.raises(LaunchError, match=r"^k\.py:2: this line is not read"):
        find_launches("# sectorwise: launch k[1](f32[8])\n#     k[2](f32[8])\n", "k.py")


@pytest.mark.parametrize("word", ["lanch", "Launch", "launches", "launch:", ""])
def test_a_misspelled_directive_is_not_passed_over(word: str) -> None:
    with pytest.raises(LaunchError, match=r"^k\.cu:1: "):
        find_launches(f"// sectorwise: {word} k<<<1, 1>>>()", "k.cu")


def test_sources_without_launches_have_none() -> None:
    assert find_launches("int main() { return 0; }\n", "a.cu") == ()
    assert find_launches("", "a.cu") == ()
