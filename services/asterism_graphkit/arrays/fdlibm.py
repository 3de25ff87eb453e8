"""Compute log, log1p, exp and pow with the same bits on every machine.

Weights are computed with these functions, so their results must not depend on a C library.

The algorithms and constants are those of fdlibm (Sun Microsystems 1993, 2004: ``e_log.c``,
``e_exp.c``, ``e_pow.c``). They use additions, multiplications and divisions only, which IEEE 754
rounds in exactly one way. NumPy and libc choose among implementations by the features of the
processor, and those differ in the last bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import IntLike, inlined, kernel

F64 = NDArray[np.float64]

_EXPONENT, _MANTISSA, _HALF = (
    np.int64(52),
    np.int64(0x000FFFFFFFFFFFFF),
    np.int64(0x3FE0000000000000),
)
_SQRT_HALF = 0.7071067811865476
_LN2_HIGH, _LN2_LOW, _LOG2_E = (
    6.93147180369123816490e-01,
    1.90821492927058770002e-10,
    1.44269504088896338700e00,
)
_L1, _L2, _L3, _L4 = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
)
_L5, _L6, _L7 = 1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860510658591e-01

_P1, _P2, _P3 = 1.66666666666666019037e-01, -2.77777777770155933842e-03, 6.61375632143793436117e-05
_P4, _P5 = -1.65339022054652515390e-06, 4.13813679705723846039e-08
_EXP_MOST, _EXP_LEAST = 7.09782712893383973096e02, -7.45133219101941108420e02

_Q1, _Q2, _Q3 = 5.99999999999994648725e-01, 4.28571428578550184252e-01, 3.33333329818377432918e-01
_Q4, _Q5, _Q6 = 2.72728123808534006489e-01, 2.30660745775561754067e-01, 2.06975017800338417784e-01
_CP, _CP_HIGH, _CP_LOW = (
    9.61796693925975554329e-01,
    9.61796700954437255859e-01,
    -7.02846165095275826516e-09,
)
_LG2, _LG2_HIGH, _LG2_LOW = (
    6.93147180559945286227e-01,
    6.93147182464599609375e-01,
    -1.90465429995776804525e-09,
)
_IVLN2_HIGH, _IVLN2_LOW = 1.44269502162933349609e00, 1.92596299112661746887e-08
_LOG2_1_5_HIGH, _LOG2_1_5_LOW = 5.84962487220764160156e-01, 1.35003920212974897128e-08
_OVER = 8.0085662595372944372e-17
_UPPER_HALF = np.int64(-4294967296)
_TWO31, _TWO53, _TWO54, _TWO64 = (
    2147483648.0,
    9007199254740992.0,
    18014398509481984.0,
    18446744073709551616.0,
)
_INFINITE, _NAN = np.inf, np.nan


@inlined
def log(x: float) -> float:
    """Return the natural logarithm of a normal x > 0, within one unit in the last place.

    x = 2^k (1 + f); the logarithm of 1 + f is a polynomial in s = f / (2 + f).
    """
    bits = np.float64(x).view(np.int64)
    k = (bits >> _EXPONENT) - np.int64(1022)
    m = np.int64((bits & _MANTISSA) | _HALF).view(np.float64)
    if m < _SQRT_HALF:
        m = m * 2.0
        k -= np.int64(1)
    f = m - 1.0
    s = f / (2.0 + f)
    z = s * s
    r = z * (_L1 + z * (_L2 + z * (_L3 + z * (_L4 + z * (_L5 + z * (_L6 + z * _L7))))))
    half = 0.5 * f * f
    e = np.float64(k)
    return e * _LN2_HIGH - ((half - (s * (half + r) + e * _LN2_LOW)) - f)


@inlined
def _log(x: float) -> float:
    """Return `log` of any float64: -inf for 0, NaN for negative values."""
    if not x > 0.0:
        return -_INFINITE if x == 0.0 else _NAN
    if x == _INFINITE:
        return _INFINITE
    if x < 2.2250738585072014e-308:
        return log(x * _TWO54) - 54.0 * 6.93147180559945286227e-01
    return log(x)


@inlined
def _log1p(x: float) -> float:
    """Return log(1 + x), with Kahan's correction for the rounding of 1 + x."""
    u = 1.0 + x
    if u == 1.0 or x == _INFINITE or not x > -1.0:
        return x if u == 1.0 or x == _INFINITE else _log(u)
    return _log(u) * (x / (u - 1.0))


@inlined
def _times_two_to(x: float, k: IntLike) -> float:
    """Return x * 2^k for x in 0.5 .. 2 and k in -1080 .. 1025, rounded once."""
    first = k // 2
    return (
        x
        * np.int64((np.int64(first) + 1023) << _EXPONENT).view(np.float64)
        * np.int64((np.int64(k - first) + 1023) << _EXPONENT).view(np.float64)
    )


@inlined
def _exp(x: float) -> float:
    if x != x:
        return x
    if x > _EXP_MOST:
        return _INFINITE
    if x < _EXP_LEAST:
        return 0.0
    k = np.int64(np.floor(_LOG2_E * x + 0.5))
    high = x - np.float64(k) * _LN2_HIGH
    low = np.float64(k) * _LN2_LOW
    r = high - low
    t = r * r
    c = r - t * (_P1 + t * (_P2 + t * (_P3 + t * (_P4 + t * _P5))))
    return _times_two_to(1.0 - ((low - (r * c) / (2.0 - c)) - high), k)


@inlined
def _upper(x: float) -> float:
    """Return x without the low 32 bits of its mantissa."""
    return np.int64(np.float64(x).view(np.int64) & _UPPER_HALF).view(np.float64)


@inlined
def _log2_pair(ax: float) -> tuple[float, float]:
    """Return log2 of a positive, finite number as an unevaluated sum of two numbers.

    The first number has 21 significant bits.
    """
    n = np.int64(0)
    if ax < 2.2250738585072014e-308:
        ax = ax * _TWO53
        n -= 53
    top = np.float64(ax).view(np.int64) >> np.int64(32)
    n += (top >> np.int64(20)) - 0x3FF
    j = top & np.int64(0xFFFFF)
    top = j | np.int64(0x3FF00000)
    k = np.int64(0)
    if j > 0x3988E:
        if j < 0xBB67A:
            k = np.int64(1)
        else:
            n += 1
            top -= np.int64(0x00100000)
    ax = np.int64(
        (np.float64(ax).view(np.int64) & np.int64(0xFFFFFFFF)) | (top << np.int64(32))
    ).view(np.float64)
    bp = 1.5 if k == 1 else 1.0
    u = ax - bp
    v = 1.0 / (ax + bp)
    ss = u * v
    s_high = _upper(ss)
    half = (
        ((top >> np.int64(1)) | np.int64(0x20000000)) + np.int64(0x00080000) + (k << np.int64(18))
    )
    middle = np.int64(half << np.int64(32)).view(np.float64)
    t_low = ax - (middle - bp)
    s_low = v * ((u - s_high * middle) - s_high * t_low)
    s2 = ss * ss
    r = s2 * s2 * (_Q1 + s2 * (_Q2 + s2 * (_Q3 + s2 * (_Q4 + s2 * (_Q5 + s2 * _Q6)))))
    r += s_low * (s_high + ss)
    square = s_high * s_high
    t_high = _upper(3.0 + square + r)
    rest = r - ((t_high - 3.0) - square)
    larger = s_high * t_high
    smaller = s_low * t_high + rest * ss
    p_high = _upper(larger + smaller)
    p_low = smaller - (p_high - larger)
    z_high = _CP_HIGH * p_high
    z_low = _CP_LOW * p_high + p_low * _CP + (_LOG2_1_5_LOW if k == 1 else 0.0)
    dp = _LOG2_1_5_HIGH if k == 1 else 0.0
    t = np.float64(n)
    first = _upper(((z_high + z_low) + dp) + t)
    return first, z_low - (((first - t) - dp) - z_high)


@inlined
def _log2_pair_near_one(ax: float) -> tuple[float, float]:
    """Return `_log2_pair` of a number within 2^-20 of 1, for exponents beyond 2^31."""
    t = ax - 1.0
    w = (t * t) * (0.5 - t * (0.3333333333333333333333 - t * 0.25))
    u = _IVLN2_HIGH * t
    v = t * _IVLN2_LOW - w * _LOG2_E
    first = _upper(u + v)
    return first, v - (first - u)


@inlined
def _power_of_positive(ax: float, y: float) -> float:
    """Return ax^y for a positive, finite ax and a finite y other than 0."""
    first, second = _log2_pair(ax)
    if abs(y) > _TWO31:
        if abs(y) > _TWO64 or abs(ax - 1.0) > 9.5367431640625e-07:
            if ax == 1.0:
                return 1.0
            return _INFINITE if (ax > 1.0) == (y > 0.0) else 0.0
        first, second = _log2_pair_near_one(ax)
    y_high = _upper(y)
    p_low = (y - y_high) * first + y * second
    p_high = y_high * first
    z = p_low + p_high
    if z > 1024.0 or (z == 1024.0 and p_low + _OVER > z - p_high):
        return _INFINITE
    if z < -1075.0 or (z == -1075.0 and p_low <= z - p_high):
        return 0.0
    n = np.floor(z + 0.5)
    p_high -= n
    t = _upper(p_low + p_high)
    u = t * _LG2_HIGH
    v = (p_low - (t - p_high)) * _LG2 + t * _LG2_LOW
    z = u + v
    w = v - (z - u)
    t = z * z
    c = z - t * (_P1 + t * (_P2 + t * (_P3 + t * (_P4 + t * _P5))))
    r = (z * c) / (c - 2.0) - (w + z * w)
    return _times_two_to(1.0 - (r - z), np.int64(n))


@inlined
def _power(x: float, y: float) -> float:
    """Return x^y with the special values of C99's ``pow``.

    The result is 1 if y is 0 or x is 1, and NaN if x < 0 and y is not an integer.
    """
    if y == 0.0 or x == 1.0:
        return 1.0
    if x != x or y != y:
        return _NAN
    ax = abs(x)
    is_integer = np.floor(y) == y
    is_odd = is_integer and abs(y) < _TWO53 and np.floor(y * 0.5) * 2.0 != y
    if abs(y) == _INFINITE:
        if ax == 1.0:
            return 1.0
        return _INFINITE if (ax > 1.0) == (y > 0.0) else 0.0
    if ax == 0.0 or ax == _INFINITE:
        z = ax if y > 0.0 else 1.0 / ax
    elif x < 0.0 and not is_integer:
        return _NAN
    elif y == 1.0:
        z = ax
    elif y == 2.0:
        z = ax * ax
    elif y == -1.0:
        z = 1.0 / ax
    elif y == 0.5:
        z = np.sqrt(ax)
    else:
        z = _power_of_positive(ax, y)
    return -z if is_odd and np.float64(x).view(np.int64) < 0 else z


@kernel
def log_array(x: F64, out: F64) -> None:
    """Compute ``out = log(x)``: -inf for 0, NaN for negative values.

    Both arrays are float64[n] and may be the same array.
    """
    for i in range(x.shape[0]):
        out[i] = _log(x[i])


@kernel
def log1p_array(x: F64, out: F64) -> None:
    """Compute ``out = log(1 + x)``: -inf for -1, NaN for smaller values.

    Both arrays are float64[n] and may be the same array.
    """
    for i in range(x.shape[0]):
        out[i] = _log1p(x[i])


@kernel
def exp_array(x: F64, out: F64) -> None:
    """Compute ``out = exp(x)``.

    Both arrays are float64[n] and may be the same array.
    """
    for i in range(x.shape[0]):
        out[i] = _exp(x[i])


@kernel
def power_array(x: F64, y: F64, out: F64) -> None:
    """Compute ``out = x ** y`` with the special values of C99's ``pow``.

    All arrays are float64[n] and may be the same array.
    """
    for i in range(x.shape[0]):
        out[i] = _power(x[i], y[i])
