"""Turns the names of standard C headers into small headers of our own, as NVRTC brings none of them.

NVRTC knows `size_t`, `printf`, `assert`, `malloc` and the mathematical functions without a header, but stops at
`#include <stdio.h>`, which most CUDA files have. These headers make such an include harmless and add the few types,
limits and `std::` names that people expect from it. They are not a C library.
"""

from __future__ import annotations

_INTEGERS = """\
#pragma once
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef signed char int_least8_t;
typedef short int_least16_t;
typedef int int_least32_t;
typedef long long int_least64_t;
typedef unsigned char uint_least8_t;
typedef unsigned short uint_least16_t;
typedef unsigned int uint_least32_t;
typedef unsigned long long uint_least64_t;
typedef long long intptr_t;
typedef unsigned long long uintptr_t;
typedef long long intmax_t;
typedef unsigned long long uintmax_t;
#ifndef INT32_MAX
#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define UINT32_MAX 4294967295u
#define INT64_MIN (-9223372036854775807ll - 1)
#define INT64_MAX 9223372036854775807ll
#define UINT64_MAX 18446744073709551615ull
#endif
"""

_INTEGERS_IN_STD = """\
#pragma once
#include <stdint.h>
namespace std {
using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t;
using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t;
using ::intptr_t; using ::uintptr_t;
}
"""

_STDDEF = """\
#pragma once
#ifndef NULL
#define NULL 0
#endif
"""

_LIMITS = """\
#pragma once
#ifndef INT_MAX
#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define SHRT_MIN (-32768)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MIN (-2147483647 - 1)
#define INT_MAX 2147483647
#define UINT_MAX 4294967295u
#define LONG_MAX 9223372036854775807l
#define LONG_MIN (-9223372036854775807l - 1)
#define ULONG_MAX 18446744073709551615ul
#define LLONG_MAX 9223372036854775807ll
#define LLONG_MIN (-9223372036854775807ll - 1)
#define ULLONG_MAX 18446744073709551615ull
#endif
"""

_FLOAT = """\
#pragma once
#ifndef FLT_MAX
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define FLT_DIG 6
#define FLT_MANT_DIG 24
#define DBL_MAX 1.7976931348623158e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
#define DBL_DIG 15
#define DBL_MANT_DIG 53
#endif
"""

_MATH = """\
#pragma once
#ifndef M_PI
#define M_E 2.71828182845904523536
#define M_LOG2E 1.44269504088896340736
#define M_LN2 0.69314718055994530942
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#endif
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif
"""

_MATH_IN_STD = """\
#pragma once
#include <math.h>
namespace std {
using ::acos; using ::asin; using ::atan; using ::atan2; using ::cbrt; using ::ceil; using ::cos; using ::cosh;
using ::erf; using ::exp; using ::exp2; using ::fabs; using ::floor; using ::fma; using ::fmax; using ::fmin;
using ::fmod; using ::hypot; using ::log; using ::log10; using ::log1p; using ::log2; using ::lround; using ::pow;
using ::rint; using ::round; using ::rsqrt; using ::sin; using ::sinh; using ::sqrt; using ::tan; using ::tanh;
using ::trunc; using ::abs; using ::isnan; using ::isinf;
}
"""

_SYSTEM_TYPES = """\
#pragma once
typedef unsigned char u_char;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef long ssize_t;
"""

_EMPTY = "#pragma once\n"

STANDARD_HEADERS: tuple[tuple[str, str], ...] = (
    ("stdint.h", _INTEGERS),
    ("inttypes.h", "#pragma once\n#include <stdint.h>\n"),
    ("cstdint", _INTEGERS_IN_STD),
    ("stddef.h", _STDDEF),
    ("cstddef", "#pragma once\n#include <stddef.h>\nnamespace std { using ::size_t; }\n"),
    ("limits.h", _LIMITS),
    ("climits", "#pragma once\n#include <limits.h>\n"),
    ("float.h", _FLOAT),
    ("cfloat", "#pragma once\n#include <float.h>\n"),
    ("math.h", _MATH),
    ("cmath", _MATH_IN_STD),
    ("stdio.h", _EMPTY),
    ("cstdio", _EMPTY),
    ("stdlib.h", _EMPTY),
    ("cstdlib", _EMPTY),
    ("string.h", _EMPTY),
    ("cstring", _EMPTY),
    ("assert.h", _EMPTY),
    ("cassert", _EMPTY),
    ("stdbool.h", _EMPTY),
    ("sys/types.h", _SYSTEM_TYPES),
)
"""Name and text of each header, in the order in which the compiler is given them."""
