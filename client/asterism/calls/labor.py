"""Subgraphs sampled by layer-neighbor sampling (LABOR)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from numpy.typing import ArrayLike

from asterism.calls import decoding, validation
from asterism.calls.base import GraphCalls, Names, parse_direction
from asterism.calls.excluded_edges import EdgeExclusion, ReverseTypes
from asterism.calls.fanout_sampling import FeatureSelection, requested_features
from asterism.calls.string_id_hashing import NodeTypes
from asterism.records.samples import Subgraph
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import graphd_pb2 as graphd_pb


class LaborCalls(GraphCalls):
    """Calls that sample with LABOR."""

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
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        direction: str = "out",
        expand: str = "every",
        weights: bool = True,
        edge_ids: bool = True,
        node_features: FeatureSelection = None,
        seed: int | None = None,
        version: int | None = None,
    ) -> Subgraph:
        """Sample a subgraph by layer-neighbor sampling, so that seeds share neighbors (LABOR).

        A node t has one random variate for a whole hop. An edge to it is kept if the variate is at
        most the edge's probability.

        Parameters
        ----------
        seeds : array_like of int64, shape (m,)
            Seed nodes. -1 means "no node".
        fanouts : list of int, or dict of str to list of int
            Expected number of neighbors per node and hop: for every edge type, or by edge type. 0:
            none. -1: all of positive weight.
        etypes : str or list of str, optional
            Edge types to follow, in this order. None: the keys of ``fanouts`` if it is a dict, else
            all.
        importance : int, default 0
            Number of importance steps, at most 100. Each makes neighbors of several nodes more
            probable and others less, at the same variance of estimates: LABOR-i. 0: LABOR-0. -1:
            until the probabilities converge, LABOR-*.
        layer_dependency : bool, default False
            Use the same variate of a node in every hop, which gives fewer distinct nodes.
        ntype : str, or array_like of int, shape (m,), optional
            Node type of all seeds by name, or of each seed by type id. Needed only where the edge
            types start at several node types and ids are per type.
        weighted : bool, default True
            Sample in proportion to edge weights. An edge of weight 0 is never kept; a node with
            fewer edges than its fanout keeps all others. False: uniformly.
        weight : str, default ""
            Name of the edge weights: a weight table that every one of the edge types has. "": the
            edges' own weights.
        where : str, default ""
            Filter on the edges, as in `sample_neighbors`.
        exclude, reverse_types : optional
            Edges that are as if they did not exist, as in `sample_neighbors`.
        direction : {"out", "in"}, default "out"
            Follow edges forward, or in reverse. "in" reaches the nodes that send messages to a
            node.
        expand : {"every", "first"}, default "every"
            Sample the neighbors of a node in every hop after it was reached (DGL), or only in the
            next one (PyG).
        weights : bool, default True
            Return `Subgraph.weights` for a mean over a node's kept edges: weight divided by
            probability, scaled so that they sum to the number of kept edges.
        edge_ids : bool, default True
            Return the edge ids.
        node_features : list of str, or dict of str to list of str, optional
            Node features to return with the sample, in the same request: names by node type, or one
            list of names, of which each node type returns those that it has.
        seed : int, optional
            Seed of the call. None: a random one, which the record returns.
        version : int, optional
            Version to read. None: the version of this graph, or the current one.

        Returns
        -------
        Subgraph
            Nodes are numbered as in `sample_subgraph`. The edges of a node are in the order in
            which the node has them.

        Raises
        ------
        InvalidRequest
            If ``importance`` is out of range, or the nodes of a hop have more edges than can be
            read.
        NotFound
            If there is no such edge type, weight table or version.

        Notes
        -----
        Balin & Catalyurek 2023, *Layer-neighbor sampling*, NeurIPS; as in DGL's ``LaborSampler``.
        Variates are keyed by (seed, hop, node type, node) and do not depend on the batch. With
        importance steps, the probabilities depend on the batch as a whole.

        Examples
        --------
        >>> batch = graph.sample_labor(  # doctest: +SKIP
        ...     [3, 7], [15, 10], "cites", importance=1, direction="in"
        ... )
        >>> batch.weights["paper:cites:paper"]  # doctest: +SKIP
        """
        if expand not in ("first", "every"):
            raise InvalidRequest(f"expand={expand!r}: expected 'every' or 'first'")
        followed = list(fanouts) if isinstance(fanouts, Mapping) and etypes is None else etypes
        edge_types = self._session.edge_type_ids(
            self.space, validation.type_names("etypes", followed)
        )
        counts = self._fanouts(fanouts, edge_types)
        wire_direction = parse_direction(direction)
        node_type, arrays = self._seed_sections(
            seeds, ntype, edge_types, wire_direction, argument="seeds", version=version
        )
        excluded = self._exclusion_sections(exclude, reverse_types, edge_types, version)
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
        return self._call("sample_labor", decoding.labor_subgraph, head, arrays | excluded)
