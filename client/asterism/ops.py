"""Local operations on what sampling gives: pairs of walks, gathers and scatters; nothing is asked
of a service.

Arrays give arrays. `gather` and the scatters take torch's tensors too, and give tensors that have
gradients."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asterism import hashing
from asterism.records.arrays import Ids, RaggedColumn, Types, Values
from asterism.training import tensor_ops
from asterism_proto.errors import InvalidRequest

if TYPE_CHECKING:
    from asterism.records.samples import WalkSample
    from asterism_model.schema import Schema

__all__ = [
    "gather",
    "inflate_idx",
    "pair_places",
    "ragged_gather",
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
    """Skip-gram pairs of walks: each node with those near it on its walk.

    Parameters
    ----------
    paths : int64[m, n]
        Walks, a row each; -1 is no node.
    left, right : int
        How many places before and behind a centre count as near.
    types : int[m, n], optional
        The node type of each place, as `walk_types` gives them; needed by ``excluded`` and
        ``within``.
    excluded : iterable of (int, int)
        Leave out pairs of these types, the centre's first.
    within : iterable of int, optional
        Leave out pairs that have a node of any other type.
    seed : int, optional
        Shuffle the pairs, in the same order for the same seed; None: as below.

    Returns
    -------
    int64[k, 2]
        (centre, neighbor on the walk), by walk, then centre; of a centre those before it, the
        nearest first, then those behind it, the nearest first. -1 enters no pair.

    Examples
    --------
    >>> walk_pairs([[1, 2, 3]], 1, 1).tolist()
    [[1, 2], [2, 1], [2, 3], [3, 2]]
    >>> walk_pairs([[1, 2, 3]], 1, 1, types=[[0, 1, 1]], excluded=[(1, 0)]).tolist()
    [[1, 2], [2, 3], [3, 2]]
    """
    walks = np.asarray(paths, np.int64)
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
    """As `walk_pairs`, but where the nodes are: places in ``paths`` laid flat, by which more can be
    gathered than ids.
    """
    walks = np.asarray(paths, np.int64)
    if walks.ndim != 2:
        raise InvalidRequest(f"paths has shape {list(walks.shape)}; expected a row per walk")
    if left < 0 or right < 0:
        raise InvalidRequest(f"window {left} and {right}: expected 0 or more places on each side")
    steps = walks.shape[1]
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
    if allowed is not None:
        node_types = np.asarray(types, np.int64).reshape(-1)[pairs]
        pairs = pairs[allowed[node_types[:, 0], node_types[:, 1]]]
    return np.asarray(pairs if seed is None else pairs[hashing.shuffled_range(len(pairs), seed)])


def _allowed(
    walks: Ids,
    types: ArrayLike | None,
    excluded: Sequence[tuple[int, int]],
    within: Iterable[int] | None,
) -> NDArray[np.bool_] | None:
    """bool[types + 1, types + 1]: which pairs of types are wanted, the last one being "unknown"
    (-1); None: all.
    """
    if not excluded and within is None:
        return None
    if types is None:
        raise InvalidRequest(
            "excluded and within need the types of the walks' nodes; give types=walk_types(...)"
        )
    type_array = np.asarray(types, np.int64)
    if type_array.shape != walks.shape or (type_array.size and type_array.min() < -1):
        raise InvalidRequest(
            f"types has shape {list(type_array.shape)}, walks {list(walks.shape)}: expected "
            "a type for each node, or -1"
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
    """The node type of each place of walks.

    Parameters
    ----------
    walks : WalkSample
    schema : Schema
        Of the space that was walked: ``graph.schema``.
    direction : {"out", "in"}
        As the walks went.

    Returns
    -------
    int32[m, length + 1]
        -1 where there is no node, and for the start of a walk that has never left it: no edge says
        what it is.
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
        # Before the first edge there are only restarts: it leaves from the start.
        first = np.argmax(walks.types >= 0, axis=1)
        out[:, 0] = starts[walks.types[np.arange(len(first)), first]]
    out[:, 1:] = np.where(
        (walks.types < 0) & (walks.nodes[:, 1:] >= 0), out[:, :1], ends[walks.types]
    )
    return out


def inflate_idx(idx: ArrayLike) -> NDArray[np.int64]:
    """Where each occurrence goes when every unique value is written as often as it occurs, one
    value behind the other.

    Parameters
    ----------
    idx : int64[n]
        Positions among unique values, as ``np.unique(..., return_inverse=True)`` gives them.

    Returns
    -------
    int64[n]

    Examples
    --------
    >>> inflate_idx([0, 1, 0, 2, 1]).tolist()
    [0, 2, 1, 4, 3]
    """
    positions = np.asarray(idx, np.int64)
    _check_positions("idx", positions, None)
    out = np.empty(len(positions), np.int64)
    out[np.argsort(positions, kind="stable")] = np.arange(len(positions))
    return out


def ragged_gather(column: RaggedColumn, rows: ArrayLike) -> RaggedColumn:
    """The given rows of a ragged column, in that order.

    Parameters
    ----------
    column : (indptr int64[n + 1], values)
    rows : int64[m]

    Returns
    -------
    (indptr int64[m + 1], values)
    """
    indptr, values = column
    selected = np.asarray(rows, np.int64)
    _check_positions("rows", selected, len(indptr) - 1)
    lengths = np.diff(indptr)[selected]
    out = np.zeros(len(selected) + 1, np.int64)
    np.cumsum(lengths, out=out[1:])
    return out, values[np.repeat(indptr[:-1][selected] - out[:-1], lengths) + np.arange(out[-1])]


def sparse_gather(
    rows: ArrayLike, indices: ArrayLike, values: ArrayLike, shape: Sequence[int]
) -> tuple[Ids, Values, tuple[int, ...]]:
    """The given rows of a sparse tensor (COO), in that order: `numpy.take` on its first dimension.

    Parameters
    ----------
    rows : int64[m]
        Of the first dimension; one may come several times.
    indices : int64[k, d]
        Where values are, in any order.
    values : [k]
    shape : d numbers

    Returns
    -------
    indices : int64[j, d]
        Row after row; within one in the order in which they came.
    values : [j]
    shape : (m, ...)

    Examples
    --------
    >>> sparse_gather([1, 1], [[0, 3], [1, 2]], [7, 8], (2, 4))
    (array([[0, 2],
           [1, 2]]), array([8, 8]), (2, 4))
    """
    coordinates, data, selected = (
        np.asarray(indices, np.int64),
        np.asarray(values),
        np.asarray(rows, np.int64),
    )
    if coordinates.ndim != 2 or coordinates.shape != (len(data), len(shape)) or not len(shape):
        raise InvalidRequest(
            f"indices {list(coordinates.shape)}, values {list(data.shape)}, shape "
            f"{list(shape)}: expected [k, d], [k] and d numbers"
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
    """``params[indices]``: the rows that messages start from; int64 indices [m], rows [m, ...]."""
    if tensor_ops.is_tensor(params):
        return tensor_ops.gather(params, indices)
    rows, selected = np.asarray(params), np.asarray(indices, np.int64)
    _check_positions("indices", selected, len(rows))
    return rows[selected]


def scatter_add(updates: Any, indices: Any, size: int) -> Any:
    """Sums of the updates that go to each of ``size`` places; [size, ...], 0 where none goes."""
    if tensor_ops.is_tensor(updates):
        return tensor_ops.scatter_add(updates, indices, size)
    values, targets = _updates(updates, indices, size)
    out = np.zeros((size, *values.shape[1:]), values.dtype)
    np.add.at(out, targets, values)
    return out


def scatter_mean(updates: Any, indices: Any, size: int) -> Any:
    """Means of the updates that go to each of ``size`` places; [size, ...], 0 where none goes."""
    if tensor_ops.is_tensor(updates):
        return tensor_ops.scatter_mean(updates, indices, size)
    values, targets = _updates(updates, indices, size)
    counts = np.bincount(targets, minlength=size).reshape(size, *([1] * (values.ndim - 1)))
    sums = scatter_add(values, targets, size)
    return np.asarray(
        sums
        / np.maximum(counts, 1).astype(values.dtype if values.dtype.kind == "f" else np.float64)
    )


def scatter_max(updates: Any, indices: Any, size: int, *, empty: float = -1e9) -> Any:
    """The largest of the updates that go to each of ``size`` places; [size, ...], ``empty`` where
    none goes.
    """
    if tensor_ops.is_tensor(updates):
        return tensor_ops.scatter_max(updates, indices, size, empty=empty)
    values, targets = _updates(updates, indices, size)
    out = np.full((size, *values.shape[1:]), empty, values.dtype)
    occupied = np.unique(targets)
    out[occupied] = -np.inf if values.dtype.kind == "f" else np.iinfo(values.dtype).min
    np.maximum.at(out, targets, values)
    return out


def scatter_softmax(updates: Any, indices: Any, size: int) -> Any:
    """Softmax of the updates among those that go to the same place; [m, ...]."""
    if tensor_ops.is_tensor(updates):
        return tensor_ops.scatter_softmax(updates, indices, size)
    values, targets = _updates(updates, indices, size)
    exponentials = np.exp(values - scatter_max(values, targets, size)[targets])
    total = np.asarray(scatter_add(exponentials, targets, size))
    return np.asarray(exponentials / total[targets])


def _updates(updates: ArrayLike, indices: ArrayLike, size: int) -> tuple[NDArray[Any], Ids]:
    values, targets = np.asarray(updates), np.asarray(indices, np.int64)
    if size < 0:
        raise InvalidRequest(f"size {size}: expected 0 or more")
    if targets.ndim != 1 or values.ndim < 1 or len(values) != len(targets):
        raise InvalidRequest(
            f"updates {list(values.shape)} and indices {list(targets.shape)}: expected one "
            "index per update"
        )
    _check_positions("indices", targets, size)
    return values, targets


def _check_positions(name: str, positions: Ids, size: int | None) -> None:
    if positions.ndim != 1:
        raise InvalidRequest(f"{name} has shape {list(positions.shape)}; expected one dimension")
    bad = positions < 0 if size is None else (positions < 0) | (positions >= size)
    if bad.any():
        position = int(np.argmax(bad))
        raise InvalidRequest(
            f"{name}[{position}] = {positions[position]}: expected 0 or more"
            + ("" if size is None else f", and less than {size}")
        )
