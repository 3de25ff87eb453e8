"""Subgraphs by layer-neighbor sampling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from numpy.typing import ArrayLike

from asterism.calls import decoding, validation
from asterism.calls.base import GraphCalls, Names, parse_direction
from asterism.calls.fanouts import FeatureSelection, requested_features
from asterism.calls.string_ids import NodeTypes
from asterism.records.samples import Subgraph
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import graphd_pb2 as graphd_pb


class LaborCalls(GraphCalls):
    """The part of a graph that batches share neighbors by."""

    def sample_labor(
        self,
        seeds: ArrayLike,
        fanouts: Sequence[int] | Mapping[str, Sequence[int]],
        etypes: Names = None,
        *,
        importance: int = 0,
        layer_dependency: bool = False,
        ntype: NodeTypes = None,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        direction: str = "out",
        expand: str = "every",
        weights: bool = True,
        edge_ids: bool = True,
        node_features: FeatureSelection = None,
        seed: int | None = None,
        version: int | None = None,
    ) -> Subgraph:
        """Seeds and neighbors of theirs by layer-neighbor sampling: nodes of a batch meet the same
        neighbors where they can.

        A node t has one variate for a whole hop, and an edge to it is kept where that is at most
        the edge's probability.

        Parameters
        ----------
        seeds : int64[m]
            Node ids; -1 is no node.
        fanouts : list of int, or dict of edge type to list of int
            Neighbors per node of each hop, in expectation: of each edge type, or as a dict says; 0
            is none, -1 all of positive weight.
        importance : int
            Steps that make neighbors of several nodes more probable and others less, at the same
            variance of estimates: LABOR-i. 0 is LABOR-0; -1 as many as it takes until they change
            little, LABOR-*. At most 100.
        layer_dependency : bool
            Whether a node has the same variate in every hop: fewer different nodes still.
        etypes, ntype, direction, edge_ids, node_features
            As of `sample_subgraph`.
        weighted, weight, where
            As of `sample_neighbors`. An edge of weight 0 is never kept; a node with fewer edges
            than its fanout keeps all others.
        expand : {"every", "first"}
            Whether neighbors are drawn in every hop from the one on that met a node (DGL), or in
            the next only (PyG).
        weights : bool
            Whether to give `Subgraph.weights`, for a mean over a node's kept edges: weight over
            probability, scaled to sum to their number.

        Returns
        -------
        Subgraph
            Numbered as `sample_subgraph` numbers; the edges of a node in the order in which it has
            them.

        Raises
        ------
        InvalidRequest
            Where ``importance`` is out of bounds, or the nodes of a hop have more edges than can be
            read.

        Notes
        -----
        Balin & Catalyurek 2023, *Layer-neighbor sampling*, NeurIPS; as DGL's ``LaborSampler``.
        Variates are keyed by (seed, hop, node type, node), whatever is in the batch; with
        importance steps the probabilities are of the batch as a whole.

        Examples
        --------
        >>> batch = graph.sample_labor(  # doctest: +SKIP
        ...     [3, 7], [15, 10], "cites", importance=1, direction="in"
        ... )
        >>> batch.weights["paper:cites:paper"]  # doctest: +SKIP
        """
        if expand not in ("first", "every"):
            raise InvalidRequest(f"expand {expand!r}: expected 'every' or 'first'")
        followed = list(fanouts) if isinstance(fanouts, Mapping) and etypes is None else etypes
        edge_types = self._session.edge_type_ids(
            self.space, validation.type_names("etypes", followed)
        )
        counts = self._fanouts(fanouts, edge_types)
        wire_direction = parse_direction(direction)
        node_type, arrays = self._seed_sections(
            seeds, ntype, edge_types, wire_direction, argument="seeds", version=version
        )
        head = graphd_pb.SampleLaborRequest(
            space=self.space,
            version=self._version(version),
            seed=validation.seed(seed),
            fanouts=[
                graphd_pb.EdgeTypeFanouts(edge_type=etype, counts=hops)
                for etype, hops in zip(edge_types, counts, strict=True)
            ],
            node_type=node_type,
            importance_steps=validation.count("importance", importance, minimum=-1),
            uniform=not weighted,
            weight=weight,
            where=where,
            direction=wire_direction,
            layer_dependency=layer_dependency,
            expand_all_hops=expand == "every",
            want_edge_ids=edge_ids,
            want_weights=weights,
            node_features=requested_features(self.schema, node_features),
        )
        return self._call("sample_labor", decoding.labor_subgraph, head, arrays)
