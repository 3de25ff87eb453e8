"""Names of nodes: one id is one name, whatever was written how often."""

from __future__ import annotations

from collections.abc import Sequence

from asterism_proto import names
from asterism_proto.errors import Conflict
from graphkit.names import unlike
from storaged.build.columns import placed
from storaged.build.rows import Rows
from storaged.build.source import Workplace
from storaged.store.graph import BlockRef


def check_names(work: Workplace, type_id: int, rows: Rows, refs: Sequence[BlockRef]) -> None:
    """Hold every name that was written against the one that its node has in the image.

    Raises
    ------
    Conflict
        Where two names of the type have one id: the message has both.
    """
    if sum(ref.rows for ref in refs) == rows.rows:
        return  # as many writes as nodes, and each has one: nothing came twice
    node_type = work.task.schema.node_types[type_id]
    at = next(i for i, feature in enumerate(node_type.features) if feature.name == names.COLUMN)
    held = work.image.map(f"n{type_id}.c{at}.indptr"), work.image.map(f"n{type_id}.c{at}.values")
    for _, found, sections in placed(work, refs, "ids", rows.find, work.source.tombstones(type_id)):
        written = sections[f"f:{names.COLUMN}.indptr"], sections[f"f:{names.COLUMN}.values"]
        wrong = unlike(found, *written, *held)
        if wrong >= 0:
            both = names.shown(held, int(found[wrong])), names.shown(written, wrong)
            raise Conflict(names.collision(f"node type {node_type.name!r}", *both, int(sections["ids"][wrong]), work.task.schema.salt))
