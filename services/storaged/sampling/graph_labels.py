"""Graph labels of local partitions, and the nodes of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.operators import graph_labels
from asterism_proto.errors import InvalidRequest
from storaged.sampling.version import MAX_OUTPUTS, LocalVersion, check_output_size
from storaged.store.image import FeatureColumn, NodeImage, PartImage

Sections = dict[str, NDArray[Any]]
PAGE, PAGE_BYTES = 1 << 18, 32 << 20
"""Largest number of labels of a page, and their bytes unless a single label is larger."""


def read_graph_labels(
    version: LocalVersion, parts: Sequence[int], cursor: int
) -> tuple[Sections, int]:
    """Return a page of the graph labels of some partitions.

    A label may occur once per type and partition.

    Parameters
    ----------
    version : LocalVersion
    parts : sequence of int
        Partitions to read.
    cursor : int
        Number of labels returned by earlier pages.

    Returns
    -------
    sections : dict of ndarray
        ``labels.indptr``: int64, shape (k + 1,); ``labels.values``: uint8.
    next_cursor : int
        -1 after the last page.

    Raises
    ------
    InvalidRequest
        No type declares a graph label.
    Unavailable
        A partition is not held here.
    """
    base = 0
    for _, _, node, column in _label_indexes(version, parts):
        group_count = node.label_hash.size
        if cursor < base + group_count:
            first = cursor - base
            rows = node.label_rows[
                node.label_indptr[first : first + PAGE][: group_count - first]
            ].astype(np.int64)
            indptr, values = _read_strings(column, rows)
            return {"labels.indptr": indptr, "labels.values": values}, cursor + indptr.size - 1
        base += group_count
    return {"labels.indptr": np.zeros(1, np.int64), "labels.values": np.zeros(0, np.uint8)}, -1


def read_nodes_by_label(
    version: LocalVersion,
    parts: Sequence[int],
    indptr: NDArray[np.int64],
    values: NDArray[np.uint8],
) -> Sections:
    """Return the nodes of some graph labels, over all types that declare one.

    Parameters
    ----------
    version : LocalVersion
    parts : sequence of int
        Partitions to read.
    indptr : ndarray of int64, shape (n + 1,)
        Offsets of the labels in ``values``.
    values : ndarray of uint8, shape (k,)
        Bytes of the labels.

    Returns
    -------
    dict of ndarray
        ``indptr``: int64, shape (n + 1,); ``ids``: int64, shape (k,); ``types``: int32, shape (k,).
        The nodes of each label are ordered by (type, partition, row).

    Raises
    ------
    InvalidRequest
        No type declares a graph label, the offsets are malformed, or the reply would be too large.
    Unavailable
        A partition is not held here.
    """
    if (
        indptr.size < 1
        or indptr[0] != 0
        or indptr[-1] != values.size
        or bool((np.diff(indptr) < 0).any())
    ):
        raise InvalidRequest(f"labels: expected offsets that ascend from 0 to {values.size}")
    label_indices, ids, types = (
        [np.zeros(0, np.int64)],
        [np.zeros(0, np.int64)],
        [np.zeros(0, np.int32)],
    )
    total = 0
    for type_id, image, node, column in _label_indexes(version, parts):
        assert column.indptr is not None
        groups = graph_labels.find_groups(
            indptr,
            values,
            node.label_hash,
            node.label_indptr,
            node.label_rows,
            column.indptr,
            column.values,
        )
        places = np.flatnonzero(groups >= 0)
        starts, lengths = (
            node.label_indptr[groups[places]],
            np.diff(node.label_indptr)[groups[places]],
        )
        total += int(lengths.sum())
        check_output_size("nodes of labels", total)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        rows = node.label_rows[
            np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])
        ].astype(np.int64)
        label_indices.append(np.repeat(places, lengths))
        ids.append(rows * image.parts + image.part if node.dense else node.ids[rows])
        types.append(np.full(rows.size, type_id, np.int32))
    label = np.concatenate(label_indices)
    order = np.argsort(label, kind="stable")
    counts = np.bincount(label, minlength=indptr.size - 1)
    return {
        "indptr": np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        "ids": np.concatenate(ids)[order],
        "types": np.concatenate(types)[order],
    }


def _label_indexes(
    version: LocalVersion, parts: Sequence[int]
) -> Iterator[tuple[int, PartImage, NodeImage, FeatureColumn]]:
    """Yield the nodes of every labeled type and partition, with the column of the label."""
    declared = [
        (type_id, node_type.graph_label)
        for type_id, node_type in enumerate(version.schema.node_types)
        if node_type.graph_label
    ]
    if not declared:
        raise InvalidRequest(
            "no node type of this space declares a graph_label; declare a feature of kind bytes "
            "as graph_label in the schema"
        )
    for type_id, name in declared:
        for part in sorted(set(parts)):
            image = version.image(part)
            node = image.nodes[type_id]
            if node.label_hash.size:
                yield type_id, image, node, node.columns[name]


def _read_strings(
    column: FeatureColumn, rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return the values of a column's rows: as many as fit into a page, and at least one."""
    assert column.indptr is not None
    lengths = column.indptr[rows + 1] - column.indptr[rows]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    row_count = max(int(np.searchsorted(offsets, PAGE_BYTES, side="right")) - 1, 1)
    rows, offsets = rows[:row_count], offsets[: row_count + 1]
    if offsets[-1] > MAX_OUTPUTS:
        raise InvalidRequest(
            f"a graph label of {offsets[-1]} bytes: expected at most {MAX_OUTPUTS}"
        )
    positions = np.repeat(column.indptr[rows] - offsets[:-1], np.diff(offsets)) + np.arange(
        offsets[-1]
    )
    return offsets, column.values[positions]
