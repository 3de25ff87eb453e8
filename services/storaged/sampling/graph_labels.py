"""Labels of graphs: which there are, and the nodes of each."""

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
"""Labels of one page at most, and their bytes unless one alone is larger."""


def read_graph_labels(
    version: LocalVersion, parts: Sequence[int], cursor: int
) -> tuple[Sections, int]:
    """A page of the labels of parts held here; the same label may come once per type and part.

    Parameters
    ----------
    version : LocalVersion
    parts : sequence of int
        Parts to answer for.
    cursor : int
        How many were told before.

    Returns
    -------
    sections : dict
        ``labels.indptr`` int64[k + 1], ``labels.values`` uint8.
    next_cursor : int
        -1: that was all.

    Raises
    ------
    InvalidRequest, Unavailable
        Where no type declares a label, or a part is not held here.
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
    """The nodes of each of some labels, of all types that declare one.

    Parameters
    ----------
    version, parts
        As in `read_graph_labels`.
    indptr, values : int64[n + 1], uint8[k]
        The labels.

    Returns
    -------
    dict
        ``indptr`` int64[n + 1], ``ids`` int64[k], ``types`` int32[k]: of each label by (type, part,
        row).

    Raises
    ------
    InvalidRequest, Unavailable
        As there; also where the answer would be too large.
    """
    if (
        indptr.size < 1
        or indptr[0] != 0
        or indptr[-1] != values.size
        or bool((np.diff(indptr) < 0).any())
    ):
        raise InvalidRequest(f"labels: their pointers do not ascend from 0 to {values.size}")
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
    """The nodes of every type that declares a label, part by part, with the column that has it."""
    declared = [
        (type_id, node_type.graph_label)
        for type_id, node_type in enumerate(version.schema.node_types)
        if node_type.graph_label
    ]
    if not declared:
        raise InvalidRequest(
            "no node type of this space declares a graph_label; name a feature of kind bytes "
            "in its schema"
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
    """The values of rows of a column, as many as fit a page, one at least."""
    assert column.indptr is not None
    lengths = column.indptr[rows + 1] - column.indptr[rows]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    row_count = max(int(np.searchsorted(offsets, PAGE_BYTES, side="right")) - 1, 1)
    rows, offsets = rows[:row_count], offsets[: row_count + 1]
    if offsets[-1] > MAX_OUTPUTS:
        raise InvalidRequest(
            f"a graph label of {offsets[-1]} bytes; labels are at most {MAX_OUTPUTS}"
        )
    positions = np.repeat(column.indptr[rows] - offsets[:-1], np.diff(offsets)) + np.arange(
        offsets[-1]
    )
    return offsets, column.values[positions]
