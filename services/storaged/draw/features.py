"""Feature columns of nodes and edges by id: dense, ragged and bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import InvalidRequest
from asterism_proto.schema import Feature
from graphkit import split
from graphkit.jit import settled
from storaged.draw.lookup import groups_of
from storaged.draw.version import EDGE, NODE, Version, checked_outputs
from storaged.kernel.rows import copy_ragged
from storaged.store.image import Column, EdgeImage, PartImage

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
    groups = list(groups_of(version, type_id, ids, None))
    sections: Sections = {"found": np.zeros(ids.size, np.uint8)}
    for group in groups:
        sections["found"][group.at] = group.rows >= 0
    for name in names:
        if name == "weight":
            sections["f:weight"] = np.zeros(ids.size, np.float32)
            for group in groups:
                weights = group.image.nodes[type_id].weights
                known = group.rows >= 0
                sections["f:weight"][group.at[known]] = weights[group.rows[known]] if weights.size else 1
        else:
            feature = node_type.feature(name)
            _gather(feature, ids.size, [(g.at, g.rows, g.image.nodes[type_id].columns[name]) for g in groups], sections)
    return sections


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
        checked_outputs(f"feature {feature.name!r}", size, int(np.prod(feature.shape, dtype=np.int64)))
        out = np.zeros((size, *feature.shape), feature.dtype)
        for at, rows, column in places:
            known = rows >= 0
            if known.all():
                _put_rows(out, at, column.values, rows)
            elif known.any():
                _put_rows(out, at[known], column.values, rows[known])
        sections[name] = out
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


def _put_rows(out: NDArray[Any], at: NDArray[np.int64], values: NDArray[Any], rows: NDArray[np.int64]) -> None:
    """``out[at] = values[rows]``, a row copied as one piece of memory whatever it is made of."""
    width = out.dtype.itemsize * int(np.prod(out.shape[1:], dtype=np.int64))
    piece = np.dtype((np.void, width))
    out.reshape(out.shape[0], -1).view(piece)[at, 0] = values.reshape(values.shape[0], -1).view(piece)[rows, 0]


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
