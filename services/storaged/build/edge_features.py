"""The features of edges: they live in the parts of edge ids, not with the adjacencies."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from storaged.build.columns import build_columns
from storaged.build.rows import Rows
from storaged.build.source import Workplace
from storaged.build.spool import buckets
from storaged.build.steps import State
from storaged.build.unit import Unit
from storaged.store import keys
from storaged.store.graph import EDGE_FEATURES, BlockRef

I64 = NDArray[np.int64]

_ID_BYTES = 40


def build_features(work: Workplace, type_id: int) -> int:
    """Edge features that live in this part: rows by edge id among those that came with features. Gives their number."""
    features, name = work.task.schema.edge_types[type_id].features, f"e{type_id}"
    refs, columns = work.source.refs(type_id, EDGE_FEATURES), work.source.refs(type_id, EDGE_FEATURES | keys.COLUMNS)

    def make() -> State:
        rows = _feature_rows(work, f"{name}.feature_eids", refs)
        build_columns(work, prefix=name, features=features, refs=columns, id_section="eid", rows=rows.rows, find=rows.find, tombstones=None)
        return {"rows": rows.rows}

    work.progress.phase(f"features {work.task.schema.edge_types[type_id].name}")
    digest = work.input("edge features", [asdict(feature) for feature in features]).blocks(refs).blocks(columns).digest()
    unit = Unit(name=f"{name}.features", digest=digest, files=(f"{name}.feature_eids", f"{name}.c[0-9]*"))
    return int(work.units.make(unit, lambda: work.steps.run(f"{name}.features", make, rows=sum(ref.rows for ref in columns)))["rows"])


def _feature_rows(work: Workplace, name: str, refs: list[BlockRef]) -> Rows:
    """The rows of edge ids; ids are kept where they have holes."""
    parts = work.task.schema.parts
    out = work.image.append_to(name, np.int64)
    low, high = min((ref.lowest for ref in refs if ref.rows), default=0), max((ref.highest for ref in refs if ref.rows), default=0)
    source = ((sections["eid"],) for _, sections in work.source.read(refs))
    for bucket in buckets(source, sum(ref.rows for ref in refs), low=low, high=high, limit=work.task.row_limit(_ID_BYTES), folder=work.spools):
        out.append(np.unique(bucket.records[0]))
    rows, none = out.rows, np.zeros(0, np.int64)
    ids: I64 = work.image.map(name)
    dense = rows == 0 or (int(ids[0]) == work.part and int(ids[-1]) == (rows - 1) * parts + work.part)
    if dense:
        work.image.remove(name)
    return (Rows if dense else _SortedRows)(
        part=work.part,
        parts=parts,
        rows=rows,
        count=rows,
        dense=dense,
        live=np.zeros(0, np.uint8),
        ids=none if dense else ids,
        index_ids=none,
        index_rows=np.zeros(0, np.uint32),
    )


class _SortedRows(Rows):
    """Sorted ids without an index: found by bisection, as draws find edge features."""

    def find(self, ids: I64) -> I64:
        """The row of each id; -1 where there is none."""
        at = np.minimum(np.searchsorted(self.ids, ids), self.rows - 1)
        return np.where(self.ids[at] == ids, at, -1)
