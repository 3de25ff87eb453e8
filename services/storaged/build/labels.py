"""Labels of graphs: the nodes of a type in groups that have the same, found by the label's hash."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import Internal
from graphkit import labels
from storaged.build.source import Workplace
from storaged.build.spool import Records, buckets
from storaged.build.steps import State
from storaged.build.unit import Unit

_CHUNK = 1 << 18
_RECORD_BYTES = 64
"""Per record of a bucket: itself, its place in the order, its copy in it, what is kept of it."""


class _Last(NamedTuple):
    """What the bucket before ended with."""

    hash: int
    row: int
    groups: int


def build_labels(work: Workplace, type_id: int, rows: int, features: str) -> None:
    """Write the index of a type's graph labels, where it declares one.

    Parameters
    ----------
    work : Workplace
    type_id, rows : int
    features : str
        The digest of the unit of its columns, which the label is one of.

    Notes
    -----
    Groups are by (hash, label), rows within a group ascend. A node without a label is in no group.
    """
    node_type, name = work.task.schema.node_types[type_id], f"n{type_id}"
    if not node_type.graph_label:
        return
    column = [feature.name for feature in node_type.features].index(node_type.graph_label)
    work.progress.phase(f"graph labels {node_type.name}")
    unit = Unit(name=f"{name}.labels", digest=work.input("graph labels", features, column).digest(), files=(f"{name}.label_*",))
    work.units.make(unit, lambda: work.steps.run(f"{name}.labels", lambda: _make(work, name, f"{name}.c{column}", rows), rows=rows))


def _make(work: Workplace, name: str, column: str, rows: int) -> State:
    indptr, values = work.image.map(f"{column}.indptr"), work.image.map(f"{column}.values")

    def records() -> Iterator[Records]:
        for low in range(0, rows, _CHUNK):
            count = min(_CHUNK, rows - low)
            labelled = np.flatnonzero(np.diff(indptr[low : low + count + 1]))
            yield labels.hashes(indptr, values, low, count)[labelled], labelled + low

    out_rows = work.image.append_to(f"{name}.label_rows", np.uint32)
    out_hash, out_indptr = work.image.append_to(f"{name}.label_hash", np.int64), work.image.append_to(f"{name}.label_indptr", np.int64)
    limit, held, last = work.task.row_limit(_RECORD_BYTES), 0, _Last(-1, -1, 0)
    for bucket in buckets(records(), rows, low=0, high=(1 << 63) - 1, limit=limit, folder=work.spools, keys=(0, 1)):
        found, at = bucket.records
        if not found.size:
            continue
        ordered, starts, hashes = labels.grouped(found, at, indptr, values)
        if hashes[0] == last.hash:
            # More nodes of one label than fit in memory at once: the group goes on.
            if last.groups > 1 or starts.size > 1 or _text(indptr, values, last.row) != _text(indptr, values, int(ordered[0])):
                raise Internal(f"part {work.part}: two graph labels of {name} have one hash, and more nodes than the memory limit allows; raise it")
            starts, hashes = starts[1:], hashes[1:]
        else:
            last = _Last(int(hashes[-1]), int(ordered[0]), hashes.size)
        out_rows.append(ordered)
        out_hash.append(hashes)
        out_indptr.append(starts + held)
        held += ordered.size
    out_indptr.append(np.array([held], np.int64))
    return {}


def _text(indptr: NDArray[np.int64], values: NDArray[np.uint8], row: int) -> bytes:
    return bytes(values[indptr[row] : indptr[row + 1]])
