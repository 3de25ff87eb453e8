"""Links of a batch as seeds of message flow graphs, in the form of DGL's edge prediction sampler.

`asterism.dgl` converts them to objects of DGL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from asterism.calls import validation
from asterism.calls.excluded_edges import ReverseTypes, edge_columns, edges_by_type
from asterism.graph import Graph
from asterism.records.samples import Ids, LinkSeeds
from asterism_model.excluded_edges import ANY_EDGE_ID
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest

Pairs = tuple[Ids, Ids]
"""Sources and destinations."""
MODES = ("self", "reverse_id", "reverse_types")


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkBatch:
    """Links of a batch, and their ends as the seeds of a sample."""

    nodes: Mapping[str, Ids]
    """Distinct ends of all links and negatives by node type, ascending; all node types."""
    links: Mapping[str, Pairs]
    """Sources and destinations of the links, by name of the edge type."""
    edge_ids: Mapping[str, Ids]
    """Edge ids of the links of the edge types for which they are known."""
    negatives: Mapping[str, Pairs] | None
    """Sources and destinations of the negatives; None if the batch has none of its own."""

    def positions(self, schema: Schema, pairs: Mapping[str, Pairs]) -> dict[str, Pairs]:
        """Return the positions of the ends of links among the nodes, of every edge type."""
        none = np.zeros(0, np.int64)
        result = {}
        for edge_type in schema.edge_types:
            src, dst = pairs.get(edge_type.name, (none, none))
            result[edge_type.name] = (
                np.searchsorted(self.nodes[edge_type.src_type], src),
                np.searchsorted(self.nodes[edge_type.dst_type], dst),
            )
        return result


def link_batch(graph: Graph, links: Any) -> LinkBatch:
    """Return the links of a batch.

    Parameters
    ----------
    graph : Graph
        Graph of one version.
    links : LinkSeeds, EdgeRows, EdgeSample, pairs, or dict of edge type to these
        Links of the batch; the negatives of `LinkSeeds` become its negatives.

    Raises
    ------
    InvalidRequest
        If the links have no edge type although the graph has several, or their ends are not node
        ids.
    NotFound
        If there is no such edge type, or no node with a name.
    """
    schema = graph.schema
    pairs: dict[str, list[Pairs]] = {}
    negatives: dict[str, list[Pairs]] = {}
    edge_ids: dict[str, list[Ids | None]] = {}
    every_type = range(len(schema.edge_types))
    given = links.values() if isinstance(links, Mapping) else [links]
    for edge_type, edges in edges_by_type(schema, links, every_type, argument="links"):
        kind = schema.edge_types[edge_type]
        seeds = edges if isinstance(edges, LinkSeeds) else None
        if seeds is not None:
            ((of_seeds, edges),) = edges_by_type(schema, seeds, every_type)
            if of_seeds != edge_type:
                raise InvalidRequest(
                    f"links[{kind.name!r}]: expected links of this edge type, found "
                    f"{schema.edge_types[of_seeds].name!r}"
                )
        src, dst, eids = edge_columns(edges, argument="links")
        ends = (
            graph._require_ids("links", src, kind.src_type, None),
            graph._require_ids("links", dst, kind.dst_type, None),
        )
        validation.require_length("links", ends[1], len(ends[0]))
        pairs.setdefault(kind.name, []).append(ends)
        edge_ids.setdefault(kind.name, []).append(
            None if eids is None else validation.ids("links", eids, minimum=ANY_EDGE_ID)
        )
    for seeds in given:
        if isinstance(seeds, LinkSeeds):
            name = schema.edge_types[schema.edge_type_id(seeds.etype)].name
            negatives.setdefault(name, []).append(_negatives(seeds))
    joined = {name: _join(pieces) for name, pieces in pairs.items()}
    joined_negatives = {name: _join(pieces) for name, pieces in negatives.items()}
    return LinkBatch(
        nodes=_ends(schema, [joined, joined_negatives]),
        links=joined,
        edge_ids={
            name: np.concatenate([piece for piece in pieces if piece is not None])
            for name, pieces in edge_ids.items()
            if all(piece is not None for piece in pieces)
        },
        negatives=joined_negatives or None,
    )


def exclusion(
    batch: LinkBatch, exclude: str | None, reverse_types: ReverseTypes
) -> tuple[dict[str, Pairs] | None, ReverseTypes]:
    """Return the edges that the samples of a batch exclude, and their reverse types.

    Edges are excluded by their ends, so that no parallel edge shows a link.

    Parameters
    ----------
    batch : LinkBatch
    exclude : {"self", "reverse_id", "reverse_types"} or None
        Edges to exclude, as for DGL's ``as_edge_prediction_sampler``.
    reverse_types : dict or None
        Edge type of the reverse edges of an edge type.
    """
    if exclude is None:
        return None, None
    if exclude == "reverse_id":
        return dict(batch.links), {name: name for name in batch.links}
    return dict(batch.links), reverse_types


def check_exclusion(exclude: str | None, reverse_types: ReverseTypes) -> None:
    """Raise InvalidRequest if ``exclude`` is no mode, or does not fit ``reverse_types``."""
    if exclude is not None and exclude not in MODES:
        raise InvalidRequest(
            f"exclude={exclude!r}: expected one of {', '.join(map(repr, MODES))}, or None"
        )
    if exclude == "reverse_types" and not reverse_types:
        raise InvalidRequest(
            "exclude='reverse_types' without reverse_types: expected the reverse of each edge "
            "type; pass reverse_types={edge type: reverse edge type}"
        )
    if reverse_types and exclude in (None, "reverse_id"):
        raise InvalidRequest(
            f"reverse_types with exclude={exclude!r}: expected exclude='reverse_types'; leave "
            "reverse_types out, or exclude the reverse edges of these types"
        )


def _negatives(seeds: LinkSeeds) -> Pairs:
    """Return the negative pairs of a batch; -1 is none."""
    if seeds.negatives is None:
        return seeds.src[seeds.positives :], seeds.dst[seeds.positives :]
    src = np.repeat(seeds.src[: seeds.positives], seeds.negatives.shape[1])
    dst = seeds.negatives.reshape(-1)
    return src[dst >= 0], dst[dst >= 0]


def _join(pieces: list[Pairs]) -> Pairs:
    return np.concatenate([src for src, _ in pieces]), np.concatenate([dst for _, dst in pieces])


def _ends(schema: Schema, several: list[dict[str, Pairs]]) -> dict[str, Ids]:
    """Return the distinct ends of links, by node type."""
    ends: dict[str, list[Ids]] = {node_type.name: [] for node_type in schema.node_types}
    for pairs in several:
        for name, (src, dst) in pairs.items():
            kind = schema.edge_types[schema.edge_type_id(name)]
            ends[kind.src_type].append(src)
            ends[kind.dst_type].append(dst)
    return {
        name: np.unique(np.concatenate(pieces)) if pieces else np.zeros(0, np.int64)
        for name, pieces in ends.items()
    }
