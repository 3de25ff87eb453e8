"""Split a request's rows by owning host, and merge the replies in the request's order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.arrays.gather_scatter import scatter_rows
from asterism_graphkit.arrays.stable_sort import stable_order
from asterism_graphkit.random import partition_choice
from asterism_io import buffer_pool
from graphd.routing.routes import SpaceRoute

Arrays = Mapping[str, NDArray[Any]]
Ids = NDArray[np.int64]
Types = NDArray[np.int32]
Checkpoint = Callable[[], object]
"""Callable that raises if the request must end."""
_PIECE = 1 << 18
"""Entries of ragged rows that are merged or sorted between two checkpoints: about ten
milliseconds of work.
"""
_PIECE_BYTES = 1 << 24
"""Bytes of rows that are copied between two checkpoints: about ten milliseconds of work."""


def no_checkpoint() -> None:
    """Do nothing: the checkpoint of work without a deadline."""


def ragged_slices(
    indptr: Ids, checkpoint: Checkpoint, max_entries: int = _PIECE
) -> Iterator[slice]:
    """Yield slices of ragged rows, with a checkpoint before each.

    A slice has at most ``max_entries`` entries in total, or is one longer row.

    Parameters
    ----------
    indptr : ndarray of int64, shape (n + 1,)
    checkpoint : callable
    max_entries : int

    Yields
    ------
    slice
        Range of rows; nothing if there are no rows.
    """
    begin, rows = 0, len(indptr) - 1
    while begin < rows:
        checkpoint()
        end = max(
            int(np.searchsorted(indptr, indptr[begin] + max_entries, side="right")) - 1, begin + 1
        )
        yield slice(begin, end)
        begin = end


def rows_by_host(space: SpaceRoute, parts: NDArray[np.int32]) -> list[tuple[int, Ids]]:
    """Group row indices by owning host, in request order; omit hosts without rows."""
    return group_by_owner(space.host_of_part.take(parts), len(space.hosts))


def group_by_owner(owners: NDArray[np.int32], hosts: int) -> list[tuple[int, Ids]]:
    """Group row indices by owning host, given the owner of each row."""
    order, offsets = partition_choice.group_by_key(owners, hosts)
    return [
        (host, order[offsets[host] : offsets[host + 1]])
        for host in range(hosts)
        if offsets[host] < offsets[host + 1]
    ]


def rows_by_owner(space: SpaceRoute, ids: Ids) -> list[tuple[int, Ids | None]]:
    """Group the rows of node ids by owning host.

    None stands for every row in order, if one host has all partitions.
    """
    if len(space.hosts) == 1:
        return [(0, None)]
    return list(
        rows_by_host(
            space, partition_choice.part_of(ids, space.schema.parts, space.schema.placement)
        )
    )


def take_rows(array: NDArray[Any], rows: Ids | None) -> NDArray[Any]:
    """Return ``array[rows]``, or the array itself if ``rows`` is None."""
    return array if rows is None else array[rows]


def merge_rows(
    count: int,
    results: Sequence[tuple[Ids | None, Arrays]],
    checkpoint: Checkpoint = no_checkpoint,
) -> dict[str, NDArray[Any]]:
    """Merge each host's sections into sections of ``count`` rows.

    ``checkpoint`` is called between pieces of large sections and may raise.
    """
    if len(results) == 1 and results[0][0] is None:
        return dict(results[0][1])
    is_complete = (
        sum(count if rows is None else len(rows) for rows, _ in results) == count
    )  # every row has an owner, so no row needs zeros
    out: dict[str, NDArray[Any]] = {}
    for rows, arrays in results:
        for name, array in arrays.items():
            if name not in out:
                out[name] = (buffer_pool.empty if is_complete else np.zeros)(
                    (count, *array.shape[1:]), array.dtype
                )
            for piece in _byte_slices(array, checkpoint):
                if rows is None:
                    out[name][piece] = array[piece]
                else:
                    scatter_rows(out[name], rows[piece], array[piece])
    return out


def _byte_slices(array: NDArray[Any], checkpoint: Checkpoint) -> Iterator[slice]:
    """Yield slices of rows of at most `_PIECE_BYTES`, or one longer row; check between them."""
    if array.nbytes <= _PIECE_BYTES:
        yield slice(None)
        return
    rows = max(_PIECE_BYTES * len(array) // array.nbytes, 1)
    for begin in range(0, len(array), rows):
        checkpoint()
        yield slice(begin, begin + rows)


def merge_ragged(
    count: int,
    results: Sequence[tuple[Ids | None, Ids, Arrays]],
    checkpoint: Checkpoint = no_checkpoint,
) -> tuple[Ids, dict[str, NDArray[Any]]]:
    """Merge each host's ragged rows into ``count`` ragged rows.

    Each result is (rows, indptr of these rows, sections that it delimits). ``checkpoint`` is
    called between pieces and may raise.
    """
    if len(results) == 1 and results[0][0] is None:
        return results[0][1], dict(results[0][2])
    lengths = np.zeros(count, np.int64)
    for rows, indptr, _ in results:
        lengths[slice(None) if rows is None else rows] = np.diff(indptr)
    indptr_out = indptr_of(lengths)
    out: dict[str, NDArray[Any]] = {}
    for rows, indptr, arrays in results:
        starts = take_rows(indptr_out[:-1], rows)
        for name, array in arrays.items():
            if name not in out:
                out[name] = np.zeros((int(indptr_out[-1]), *array.shape[1:]), array.dtype)
        for piece in ragged_slices(indptr, checkpoint):
            first, last = int(indptr[piece.start]), int(indptr[piece.stop])
            positions = ragged_positions(
                starts[piece], indptr[piece.start : piece.stop + 1] - first
            )
            for name, array in arrays.items():
                out[name][positions] = array[first:last]
    return indptr_out, out


def merge_counted(
    count: int,
    results: Sequence[tuple[Ids | None, Types, Arrays]],
    checkpoint: Checkpoint = no_checkpoint,
) -> tuple[Types, dict[str, NDArray[Any]]]:
    """Merge like `merge_ragged`, from row lengths instead of an indptr.

    The merged row lengths are an ndarray of int32, shape (count,).
    """
    if len(results) == 1 and results[0][0] is None:
        return results[0][1], dict(results[0][2])
    indptr, out = merge_ragged(
        count, [(rows, indptr_of(counts), arrays) for rows, counts, arrays in results], checkpoint
    )
    return np.diff(indptr).astype(np.int32), out


def indptr_of(lengths: Ids | Types) -> Ids:
    """Return the offset of each row and of the end: ndarray of int64, shape (n + 1,)."""
    indptr = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=indptr[1:])
    return indptr


def ragged_positions(starts: Ids, indptr: Ids) -> Ids:
    """Return positions ``starts[i] + 0, 1, ..`` of each row i; ``indptr`` gives row lengths."""
    lengths = np.diff(indptr)
    return np.asarray(
        np.repeat(starts - indptr[:-1], lengths) + np.arange(indptr[-1], dtype=np.int64)
    )


def gather_ragged(indptr: Ids, values: NDArray[Any], rows: Ids) -> tuple[Ids, NDArray[Any]]:
    """Return the given rows of a ragged column, in that order."""
    out_indptr = indptr_of(np.diff(indptr)[rows])
    return out_indptr, values[ragged_positions(indptr[:-1][rows], out_indptr)]


def sort_ragged(
    indptr: Ids,
    arrays: Arrays,
    keys: Iterable[NDArray[Any]],
    checkpoint: Checkpoint = no_checkpoint,
) -> dict[str, NDArray[Any]]:
    """Return each row's entries sorted by ``keys``, the most significant first; stable.

    ``checkpoint`` is called between pieces, of rows and of one long row, and may raise.
    """
    out = {name: np.empty_like(array) for name, array in arrays.items()}
    sort_keys = list(keys)
    for piece in ragged_slices(indptr, checkpoint):
        span = slice(int(indptr[piece.start]), int(indptr[piece.stop]))
        row_keys: list[NDArray[Any]] = [key[span] for key in sort_keys]
        if piece.stop - piece.start > 1:
            rows = np.arange(piece.start, piece.stop, dtype=np.int64)
            row_keys.insert(0, np.repeat(rows, np.diff(indptr[piece.start : piece.stop + 1])))
        order = stable_order(row_keys, checkpoint, _PIECE)
        for begin in range(0, order.size, _PIECE):
            checkpoint()
            taken = slice(begin, begin + _PIECE)
            for name, array in arrays.items():
                out[name][span][taken] = array[span][order[taken]]
    return out
