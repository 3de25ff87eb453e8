"""Local operations on samples: pairs from walks, gathers and scatters.

No function calls a service. Functions of arrays return arrays. `gather` and the scatters also
accept torch tensors, and return tensors with gradients.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asterism import permutations
from asterism.calls import validation
from asterism.records.arrays import HeteroIds, Ids, RaggedColumn, Types, Values
from asterism.records.rankings import TopNeighbors
from asterism.records.samples import FanoutHop, FanoutSample, NeighborSample
from asterism.training import torch_gather_scatter
from asterism_model import string_ids
from asterism_proto.errors import InvalidRequest

if TYPE_CHECKING:
    from asterism.records.samples import WalkSample
    from asterism_model.schema import Schema

PaddedSample = TypeVar("PaddedSample", NeighborSample, TopNeighbors, FanoutSample)
Entries = TypeVar("Entries", NeighborSample, TopNeighbors, FanoutHop)
_ENTRY_COLUMNS = ("nodes", "types", "weights", "edge_ids", "probabilities", "times")

__all__ = [
    "gather",
    "inflate_idx",
    "pair_places",
    "ragged_gather",
    "ragged_strings",
    "repeat_padding",
    "scatter_add",
    "scatter_max",
    "scatter_mean",
    "scatter_softmax",
    "sparse_gather",
    "walk_pairs",
    "walk_types",
]


def walk_pairs(
    paths: ArrayLike,
    left: int,
    right: int,
    *,
    types: ArrayLike | None = None,
    excluded: Iterable[tuple[int, int]] = (),
    within: Iterable[int] | None = None,
    seed: int | None = None,
) -> Ids:
    """Return skip-gram pairs of walks: each node with the nodes close to it on its walk.

    Parameters
    ----------
    paths : array_like of int64, shape (m, n)
        Walks, one per row. -1 means "no node".
    left, right : int
        Window: number of positions before and after a center.
    types : array_like of int, shape (m, n), optional
        Node type of each position, as returned by `walk_types`. Required by ``excluded`` and
        ``within``.
    excluded : iterable of (int, int), default ()
        Pairs of types to leave out, the center's type first.
    within : iterable of int, optional
        Types to keep; pairs with a node of any other type are left out.
    seed : int, optional
        Shuffle the pairs, in the same order for the same seed. None: keep the order below.

    Returns
    -------
    ndarray of int64, shape (k, 2)
        (center, context), ordered by walk, then by center; for each center first the nodes before
        it, nearest first, then those after it, nearest first. -1 is in no pair.

    Raises
    ------
    InvalidRequest
        If the shapes do not match, the window is negative, or ``types`` is missing.

    Examples
    --------
    >>> walk_pairs([[1, 2, 3]], 1, 1).tolist()
    [[1, 2], [2, 1], [2, 3], [3, 2]]
    >>> walk_pairs([[1, 2, 3]], 1, 1, types=[[0, 1, 1]], excluded=[(1, 0)]).tolist()
    [[1, 2], [2, 3], [3, 2]]
    """
    walks = _integers("paths", paths)
    return np.asarray(
        walks.reshape(-1)[
            pair_places(
                walks, left, right, types=types, excluded=excluded, within=within, seed=seed
            )
        ]
    )


def pair_places(
    paths: ArrayLike,
    left: int,
    right: int,
    *,
    types: ArrayLike | None = None,
    excluded: Iterable[tuple[int, int]] = (),
    within: Iterable[int] | None = None,
    seed: int | None = None,
) -> Ids:
    """Return skip-gram pairs as positions instead of node ids.

    Positions refer to ``paths`` flattened, so that other arrays of its shape can be gathered too.

    Parameters
    ----------
    paths : array_like of int64, shape (m, n)
        Walks, one per row. -1 means "no node".
    left, right : int
        Window: number of positions before and after a center.
    types : array_like of int, shape (m, n), optional
        Node type of each position. Required by ``excluded`` and ``within``.
    excluded : iterable of (int, int), default ()
        Pairs of types to leave out, the center's type first.
    within : iterable of int, optional
        Types to keep.
    seed : int, optional
        Shuffle the pairs, as in `walk_pairs`.

    Returns
    -------
    ndarray of int64, shape (k, 2)
        Positions of (center, context), in the order of `walk_pairs`.

    Raises
    ------
    InvalidRequest
        If the shapes do not match, the window is negative, or ``types`` is missing.

    Examples
    --------
    >>> pair_places([[4, 9, -1]], 1, 1)
    array([[0, 1],
           [1, 0]])
    """
    walks = _integers("paths", paths)
    if walks.ndim != 2:
        raise InvalidRequest(
            f"paths of shape {list(walks.shape)}: expected a row for each walk, shape [m, length]"
        )
    if left < 0 or right < 0:
        raise InvalidRequest(f"left={left}, right={right}: expected 0 or more")
    steps = walks.shape[1]
    left, right = min(left, steps), min(right, steps)  # farther nodes are outside of every walk
    offsets = np.concatenate([-np.arange(1, left + 1), np.arange(1, right + 1)]).astype(np.int64)
    neighbor = np.arange(steps)[:, None] + offsets
    centres, offset_index = np.nonzero((neighbor >= 0) & (neighbor < steps))
    present = walks >= 0
    rows, windows = np.nonzero(present[:, centres] & present[:, neighbor[centres, offset_index]])
    pairs = (
        np.stack([centres, neighbor[centres, offset_index]], axis=1)[windows]
        + (rows * steps)[:, None]
    )
    allowed = _allowed(walks, types, list(excluded), within)
    if allowed is not None and types is not None:
        node_types = _integers("types", types).reshape(-1)[pairs]
        pairs = pairs[allowed[node_types[:, 0], node_types[:, 1]]]
    return np.asarray(
        pairs if seed is None else pairs[permutations.shuffled_range(len(pairs), seed)]
    )


def _allowed(
    walks: Ids,
    types: ArrayLike | None,
    excluded: Sequence[tuple[int, int]],
    within: Iterable[int] | None,
) -> NDArray[np.bool_] | None:
    """Return which pairs of types to keep, ndarray of bool; None: all.

    Its shape is (types + 1, types + 1). The last row and column stand for "unknown" (-1).
    """
    if not excluded and within is None:
        return None
    if types is None:
        raise InvalidRequest(
            "types=None: expected the node types of the walks, because excluded or within is "
            "given; pass types=walk_types(...)"
        )
    type_array = _integers("types", types)
    if type_array.shape != walks.shape or (type_array.size and type_array.min() < -1):
        raise InvalidRequest(
            f"types of shape {list(type_array.shape)}: expected {list(walks.shape)}, the type of "
            "each node of the walks, or -1"
        )
    chosen = None if within is None else list(within)
    size = (
        max(
            int(type_array.max(initial=-1)),
            *(max(pair) for pair in excluded or [(-1, -1)]),
            *(chosen or [-1]),
        )
        + 1
    )
    allowed = np.ones((size + 1, size + 1), np.bool_)
    if chosen is not None:
        others = np.setdiff1d(np.arange(size + 1), chosen)
        allowed[others], allowed[:, others] = False, False
    for centre, context in excluded:
        allowed[centre, context] = False
    return allowed


def walk_types(walks: WalkSample, schema: Schema, *, direction: str = "out") -> Types:
    """Return the node type of each position of walks.

    Parameters
    ----------
    walks : WalkSample
        The walks.
    schema : Schema
        Schema of the space that was walked: ``graph.schema``.
    direction : {"out", "in"}, default "out"
        Direction of the walks.

    Returns
    -------
    ndarray of int32, shape (m, length + 1)
        Node type ids. -1 where there is no node, and for the start of a walk that never left it,
        because no edge gives its type.

    Raises
    ------
    InvalidRequest
        If the direction is unknown.

    Examples
    --------
    >>> walks = graph.random_walk([7], ["buys"])  # doctest: +SKIP
    >>> walk_types(walks, graph.schema)  # doctest: +SKIP
    array([[0, 1]], dtype=int32)
    """
    start_field, end_field = (
        ("src_type", "dst_type") if direction == "out" else ("dst_type", "src_type")
    )
    starts = np.array(
        [*(schema.node_type_id(getattr(edge, start_field)) for edge in schema.edge_types), -1],
        np.int32,
    )
    ends = np.array(
        [*(schema.node_type_id(getattr(edge, end_field)) for edge in schema.edge_types), -1],
        np.int32,
    )
    out = np.full(walks.nodes.shape, -1, np.int32)
    if walks.types.shape[1]:
        # Only restarts can precede the first edge, so that edge leaves from the start.
        first = np.argmax(walks.types >= 0, axis=1)
        out[:, 0] = starts[walks.types[np.arange(len(first)), first]]
    out[:, 1:] = np.where(
        (walks.types < 0) & (walks.nodes[:, 1:] >= 0), out[:, :1], ends[walks.types]
    )
    return out


def inflate_idx(idx: ArrayLike) -> NDArray[np.int64]:
    """Return the position of each entry when the entries are grouped by value.

    Each unique value is written as often as it occurs, one value after another.

    Parameters
    ----------
    idx : array_like of int64, shape (n,)
        Positions among the unique values, as ``np.unique(..., return_inverse=True)`` returns them.

    Returns
    -------
    ndarray of int64, shape (n,)
        Position of each entry in the grouped order.

    Raises
    ------
    InvalidRequest
        If an entry is negative.

    Examples
    --------
    >>> inflate_idx([0, 1, 0, 2, 1]).tolist()
    [0, 2, 1, 4, 3]
    """
    positions = _integers("idx", idx)
    _check_positions("idx", positions, None)
    out = np.empty(len(positions), np.int64)
    out[np.argsort(positions, kind="stable")] = np.arange(len(positions))
    return out


def ragged_gather(column: RaggedColumn, rows: ArrayLike) -> RaggedColumn:
    """Select rows of a ragged column.

    Parameters
    ----------
    column : (ndarray of int64, shape (n + 1,), ndarray)
        Ragged column as ``(indptr, values)``.
    rows : array_like of int64, shape (m,)
        Rows to select.

    Returns
    -------
    (ndarray of int64, shape (m + 1,), ndarray)
        The rows as ``(indptr, values)``, in the order of ``rows``.

    Raises
    ------
    InvalidRequest
        If a row is out of range.

    Examples
    --------
    >>> ragged_gather((np.array([0, 2, 3]), np.array([7, 8, 9])), [1, 0])
    (array([0, 1, 3]), array([9, 7, 8]))
    """
    indptr, values = column
    selected = _integers("rows", rows)
    _check_positions("rows", selected, len(indptr) - 1)
    lengths = np.diff(indptr)[selected]
    out = np.zeros(len(selected) + 1, np.int64)
    np.cumsum(lengths, out=out[1:])
    return out, values[np.repeat(indptr[:-1][selected] - out[:-1], lengths) + np.arange(out[-1])]


def ragged_strings(column: RaggedColumn | NDArray[Any]) -> NDArray[Any]:
    """Decode a feature of kind bytes that holds text.

    Parameters
    ----------
    column : (ndarray of int64, shape (n + 1,), ndarray of uint8)
        Column as ``(indptr, values)``, as `node_features` returns it; text in UTF-8.

    Returns
    -------
    ndarray of str, shape (n,)
        A string for each row, "" for an empty one. The dtype is object if a string is long.

    Raises
    ------
    InvalidRequest
        If the values are not bytes, or a row is not UTF-8.

    Examples
    --------
    >>> ragged_strings((np.array([0, 2, 2, 5]), np.frombuffer(b"nocat", np.uint8)))
    array(['no', '', 'cat'], dtype='<U3')
    """
    values = column if isinstance(column, np.ndarray) else column[1]
    if isinstance(column, np.ndarray) or values.dtype != np.uint8:
        raise InvalidRequest(
            f"column of {values.dtype}: expected (indptr, values) with bytes, as uint8; pass a "
            "feature of kind bytes"
        )
    indptr, _ = column
    try:
        return string_ids.decode_strings((indptr, values))
    except UnicodeDecodeError:
        row = next(
            i for i in range(len(indptr) - 1) if not _is_text(values[indptr[i] : indptr[i + 1]])
        )
        raise InvalidRequest(
            f"column, row {row}: expected text in UTF-8; decode its bytes in another way"
        ) from None


def _is_text(values: NDArray[Any]) -> bool:
    try:
        values.tobytes().decode()
    except UnicodeDecodeError:
        return False
    return True


def repeat_padding(sample: PaddedSample) -> PaddedSample:
    """Fill missing neighbors by repeating those that were found, in the same order.

    Dense models have rows without gaps then: a node with neighbors [4, 9] and a fanout of 5 has
    [4, 9, 4, 9, 4]. In a fanout, a repeated entry has all entries that were sampled from the entry
    that it repeats, so that equal entries have equal trees.

    Parameters
    ----------
    sample : NeighborSample, TopNeighbors or FanoutSample
        Sample with -1 in place of missing neighbors, such as one without replacement.

    Returns
    -------
    NeighborSample, TopNeighbors or FanoutSample
        Record of the same shape. Entries of nodes without any neighbor are still -1. The token is
        that of ``sample``.

    Examples
    --------
    >>> sample = graph.sample_neighbors(nodes, "cites", 5, replace=False)  # doctest: +SKIP
    >>> repeat_padding(sample).nodes  # doctest: +SKIP
    array([[4, 9, 4, 9, 4]])

    Raises
    ------
    InvalidRequest
        If the record is not one of these.
    """
    if not isinstance(sample, FanoutSample):
        positions = _repeated_positions(np.arange(len(sample.nodes)), sample.nodes)
        return _take_entries(sample, positions)
    origins, hops = np.arange(len(sample.seeds)), list[FanoutHop]()
    for hop in sample.hops:
        origins = _repeated_positions(origins, hop.nodes.reshape(-1, hop.fanout))
        hops.append(_take_entries(hop, origins))
    return replace(sample, hops=tuple(hops))


def _repeated_positions(rows: Ids, nodes: Ids) -> Ids:
    """Return the positions of entries of ``nodes`` that fill the given rows by repetition.

    Parameters
    ----------
    rows : ndarray of int64, shape (m,)
        Rows of ``nodes``.
    nodes : ndarray of int64, shape (k, n)
        Node ids; -1 is missing.

    Returns
    -------
    ndarray of int64, shape (m * n,)
    """
    present = nodes >= 0
    order = np.argsort(~present, axis=1, kind="stable")
    counts, width = present.sum(axis=1), nodes.shape[1]
    columns = np.arange(width) % np.where(counts > 0, counts, max(width, 1))[:, None]
    positions = np.take_along_axis(order, columns, axis=1) + width * np.arange(len(nodes))[:, None]
    return np.asarray(positions[rows].reshape(-1), np.int64)


def _take_entries(record: Entries, positions: Ids) -> Entries:
    """Return a record with the entries at flat positions in place of its own."""
    shape = record.nodes.shape if record.nodes.ndim == 2 else (-1,)
    changes: dict[str, Any] = {"infer_types": False} if isinstance(record, HeteroIds) else {}
    for name in _ENTRY_COLUMNS:
        column = getattr(record, name, None)
        if column is not None:
            changes[name] = column.reshape(-1)[positions].reshape(shape)
    if isinstance(record, FanoutHop) and record.features is not None:
        changes["features"] = {
            node_type: {
                name: ragged_gather(column, positions)
                if isinstance(column, tuple)
                else column[positions]
                for name, column in columns.items()
            }
            for node_type, columns in record.features.items()
        }
    return replace(record, **changes)


def sparse_gather(
    rows: ArrayLike, indices: ArrayLike, values: ArrayLike, shape: Sequence[int]
) -> tuple[Ids, Values, tuple[int, ...]]:
    """Select rows of a sparse COO tensor, like `numpy.take` on its first dimension.

    Parameters
    ----------
    rows : array_like of int64, shape (m,)
        Rows of the first dimension; rows may repeat.
    indices : array_like of int64, shape (k, d)
        Coordinates of the values, in any order.
    values : array_like, shape (k,)
        The values.
    shape : sequence of int, length d
        Shape of the tensor.

    Returns
    -------
    indices : ndarray of int64, shape (j, d)
        Coordinates, row after row; within a row in the input order.
    values : ndarray, shape (j,)
        The values.
    shape : tuple of int
        (m, ...).

    Raises
    ------
    InvalidRequest
        If the shapes do not match, or a position is out of range.

    Examples
    --------
    >>> sparse_gather([1, 1], [[0, 3], [1, 2]], [7, 8], (2, 4))
    (array([[0, 2],
           [1, 2]]), array([8, 8]), (2, 4))
    """
    coordinates, data, selected = (
        _integers("indices", indices),
        validation.as_array("values", values),
        _integers("rows", rows),
    )
    shape = [validation.count("shape", extent, maximum=validation.MAX_ID) for extent in shape]
    if (
        data.ndim < 1
        or coordinates.ndim != 2
        or coordinates.shape != (len(data), len(shape))
        or not len(shape)
    ):
        raise InvalidRequest(
            f"indices of shape {list(coordinates.shape)}, values of shape {list(data.shape)}, "
            f"shape={list(shape)}: expected shapes [k, d] and [k], and d sizes"
        )
    for dimension, extent in enumerate(shape):
        _check_positions(f"indices[:, {dimension}]", coordinates[:, dimension], extent)
    _check_positions("rows", selected, shape[0])
    order = np.argsort(coordinates[:, 0], kind="stable")
    indptr = np.concatenate(
        [[0], np.cumsum(np.bincount(coordinates[:, 0], minlength=shape[0]))]
    ).astype(np.int64)
    picked, positions = ragged_gather((indptr, order), selected)
    out = coordinates[positions]
    out[:, 0] = np.repeat(np.arange(len(selected)), np.diff(picked))
    return out, data[positions], (len(selected), *shape[1:])


def gather(params: Any, indices: Any) -> Any:
    """Return ``params[indices]``, such as the source rows of messages.

    Parameters
    ----------
    params : ndarray or tensor, shape (n, ...)
        Rows.
    indices : array_like of int64, shape (m,)
        Rows to select.

    Returns
    -------
    ndarray or tensor, shape (m, ...)
        The selected rows.

    Raises
    ------
    InvalidRequest
        If an index is out of range.

    Examples
    --------
    >>> gather(np.array([[1.0], [2.0]]), [1, 1, 0])
    array([[2.],
           [2.],
           [1.]])
    """
    if torch_gather_scatter.is_tensor(params):
        return torch_gather_scatter.gather(params, indices)
    rows, selected = validation.as_array("params", params), _integers("indices", indices)
    if not rows.ndim:
        raise InvalidRequest("params of shape []: expected rows, shape [n, ...]")
    _check_positions("indices", selected, len(rows))
    return rows[selected]


def scatter_add(updates: Any, indices: Any, size: int) -> Any:
    """Sum the updates of each target.

    Parameters
    ----------
    updates : ndarray or tensor, shape (m, ...)
        Updates.
    indices : array_like of int64, shape (m,)
        Target of each update, from 0 to ``size`` - 1.
    size : int
        Number of targets.

    Returns
    -------
    ndarray or tensor, shape (size, ...)
        Sums; 0 for a target without updates.

    Raises
    ------
    InvalidRequest
        If the shapes do not match, or an index is out of range.

    Examples
    --------
    >>> scatter_add(np.array([1.0, 2.0, 4.0]), [0, 0, 2], 3)
    array([3., 0., 4.])
    """
    if torch_gather_scatter.is_tensor(updates):
        return torch_gather_scatter.scatter_add(updates, indices, size)
    values, targets = _updates(updates, indices, size)
    out = np.zeros((size, *values.shape[1:]), values.dtype)
    np.add.at(out, targets, values)
    return out


def scatter_mean(updates: Any, indices: Any, size: int) -> Any:
    """Average the updates of each target.

    Parameters
    ----------
    updates : ndarray or tensor, shape (m, ...)
        Updates.
    indices : array_like of int64, shape (m,)
        Target of each update, from 0 to ``size`` - 1.
    size : int
        Number of targets.

    Returns
    -------
    ndarray or tensor, shape (size, ...)
        Means; 0 for a target without updates.

    Raises
    ------
    InvalidRequest
        If the shapes do not match, or an index is out of range.

    Examples
    --------
    >>> scatter_mean(np.array([1.0, 2.0, 4.0]), [0, 0, 2], 3)
    array([1.5, 0. , 4. ])
    """
    if torch_gather_scatter.is_tensor(updates):
        return torch_gather_scatter.scatter_mean(updates, indices, size)
    values, targets = _updates(updates, indices, size)
    counts = np.bincount(targets, minlength=size).reshape(size, *([1] * (values.ndim - 1)))
    sums = scatter_add(values, targets, size)
    return np.asarray(
        sums
        / np.maximum(counts, 1).astype(values.dtype if values.dtype.kind == "f" else np.float64)
    )


def scatter_max(updates: Any, indices: Any, size: int, *, empty: float = -1e9) -> Any:
    """Return the largest update of each target.

    Parameters
    ----------
    updates : ndarray or tensor, shape (m, ...)
        Updates.
    indices : array_like of int64, shape (m,)
        Target of each update, from 0 to ``size`` - 1.
    size : int
        Number of targets.
    empty : float, default -1e9
        Result for a target without updates.

    Returns
    -------
    ndarray or tensor, shape (size, ...)
        Maxima.

    Raises
    ------
    InvalidRequest
        If the shapes do not match, or an index is out of range.

    Examples
    --------
    >>> scatter_max(np.array([1.0, 2.0, 4.0]), [0, 0, 1], 2)
    array([2., 4.])
    """
    if torch_gather_scatter.is_tensor(updates):
        return torch_gather_scatter.scatter_max(updates, indices, size, empty=empty)
    values, targets = _updates(updates, indices, size)
    out = np.full((size, *values.shape[1:]), empty, values.dtype)
    occupied = np.unique(targets)
    out[occupied] = -np.inf if values.dtype.kind == "f" else np.iinfo(values.dtype).min
    with np.errstate(invalid="ignore"):  # NaN is the largest value
        np.maximum.at(out, targets, values)
    return out


def scatter_softmax(updates: Any, indices: Any, size: int) -> Any:
    """Return the softmax of updates among those of the same target.

    Parameters
    ----------
    updates : ndarray or tensor, shape (m, ...)
        Updates.
    indices : array_like of int64, shape (m,)
        Target of each update, from 0 to ``size`` - 1.
    size : int
        Number of targets.

    Returns
    -------
    ndarray or tensor, shape (m, ...)
        Softmax of each update.

    Raises
    ------
    InvalidRequest
        If the shapes do not match, or an index is out of range.

    Examples
    --------
    >>> scatter_softmax(np.array([0.0, 0.0, 5.0]), [0, 0, 1], 2)
    array([0.5, 0.5, 1. ])
    """
    if torch_gather_scatter.is_tensor(updates):
        return torch_gather_scatter.scatter_softmax(updates, indices, size)
    values, targets = _updates(updates, indices, size)
    exponentials = np.exp(values - scatter_max(values, targets, size)[targets])
    total = np.asarray(scatter_add(exponentials, targets, size))
    return np.asarray(exponentials / total[targets])


def _updates(updates: ArrayLike, indices: ArrayLike, size: int) -> tuple[NDArray[Any], Ids]:
    values, targets = validation.as_array("updates", updates), _integers("indices", indices)
    if values.dtype.kind not in "biuf":
        raise InvalidRequest(f"updates of dtype {values.dtype}: expected numbers")
    if values.dtype.kind == "b":
        values = values.astype(np.int64)
    validation.count("size", size)
    if targets.ndim != 1 or values.ndim < 1 or len(values) != len(targets):
        raise InvalidRequest(
            f"updates of shape {list(values.shape)}, indices of shape {list(targets.shape)}: "
            "expected one index for each update"
        )
    _check_positions("indices", targets, size)
    return values, targets


def _integers(name: str, values: ArrayLike | None) -> Ids:
    """Return an array of int64; InvalidRequest for values that are no integers or do not fit."""
    array = validation.as_array(name, [] if values is None else values, "integers")
    if array.size and array.dtype.kind not in "iu":
        raise InvalidRequest(f"{name} of dtype {array.dtype}: expected integers")
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise InvalidRequest(f"{name} with {array.max()}: expected integers below 2^63")
    return array.astype(np.int64, copy=False)


def _check_positions(name: str, positions: Ids, size: int | None) -> None:
    if positions.ndim != 1:
        raise InvalidRequest(
            f"{name} of shape {list(positions.shape)}: expected one dimension, shape [n]"
        )
    bad = positions < 0 if size is None else (positions < 0) | (positions >= size)
    if bad.any():
        position = int(np.argmax(bad))
        raise InvalidRequest(
            f"{name}[{position}]={positions[position]}: expected "
            + ("0 or more" if size is None else f"0 to {size - 1}")
        )
