"""Turns the names of C++ standard headers, and of CUB's, into small headers that NVRTC can take.

What device code may use of the standard library comes from libcu++ (`cuda/std`), a part of CUDA's headers. The rest is
for the host, and an include of it should do no harm. `cub/cub.cuh` brings CUB's device-wide functions too, which are
host code: for NVRTC it is its collectives of warps and blocks.
"""

from __future__ import annotations

_FROM_LIBCUDACXX = ("array", "complex", "functional", "initializer_list", "limits", "tuple", "type_traits", "utility")
_FOR_THE_HOST = (
    *("atomic", "bitset", "charconv", "chrono", "condition_variable", "deque", "exception", "execution", "filesystem"),
    *("forward_list", "fstream", "future", "iomanip", "ios", "iosfwd", "iostream", "istream", "iterator", "list"),
    *("map", "memory", "mutex", "new", "numeric", "optional", "ostream", "queue", "random", "regex", "set", "sstream"),
    *("stack", "stdexcept", "streambuf", "string", "string_view", "system_error", "thread", "typeindex", "typeinfo"),
    *("unordered_map", "unordered_set", "variant", "vector", "cctype", "cerrno", "clocale", "csignal", "ctime"),
    *("ctype.h", "errno.h", "signal.h", "time.h", "unistd.h", "getopt.h", "omp.h", "sys/time.h", "sys/stat.h"),
    *("sys/resource.h", "strings.h", "memory.h", "malloc.h", "fcntl.h", "windows.h"),
)
_ALGORITHM = """\
#pragma once
namespace std {
template <class T> constexpr const T &min(const T &a, const T &b) { return b < a ? b : a; }
template <class T> constexpr const T &max(const T &a, const T &b) { return a < b ? b : a; }
template <class T> constexpr const T &clamp(const T &v, const T &a, const T &b) { return v < a ? a : b < v ? b : v; }
template <class T> constexpr void swap(T &a, T &b) { T kept = a; a = b; b = kept; }
}
"""
_CUB = (
    *("block/block_adjacent_difference", "block/block_discontinuity", "block/block_exchange", "block/block_histogram"),
    *("block/block_load", "block/block_radix_rank", "block/block_radix_sort", "block/block_reduce", "block/block_scan"),
    *("block/block_shuffle", "block/block_store", "warp/warp_exchange", "warp/warp_load", "warp/warp_merge_sort"),
    *("warp/warp_reduce", "warp/warp_scan", "warp/warp_store"),
)


def _wrap(name: str) -> tuple[str, str]:
    return name, f"#pragma once\n#include <cuda/std/{name}>\nnamespace std {{ using namespace cuda::std; }}\n"


CPP_HEADERS: tuple[tuple[str, str], ...] = (
    *(_wrap(name) for name in _FROM_LIBCUDACXX),
    *((name, "#pragma once\n") for name in _FOR_THE_HOST),
    ("algorithm", _ALGORITHM),
    ("cub/cub.cuh", "#pragma once\n" + "".join(f"#include <cub/{name}.cuh>\n" for name in _CUB)),
)
"""Name and text of each header, in the order in which the compiler is given them."""
