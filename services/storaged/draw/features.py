"""Feature columns of nodes and edges by id: dense, ragged and bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import InvalidRequest
from asterism_proto.schema import Feature
from graphkit import split
from graphkit.jit import addresses_of, settled
from graphkit.rows import gathered
from storaged.draw.lookup import Located, groups_of, located
from storaged.draw.version import EDGE, NODE, Version, checked_outputs
from storaged.kernel.rows import copy_ragged
from storaged.store.image import EMPTY_U8, Column, EdgeImage, PartImage

Sections = dict[str, NDArray[Any]]
Place = tuple[NDArray[np.int64], NDArray[np.int64], Column]
"""Places in the answer, rows (-1: none) and the column that has them."""


def node_features(version: Version, type_id: int, names: Sequence[str], ids: NDArray[np.int64]) -> Sections:
    """Feature columns of nodes.

    Parameters
    ----------
    version : Version
    type_id : int
    names : sequence of str
        Features of the type; ``weight`` is the node's weight.
    ids : int64[m]

    Returns
    -------
    dict
        ``found`` uint8[m]; per name ``f:name`` [m, *shape], or ``f:name.indptr`` int64[m + 1] and ``f:name.values``. An
        unknown node has zeros and empty rows.

    Raises
    ------
    NotFound, InvalidRequest, Unavailable
        Where a feature or type is unknown, the answer would be too large, or a part is not held here.
    """
    version.type_name(NODE, type_id)
    node_type = version.schema.node_types[type_id]
    features = {name: node_type.feature(name) for name in names if name != "weight"}
    (where,) = located(version, type_id, ids, None)
    groups = list(groups_of(version, type_id, ids, None)) if any(feature.kind != "dense" for feature in features.values()) else []
    sections: Sections = {"found": (where.rows >= 0).astype(np.uint8)}
    for name in names:
        feature = features.get(name)
        if feature is None:
            sections["f:weight"] = _weights(version, where)
        elif feature.kind == "dense":
            bases = version.once((_columns, type_id, name), partial(_columns, version, type_id, name))
            sections[f"f:{name}"] = _dense(feature, where.parts, where.rows, bases)
        else:
            _gather(feature, ids.size, [(group.at, group.rows, group.image.nodes[type_id].columns[name]) for group in groups], sections)
    return sections


def _addresses(version: Version, of: Callable[[PartImage], NDArray[Any]]) -> NDArray[np.uint64]:
    """Where an array of each part begins; 0 of one that is empty, or whose part is not held here."""
    held = [version.parts.get(part) for part in range(version.schema.parts)]
    return addresses_of(EMPTY_U8 if image is None else of(image) for image in held)


def _columns(version: Version, type_id: int, name: str) -> NDArray[np.uint64]:
    return _addresses(version, lambda image: image.nodes[type_id].columns[name].values)


def _weights(version: Version, where: Located) -> NDArray[np.float32]:
    """The weight of each node; 1 where its part keeps none."""
    bases = version.once((_weights, where.type_id), lambda: _addresses(version, lambda image: image.nodes[where.type_id].weights))
    bare = bases[where.parts] == 0
    out = gathered(where.parts, np.where(bare, -1, where.rows), bases, (), np.dtype(np.float32))
    out[bare & (where.rows >= 0)] = 1
    return out


def edge_features(version: Version, type_id: int, names: Sequence[str], eids: NDArray[np.int64]) -> Sections:
    """Feature columns of edges, which live at part eid % parts; as `node_features`, by edge id.

    Raises
    ------
    NotFound, InvalidRequest, Unavailable
        As `node_features`.
    """
    version.type_name(EDGE, type_id)
    edge_type = version.schema.edge_types[type_id]
    features = [edge_type.feature(name) for name in names]
    parts = version.schema.parts
    keys = np.where(eids < 0, np.int32(parts), split.part_of(eids, parts, "mod"))
    order, offsets = split.group(keys, parts + 1)
    sections: Sections = {"found": np.zeros(eids.size, np.uint8)}
    places: list[tuple[NDArray[np.int64], NDArray[np.int64], EdgeImage]] = []
    for part in np.flatnonzero(np.diff(offsets[:-1])):
        image = version.image(int(part))
        at = settled(order[offsets[part] : offsets[part + 1]])
        rows = _edge_rows(image, image.edges[type_id], eids[at])
        sections["found"][at] = rows >= 0
        places.append((at, rows, image.edges[type_id]))
    for feature in features:
        _gather(feature, eids.size, [(at, rows, image.columns[feature.name]) for at, rows, image in places], sections)
    return sections


def _edge_rows(image: PartImage, edge: EdgeImage, eids: NDArray[np.int64]) -> NDArray[np.int64]:
    """The feature row of each edge id of this part, -1 where there is none; read-only."""
    if not edge.feature_eids.size:
        rows = eids // image.parts
        return settled(np.where(rows < edge.feature_rows, rows, -1))
    rows = np.minimum(np.searchsorted(edge.feature_eids, eids), edge.feature_eids.size - 1)
    return settled(np.where(edge.feature_eids[rows] == eids, rows, -1))


def _gather(feature: Feature, size: int, places: Sequence[Place], sections: Sections) -> None:
    """Put one feature of all places into ``sections``."""
    name = f"f:{feature.name}"
    if feature.kind == "dense":
        of, own = np.zeros(size, np.int32), np.full(size, -1, np.int64)
        for place, (at, rows, _) in enumerate(places):
            of[at], own[at] = place, rows
        columns = [settled(column.values) for _, _, column in places]
        sections[name] = _dense(feature, of, own, addresses_of(columns))
        return
    dtype = np.dtype("uint8" if feature.kind == "bytes" else feature.dtype)
    indptr = _ragged_indptr(size, places)
    checked_outputs(f"feature {feature.name!r}", int(indptr[-1]))
    raw = np.empty(int(indptr[-1]) * dtype.itemsize, np.uint8)
    for at, rows, column in places:
        values = settled(column.values).view(np.uint8)
        copy_ragged(settled(rows), settled(at), _indptr(column), values, np.int64(dtype.itemsize), settled(indptr), raw)
    sections[f"{name}.indptr"] = indptr
    sections[f"{name}.values"] = raw.view(dtype)


def _dense(feature: Feature, of: NDArray[np.int32], rows: NDArray[np.int64], bases: NDArray[np.uint64]) -> NDArray[Any]:
    """Rows of a dense feature; arrays as `gathered` takes them."""
    checked_outputs(f"feature {feature.name!r}", rows.size, math.prod(feature.shape))
    return gathered(of, rows, bases, feature.shape, np.dtype(feature.dtype))


def _ragged_indptr(size: int, places: Iterable[Place]) -> NDArray[np.int64]:
    lengths = np.zeros(size + 1, np.int64)
    for at, rows, column in places:
        indptr, known = _indptr(column), rows >= 0
        lengths[at[known] + 1] = indptr[rows[known] + 1] - indptr[rows[known]]
    return np.cumsum(lengths)


def _indptr(column: Column) -> NDArray[np.int64]:
    if column.indptr is None:
        raise InvalidRequest("a dense column was asked for as ragged: the image and the schema disagree")
    return column.indptr


def slice_rows(feature: Feature, column: Column, rows: NDArray[np.int64], sections: Sections) -> None:
    """Put one feature of rows of one part into ``sections``, in the order of ``rows``."""
    _gather(feature, rows.size, [(np.arange(rows.size, dtype=np.int64), rows, column)], sections)
