"""Compute and check the ids of many string ids at a time.

This is the compiled form of `asterism_model.string_ids`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import IntLike, as_kernel_array, inlined, kernel

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
U64 = np.uint64
_V0, _V1, _V2, _V3 = (
    U64(0x736F6D6570736575),
    U64(0x646F72616E646F6D),
    U64(0x6C7967656E657261),
    U64(0x7465646279746573),
)
_END, _BYTE, _TOP, _ONE = U64(0xFF), U64(8), U64(56), U64(1)
_S13, _S16, _S17, _S21, _S32, _S43, _S47, _S48, _S51 = (
    U64(13),
    U64(16),
    U64(17),
    U64(21),
    U64(32),
    U64(43),
    U64(47),
    U64(48),
    U64(51),
)


@inlined
def _round(
    v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """Apply one SipRound."""
    v0 += v1
    v2 += v3
    v1 = ((v1 << _S13) | (v1 >> _S51)) ^ v0
    v3 = ((v3 << _S16) | (v3 >> _S48)) ^ v2
    v0 = (v0 << _S32) | (v0 >> _S32)
    v2 += v1
    v0 += v3
    v1 = ((v1 << _S17) | (v1 >> _S47)) ^ v2
    v3 = ((v3 << _S21) | (v3 >> _S43)) ^ v0
    v2 = (v2 << _S32) | (v2 >> _S32)
    return v0, v1, v2, v3


@inlined
def siphash(values: U8, start: IntLike, stop: IntLike, salt: np.uint64) -> np.uint64:
    """Return SipHash-1-3 of a run of bytes under the key (salt, 0).

    The hash function is that of Aumasson and Bernstein, with one compression round and three
    finalization rounds.
    """
    v0, v1, v2, v3 = _V0 ^ salt, _V1, _V2 ^ salt, _V3
    word, shift = U64(0), U64(0)
    for at in range(start, stop):
        word |= U64(values[at]) << shift
        shift += _BYTE
        if (at - start) & 7 == 7:
            v3 ^= word
            v0, v1, v2, v3 = _round(v0, v1, v2, v3)
            v0 ^= word
            word, shift = U64(0), U64(0)
    word |= U64(stop - start) << _TOP
    v3 ^= word
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0 ^= word
    v2 ^= _END
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0 ^ v1 ^ v2 ^ v3


@kernel
def _ids(indptr: I64, values: U8, salt: np.uint64, out: I64) -> None:
    for i in range(out.shape[0]):
        out[i] = np.int64(siphash(values, indptr[i], indptr[i + 1], salt) >> _ONE)


def compute_string_ids(indptr: I64, values: U8, salt: int) -> I64:
    """Return the id of each string, as `asterism_model.string_ids.hash_strings` does.

    Parameters
    ----------
    indptr, values : int64[n + 1], uint8[total]
        Strings: string i is ``values[indptr[i]:indptr[i + 1]]``.
    salt : int
        Salt from the schema of the graph space.

    Returns
    -------
    int64[n]
    """
    out = np.empty(indptr.size - 1, np.int64)
    _ids(as_kernel_array(indptr), as_kernel_array(values), np.uint64(salt), out)
    return out


@kernel
def _first_mismatch(
    rows: I64, indptr: I64, values: U8, stored_indptr: I64, stored_values: U8
) -> int:
    for i in range(rows.shape[0]):
        row = rows[i]
        if row < 0:
            continue
        start, stop, stored_start = indptr[i], indptr[i + 1], stored_indptr[row]
        if stop - start != stored_indptr[row + 1] - stored_start:
            return i
        for k in range(stop - start):
            if values[start + k] != stored_values[stored_start + k]:
                return i
    return -1


def first_mismatch(
    rows: I64, indptr: I64, values: U8, stored_indptr: I64, stored_values: U8
) -> int:
    """Return the index of the first string that differs from its stored string, or -1.

    Parameters
    ----------
    rows : int64[n]
        Index of the stored string to compare with. Negative entries are skipped.
    indptr, values : int64[n + 1], uint8[]
        Strings to check.
    stored_indptr, stored_values : int64[m + 1], uint8[]
        Stored strings.
    """
    return int(
        _first_mismatch(
            as_kernel_array(rows),
            as_kernel_array(indptr),
            as_kernel_array(values),
            as_kernel_array(stored_indptr),
            as_kernel_array(stored_values),
        )
    )
