"""Scans of one type in one partition, in canonical order, resumed by a row number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.random import partition_choice
from asterism_model.elements import EDGE, NODE
from asterism_proto.errors import InvalidRequest
from storaged.sampling.features import Sections, read_feature_rows
from storaged.sampling.version import MAX_OUTPUTS, LocalVersion, check_length
from storaged.store.image import PartImage

DEFAULT_ROWS = 65536


def _check_page(version: LocalVersion, part: int, cursor: int, limit: int) -> tuple[PartImage, int]:
    if not 0 <= part < version.schema.parts:
        raise InvalidRequest(
            f"part {part}: expected a partition of the space, 0 to {version.schema.parts - 1}"
        )
    if cursor < 0:
        raise InvalidRequest(f"cursor {cursor}: expected 0, or the next cursor of a reply")
    if not 0 <= limit <= MAX_OUTPUTS:
        raise InvalidRequest(f"limit {limit}: expected 0 (the server's choice) to {MAX_OUTPUTS}")
    return version.image(part), limit or DEFAULT_ROWS


def read_nodes(
    version: LocalVersion, type_id: int, part: int, cursor: int, limit: int, names: Sequence[str]
) -> tuple[Sections, int]:
    """Return live nodes of a partition by id, starting from a row.

    Parameters
    ----------
    version : LocalVersion
    type_id, part : int
    cursor : int
        Row to start from; 0 for the first page.
    limit : int
        Largest number of nodes; 0 for ``DEFAULT_ROWS``.
    names : sequence of str
        Features to read.

    Returns
    -------
    sections : dict of ndarray
        ``ids``: int64, shape (k,); ``weights``: float32, shape (k,); features as in
        `storaged.sampling.node_features`.
    next_cursor : int
        -1 after the last page.

    Raises
    ------
    InvalidRequest
        An argument is out of range.
    NotFound
        A feature is unknown.
    Unavailable
        The partition is not held here.
    """
    version.type_name(NODE, type_id)
    image, limit = _check_page(version, part, cursor, limit)
    node = image.nodes[type_id]
    features = [
        version.schema.node_types[type_id].feature(name) for name in names if name != "weight"
    ]
    if node.live.size:
        first = int(np.searchsorted(node.live_rows, cursor))
        rows = node.live_rows[first : first + limit].astype(np.int64)
        next_cursor = (
            int(node.live_rows[first + limit]) if first + limit < node.live_rows.size else -1
        )
    else:
        stop = min(cursor + limit, node.rows)
        rows = np.arange(min(cursor, stop), stop, dtype=np.int64)
        next_cursor = stop if stop < node.rows else -1
    sections: Sections = {
        "ids": rows * image.parts + image.part if node.dense else node.ids[rows],
        "weights": node.weights[rows] if node.weights.size else np.ones(rows.size, np.float32),
    }
    if "weight" in names:
        sections["f:weight"] = sections["weights"]
    for feature in features:
        read_feature_rows(feature, node.columns[feature.name], rows, sections)
    return sections, next_cursor


def read_nodes_at(
    version: LocalVersion, type_id: int, parts: NDArray[np.int32], places: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the ids of nodes by position among the live nodes of their partition.

    Positions are those of the order of `read_nodes`.

    Parameters
    ----------
    version : LocalVersion
    type_id : int
    parts : ndarray of int32, shape (m,)
    places : ndarray of int64, shape (m,)
        Positions.

    Returns
    -------
    ndarray of int64, shape (m,)

    Raises
    ------
    InvalidRequest
        A position or partition is out of range.
    Unavailable
        A partition is not held here.
    """
    version.type_name(NODE, type_id)
    out = np.empty(places.size, np.int64)
    for image, indices in _group_by_part(version, parts, places):
        node, rows = image.nodes[type_id], places[indices]
        _check_places(rows, node.count, image.part, f"nodes of type {type_id}")
        if node.live.size:
            rows = node.live_rows[rows].astype(np.int64)
        out[indices] = rows * image.parts + image.part if node.dense else node.ids[rows]
    return out


def read_edges_at(
    version: LocalVersion, type_id: int, parts: NDArray[np.int32], places: NDArray[np.int64]
) -> Sections:
    """Return edges by position in their partition, in the order of `read_edges`.

    Parameters
    ----------
    version : LocalVersion
    type_id : int
    parts : ndarray of int32, shape (m,)
    places : ndarray of int64, shape (m,)
        Positions.

    Returns
    -------
    dict of ndarray
        ``src``, ``dst``, ``eids``: int64, shape (m,); ``weights``: float32, shape (m,).

    Raises
    ------
    InvalidRequest
        A position or partition is out of range.
    Unavailable
        A partition is not held here.
    """
    version.type_name(EDGE, type_id)
    out: Sections = {name: np.empty(places.size, np.int64) for name in ("src", "dst", "eids")}
    out["weights"] = np.empty(places.size, np.float32)
    for image, indices in _group_by_part(version, parts, places):
        slots = places[indices]
        _check_places(
            slots, image.edges[type_id].outgoing.nbr.size, image.part, f"edges of type {type_id}"
        )
        for name, column in _read_slots(version, image, type_id, slots).items():
            out[name][indices] = column
    return out


def _group_by_part(
    version: LocalVersion, parts: NDArray[np.int32], places: NDArray[np.int64]
) -> Iterator[tuple[PartImage, NDArray[np.int64]]]:
    """Yield the image of each partition of a request, and the indices of its rows there."""
    check_length("parts", parts, places.size)
    if parts.size and not 0 <= int(parts.min()) <= int(parts.max()) < version.schema.parts:
        raise InvalidRequest(
            f"parts: expected partitions of the space, 0 to {version.schema.parts - 1}, found "
            f"{int(parts.min())} to {int(parts.max())}"
        )
    order, offsets = partition_choice.group_by_key(parts, version.schema.parts)
    for part in np.flatnonzero(np.diff(offsets)):
        yield version.image(int(part)), order[offsets[part] : offsets[part + 1]]


def _check_places(places: NDArray[np.int64], count: int, part: int, description: str) -> None:
    if int(places.min()) < 0 or int(places.max()) >= count:
        bad = int(places.min()) if int(places.min()) < 0 else int(places.max())
        raise InvalidRequest(
            f"position {bad} of part {part}: expected less than {count}, the number of its "
            f"{description}"
        )


def read_edges(
    version: LocalVersion, type_id: int, part: int, cursor: int, limit: int
) -> tuple[Sections, int]:
    """Return edges of a partition by (source, neighbor, edge id), starting from a slot.

    Parameters
    ----------
    version : LocalVersion
    type_id, part : int
    cursor : int
        Slot to start from; 0 for the first page.
    limit : int
        Largest number of edges; 0 for ``DEFAULT_ROWS``.

    Returns
    -------
    sections : dict of ndarray
        ``src``, ``dst``, ``eids``: int64, shape (k,); ``weights``: float32, shape (k,).
    next_cursor : int
        -1 after the last page.

    Raises
    ------
    InvalidRequest
        An argument is out of range.
    Unavailable
        The partition is not held here.
    """
    version.type_name(EDGE, type_id)
    image, limit = _check_page(version, part, cursor, limit)
    slots = image.edges[type_id].outgoing.nbr.size
    page = slice(min(cursor, slots), min(cursor + limit, slots))
    return _read_slots(version, image, type_id, page), page.stop if page.stop < slots else -1


def _read_slots(
    version: LocalVersion, image: PartImage, type_id: int, slots: slice | NDArray[np.int64]
) -> Sections:
    """Return the edges in some slots."""
    edge = image.edges[type_id]
    source = image.nodes[version.schema.node_type_id(version.schema.edge_types[type_id].src_type)]
    rows = edge.src_row[slots].astype(np.int64)
    return {
        "src": rows * image.parts + image.part if source.dense else source.ids[rows],
        "dst": edge.outgoing.nbr[slots],
        "eids": edge.outgoing.eid[slots],
        "weights": edge.outgoing.weights[slots]
        if edge.outgoing.weights.size
        else np.ones(rows.size, np.float32),
    }
