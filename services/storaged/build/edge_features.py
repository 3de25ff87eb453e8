"""Build edge features, which are stored in the partitions of edge ids.

They are not stored with the adjacencies.
"""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from storaged.build.block_reader import BuildContext
from storaged.build.build_steps import StepState
from storaged.build.external_partitioning import split_into_buckets
from storaged.build.feature_columns import build_columns
from storaged.build.node_rows import RowMap
from storaged.build.unit_cache import BuildUnit
from storaged.store import keys
from storaged.store.block_store import EDGE_FEATURES, BlockRef

I64 = NDArray[np.int64]

_ID_BYTES = 40


def build_features(context: BuildContext, type_id: int) -> int:
    """Build the edge features of this partition, and return their number of rows.

    Rows are ordered by edge id, among the edges that were written with features.
    """
    features, name = context.task.schema.edge_types[type_id].features, f"e{type_id}"
    refs, columns = (
        context.reader.refs(type_id, EDGE_FEATURES),
        context.reader.refs(type_id, EDGE_FEATURES | keys.COLUMNS),
    )

    def make() -> StepState:
        rows = _feature_rows(context, f"{name}.feature_eids", refs)
        build_columns(
            context,
            prefix=name,
            features=features,
            refs=columns,
            id_section="eid",
            rows=rows.rows,
            find=rows.find_rows,
            tombstones=None,
        )
        return {"rows": rows.rows}

    context.progress.phase(f"features {context.task.schema.edge_types[type_id].name}")
    digest = (
        context.unit_input("edge features", [asdict(feature) for feature in features])
        .add_blocks(refs)
        .add_blocks(columns)
        .digest()
    )
    unit = BuildUnit(
        name=f"{name}.features", digest=digest, files=(f"{name}.feature_eids", f"{name}.c[0-9]*")
    )
    return int(
        context.units.make(
            unit,
            lambda: context.steps.run(
                f"{name}.features", make, rows=sum(ref.rows for ref in columns)
            ),
        )["rows"]
    )


def _feature_rows(context: BuildContext, name: str, refs: list[BlockRef]) -> RowMap:
    """Return the rows of edge ids; ids are stored only if they have gaps."""
    parts = context.task.schema.parts
    out = context.image.create_append(name, np.int64)
    low, high = (
        min((ref.lowest for ref in refs if ref.rows), default=0),
        max((ref.highest for ref in refs if ref.rows), default=0),
    )
    source = ((sections["eid"],) for _, sections in context.reader.read(refs))
    for bucket in split_into_buckets(
        source,
        sum(ref.rows for ref in refs),
        low=low,
        high=high,
        limit=context.task.row_limit(_ID_BYTES),
        folder=context.spool_folder,
    ):
        out.append(np.unique(bucket.records[0]))
    rows, empty = out.rows, np.zeros(0, np.int64)
    ids: I64 = context.image.map(name)
    dense = rows == 0 or (
        int(ids[0]) == context.part and int(ids[-1]) == (rows - 1) * parts + context.part
    )
    if dense:
        context.image.remove(name)
    return (RowMap if dense else _SortedRowMap)(
        part=context.part,
        parts=parts,
        rows=rows,
        count=rows,
        dense=dense,
        live=np.zeros(0, np.uint8),
        ids=empty if dense else ids,
        index_ids=empty,
        index_rows=np.zeros(0, np.uint32),
    )


class _SortedRowMap(RowMap):
    """Sorted ids without an index: found by bisection, as sampling finds edge features."""

    def find_rows(self, ids: I64) -> I64:
        """Return the row of each id, or -1 if there is none."""
        positions = np.minimum(np.searchsorted(self.ids, ids), self.rows - 1)
        return np.where(self.ids[positions] == ids, positions, -1)
