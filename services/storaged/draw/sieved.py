"""What walks by p and q look at before they search a row, made of a version's rows once: when the first of them comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import settled
from storaged.draw.lookup import adjacency
from storaged.draw.version import Version
from storaged.kernel.sieve import EDGES_A_WORD, head_rows, share_rows, sieve_rows
from storaged.store.image import EMPTY_F32, EMPTY_F64, Adjacency

_AT_A_TIME = 1 << 22
"""Edges between looks at the clock."""


def sieve_of(version: Version, part: int, edge_type: int, direction: int, checkpoint: Callable[[], object]) -> NDArray[np.uint64]:
    """The words of a sieve of the edges of one type at one part, a byte each; kept with the version.

    Parameters
    ----------
    version, part, edge_type, direction
    checkpoint : callable
        Called now and then; may raise. What is made of other parts stays.
    """

    def make() -> NDArray[np.uint64]:
        edges = adjacency(version.image(part), edge_type, direction)
        words = np.zeros(edges.nbr.size // EDGES_A_WORD + 1, np.uint64)
        for first, end in _pieces(edges, checkpoint):
            sieve_rows(edges.indptr, edges.nbr, first, end, words)
        return words

    return version.once((sieve_of, part, edge_type, direction), make)


def shares_of(version: Version, part: int, edge_type: int, direction: int, uniform: bool, checkpoint: Callable[[], object]) -> NDArray[np.float32]:
    """float32[rows]: how much of each row leads to that neighbor to whom most does; arguments as of `sieve_of`."""

    def make() -> NDArray[np.float32]:
        edges = adjacency(version.image(part), edge_type, direction)
        weights, sums = (EMPTY_F32, EMPTY_F64) if uniform else (edges.weights, edges.sums)
        shares = np.zeros(edges.indptr.size - 1, np.float32)
        for first, end in _pieces(edges, checkpoint):
            share_rows(edges.indptr, edges.nbr, settled(weights), settled(sums), first, end, shares)
        return shares

    return version.once((shares_of, part, edge_type, direction, uniform), make)


def heads_of(
    version: Version, part: int, edge_type: int, direction: int, uniform: bool | None, checkpoint: Callable[[], object]
) -> NDArray[np.uint64]:
    """uint64[2 * rows]: of each row where its edges begin, how many and its share, as `storaged.kernel.sieve.head_rows` has them.

    Arguments as of `shares_of`; ``uniform`` is None where shares are not wanted.
    """

    def make() -> NDArray[np.uint64]:
        indptr = adjacency(version.image(part), edge_type, direction).indptr
        shares = EMPTY_F32 if uniform is None else shares_of(version, part, edge_type, direction, uniform, checkpoint)
        heads = np.empty(2 * (indptr.size - 1), np.uint64)
        head_rows(indptr, settled(shares), heads)
        return heads

    return version.once((heads_of, part, edge_type, direction, uniform), make)


def _pieces(edges: Adjacency, checkpoint: Callable[[], object]) -> Iterator[tuple[np.int64, np.int64]]:
    """Rows to go over at a time."""
    rows, first = edges.indptr.size - 1, 0
    while first < rows:
        end = max(int(np.searchsorted(edges.indptr, edges.indptr[first] + _AT_A_TIME, side="right")) - 1, first + 1)
        yield np.int64(first), np.int64(end)
        checkpoint()
        first = end
