"""Audit kernels: compare the exact distribution of every alias row with its weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import kernel
from asterism_graphkit.random.alias_build import range_sum

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]

WRONG_SUM, WRONG_DISTRIBUTION, MISSING_TABLE = 1, 2, 3
"""Faults of a row: wrong sum; wrong alias row; no alias row although its weights differ."""

_TWO64 = 18446744073709551616.0
_LOW, _HIGH = np.uint64(0xFFFFFFFF), np.uint64(0xFFFFFFFF00000000)


@kernel
def audit_rows(
    indptr: I64,
    weights: F32,
    sums: F64,
    alias_threshold: U64,
    alias_fraction: U32,
    equal_weight: float,
    limit: float,
    max_errors: F64,
    fault: I64,
) -> None:
    """Compare the exact distribution of alias rows with their weights, up to the first fault.

    Parameters
    ----------
    indptr : ndarray of int64, shape (rows + 1,)
        Ascending, within ``weights``.
    weights : ndarray of float32, shape (slots,)
    sums : ndarray of float64, shape (rows,)
        Sums in the image, which must be Neumaier sums to the bit.
    alias_threshold : ndarray of uint64, shape (slots,)
    alias_fraction : ndarray of uint32, shape (slots,)
        Thresholds in the image; both empty if every weight is ``equal_weight``.
    equal_weight : float
        First weight of the adjacency.
    limit : float
        Largest total variation distance of a correct row.
    max_errors : ndarray of float64, shape (2,)
        Input and output: largest total variation distance of a row, and largest relative error of a
        share.
    fault : ndarray of int64, shape (2,)
        Output: (row, kind of fault) of the first wrong row; the kind is 0 if there is none.

    Notes
    -----
    Three cursors, as in `storaged.build.build_kernels.audit_table`: aliases do not decrease among
    light columns, nor among heavy ones. A share of weight 0 must have probability exactly 0.
    """
    fault[0], fault[1] = -1, 0
    for r in range(indptr.shape[0] - 1):
        start, stop = indptr[r], indptr[r + 1]
        n = stop - start
        total = range_sum(weights, start, stop)
        if total != sums[r]:
            fault[0], fault[1] = r, WRONG_SUM
            return
        if alias_threshold.shape[0] == 0:
            for i in range(start, stop):
                if weights[i] != equal_weight or not weights[i] > 0:
                    fault[0], fault[1] = r, MISSING_TABLE
                    return
            continue
        if not total > 0.0:
            continue
        scale = np.float64(n)
        light = 0
        heavy = 0
        distance = 0.0
        worst = 0.0
        for v in range(n):
            mass_high, mass_low = (
                np.uint64(0),
                (alias_threshold[start + v] & _HIGH) | np.uint64(alias_fraction[start + v]),
            )
            if np.int64(alias_threshold[start + v] & _LOW) == v:
                mass_high, mass_low = np.uint64(1), np.uint64(0)
            for stream in range(2):
                u = light if stream == 0 else heavy
                while u < n:
                    alias = np.int64(alias_threshold[start + u] & _LOW)
                    is_heavy = np.float64(weights[start + u]) * scale >= total
                    if is_heavy == (stream == 1) and alias != u:
                        if alias > v:
                            break
                        if alias == v:
                            remainder = np.uint64(0) - (
                                (alias_threshold[start + u] & _HIGH)
                                | np.uint64(alias_fraction[start + u])
                            )
                            mass_low += remainder
                            if remainder == 0 or mass_low < remainder:
                                mass_high += np.uint64(1)
                    u += 1
                if stream == 0:
                    light = u
                else:
                    heavy = u
            q = (np.float64(mass_high) + np.float64(mass_low) / _TWO64) / scale
            share = np.float64(weights[start + v]) / total
            distance += abs(q - share)
            if share > 0.0:
                worst = max(worst, abs(q - share) / share)
            elif q > 0.0:
                worst = np.inf
        max_errors[0], max_errors[1] = max(max_errors[0], distance / 2.0), max(max_errors[1], worst)
        if not distance / 2.0 <= limit or worst == np.inf:
            fault[0], fault[1] = r, WRONG_DISTRIBUTION
            return


@kernel
def first_packed_mismatch(
    indptr: I64, narrow: U32, sums: F64, alias_threshold: U64, packed: U64
) -> int:
    """Return the first slot with a wrong packed row; -1 if all are correct.

    A packed row is the column of the alias table and the two neighbors that it selects from.

    Parameters
    ----------
    indptr : ndarray of int64, shape (rows + 1,)
        Ascending, within the following arrays.
    narrow : ndarray of uint32, shape (slots,)
    sums : ndarray of float64, shape (rows,)
    alias_threshold : ndarray of uint64, shape (slots,)
    packed : ndarray of uint64, shape (2 * slots,)
    """
    no_pair = ~np.uint64(0)
    for r in range(indptr.shape[0] - 1):
        start = indptr[r]
        for slot in range(start, indptr[r + 1]):
            column, pair = packed[2 * slot], packed[2 * slot + 1]
            if column != alias_threshold[slot]:
                return slot
            if not sums[r] > 0.0:
                if pair != no_pair:
                    return slot
                continue
            alias = start + np.int64(column & _LOW)
            if (
                alias >= indptr[r + 1]
                or pair & _LOW != np.uint64(narrow[slot])
                or pair >> np.uint64(32) != np.uint64(narrow[alias])
            ):
                return slot
    return -1


def new_outputs() -> tuple[NDArray[Any], NDArray[Any]]:
    """Return ``max_errors`` and ``fault`` for a first call."""
    return np.zeros(2, np.float64), np.zeros(2, np.int64)
