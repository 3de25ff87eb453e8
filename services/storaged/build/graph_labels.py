"""Build the graph label index of a node type: nodes grouped by label, found by its hash."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.operators import graph_labels
from asterism_proto.errors import Internal
from storaged.build.block_reader import BuildContext
from storaged.build.build_steps import StepState
from storaged.build.external_partitioning import Records, split_into_buckets
from storaged.build.unit_cache import BuildUnit

_CHUNK = 1 << 18
_RECORD_BYTES = 64
"""Bytes per record of a bucket: record, order, copy and output."""


class _BucketEnd(NamedTuple):
    """State at the end of the previous bucket."""

    hash: int
    row: int
    groups: int


def build_labels(context: BuildContext, type_id: int, rows: int, features: str) -> None:
    """Build the graph label index of a node type, if it declares a graph label.

    Parameters
    ----------
    context : BuildContext
    type_id, rows : int
    features : str
        Digest of the unit of its columns, which include the label.

    Notes
    -----
    Groups are ordered by (hash, label), and rows ascend within a group. A node without a label is
    in no group.
    """
    node_type, name = context.task.schema.node_types[type_id], f"n{type_id}"
    if not node_type.graph_label:
        return
    column = [feature.name for feature in node_type.features].index(node_type.graph_label)
    context.progress.phase(f"graph labels {node_type.name}")
    unit = BuildUnit(
        name=f"{name}.labels",
        digest=context.unit_input("graph labels", features, column).digest(),
        files=(f"{name}.label_*",),
    )
    context.units.make(
        unit,
        lambda: context.steps.run(
            f"{name}.labels",
            lambda: _build_index(context, name, f"{name}.c{column}", rows),
            rows=rows,
        ),
    )


def _build_index(context: BuildContext, name: str, column: str, rows: int) -> StepState:
    indptr, values = context.image.map(f"{column}.indptr"), context.image.map(f"{column}.values")

    def records() -> Iterator[Records]:
        for low in range(0, rows, _CHUNK):
            count = min(_CHUNK, rows - low)
            labelled = np.flatnonzero(np.diff(indptr[low : low + count + 1]))
            yield graph_labels.hash_strings(indptr, values, low, count)[labelled], labelled + low

    out_rows = context.image.create_append(f"{name}.label_rows", np.uint32)
    out_hash, out_indptr = (
        context.image.create_append(f"{name}.label_hash", np.int64),
        context.image.create_append(f"{name}.label_indptr", np.int64),
    )
    limit, row_count, bucket_end = context.task.row_limit(_RECORD_BYTES), 0, _BucketEnd(-1, -1, 0)
    for bucket in split_into_buckets(
        records(),
        rows,
        low=0,
        high=(1 << 63) - 1,
        limit=limit,
        folder=context.spool_folder,
        keys=(0, 1),
    ):
        row_hashes, row_numbers = bucket.records
        if not row_hashes.size:
            continue
        ordered, starts, hashes = graph_labels.group_strings(
            row_hashes, row_numbers, indptr, values
        )
        if hashes[0] == bucket_end.hash:
            # One label has more nodes than fit in memory: the group continues.
            if (
                bucket_end.groups > 1
                or starts.size > 1
                or _text(indptr, values, bucket_end.row) != _text(indptr, values, int(ordered[0]))
            ):
                raise Internal(
                    f"part {context.part}: two graph labels of {name} have the same hash, and "
                    "more nodes than the memory limit allows; raise memory_limit_mib"
                )
            starts, hashes = starts[1:], hashes[1:]
        else:
            bucket_end = _BucketEnd(int(hashes[-1]), int(ordered[0]), hashes.size)
        out_rows.append(ordered)
        out_hash.append(hashes)
        out_indptr.append(starts + row_count)
        row_count += ordered.size
    out_indptr.append(np.array([row_count], np.int64))
    return {}


def _text(indptr: NDArray[np.int64], values: NDArray[np.uint8], row: int) -> bytes:
    return bytes(values[indptr[row] : indptr[row + 1]])
