"""Steps that no one call makes: along edges and against them as one population, or of so many edges of each node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.graph import Graph
from asterism_proto.errors import InvalidRequest
from asterism_proto.schema import Schema
from graphd.statements.asked import Asked
from graphd.statements.yielding import EdgeRows, joined, taken
from graphkit import rng, sides


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Near:
    """The nodes that a step starts from."""

    ids: NDArray[np.int64]
    types: NDArray[np.int32] | None = None
    """Of each, where an id alone is not a node's."""

    def once(self) -> Near:
        """Each node once, in the order in which they were met; what is none is left out."""
        there = np.flatnonzero(self.ids >= 0)
        kinds = np.zeros(len(there), np.int64) if self.types is None else self.types[there].astype(np.int64)
        first = there[np.sort(np.unique(np.stack([kinds, self.ids[there]], axis=1), axis=0, return_index=True)[1])]
        return Near(ids=self.ids[first], types=None if self.types is None else self.types[first])


def near_of(asked: Asked) -> Near:
    """The nodes that a statement starts from."""
    nodes, kind, schema = asked.nodes.reshape(-1).astype(np.int64), asked.node_type, asked.graph.schema
    edges = [schema.edge_types[schema.edge_type_id(name)] for name in asked.hops[0] or [edge.name for edge in schema.edge_types]]
    ends = {edge.src_type if way == "out" else edge.dst_type for edge in edges for way in asked.ways}
    if kind is not None and kind not in ends:
        raise InvalidRequest(f"none of {', '.join(edge.name for edge in edges)} starts at {kind}")
    return Near(ids=nodes, types=None if kind is None else np.full(len(nodes), asked.graph.schema.node_type_id(kind), np.int32))


def far_of(rows: EdgeRows, schema: Schema) -> Near:
    """The nodes that rows lead to."""
    if schema.ids == "global":
        return Near(ids=rows.far)
    starts, ends = (
        np.array([*(schema.node_type_id(getattr(edge, of)) for edge in schema.edge_types), -1], np.int32) for of in ("src_type", "dst_type")
    )
    return Near(ids=rows.far, types=np.where(rows.against, starts[rows.types], ends[rows.types]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """What draws were made by; no one call makes them again."""

    seed: int


def drawn(asked: Asked, graph: Graph, hops: Sequence[list[str] | None], counts: Sequence[int], first: int) -> tuple[EdgeRows, Drawn]:
    """So many neighbors of each node at each step, of the edges of both directions; with the places where there is none.

    Parameters
    ----------
    asked : Asked
    graph : Graph
    hops : list of (list of str or None)
        The edge types of each step.
    counts : list of int
        Neighbors of each node at each step.
    first : int
        The first step whose edges are given, from 1 on.

    Notes
    -----
    Each direction is drawn from by itself and both are brought together by `graphkit.sides`: all keyed by the seed, the step, and a node's
    place among those of the step.
    """
    near, pieces = near_of(asked), []
    version, seed = asked.version, asked.seed
    for step, (hop, count) in enumerate(zip(hops, counts, strict=True), 1):
        samples: list[Any] = []
        for way in asked.ways:
            sample = graph.sample_neighbors(
                near.ids,
                hop,
                count,
                ntype=near.types,
                replace=asked.replace,
                direction=way,
                edge_ids="edge_id" in asked.wants,
                probabilities=True,
                # Independent of draws by any weights: none can have such a name.
                **asked.drawing(way) | {"version": version, "seed": seed if step == 1 or seed is None else rng.seed_of(seed, f"step {step}")},
            )
            version, seed = sample.version, sample.seed if seed is None else seed
            samples.append(sample)
        assert seed is not None
        rows = _together(asked, near, samples, seed, step)
        if step >= first:
            pieces.append(rows)
        near = far_of(rows, graph.schema)
    assert seed is not None
    return joined(pieces), Drawn(seed=seed)


def _together(asked: Asked, near: Near, samples: Sequence[Any], seed: int, step: int) -> EdgeRows:
    """Draws of each direction as draws of both."""
    probabilities = np.stack([one.probabilities for one in samples])
    weights = np.ones(probabilities.shape) if asked.draw.options.uniform else np.stack([one.weights for one in samples]).astype(np.float64)
    picks, shares = sides.together(rng.key_of(seed, rng.SIDE, step - 1), weights, probabilities, replace=asked.replace)
    there, places = picks >= 0, np.maximum(picks, 0)

    def picked(name: str, none: int) -> NDArray[Any]:
        columns = np.concatenate([getattr(one, name) for one in samples], axis=1)
        return np.where(there, np.take_along_axis(columns, places, axis=1), columns.dtype.type(none)).reshape(-1)

    count = picks.shape[1]
    rows = np.repeat(np.arange(len(near.ids)), count)
    own = {"step": np.full(len(rows), step), "row": rows, "weight": picked("weights", 0), "probability": shares.reshape(-1)}
    if "edge_id" in asked.wants:
        own["edge_id"] = picked("edge_ids", -1)
    return EdgeRows(
        near=near.ids[rows],
        far=picked("nodes", -1),
        types=picked("types", -1),
        against=picks.reshape(-1) >= count,
        version=samples[0].version,
        own=own,
    )


def followed(asked: Asked, graph: Graph, hops: Sequence[list[str] | None], limits: Sequence[int | None], first: int) -> EdgeRows:
    """All edges of each node at each step, or the first so many of them: those along before those against; each node once a step.

    Parameters
    ----------
    asked, graph, hops, first
        As of `drawn`.
    limits : list of (int or None)
        Edges of each node at each step; None: all.
    """
    near, pieces, wants, version = near_of(asked), [], asked.wants, asked.version
    for step, (hop, limit) in enumerate(zip(hops, limits, strict=True), 1):
        both = []
        for way in asked.ways:
            found = graph.neighbors(
                near.ids,
                hop,
                ntype=near.types,
                direction=way,
                weights="weight" in wants,
                edge_ids="edge_id" in wants,
                **asked.reading(way) | {"version": version},
            )
            version = found.version
            rows = np.repeat(np.arange(len(near.ids)), np.diff(found.indptr))
            own = {"step": np.full(len(rows), step), "row": rows, "weight": found.weights, "edge_id": found.edge_ids}
            both.append(
                EdgeRows(
                    near=near.ids[rows],
                    far=found.nodes,
                    types=found.types,
                    against=way == "in",
                    version=found.version,
                    own={name: array for name, array in own.items() if array is not None},
                )
            )
        edges = joined(both)
        if limit is not None:
            edges = _first_of_each(edges, limit)
        if step >= first:
            pieces.append(edges)
        near = far_of(edges, graph.schema).once()
    return joined(pieces)


def _first_of_each(rows: EdgeRows, limit: int) -> EdgeRows:
    """The first so many rows of each node."""
    owners = np.asarray(rows.own["row"])
    order = np.argsort(owners, kind="stable")
    places = np.arange(len(order)) - np.searchsorted(owners[order], owners[order])
    return taken(rows, order[places < limit])
