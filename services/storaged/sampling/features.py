"""Feature columns of nodes and edges by id: dense, ragged and bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.arrays.gather_scatter import gather_rows
from asterism_graphkit.compile.jit import addresses_of, as_kernel_array
from asterism_graphkit.random import partition_choice
from asterism_model.elements import EDGE, NODE
from asterism_model.schema import Feature
from asterism_proto.errors import InvalidRequest
from storaged.kernels.node_rows import copy_ragged
from storaged.sampling.cancellation import BLOCK_DRAWS, Checkpoint, blocks, no_checkpoint
from storaged.sampling.node_lookup import LocatedNodes, group_nodes, locate_nodes
from storaged.sampling.version import LocalVersion, check_output_size
from storaged.store.image import EMPTY_U8, EdgeImage, FeatureColumn, PartImage

Sections = dict[str, NDArray[Any]]
_BLOCK_BYTES = 1 << 20
"""Bytes that are gathered before the first checkpoint."""
FeatureRows = tuple[NDArray[np.int64], NDArray[np.int64], FeatureColumn]
"""Positions in the reply, rows (-1 for none), and the column that has them."""


def node_features(
    version: LocalVersion,
    type_id: int,
    names: Sequence[str],
    ids: NDArray[np.int64],
    checkpoint: Checkpoint = no_checkpoint,
) -> Sections:
    """Return feature columns of nodes.

    Parameters
    ----------
    version : LocalVersion
    type_id : int
    names : sequence of str
        Features of the type; ``weight`` is the node's weight.
    ids : ndarray of int64, shape (m,)
    checkpoint : callable
        Called between blocks of nodes; may raise.

    Returns
    -------
    dict of ndarray
        ``found``: uint8, shape (m,). For each name, ``f:name`` of shape (m, ...), or
        ``f:name.indptr``: int64, shape (m + 1,), and ``f:name.values``. An unknown node has zeros
        and empty rows.

    Raises
    ------
    NotFound
        A feature is unknown.
    InvalidRequest
        The type is unknown, or the reply would be too large.
    Unavailable
        A partition is not held here.
    """
    version.type_name(NODE, type_id)
    node_type = version.schema.node_types[type_id]
    features = {name: node_type.feature(name) for name in names if name != "weight"}
    (nodes,) = locate_nodes(version, type_id, ids, None)
    groups = (
        list(group_nodes(version, type_id, ids, None))
        if any(feature.kind != "dense" for feature in features.values())
        else []
    )
    sections: Sections = {"found": (nodes.rows >= 0).astype(np.uint8)}
    for name in names:
        feature = features.get(name)
        if feature is None:
            sections["f:weight"] = _node_weights(version, nodes, checkpoint)
        elif feature.kind == "dense":
            bases = version.cached(
                (_column_addresses, type_id, name),
                partial(_column_addresses, version, type_id, name),
            )
            sections[f"f:{name}"] = _read_dense(feature, nodes.parts, nodes.rows, bases, checkpoint)
        else:
            _gather(
                feature,
                ids.size,
                [
                    (group.places, group.rows, group.image.nodes[type_id].columns[name])
                    for group in groups
                ],
                sections,
                checkpoint,
            )
    return sections


def _array_addresses(
    version: LocalVersion, array_of: Callable[[PartImage], NDArray[Any]]
) -> NDArray[np.uint64]:
    """Return the address of an array of each partition.

    It is 0 if the array is empty or the partition is not held here.
    """
    images = [version.parts.get(part) for part in range(version.schema.parts)]
    return addresses_of(EMPTY_U8 if image is None else array_of(image) for image in images)


def _column_addresses(version: LocalVersion, type_id: int, name: str) -> NDArray[np.uint64]:
    return _array_addresses(version, lambda image: image.nodes[type_id].columns[name].values)


def _node_weights(
    version: LocalVersion, nodes: LocatedNodes, checkpoint: Checkpoint
) -> NDArray[np.float32]:
    """Return the weight of each node; 1 if its partition has no weights."""
    bases = version.cached(
        (_node_weights, nodes.type_id),
        lambda: _array_addresses(version, lambda image: image.nodes[nodes.type_id].weights),
    )
    unweighted = bases[nodes.parts] == 0
    out = _gather_in_blocks(
        nodes.parts,
        np.where(unweighted, -1, nodes.rows),
        bases,
        (),
        np.dtype(np.float32),
        checkpoint,
    )
    out[unweighted & (nodes.rows >= 0)] = 1
    return out


def edge_features(
    version: LocalVersion,
    type_id: int,
    names: Sequence[str],
    eids: NDArray[np.int64],
    checkpoint: Checkpoint = no_checkpoint,
) -> Sections:
    """Return feature columns of edges, by edge id.

    The features of an edge are stored in partition eid % parts. The result is that of
    `node_features`.

    Parameters
    ----------
    version : LocalVersion
    type_id : int
    names : sequence of str
        Features of the type.
    eids : ndarray of int64, shape (m,)
    checkpoint : callable
        Called between blocks of edges; may raise.

    Raises
    ------
    NotFound, InvalidRequest, Unavailable
        As for `node_features`.
    """
    version.type_name(EDGE, type_id)
    edge_type = version.schema.edge_types[type_id]
    features = [edge_type.feature(name) for name in names]
    parts = version.schema.parts
    keys = np.where(eids < 0, np.int32(parts), partition_choice.part_of(eids, parts, "mod"))
    order, offsets = partition_choice.group_by_key(keys, parts + 1)
    sections: Sections = {"found": np.zeros(eids.size, np.uint8)}
    feature_rows: list[tuple[NDArray[np.int64], NDArray[np.int64], EdgeImage]] = []
    for part in np.flatnonzero(np.diff(offsets[:-1])):
        image = version.image(int(part))
        places = as_kernel_array(order[offsets[part] : offsets[part + 1]])
        rows = _edge_rows(image, image.edges[type_id], eids[places], checkpoint)
        sections["found"][places] = rows >= 0
        feature_rows.append((places, rows, image.edges[type_id]))
        checkpoint()
    for feature in features:
        _gather(
            feature,
            eids.size,
            [(places, rows, image.columns[feature.name]) for places, rows, image in feature_rows],
            sections,
            checkpoint,
        )
    return sections


def _edge_rows(
    image: PartImage, edge: EdgeImage, eids: NDArray[np.int64], checkpoint: Checkpoint
) -> NDArray[np.int64]:
    """Return the feature row of each edge id of this partition, -1 for none; read-only."""
    if not edge.feature_eids.size:
        rows = eids // image.parts
        return as_kernel_array(np.where(rows < edge.feature_rows, rows, -1))
    out = np.empty(eids.size, np.int64)
    for block in blocks(eids.size, BLOCK_DRAWS >> 2, checkpoint):
        block_eids = eids[block]
        rows = np.searchsorted(edge.feature_eids, block_eids)
        rows = np.minimum(rows, edge.feature_eids.size - 1)
        out[block] = np.where(edge.feature_eids[rows] == block_eids, rows, -1)
    return as_kernel_array(out)


def _gather(
    feature: Feature,
    size: int,
    feature_rows: Sequence[FeatureRows],
    sections: Sections,
    checkpoint: Checkpoint,
) -> None:
    """Write one feature of all positions to ``sections``."""
    name = f"f:{feature.name}"
    if feature.kind == "dense":
        array_indices, array_rows = np.zeros(size, np.int32), np.full(size, -1, np.int64)
        for array_index, (places, rows, _) in enumerate(feature_rows):
            array_indices[places], array_rows[places] = array_index, rows
        columns = [as_kernel_array(column.values) for _, _, column in feature_rows]
        sections[name] = _read_dense(
            feature, array_indices, array_rows, addresses_of(columns), checkpoint
        )
        return
    dtype = np.dtype("uint8" if feature.kind == "bytes" else feature.dtype)
    indptr = _ragged_indptr(size, feature_rows)
    check_output_size(f"feature {feature.name!r}", int(indptr[-1]))
    raw = np.empty(int(indptr[-1]) * dtype.itemsize, np.uint8)
    for places, rows, column in feature_rows:
        values = as_kernel_array(column.values).view(np.uint8)
        for block in blocks(rows.size, BLOCK_DRAWS >> 2, checkpoint):
            copy_ragged(
                as_kernel_array(rows[block]),
                as_kernel_array(places[block]),
                _indptr(column),
                values,
                np.int64(dtype.itemsize),
                as_kernel_array(indptr),
                raw,
            )
    sections[f"{name}.indptr"] = indptr
    sections[f"{name}.values"] = raw.view(dtype)


def _read_dense(
    feature: Feature,
    array_indices: NDArray[np.int32],
    rows: NDArray[np.int64],
    bases: NDArray[np.uint64],
    checkpoint: Checkpoint,
) -> NDArray[Any]:
    """Read rows of a dense feature, with the arguments of `gather_rows`."""
    check_output_size(f"feature {feature.name!r}", rows.size, math.prod(feature.shape))
    return _gather_in_blocks(
        array_indices, rows, bases, feature.shape, np.dtype(feature.dtype), checkpoint
    )


def _gather_in_blocks(
    array_indices: NDArray[np.int32],
    rows: NDArray[np.int64],
    bases: NDArray[np.uint64],
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    checkpoint: Checkpoint,
) -> NDArray[Any]:
    """Return the rows of `gather_rows`, with a checkpoint between blocks of rows."""
    row_bytes = math.prod(shape) * dtype.itemsize
    pieces = [
        gather_rows(array_indices[block], rows[block], bases, shape, dtype)
        for block in blocks(rows.size, max(_BLOCK_BYTES // max(row_bytes, 1), 1), checkpoint)
    ]
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def _ragged_indptr(size: int, feature_rows: Iterable[FeatureRows]) -> NDArray[np.int64]:
    lengths = np.zeros(size + 1, np.int64)
    for places, rows, column in feature_rows:
        indptr, present = _indptr(column), rows >= 0
        lengths[places[present] + 1] = indptr[rows[present] + 1] - indptr[rows[present]]
    return np.cumsum(lengths)


def _indptr(column: FeatureColumn) -> NDArray[np.int64]:
    if column.indptr is None:
        raise InvalidRequest(
            "a dense column was requested as ragged: the image does not match the schema"
        )
    return column.indptr


def read_feature_rows(
    feature: Feature, column: FeatureColumn, rows: NDArray[np.int64], sections: Sections
) -> None:
    """Write one feature of a partition's rows to ``sections``, in the order of ``rows``."""
    places = np.arange(rows.size, dtype=np.int64)
    _gather(feature, rows.size, [(places, rows, column)], sections, no_checkpoint)
