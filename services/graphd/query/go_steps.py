"""Steps of GO that no single call covers: both edge directions, or a limit per node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.graph import Graph
from asterism_graphkit.operators import direction_merging
from asterism_graphkit.random import rng
from asterism_model.filters.syntax import parse
from asterism_model.schema import Schema
from asterism_model.weight_names import canonical_weight_name
from asterism_proto.errors import InvalidRequest
from graphd.operators.call_seeds import Operator, call_seed, statement_step_seed
from graphd.query.projection import EdgeResultRows, concat_rows, take_rows
from graphd.query.resolve import ResolvedDraw


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepNodes:
    """Start nodes of a step."""

    ids: NDArray[np.int64]
    types: NDArray[np.int32] | None = None
    """Type of each node, if an id alone does not identify a node."""

    def distinct(self) -> StepNodes:
        """Return each node once, in order of first occurrence; missing nodes are dropped."""
        present = np.flatnonzero(self.ids >= 0)
        types = (
            np.zeros(len(present), np.int64)
            if self.types is None
            else self.types[present].astype(np.int64)
        )
        first = present[
            np.sort(
                np.unique(np.stack([types, self.ids[present]], axis=1), axis=0, return_index=True)[
                    1
                ]
            )
        ]
        return StepNodes(
            ids=self.ids[first], types=None if self.types is None else self.types[first]
        )


def start_nodes(request: ResolvedDraw) -> StepNodes:
    """Return the start nodes of a statement."""
    nodes, node_type, schema = (
        request.nodes.reshape(-1).astype(np.int64),
        request.node_type,
        request.graph.schema,
    )
    edges = [
        schema.edge_types[schema.edge_type_id(name)]
        for name in request.hops[0] or [edge.name for edge in schema.edge_types]
    ]
    ends = {
        edge.src_type if direction == "out" else edge.dst_type
        for edge in edges
        for direction in request.directions
    }
    if node_type is not None and node_type not in ends:
        raise InvalidRequest(
            f"none of {', '.join(edge.name for edge in edges)} starts at {node_type}"
        )
    return StepNodes(
        ids=nodes,
        types=None
        if node_type is None
        else np.full(len(nodes), request.graph.schema.node_type_id(node_type), np.int32),
    )


def reached_nodes(rows: EdgeResultRows, schema: Schema) -> StepNodes:
    """Return the nodes that rows lead to."""
    if schema.ids == "global":
        return StepNodes(ids=rows.remote_ids)
    starts, ends = (
        np.array(
            [*(schema.node_type_id(getattr(edge, attribute)) for edge in schema.edge_types), -1],
            np.int32,
        )
        for attribute in ("src_type", "dst_type")
    )
    return StepNodes(
        ids=rows.remote_ids, types=np.where(rows.is_reversed, starts[rows.types], ends[rows.types])
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSeed:
    """Seed of samples that no single call can repeat."""

    seed: int


def sample_steps(
    request: ResolvedDraw,
    graph: Graph,
    hops: Sequence[list[str] | None],
    counts: Sequence[int],
    first: int,
) -> tuple[EdgeResultRows, SampleSeed]:
    """Sample a number of neighbors per node and step from the edges of both directions.

    Missing neighbors have rows too.

    Parameters
    ----------
    request : ResolvedDraw
    graph : Graph
    hops : list of (list of str or None)
        Edge types of each step.
    counts : list of int
        Neighbors per node of each step.
    first : int
        First step with edges in the result, from 1.

    Notes
    -----
    Each direction is sampled separately, and `asterism_graphkit.operators.direction_merging`
    merges the samples. All randomness is keyed by the seed, the step, a node and its position
    among those of the step. Part of the sampling contract: changing it changes results for a given
    seed."""
    step_nodes, pieces = start_nodes(request), []
    version, seed = request.version, request.seed
    for step, (hop, count) in enumerate(zip(hops, counts, strict=True), 1):
        samples: list[Any] = []
        for direction in request.directions:
            sample = graph.sample_neighbors(
                step_nodes.ids,
                hop,
                count,
                ntype=step_nodes.types,
                replace=request.replace,
                direction=direction,
                edge_ids="edge_id" in request.required_columns,
                probabilities=True,
                **request.draw_arguments(direction)
                | {
                    "version": version,
                    "seed": None if seed is None else statement_step_seed(seed, step),
                },
            )
            version, seed = sample.version, sample.seed if seed is None else seed
            samples.append(sample)
        assert seed is not None
        rows = _merge_samples(
            request, step_nodes, samples, step, _merge_key(request, hop, seed, step)
        )
        if step >= first:
            pieces.append(rows)
        step_nodes = reached_nodes(rows, graph.schema)
    assert seed is not None
    return concat_rows(pieces), SampleSeed(seed=seed)


def _merge_key(request: ResolvedDraw, hop: list[str] | None, seed: int, step: int) -> np.uint64:
    """Return the key of the choices between the two directions of a step."""
    schema, arguments = request.graph.schema, request.draw_arguments()
    names = hop or [edge.name for edge in schema.edge_types]
    own_seed = call_seed(
        seed,
        Operator.BIDIRECTIONAL,
        types=[schema.edge_type_id(name) for name in names],
        weighted=arguments["weighted"],
        weights=canonical_weight_name(arguments["weight"] or ""),
        where=parse(arguments["where"]).canonical if arguments["where"] else "",
    )
    return rng.key_of(own_seed, rng.BIDIRECTIONAL, step - 1)


def _merge_samples(
    request: ResolvedDraw,
    step_nodes: StepNodes,
    samples: Sequence[Any],
    step: int,
    key: np.uint64,
) -> EdgeResultRows:
    """Merge the samples of each direction into one sample of both."""
    probabilities = np.stack([sample.probabilities for sample in samples])
    weights = (
        np.ones(probabilities.shape)
        if request.draw.options.uniform
        else np.stack([sample.weights for sample in samples]).astype(np.float64)
    )
    picks, shares = direction_merging.merge_directions(
        key,
        step_nodes.ids,
        weights,
        probabilities,
        replace=request.replace,
    )
    is_present, positions = picks >= 0, np.maximum(picks, 0)

    def gather(name: str, fill: int) -> NDArray[Any]:
        columns = np.concatenate([getattr(sample, name) for sample in samples], axis=1)
        return np.where(
            is_present, np.take_along_axis(columns, positions, axis=1), columns.dtype.type(fill)
        ).reshape(-1)

    count = picks.shape[1]
    rows = np.repeat(np.arange(len(step_nodes.ids)), count)
    extra_columns = {
        "step": np.full(len(rows), step),
        "row": rows,
        "weight": gather("weights", 0),
        "probability": shares.reshape(-1),
    }
    if "edge_id" in request.required_columns:
        extra_columns["edge_id"] = gather("edge_ids", -1)
    return EdgeResultRows(
        local_ids=step_nodes.ids[rows],
        remote_ids=gather("nodes", -1),
        types=gather("types", -1),
        is_reversed=picks.reshape(-1) >= count,
        version=samples[0].version,
        extra_columns=extra_columns,
    )


def follow_steps(
    request: ResolvedDraw,
    graph: Graph,
    hops: Sequence[list[str] | None],
    limits: Sequence[int | None],
    first: int,
) -> EdgeResultRows:
    """Return all edges, or the first ``limit`` edges, of each node at each step.

    Out-edges come before in-edges. Each node appears once per step.

    Parameters
    ----------
    request, graph, hops, first
        See `sample_steps`.
    limits : list of (int or None)
        Edges per node of each step; None for all.
    """
    step_nodes, pieces, required, version = (
        start_nodes(request),
        [],
        request.required_columns,
        request.version,
    )
    for step, (hop, limit) in enumerate(zip(hops, limits, strict=True), 1):
        by_direction = []
        for direction in request.directions:
            neighbors = graph.neighbors(
                step_nodes.ids,
                hop,
                ntype=step_nodes.types,
                direction=direction,
                weights="weight" in required,
                edge_ids="edge_id" in required,
                **request.read_arguments(direction) | {"version": version},
            )
            version = neighbors.version
            rows = np.repeat(np.arange(len(step_nodes.ids)), np.diff(neighbors.indptr))
            extra_columns = {
                "step": np.full(len(rows), step),
                "row": rows,
                "weight": neighbors.weights,
                "edge_id": neighbors.edge_ids,
            }
            by_direction.append(
                EdgeResultRows(
                    local_ids=step_nodes.ids[rows],
                    remote_ids=neighbors.nodes,
                    types=neighbors.types,
                    is_reversed=direction == "in",
                    version=neighbors.version,
                    extra_columns={
                        name: array for name, array in extra_columns.items() if array is not None
                    },
                )
            )
        edges = concat_rows(by_direction)
        if limit is not None:
            edges = _limit_per_node(edges, limit)
        if step >= first:
            pieces.append(edges)
        step_nodes = reached_nodes(edges, graph.schema).distinct()
    return concat_rows(pieces)


def _limit_per_node(rows: EdgeResultRows, limit: int) -> EdgeResultRows:
    """Return the first ``limit`` rows of each node."""
    source_rows = np.asarray(rows.extra_columns["row"])
    order = np.argsort(source_rows, kind="stable")
    ranks = np.arange(len(order)) - np.searchsorted(source_rows[order], source_rows[order])
    return take_rows(rows, order[ranks < limit])
