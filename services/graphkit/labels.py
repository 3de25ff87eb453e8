"""Labels of graphs: byte strings by hash, grouped, looked up and made distinct."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import Whole, inlined, kernel, settled
from graphkit.rng import below, derive, mix64, word

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
_BYTE, _TOP = np.uint64(8), np.uint64(1)


@inlined
def _hash(values: U8, start: Whole, stop: Whole) -> Whole:
    """63 bits of a byte string: its bytes in words of eight, mixed one after another, and its length."""
    state = mix64(np.uint64(stop - start))
    piece = np.uint64(0)
    for at in range(start, stop):
        piece = (piece << _BYTE) | np.uint64(values[at])
        if (at - start) & 7 == 7:
            state = derive(state, piece)
            piece = np.uint64(0)
    return np.int64(derive(state, piece) >> _TOP)


@inlined
def _compare(a: U8, start: Whole, stop: Whole, b: U8, other: Whole, end: Whole) -> int:
    """Below 0, 0 or above 0, as a string of bytes comes before another, is the same, or comes after."""
    shared = min(stop - start, end - other)
    for k in range(shared):
        if a[start + k] != b[other + k]:
            return -1 if a[start + k] < b[other + k] else 1
    return int((stop - start) - (end - other))


@kernel
def _hashes(indptr: I64, values: U8, first: np.int64, out: I64) -> None:
    for i in range(out.shape[0]):
        out[i] = _hash(values, indptr[first + i], indptr[first + i + 1])


def hashes(indptr: I64, values: U8, first: int, count: int) -> I64:
    """The hash of each of some strings: int64[count], 0 or more.

    Parameters
    ----------
    indptr, values : int64[n + 1], uint8[total]
        Byte strings.
    first, count : int
        Which of them.
    """
    out = np.empty(count, np.int64)
    _hashes(settled(indptr), settled(values), np.int64(first), out)
    return out


@kernel
def _group(found: I64, rows: I64, indptr: I64, values: U8, new: NDArray[np.bool_]) -> None:
    n = found.shape[0]
    i = 0
    while i < n:
        j = i + 1
        alike = True
        while j < n and found[j] == found[i]:
            alike = alike and (_compare(values, indptr[rows[j]], indptr[rows[j] + 1], values, indptr[rows[i]], indptr[rows[i] + 1]) == 0)
            j += 1
        if not alike:  # different strings of one hash: by their bytes, equal ones as they came
            for k in range(i + 1, j):
                row = rows[k]
                at = k
                while at > i and _compare(values, indptr[row], indptr[row + 1], values, indptr[rows[at - 1]], indptr[rows[at - 1] + 1]) < 0:
                    rows[at] = rows[at - 1]
                    at -= 1
                rows[at] = row
        for k in range(i, j):
            new[k] = k == i or (
                not alike and _compare(values, indptr[rows[k]], indptr[rows[k] + 1], values, indptr[rows[k - 1]], indptr[rows[k - 1] + 1]) != 0
            )
        i = j


def grouped(found: I64, rows: I64, indptr: I64, values: U8) -> tuple[I64, I64, I64]:
    """Strings grouped: by (hash, bytes), those of a group as they come.

    Parameters
    ----------
    found : int64[n]
        The hash of each of some strings.
    rows : int64[n]
        Which strings they are.
    indptr, values : int64[m + 1], uint8[total]
        All strings.

    Returns
    -------
    rows : int64[n]
    starts : int64[groups]
        Where each group begins.
    hashes : int64[groups]
    """
    order = np.argsort(found, kind="stable")
    found, rows = found[order], rows[order]
    new = np.empty(found.size, np.bool_)
    _group(settled(found), rows, settled(indptr), settled(values), new)
    starts = np.flatnonzero(new)
    return rows, starts, found[starts]


@kernel
def _find(
    wanted: I64, wanted_indptr: I64, wanted_values: U8, held: I64, group_indptr: I64, rows: NDArray[np.uint32], indptr: I64, values: U8, out: I64
) -> None:
    for i in range(wanted.shape[0]):
        out[i] = -1
        low, high = 0, held.shape[0]
        while low < high:
            middle = (low + high) >> 1
            if held[middle] < wanted[i]:
                low = middle + 1
            else:
                high = middle
        while low < held.shape[0] and held[low] == wanted[i]:
            row = np.int64(rows[group_indptr[low]])
            if _compare(values, indptr[row], indptr[row + 1], wanted_values, wanted_indptr[i], wanted_indptr[i + 1]) == 0:
                out[i] = low
                break
            low += 1


def find(wanted_indptr: I64, wanted_values: U8, held: I64, group_indptr: I64, rows: NDArray[np.uint32], indptr: I64, values: U8) -> I64:
    """The group of each of some strings, -1 where there is none; int64[n].

    Parameters
    ----------
    wanted_indptr, wanted_values : int64[n + 1], uint8[k]
    held, group_indptr, rows : int64[groups], int64[groups + 1], uint32[m]
        Hashes of groups, ascending; the rows of each.
    indptr, values : int64[rows + 1], uint8[total]
        The string of each row.
    """
    out = np.empty(wanted_indptr.size - 1, np.int64)
    wanted = hashes(wanted_indptr, wanted_values, 0, out.size)
    _find(
        settled(wanted), settled(wanted_indptr), settled(wanted_values), settled(held), settled(group_indptr), settled(rows), settled(indptr),
        settled(values), out,
    )  # fmt: skip
    return out


@kernel
def _choose(key: np.uint64, among: np.uint64, out: I64) -> None:
    for i in range(out.shape[0]):
        out[i] = np.int64(below(word(key, np.uint64(i)), among))


def choose(key: np.uint64, count: int, among: int) -> I64:
    """Numbers in 0 .. among - 1, each alike: number i takes word i of the key; int64[count]."""
    out = np.empty(count, np.int64)
    _choose(np.uint64(key), np.uint64(among), out)
    return out
