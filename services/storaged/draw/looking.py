"""Which rows of a part satisfy a condition: its columns read from the images, block by block."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.condition import Column as Name
from asterism_proto.condition import Term, Tree, terms
from asterism_proto.errors import Stale
from asterism_proto.meaning import Meant, kept_near, meant, place_of
from graphkit import split
from graphkit.condition import Lists, Mask, Values, satisfied
from storaged.draw import features
from storaged.draw.lookup import OUT, adjacency
from storaged.draw.version import EDGE, NODE, Version
from storaged.store.image import Adjacency, Column, PartImage

_BLOCK_BYTES = 8 << 20
"""Of the values of one column that are looked at together."""
_MOST_ROWS = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Foreign:
    """What other hosts found of rows that a term reads and that are not held here, part by part, as `judged` tells it."""

    found: Mapping[tuple[int, str, int], NDArray[Any]] = field(default_factory=dict)
    """(edge type, the term's canonical text, part) -> which ids satisfy it."""

    def of(self, type_id: int, term: Term, ids: NDArray[np.int64], parts: NDArray[np.int32], stride: int) -> Mask:
        """Which ids, that live at ``parts``, satisfy a term; Stale where somebody's word is missing. ``stride`` as of `_stride`."""
        out = np.zeros(ids.size, np.bool_)
        for part in np.unique(parts):
            found = self.found.get((type_id, str(term), int(part)))
            if found is None:
                raise Stale(f"which rows of part {part} satisfy {str(term)!r} is not known here")
            mine = np.flatnonzero(parts == part)
            out[mine] = _among(found, ids[mine], stride)
        return out


def _stride(version: Version, element: int) -> int:
    """Between the ids of one part: what bits are by. Parts that ids are hashed to have any."""
    return version.schema.parts if element == EDGE or version.schema.placement == "mod" else 1


def _among(found: NDArray[Any], ids: NDArray[np.int64], stride: int) -> Mask:
    if not found.size:
        return np.zeros(ids.size, np.bool_)
    if found.dtype == np.int64:
        at = np.minimum(np.searchsorted(found, ids), found.size - 1)
        return np.asarray(found[at] == ids)
    places = ids // stride
    inside = places < found.size * 8
    places = np.where(inside, places, 0)
    return np.asarray(inside & (found[places >> 3] >> (7 - (places & 7)).astype(np.uint8) & 1).astype(np.bool_))


def nodes_that(
    version: Version, image: PartImage, type_id: int, tree: Tree, checkpoint: Callable[[], object], among: NDArray[np.int64] | None = None
) -> Mask:
    """Which rows of a node type satisfy a condition: bool[rows]; holes may be anything.

    Parameters
    ----------
    version : Version
    image : PartImage
        A part of it.
    type_id : int
    tree : Tree
        Bound to the type.
    checkpoint : callable
        Called between blocks; may raise.
    among : int64[k], optional
        Rows among which all are that satisfy it; others are not looked at.
    """
    node = image.nodes[type_id]

    def read(rows: NDArray[np.int64], column: Name) -> Values:
        found = meant(version.schema, NODE, type_id, column)
        if found.feature is not None:
            return _own(found, node.columns[found.feature.name], rows, column)
        if column.name == "weight":
            if not node.weights.size:
                return np.ones(rows.size, np.float32)
            return node.weights[rows] if among is not None else node.weights[rows[0] : rows[0] + rows.size]
        return _ids_of(image, type_id, rows)

    out = np.zeros(node.rows, np.bool_)
    block, count = _block(version, NODE, type_id, tree), node.rows if among is None else among.size
    for low in range(0, count, block):
        high = min(low + block, count)
        rows = np.arange(low, high) if among is None else among[low:high]
        out[rows] = satisfied(tree, partial(read, rows), rows.size)
        checkpoint()
    return out


def edges_that(
    version: Version, image: PartImage, type_id: int, direction: int, tree: Tree, foreign: Foreign, checkpoint: Callable[[], object]
) -> Mask:
    """Which slots of an adjacency satisfy a condition: bool[slots].

    Parameters
    ----------
    version, image, type_id, tree, checkpoint
        As of `nodes_that`, of an edge type.
    direction : int
        Whose adjacency: 1 out, 2 in.
    foreign : Foreign
        What is known of features that are not held here.

    Raises
    ------
    Stale
        Where something that is not held here is not known either.
    """
    side = adjacency(image, type_id, direction)
    out = np.empty(side.nbr.size, np.bool_)
    block = _block(version, EDGE, type_id, tree)
    for low in range(0, side.nbr.size, block):
        high = min(low + block, side.nbr.size)
        looking = _Slots(version=version, image=image, type_id=type_id, direction=direction, side=side, low=low, high=high, foreign=foreign)
        out[low:high] = satisfied(tree, looking.read, high - low, looking.known)
        checkpoint()
    return out


def judged(version: Version, part: int, element: int, type_id: int, term: Term, checkpoint: Callable[[], object]) -> NDArray[Any]:
    """Which rows of a part satisfy a term.

    Parameters
    ----------
    version : Version
    part : int
        Held here.
    element, type_id : int
        1: nodes of that type; 2: edges of it whose features live in the part.
    term : Term
        Of columns of these rows alone.
    checkpoint : callable

    Returns
    -------
    uint8[k] or int64[k]
        Bits by id // parts (by id where nodes are placed by a hash), as `numpy.packbits` has them; or the ids, ascending, where these
        are fewer bytes.
    """
    image = version.image(part)
    if element == NODE:
        node = image.nodes[type_id]
        ids = _ids_of(image, type_id, np.arange(node.rows))
        found = nodes_that(version, image, type_id, term, checkpoint)
    else:
        edge = image.edges[type_id]
        ids = edge.feature_eids if edge.feature_eids.size else np.arange(edge.feature_rows, dtype=np.int64) * image.parts + part
        found = np.empty(ids.size, np.bool_)
        block = _block(version, EDGE, type_id, term)
        for low in range(0, ids.size, block):
            some = ids[low : low + block]
            found[low : low + block] = satisfied(term, partial(_of_edge, version, type_id, some), some.size)
            checkpoint()
    kept = np.asarray(ids[found])
    stride = _stride(version, element)
    span = int(kept.max(initial=-1)) // stride + 1
    if 8 * kept.size <= span // 8:
        return kept
    bits = np.zeros(span, np.bool_)
    bits[kept // stride] = True
    return np.packbits(bits)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Slots:
    """A block of an adjacency, being looked at."""

    version: Version
    image: PartImage
    type_id: int
    direction: int
    side: Adjacency
    low: int
    high: int
    foreign: Foreign

    def read(self, column: Name) -> Values:
        near, far = ("src", "dst") if self.direction == OUT else ("dst", "src")
        here = slice(self.low, self.high)
        found = meant(self.version.schema, EDGE, self.type_id, column)
        end = column.of or (column.name if found.feature is None and column.name in ("src", "dst") else "")
        if not end:
            if found.feature is not None:
                beside = self.side.near.get(found.feature.name)
                return _of_edge(self.version, self.type_id, self.side.eid[here], column) if beside is None else beside[here]
            if column.name == "id":
                return self.side.eid[here]
            return self.side.weights[here] if self.side.weights.size else np.ones(self.high - self.low, np.float32)
        is_id = not column.of or (found.feature is None and column.name == "id")
        if end == far:
            ids = self.side.nbr[here]
            return ids if is_id else _of_node(self.version, self._end(far), found, column, ids)
        rows = self._near_rows()
        if is_id:
            return _ids_of(self.image, self._end(near), rows)
        node = self.image.nodes[self._end(near)]
        if found.feature is None:
            return node.weights[rows] if node.weights.size else np.ones(rows.size, np.float32)
        return _own(found, node.columns[found.feature.name], rows, column)

    def known(self, term: Term) -> Mask | None:
        """What others found of a term, where it reads what is not all held here."""
        version = self.version
        if len(version.parts) == version.schema.parts or kept_near(version.schema.edge_types[self.type_id], term):
            return None
        place, count = place_of(term.left), version.schema.parts
        if place == "":
            ids = self.side.eid[self.low : self.high]
            return self.foreign.of(self.type_id, term, ids, split.part_of(ids, count, "mod"), _stride(version, EDGE))
        if place != ("dst" if self.direction == OUT else "src"):
            return None
        ids = self.side.nbr[self.low : self.high]
        return self.foreign.of(self.type_id, term, ids, split.part_of(ids, count, version.schema.placement), _stride(version, NODE))

    def _end(self, word: str) -> int:
        edge = self.version.schema.edge_types[self.type_id]
        return self.version.schema.node_type_id(edge.src_type if word == "src" else edge.dst_type)

    def _near_rows(self) -> NDArray[np.int64]:
        if self.direction == OUT:
            return self.image.edges[self.type_id].src_row[self.low : self.high].astype(np.int64)
        return np.searchsorted(self.side.indptr, np.arange(self.low, self.high), side="right") - 1


def _ids_of(image: PartImage, type_id: int, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    node = image.nodes[type_id]
    ids: NDArray[np.int64] = rows * image.parts + image.part if node.dense else node.ids[rows]
    return ids


def _own(found: Meant, column: Column, rows: NDArray[np.int64], name: Name) -> Values:
    """The values of a feature at rows of its own part."""
    if column.indptr is not None:
        sections: features.Sections = {}
        assert found.feature is not None
        features.slice_rows(found.feature, column, rows, sections)
        return Lists(indptr=sections[f"f:{found.feature.name}.indptr"], values=sections[f"f:{found.feature.name}.values"])
    run = rows.size and rows[-1] - rows[0] == rows.size - 1 and bool((np.diff(rows) == 1).all())
    values = column.values[rows[0] : rows[-1] + 1] if run else column.values[rows]
    return _one(values, name)


def _one(values: NDArray[Any], name: Name) -> NDArray[Any]:
    """The value of a vector that is meant, or the values themselves."""
    return values if name.element is None else values.reshape(values.shape[0], math.prod(values.shape[1:]))[:, name.element]


def _of_node(version: Version, type_id: int, found: Meant, column: Name, ids: NDArray[np.int64]) -> Values:
    """A column of nodes wherever they live."""
    name = "weight" if found.feature is None else found.feature.name
    return _read(features.node_features(version, type_id, [name], ids), column)


def _of_edge(version: Version, type_id: int, eids: NDArray[np.int64], column: Name) -> Values:
    """A feature of edges wherever it lives."""
    return _read(features.edge_features(version, type_id, [column.name], eids), column)


def _read(sections: features.Sections, column: Name) -> Values:
    name = f"f:{column.name}"
    if f"{name}.indptr" in sections:
        return Lists(indptr=sections[f"{name}.indptr"], values=sections[f"{name}.values"])
    return _one(sections[name], column)


def _block(version: Version, element: int, type_id: int, tree: Tree) -> int:
    """How many rows are looked at together."""
    widest = 8
    for term in terms(tree):
        for column in term.columns:
            feature = meant(version.schema, element, type_id, column).feature
            if feature is not None:
                widest = max(widest, 8 * math.prod(feature.shape))
    return min(_MOST_ROWS, max(1, _BLOCK_BYTES // widest))
