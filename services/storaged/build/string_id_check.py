"""Names of nodes: one id is one name, whatever was written how often."""

from __future__ import annotations

from collections.abc import Sequence

from asterism_graphkit.arrays.siphash import first_mismatch
from asterism_model import string_ids
from asterism_proto.errors import Conflict
from storaged.build.block_reader import BuildContext
from storaged.build.columns import read_located
from storaged.build.node_rows import RowMap
from storaged.store.block_store import BlockRef


def check_string_ids(
    context: BuildContext, type_id: int, rows: RowMap, refs: Sequence[BlockRef]
) -> None:
    """Hold every name that was written against the one that its node has in the image.

    Raises
    ------
    Conflict
        Where two names of the type have one id: the message has both.
    """
    if sum(ref.rows for ref in refs) == rows.rows:
        return  # as many writes as nodes, and each has one: nothing came twice
    node_type = context.task.schema.node_types[type_id]
    column = next(
        i for i, feature in enumerate(node_type.features) if feature.name == string_ids.ID_COLUMN
    )
    image_names = (
        context.image.map(f"n{type_id}.c{column}.indptr"),
        context.image.map(f"n{type_id}.c{column}.values"),
    )
    for _, located_rows, sections in read_located(
        context, refs, "ids", rows.find_rows, context.reader.tombstones(type_id)
    ):
        block_names = (
            sections[f"f:{string_ids.ID_COLUMN}.indptr"],
            sections[f"f:{string_ids.ID_COLUMN}.values"],
        )
        mismatch = first_mismatch(located_rows, *block_names, *image_names)
        if mismatch >= 0:
            name_pair = (
                string_ids.display_string(image_names, int(located_rows[mismatch])),
                string_ids.display_string(block_names, mismatch),
            )
            raise Conflict(
                string_ids.collision_message(
                    f"node type {node_type.name!r}",
                    *name_pair,
                    int(sections["ids"][mismatch]),
                    context.task.schema.salt,
                )
            )
