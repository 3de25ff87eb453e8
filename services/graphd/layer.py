"""Layers: nodes drawn for all nodes of the layer before together, and the edges between the two; edges between lists of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from asterism_proto.arrays import Frame
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import storaged_pb2 as store
from graphd import read, split, whole
from graphd.sample import REPLY_BYTES, Ids, Sampling, Sections, Types
from graphkit import layers, rng
from graphkit.numbering import Numbering
from graphkit.split import group

_MOST_TREES = (1 << 31) - 1
"""Layers times node types: what tells candidates of a layer and type apart is an int32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layering:
    """How the nodes of one layer are drawn."""

    edge_types: tuple[int, ...]
    count: int
    replace: bool
    uniform: bool
    direction: pb.Direction
    measure: int
    seed: int
    hop: int
    want_edge_ids: bool


def layer(sampling: Sampling, how: Layering, count: int, nodes: Ids, node_type: int, types: Types | None) -> Sections:
    """``how.count`` nodes for each of ``count`` layers that ``nodes`` are: sections as SampleLayerReply has them.

    Notes
    -----
    Candidates are the neighbors of a layer's nodes, each node once, in the order in which edges first lead to them: by (node of the
    layer, edge type as asked for, neighbor id, edge id). A node that is in a layer twice counts twice. All of their edges are read,
    so that what a candidate counts is summed in that order, whoever holds which.
    """
    width, several = len(nodes) // max(count, 1), len(sampling.space.schema.node_types)
    if count * max(how.count * 20, 1) > REPLY_BYTES or count * several > _MOST_TREES:
        raise InvalidRequest(f"{how.count} nodes for each of {count} layers do not fit into one reply; ask for fewer layers at a time")
    what = read.Adjacent(edge_types=how.edge_types, direction=how.direction, want_weights=True, want_edge_ids=how.want_edge_ids, sort="")
    found = whole.edges(sampling, what, nodes, node_type, types, of="layer")
    indptr, kinds = found["indptr"], _far(sampling, how)[found["types"]]
    of_layer = np.repeat(np.arange(len(nodes), dtype=np.int64) // max(width, 1), np.diff(indptr))
    numbering = Numbering()
    numbers = numbering.assign(found["ids"], (of_layer * several + kinds).astype(np.int32))
    # Edges come layer after layer, and so do their far ends.
    starts = np.searchsorted(numbering.trees // several, np.arange(count + 1)).astype(np.int64)
    measures = layers.pool(indptr, numbers, None if how.uniform else found["weights"], how.measure, len(numbering))
    chosen, probabilities = layers.draw(rng.key_of(how.seed, rng.LAYER, how.hop), starts, measures, how.count, replace=how.replace)
    there = chosen >= 0
    out: Sections = {
        "ids": np.where(there, np.append(numbering.ids, -1)[chosen], -1),
        "kinds": np.where(there, np.append(numbering.trees % several, -1)[chosen], -1).astype(np.int32),
        "probabilities": probabilities,
    }
    return out | _edges(found, numbers, chosen, len(numbering))


def _edges(found: Sections, numbers: Types, chosen: Ids, candidates: int) -> Sections:
    """The edges that lead to what was drawn, once per draw of their far end."""
    drawn = np.flatnonzero(chosen >= 0)
    order, offsets = group(chosen[drawn].astype(np.int32), candidates)
    columns = {name: found[name] for name in ("types", "weights", "eids") if name in found}
    words = "the edges between the layers", "ask for fewer nodes, for fewer layers at a time, or without edge ids"
    width = 8 + 8 + sum(column.itemsize for column in columns.values())
    _check_bytes(int(np.diff(offsets)[numbers].sum()) * width, *words)
    picked, cols = split.gathered(offsets, drawn[order], numbers.astype(np.int64))
    times = np.diff(picked)
    rows = np.repeat(np.arange(len(found["indptr"]) - 1, dtype=np.int64), np.diff(found["indptr"]))
    out: Sections = {"rows": np.repeat(rows, times), "cols": cols, **{name: np.repeat(column, times) for name, column in columns.items()}}
    return out


def stack(sampling: Sampling, hops: Sequence[Layering], count: int, nodes: Ids, node_type: int, types: Types | None) -> Sections:
    """Layer after layer; sections ``name.hop``."""
    out: Sections = {}
    for h, how in enumerate(hops):
        found = layer(sampling, how, count, nodes, node_type, types)
        out |= {f"{name}.{h}": array for name, array in found.items()}
        nodes, node_type, types = found["ids"], -1, found["kinds"]
    _check_size(out, "the layers", "ask for fewer nodes, for fewer layers at a time, or hop by hop")
    return out


def _far(sampling: Sampling, how: Layering) -> Types:
    """The node type that each edge type of the schema leads to."""
    schema = sampling.space.schema
    ends = [schema.node_type_id(edge.dst_type if how.direction == pb.OUT else edge.src_type) for edge in schema.edge_types]
    return np.array(ends, np.int32)


def adjacency(
    sampling: Sampling,
    what: read.Adjacent,
    nodes: Ids,
    node_type: int,
    types: Types | None,
    cols: Ids,
    col_types: Types | None,
) -> Sections:
    """The edges from ``nodes`` to ``cols``: sections as AdjacencyReply has them."""
    sizes, out = between(sampling, what, nodes, node_type, types, cols, col_types)
    width = 8 + 8 + 4 + 4 * what.want_weights + 8 * what.want_edge_ids
    _check_bytes(len(out["cols"]) * width, *_between_words(len(nodes), len(cols)))
    out["rows"], out["cols"] = np.repeat(np.arange(len(nodes), dtype=np.int64), sizes), out["cols"].astype(np.int64)
    if "types" not in out:
        out["types"] = np.full(len(out["cols"]), what.edge_types[0], np.int32)
    return out


def between(
    sampling: Sampling,
    what: read.Adjacent,
    nodes: Ids,
    node_type: int,
    types: Types | None,
    cols: Ids,
    col_types: Types | None,
    groups: tuple[Types, Types] | None = None,
) -> tuple[Types, Sections]:
    """How many edges of each node lead to ``cols``, or to those of its group, and their sections: int32 cols, types where several are asked for."""
    head = store.ReadBetweenRequest(
        at=sampling.at(),
        edge_types=what.edge_types,
        node_type=node_type,
        direction=what.direction,
        want_weights=what.want_weights,
        want_edge_ids=what.want_edge_ids,
        weight=sampling.weights,
    )
    others: Sections = {"cols": cols} if col_types is None else {"cols": cols, "col_types": col_types}
    if groups is not None:
        others["col_groups"] = groups[1]
    plan = split.owners(sampling.space, nodes) or [(0, None)]
    asked = []
    for host, rows in plan:
        sections: Sections = {"ids": split.taken(nodes, rows), **others}
        if types is not None:
            sections["types"] = split.taken(types, rows)
        if groups is not None:
            sections["groups"] = split.taken(groups[0], rows)
        asked.append((host, Frame(head, sections)))
    answers = []
    for (_, rows), reply in zip(plan, sampling.ask("read_between", asked), strict=True):
        found = dict(reply.arrays)
        answers.append((rows, found.pop("counts"), found))
    return split.merged_counted(len(nodes), answers, sampling.call.remaining)


def check_between(sections: Sections, nodes: int, cols: int) -> None:
    """Refuse edges that do not fit into a reply."""
    _check_size(sections, *_between_words(nodes, cols))


def _between_words(nodes: int, cols: int) -> tuple[str, str]:
    return f"the edges from {nodes} nodes to {cols}", "ask for fewer rows at a time"


def _check_size(sections: Sections, what: str, remedy: str) -> None:
    _check_bytes(sum(array.nbytes for array in sections.values()), what, remedy)


def _check_bytes(size: int, what: str, remedy: str) -> None:
    if size > REPLY_BYTES:
        raise InvalidRequest(f"{what} have {size} bytes, one reply at most {REPLY_BYTES}; {remedy}")
