"""Group, look up and sample graph labels, which are byte strings addressed by hash."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import IntLike, as_kernel_array, inlined, kernel
from asterism_graphkit.random.rng import bounded, derive, mix64, word

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
_BYTE, _TOP = np.uint64(8), np.uint64(1)


@inlined
def _hash(values: U8, start: IntLike, stop: IntLike) -> IntLike:
    """Return a 63-bit hash of a byte string.

    It mixes the length and the bytes, eight at a time.
    """
    state = mix64(np.uint64(stop - start))
    piece = np.uint64(0)
    for at in range(start, stop):
        piece = (piece << _BYTE) | np.uint64(values[at])
        if (at - start) & 7 == 7:
            state = derive(state, piece)
            piece = np.uint64(0)
    return np.int64(derive(state, piece) >> _TOP)


@inlined
def _compare(
    a: U8, a_start: IntLike, a_stop: IntLike, b: U8, b_start: IntLike, b_stop: IntLike
) -> int:
    """Compare two byte strings: the result is negative, 0 or positive."""
    common = min(a_stop - a_start, b_stop - b_start)
    for k in range(common):
        if a[a_start + k] != b[b_start + k]:
            return -1 if a[a_start + k] < b[b_start + k] else 1
    return int((a_stop - a_start) - (b_stop - b_start))


@kernel
def _hashes(indptr: I64, values: U8, first: np.int64, out: I64) -> None:
    for i in range(out.shape[0]):
        out[i] = _hash(values, indptr[first + i], indptr[first + i + 1])


def hash_strings(indptr: I64, values: U8, first: int, count: int) -> I64:
    """Return the hash of each string of a range: int64[count], all >= 0.

    Parameters
    ----------
    indptr, values : int64[n + 1], uint8[total]
        Byte strings.
    first, count : int
        First string of the range, and number of strings.
    """
    out = np.empty(count, np.int64)
    _hashes(as_kernel_array(indptr), as_kernel_array(values), np.int64(first), out)
    return out


@kernel
def _group(
    row_hashes: I64, rows: I64, indptr: I64, values: U8, is_start: NDArray[np.bool_]
) -> None:
    n = row_hashes.shape[0]
    i = 0
    while i < n:
        j = i + 1
        all_equal = True
        while j < n and row_hashes[j] == row_hashes[i]:
            all_equal = all_equal and (
                _compare(
                    values,
                    indptr[rows[j]],
                    indptr[rows[j] + 1],
                    values,
                    indptr[rows[i]],
                    indptr[rows[i] + 1],
                )
                == 0
            )
            j += 1
        if not all_equal:  # hash collision: sort by bytes, stably
            for k in range(i + 1, j):
                row = rows[k]
                at = k
                while (
                    at > i
                    and _compare(
                        values,
                        indptr[row],
                        indptr[row + 1],
                        values,
                        indptr[rows[at - 1]],
                        indptr[rows[at - 1] + 1],
                    )
                    < 0
                ):
                    rows[at] = rows[at - 1]
                    at -= 1
                rows[at] = row
        for k in range(i, j):
            is_start[k] = k == i or (
                not all_equal
                and _compare(
                    values,
                    indptr[rows[k]],
                    indptr[rows[k] + 1],
                    values,
                    indptr[rows[k - 1]],
                    indptr[rows[k - 1] + 1],
                )
                != 0
            )
        i = j


def group_strings(row_hashes: I64, rows: I64, indptr: I64, values: U8) -> tuple[I64, I64, I64]:
    """Group equal strings; groups are ordered by (hash, bytes).

    Parameters
    ----------
    row_hashes : int64[n]
        Hash of each string to group.
    rows : int64[n]
        Index of each of these strings.
    indptr, values : int64[m + 1], uint8[total]
        All strings.

    Returns
    -------
    rows : int64[n]
        The given rows by group; the rows of a group keep their order.
    starts : int64[groups]
        Position in ``rows`` of the first row of each group.
    hashes : int64[groups]
    """
    order = np.argsort(row_hashes, kind="stable")
    row_hashes, rows = row_hashes[order], rows[order]
    is_start = np.empty(row_hashes.size, np.bool_)
    _group(
        as_kernel_array(row_hashes),
        rows,
        as_kernel_array(indptr),
        as_kernel_array(values),
        is_start,
    )
    starts = np.flatnonzero(is_start)
    return rows, starts, row_hashes[starts]


@kernel
def _find(
    query_hashes: I64,
    query_indptr: I64,
    query_values: U8,
    group_hashes: I64,
    group_indptr: I64,
    rows: NDArray[np.uint32],
    indptr: I64,
    values: U8,
    out: I64,
) -> None:
    for i in range(query_hashes.shape[0]):
        out[i] = -1
        low, high = 0, group_hashes.shape[0]
        while low < high:
            middle = (low + high) >> 1
            if group_hashes[middle] < query_hashes[i]:
                low = middle + 1
            else:
                high = middle
        while low < group_hashes.shape[0] and group_hashes[low] == query_hashes[i]:
            row = np.int64(rows[group_indptr[low]])
            if (
                _compare(
                    values,
                    indptr[row],
                    indptr[row + 1],
                    query_values,
                    query_indptr[i],
                    query_indptr[i + 1],
                )
                == 0
            ):
                out[i] = low
                break
            low += 1


def find_groups(
    query_indptr: I64,
    query_values: U8,
    group_hashes: I64,
    group_indptr: I64,
    rows: NDArray[np.uint32],
    indptr: I64,
    values: U8,
) -> I64:
    """Return the group of each string, or -1 if there is none; int64[n].

    Parameters
    ----------
    query_indptr, query_values : int64[n + 1], uint8[k]
        Strings to look up.
    group_hashes, group_indptr, rows : int64[groups], int64[groups + 1], uint32[m]
        Hash of each group, ascending; the rows of group g are ``rows[group_indptr[g]:group_indptr[g
        + 1]]``.
    indptr, values : int64[rows + 1], uint8[total]
        String of each row.
    """
    out = np.empty(query_indptr.size - 1, np.int64)
    query_hashes = hash_strings(query_indptr, query_values, 0, out.size)
    _find(
        as_kernel_array(query_hashes),
        as_kernel_array(query_indptr),
        as_kernel_array(query_values),
        as_kernel_array(group_hashes),
        as_kernel_array(group_indptr),
        as_kernel_array(rows),
        as_kernel_array(indptr),
        as_kernel_array(values),
        out,
    )
    return out


@kernel
def _choose(key: np.uint64, population: np.uint64, out: I64) -> None:
    for i in range(out.shape[0]):
        out[i] = np.int64(bounded(word(key, np.uint64(i)), population))


def choose_uniform(key: np.uint64, count: int, population: int) -> I64:
    """Return uniform numbers in 0 .. population - 1; int64[count].

    Number i is made of word i of the key.
    """
    out = np.empty(count, np.int64)
    _choose(np.uint64(key), np.uint64(population), out)
    return out
