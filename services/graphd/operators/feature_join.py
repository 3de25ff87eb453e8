"""Feature join: features of all nodes of a sample, read in one round after sampling."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from google.protobuf.message import Message

from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from graphd.operators import reads
from graphd.operators.neighbor_sampling import NeighborParams, neighbor_types
from graphd.operators.request_context import Ids, RequestContext, Sections, Types
from graphd.operators.schema_checks import check_types
from graphd.routing import split_merge


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureSelection:
    """Features of one node type."""

    type_id: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _SampleNodes:
    """Group of a sample's nodes, with its name in the reply."""

    name: str
    ids: Ids
    node_type: int
    """Type of all nodes; -1: see ``types``."""
    types: Types | None = None
    """Type of each node; None if unknown here, in which case the owning storaged knows it."""

    def ids_of_type(self, type_id: int) -> Ids | None:
        """Return these nodes with -1 for other types; None if none can be of the type."""
        if self.node_type >= 0:
            return self.ids if self.node_type == type_id else None
        return self.ids if self.types is None else np.where(self.types == type_id, self.ids, -1)


def decode_features(
    schema: Schema, columns: Iterable[graphd_pb.NodeColumns]
) -> tuple[FeatureSelection, ...]:
    """Return the features to join; raise NotFound if a type does not have one."""
    selections = tuple(
        FeatureSelection(type_id=selection.type_id, names=tuple(selection.names))
        for selection in columns
    )
    check_types("node", schema, [selection.type_id for selection in selections])
    for selection in selections:
        reads.check_columns(schema.node_types[selection.type_id], selection.names)
    if len({selection.type_id for selection in selections}) < len(selections):
        raise InvalidRequest(
            f"node_features of types {[selection.type_id for selection in selections]}: expected "
            "each type once"
        )
    return selections


def join_fanout(
    context: RequestContext,
    selections: Sequence[FeatureSelection],
    hops: Sequence[NeighborParams],
    nodes: Ids,
    node_type: int,
    types: Types | None,
    sections: Sections,
) -> Sections:
    """Return the sections of a fanout with the features of its nodes, hop by hop."""
    node_groups = [_SampleNodes(name="seeds", ids=nodes, node_type=node_type, types=types)]
    for h, hop in enumerate(hops):
        node_type_of_hop, hop_types = neighbor_types(context.space, hop, sections.get(f"types.{h}"))
        node_groups.append(
            _SampleNodes(
                name=str(h), ids=sections[f"ids.{h}"], node_type=node_type_of_hop, types=hop_types
            )
        )
    return _join(context, selections, node_groups, sections, "the fanout and its features")


def join_subgraph(
    context: RequestContext, selections: Sequence[FeatureSelection], sections: Sections
) -> Sections:
    """Return the sections of a subgraph with the features of its nodes."""
    types = range(len(context.space.schema.node_types))
    node_groups = [
        _SampleNodes(name="nodes", ids=sections[f"nodes.{type_id}"], node_type=type_id)
        for type_id in types
        if f"nodes.{type_id}" in sections
    ]
    return _join(context, selections, node_groups, sections, "the subgraph and its features")


def _join(
    context: RequestContext,
    selections: Sequence[FeatureSelection],
    node_groups: Sequence[_SampleNodes],
    sections: Sections,
    subject: str,
) -> Sections:
    if not selections:
        return sections
    out = dict(sections)
    requests: list[tuple[int, Frame[Message]]] = []
    pending: list[tuple[FeatureSelection, list[tuple[str, Ids]], list[Ids | None]]] = []
    for selection in selections:
        matching = [
            (group.name, ids)
            for group in node_groups
            if (ids := group.ids_of_type(selection.type_id)) is not None
        ]
        if not matching or not selection.names:
            continue
        ids = np.concatenate([group_ids for _, group_ids in matching])
        head = storaged_pb.ReadNodeFeaturesRequest(
            version_ref=context.version_ref(), type_id=selection.type_id, names=selection.names
        )
        plan = split_merge.rows_by_owner(context.space, ids) or [(0, None)]
        requests += [
            (host, Frame(head, {"ids": split_merge.take_rows(ids, rows)})) for host, rows in plan
        ]
        pending.append((selection, matching, [rows for _, rows in plan]))
    replies = iter(context.dispatch("read_node_features", requests) if requests else ())
    for selection, matching, rows in pending:
        features = reads.merge_columns(
            sum(len(ids) for _, ids in matching),
            rows,
            [next(replies) for _ in rows],
            context.call.remaining,
        )
        start = 0
        for name, ids in matching:
            for column in selection.names:
                out |= {
                    f"{name}.{selection.type_id}.{half}": array
                    for half, array in _feature_rows(
                        features, f"f:{column}", start, start + len(ids)
                    ).items()
                }
            start += len(ids)
    reads.check_size(out, subject)
    return out


def _feature_rows(features: Sections, name: str, start: int, stop: int) -> Sections:
    """Return the rows start .. stop - 1 of one feature."""
    if name in features:
        return {name: features[name][start:stop]}
    indptr = features[f"{name}.indptr"][start : stop + 1]
    return {
        f"{name}.indptr": indptr - indptr[0],
        f"{name}.values": features[f"{name}.values"][indptr[0] : indptr[-1]],
    }
