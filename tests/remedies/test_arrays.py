"""Shared arrays of a source text: found with their scopes, their extents and indices rewritten, all else as it was."""

from __future__ import annotations

import pytest

from sectorwise.remedies.arrays import add_to, find_shared_arrays, resolve_constant, rewrite_extents, rewrite_indices

SOURCE = """\
#define M 8
constexpr int kTile = 32;
__device__ void other() { __shared__ int tile[4]; tile[0] = 1; }
template <int N> __global__ void k(float* out) {
    __shared__ __align__(16) float tile[kTile][kTile], more[N * 2][M];  // __shared__ int none[3][3];
    extern __shared__ float dynamic[];
    __shared__ unsigned int flat[kTile * kTile];
    tile[threadIdx.y][out[more[1][0]]] = flat[tile[0][1] + 1];
    /* tile[9][9] */ p->tile[1][2] = s.tile[3][4] + mytile[5][6];
}
"""


def test_declarations_are_found() -> None:
    found = [(array.name, array.type, array.extents) for array in find_shared_arrays(SOURCE)]
    assert found == [
        ("tile", "int", ("4",)),
        ("tile", "float", ("kTile", "kTile")),
        ("more", "float", ("N * 2", "M")),
        ("dynamic", "float", ("",)),
        ("flat", "unsigned int", ("kTile * kTile",)),
    ]


def test_sizes_of_dynamic_arrays_come_with_the_launch() -> None:
    assert [array.name for array in find_shared_arrays(SOURCE) if array.dynamic] == ["dynamic"]


def test_only_the_uses_in_scope_are_rewritten() -> None:
    tile = find_shared_arrays(SOURCE)[1]
    changed = rewrite_indices(
        SOURCE, tile, lambda groups: (groups[0], f"{groups[1]} ^ 1") if len(groups) == 2 else None
    )
    assert changed is not None
    lines = changed.splitlines()
    assert lines[7] == "    tile[threadIdx.y][out[more[1][0]] ^ 1] = flat[tile[0][1 ^ 1] + 1];"
    assert lines[:7] + lines[8:] == SOURCE.splitlines()[:7] + SOURCE.splitlines()[8:]


def test_a_use_that_cannot_be_changed_stops_all() -> None:
    tile = find_shared_arrays(SOURCE)[1]
    assert rewrite_indices(SOURCE.replace("tile[0][1]", "tile[0]"), tile, lambda groups: groups[:2] * 0 or None) is None


def test_extents_are_rewritten_in_place() -> None:
    more = find_shared_arrays(SOURCE)[2]
    changed = rewrite_extents(SOURCE, more, (more.extents[0], add_to(more.extents[1], 1)))
    assert changed == SOURCE.replace("more[N * 2][M]", "more[N * 2][M + 1]")


@pytest.mark.parametrize(
    ("expression", "number"), [("kTile", 32), (" M ", 8), ("64", 64), ("N", None), ("N * 2", None), ("kTile + 1", None)]
)
def test_constants_are_resolved(expression: str, number: int | None) -> None:
    assert resolve_constant(SOURCE, expression) == number


def test_numbers_are_added_as_people_would() -> None:
    assert (add_to("32", 1), add_to("kTile", 4)) == ("33", "kTile + 4")
