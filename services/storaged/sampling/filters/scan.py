"""Scan of a partition's rows for matches of a filter, block by block."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.evaluate.filters import ColumnValues, Mask, RaggedColumn, evaluate_filter
from asterism_graphkit.random import partition_choice
from asterism_model.elements import EDGE, NODE
from asterism_model.filters.binding import (
    ResolvedColumn,
    column_location,
    reads_edge_columns,
    resolve_column,
)
from asterism_model.filters.syntax import ColumnOperand as Name
from asterism_model.filters.syntax import Predicate, Term, iter_terms
from asterism_proto.errors import Stale
from storaged.sampling import features
from storaged.sampling.node_lookup import OUT, select_adjacency
from storaged.sampling.version import LocalVersion
from storaged.store.image import AdjacencyImage, FeatureColumn, PartImage

_BLOCK_BYTES = 8 << 20
"""Bytes of one column that are read at once."""
_MAX_BLOCK_ROWS = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RemoteMatches:
    """Matches found by other hosts, for columns that are not held here.

    `evaluate_term` produces them, one result per partition.
    """

    found: Mapping[tuple[int, str, int], NDArray[Any]] = field(default_factory=dict)
    """Matching ids, encoded by `evaluate_term`.

    The keys are (edge type, canonical text of the term, partition).
    """

    def match(
        self,
        type_id: int,
        term: Term,
        ids: NDArray[np.int64],
        parts: NDArray[np.int32],
        stride: int,
    ) -> Mask:
        """Return which ids match a term; raise Stale if the matches of a partition are missing.

        ``parts`` has the partition of each id; ``stride`` is that of `_stride`.
        """
        out = np.zeros(ids.size, np.bool_)
        for part in np.unique(parts):
            matches = self.found.get((type_id, str(term), int(part)))
            if matches is None:
                raise Stale(f"the rows of part {part} that match {str(term)!r} are not known here")
            indices = np.flatnonzero(parts == part)
            out[indices] = _is_member(matches, ids[indices], stride)
        return out


def _stride(version: LocalVersion, element: int) -> int:
    """Return the distance between the ids of a partition, by which bits are numbered.

    It is 1 for hashed placement, where a partition may have any id.
    """
    return version.schema.parts if element == EDGE or version.schema.placement == "mod" else 1


def _is_member(matches: NDArray[Any], ids: NDArray[np.int64], stride: int) -> Mask:
    if not matches.size:
        return np.zeros(ids.size, np.bool_)
    if matches.dtype == np.int64:
        positions = np.minimum(np.searchsorted(matches, ids), matches.size - 1)
        return np.asarray(matches[positions] == ids)
    places = ids // stride
    in_range = places < matches.size * 8
    places = np.where(in_range, places, 0)
    return np.asarray(
        in_range
        & (matches[places >> 3] >> (7 - (places & 7)).astype(np.uint8) & 1).astype(np.bool_)
    )


def scan_nodes(
    version: LocalVersion,
    image: PartImage,
    type_id: int,
    predicate: Predicate,
    checkpoint: Callable[[], object],
    candidate_rows: NDArray[np.int64] | None = None,
) -> Mask:
    """Return which rows of a node type match a filter.

    Parameters
    ----------
    version : LocalVersion
    image : PartImage
        Image of one of its partitions.
    type_id : int
    predicate : Predicate
        Filter bound to the type.
    checkpoint : callable
        Called between blocks; may raise.
    candidate_rows : ndarray of int64, shape (k,), optional
        Rows that include all matches. By default, all rows are scanned.

    Returns
    -------
    ndarray of bool, shape (rows,)
        Undefined for holes.
    """
    node = image.nodes[type_id]

    def read_column(rows: NDArray[np.int64], column: Name) -> ColumnValues:
        resolved = resolve_column(version.schema, NODE, type_id, column)
        if resolved.feature is not None:
            return _feature_values(resolved, node.columns[resolved.feature.name], rows, column)
        if column.name == "weight":
            if not node.weights.size:
                return np.ones(rows.size, np.float32)
            return (
                node.weights[rows]
                if candidate_rows is not None
                else node.weights[rows[0] : rows[0] + rows.size]
            )
        return _ids_of(image, type_id, rows)

    out = np.zeros(node.rows, np.bool_)
    block_size, count = (
        _block_rows(version, NODE, type_id, predicate),
        node.rows if candidate_rows is None else candidate_rows.size,
    )
    for low in range(0, count, block_size):
        high = min(low + block_size, count)
        rows = np.arange(low, high) if candidate_rows is None else candidate_rows[low:high]
        out[rows] = evaluate_filter(predicate, partial(read_column, rows), rows.size)
        checkpoint()
    return out


def scan_edges(
    version: LocalVersion,
    image: PartImage,
    type_id: int,
    direction: int,
    predicate: Predicate,
    remote_matches: RemoteMatches,
    checkpoint: Callable[[], object],
) -> Mask:
    """Return which slots of an adjacency match a filter.

    Parameters
    ----------
    version : LocalVersion
    image : PartImage
        Image of one of its partitions.
    type_id : int
        Edge type.
    direction : int
        1 for the out-adjacency, 2 for the in-adjacency.
    predicate : Predicate
        Filter bound to the type.
    remote_matches : RemoteMatches
        Matches for columns that are not held here.
    checkpoint : callable
        Called between blocks; may raise.

    Returns
    -------
    ndarray of bool, shape (slots,)

    Raises
    ------
    Stale
        Matches of a remote partition are missing.
    """
    side = select_adjacency(image, type_id, direction)
    out = np.empty(side.nbr.size, np.bool_)
    block_size = _block_rows(version, EDGE, type_id, predicate)
    for low in range(0, side.nbr.size, block_size):
        high = min(low + block_size, side.nbr.size)
        slot_block = _SlotBlock(
            version=version,
            image=image,
            type_id=type_id,
            direction=direction,
            side=side,
            low=low,
            high=high,
            remote=remote_matches,
        )
        out[low:high] = evaluate_filter(
            predicate, slot_block.read, high - low, slot_block.remote_mask
        )
        checkpoint()
    return out


def evaluate_term(
    version: LocalVersion,
    part: int,
    element: int,
    type_id: int,
    term: Term,
    checkpoint: Callable[[], object],
) -> NDArray[Any]:
    """Return which rows of a partition match a term.

    Parameters
    ----------
    version : LocalVersion
    part : int
        Partition held here.
    element : int
        1 for nodes of the type; 2 for edges with features stored in the partition.
    type_id : int
    term : Term
        Term that reads columns of these rows only.
    checkpoint : callable
        Called between blocks; may raise.

    Returns
    -------
    ndarray of uint8, shape (k,), or ndarray of int64, shape (k,)
        Bits by id // parts (by id for hashed placement), packed by `numpy.packbits`; or the ids,
        ascending, if they take fewer bytes.
    """
    image = version.image(part)
    if element == NODE:
        node = image.nodes[type_id]
        ids = _ids_of(image, type_id, np.arange(node.rows))
        mask = scan_nodes(version, image, type_id, term, checkpoint)
    else:
        edge = image.edges[type_id]
        ids = (
            edge.feature_eids
            if edge.feature_eids.size
            else np.arange(edge.feature_rows, dtype=np.int64) * image.parts + part
        )
        mask = np.empty(ids.size, np.bool_)
        block_size = _block_rows(version, EDGE, type_id, term)
        for low in range(0, ids.size, block_size):
            block_ids = ids[low : low + block_size]
            mask[low : low + block_size] = evaluate_filter(
                term, partial(_edge_column, version, type_id, block_ids), block_ids.size
            )
            checkpoint()
    matching_ids = np.asarray(ids[mask])
    stride = _stride(version, element)
    span = int(matching_ids.max(initial=-1)) // stride + 1
    if 8 * matching_ids.size <= span // 8:
        return matching_ids
    bits = np.zeros(span, np.bool_)
    bits[matching_ids // stride] = True
    return np.packbits(bits)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _SlotBlock:
    """A block of an adjacency's slots under scan."""

    version: LocalVersion
    image: PartImage
    type_id: int
    direction: int
    side: AdjacencyImage
    low: int
    high: int
    remote: RemoteMatches

    def read(self, column: Name) -> ColumnValues:
        local_end, remote_end = ("src", "dst") if self.direction == OUT else ("dst", "src")
        block = slice(self.low, self.high)
        resolved = resolve_column(self.version.schema, EDGE, self.type_id, column)
        endpoint = column.endpoint or (
            column.name if resolved.feature is None and column.name in ("src", "dst") else ""
        )
        if not endpoint:
            if resolved.feature is not None:
                edge_values = self.side.edge_columns.get(resolved.feature.name)
                return (
                    _edge_column(self.version, self.type_id, self.side.eid[block], column)
                    if edge_values is None
                    else edge_values[block]
                )
            if column.name == "id":
                return self.side.eid[block]
            return (
                self.side.weights[block]
                if self.side.weights.size
                else np.ones(self.high - self.low, np.float32)
            )
        is_id = not column.endpoint or (resolved.feature is None and column.name == "id")
        if endpoint == remote_end:
            ids = self.side.nbr[block]
            return (
                ids
                if is_id
                else _node_column(self.version, self._end(remote_end), resolved, column, ids)
            )
        rows = self._local_rows()
        if is_id:
            return _ids_of(self.image, self._end(local_end), rows)
        node = self.image.nodes[self._end(local_end)]
        if resolved.feature is None:
            return node.weights[rows] if node.weights.size else np.ones(rows.size, np.float32)
        return _feature_values(resolved, node.columns[resolved.feature.name], rows, column)

    def remote_mask(self, term: Term) -> Mask | None:
        """Return the matches of a term that reads columns of other hosts; None if it does not."""
        version = self.version
        if len(version.parts) == version.schema.parts or reads_edge_columns(
            version.schema.edge_types[self.type_id], term
        ):
            return None
        location, count = column_location(term.left), version.schema.parts
        if location == "":
            ids = self.side.eid[self.low : self.high]
            return self.remote.match(
                self.type_id,
                term,
                ids,
                partition_choice.part_of(ids, count, "mod"),
                _stride(version, EDGE),
            )
        if location != ("dst" if self.direction == OUT else "src"):
            return None
        ids = self.side.nbr[self.low : self.high]
        return self.remote.match(
            self.type_id,
            term,
            ids,
            partition_choice.part_of(ids, count, version.schema.placement),
            _stride(version, NODE),
        )

    def _end(self, endpoint: str) -> int:
        edge = self.version.schema.edge_types[self.type_id]
        return self.version.schema.node_type_id(
            edge.src_type if endpoint == "src" else edge.dst_type
        )

    def _local_rows(self) -> NDArray[np.int64]:
        if self.direction == OUT:
            return self.image.edges[self.type_id].src_row[self.low : self.high].astype(np.int64)
        return np.searchsorted(self.side.indptr, np.arange(self.low, self.high), side="right") - 1


def _ids_of(image: PartImage, type_id: int, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    node = image.nodes[type_id]
    ids: NDArray[np.int64] = rows * image.parts + image.part if node.dense else node.ids[rows]
    return ids


def _feature_values(
    resolved: ResolvedColumn, column: FeatureColumn, rows: NDArray[np.int64], operand: Name
) -> ColumnValues:
    """Return the values of a feature for rows of its own partition."""
    if column.indptr is not None:
        sections: features.Sections = {}
        assert resolved.feature is not None
        features.read_feature_rows(resolved.feature, column, rows, sections)
        return RaggedColumn(
            indptr=sections[f"f:{resolved.feature.name}.indptr"],
            values=sections[f"f:{resolved.feature.name}.values"],
        )
    is_contiguous = (
        rows.size and rows[-1] - rows[0] == rows.size - 1 and bool((np.diff(rows) == 1).all())
    )
    values = column.values[rows[0] : rows[-1] + 1] if is_contiguous else column.values[rows]
    return _vector_element(values, operand)


def _vector_element(values: NDArray[Any], operand: Name) -> NDArray[Any]:
    """Return the selected element of a vector, or the values themselves."""
    return (
        values
        if operand.element is None
        else values.reshape(values.shape[0], math.prod(values.shape[1:]))[:, operand.element]
    )


def _node_column(
    version: LocalVersion,
    type_id: int,
    resolved: ResolvedColumn,
    column: Name,
    ids: NDArray[np.int64],
) -> ColumnValues:
    """Return a column of nodes in any local partition."""
    name = "weight" if resolved.feature is None else resolved.feature.name
    return _section_values(features.node_features(version, type_id, [name], ids), column)


def _edge_column(
    version: LocalVersion, type_id: int, eids: NDArray[np.int64], column: Name
) -> ColumnValues:
    """Return a feature of edges, wherever it is stored."""
    return _section_values(features.edge_features(version, type_id, [column.name], eids), column)


def _section_values(sections: features.Sections, column: Name) -> ColumnValues:
    name = f"f:{column.name}"
    if f"{name}.indptr" in sections:
        return RaggedColumn(indptr=sections[f"{name}.indptr"], values=sections[f"{name}.values"])
    return _vector_element(sections[name], column)


def _block_rows(version: LocalVersion, element: int, type_id: int, predicate: Predicate) -> int:
    """Return the number of rows per block."""
    widest = 8
    for term in iter_terms(predicate):
        for column in term.columns:
            feature = resolve_column(version.schema, element, type_id, column).feature
            if feature is not None:
                widest = max(widest, 8 * math.prod(feature.shape))
    return min(_MAX_BLOCK_ROWS, max(1, _BLOCK_BYTES // widest))
