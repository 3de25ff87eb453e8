"""Sampling of the neighbors of nodes."""

from __future__ import annotations

from numpy.typing import ArrayLike

from asterism.calls import decoding, validation
from asterism.calls.base import GraphCalls, Names, parse_direction
from asterism.calls.excluded_edges import EdgeExclusion, ReverseTypes
from asterism.calls.string_id_hashing import NodeTypes
from asterism.records.samples import (
    NeighborSample,
)
from asterism_proto.v1 import graphd_pb2 as graphd_pb


class NeighborSamplingCalls(GraphCalls):
    """The call that samples neighbors; for ``seed`` and ``version`` see `GlobalSamplingCalls`."""

    def sample_neighbors(
        self,
        nodes: ArrayLike,
        etypes: Names,
        n: float,
        *,
        ntype: NodeTypes = None,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        replace: bool = True,
        direction: str = "out",
        times: ArrayLike | None = None,
        strict: bool = False,
        strategy: str = "uniform",
        edge_times: bool = False,
        weights: bool = True,
        edge_ids: bool = False,
        probabilities: bool = False,
        seed: int | None = None,
        version: int | None = None,
    ) -> NeighborSample:
        """Sample n neighbors of each node over the union of the edge types.

        Parameters
        ----------
        nodes : array_like of int64, shape (m,)
            Node ids. -1 means "no node" and has no neighbors. A repeated node is sampled
            independently each time.
        etypes : str or list of str, or None
            Edge types by name. None: all.
        n : int or float
            Neighbors per node. A float above 0 and at most 1 is a share of each node's edges (of
            these types that match ``where``), rounded up: 0.1 of 11 edges are 2. It needs
            ``replace=False``, and is not possible with ``times``.
        ntype : str, or array_like of int, shape (m,), optional
            Node type of all nodes by name, or of each node by type id. Needed only where the edge
            types start at several node types and ids are per type.
        weighted : bool, default True
            Sample in proportion to edge weights. False: uniformly.
        weight : str, default ""
            Name of the weights to sample by and to return: a weight table of all these edge types.
            "": the edges' own weights.
        where : str, default ""
            Filter on the edges, as in `sample_edges`: ``"rating >= 4"``, or on the neighbors,
            ``"dst.price < 10"`` (``src`` if ``direction="in"``). Edges that do not match are
            ignored.
        exclude : EdgeRows, LinkSeeds, EdgeSample, (src, dst), or dict, optional
            Edges that are as if they did not exist, such as the targets of a batch of links:
            records of edges, ``(src, dst)`` or ``(src, dst, edge_ids)`` arrays, or pairs of shape
            (k, 2); by edge type if the call follows several. Without edge ids, or with id -1, all
            edges of that type from the source to the destination are excluded. Edges that do not
            exist have no effect. Samples of other nodes do not change.
        reverse_types : dict of str to str, optional
            Edge type of the reverse edges of an edge type, such as ``{"buys": "bought_by"}`` or
            ``{"cites": "cites"}``. For each excluded edge (u, v) all edges (v, u) of that type are
            excluded too (DGL's ``exclude="reverse_types"``).
        replace : bool, default True
            Sample with replacement. False: distinct edges; a node with n edges or fewer returns all
            of them.
        direction : {"out", "in"}, default "out"
            Follow edges forward, or in reverse (where the schema keeps in-copies).
        times : array_like of int64 or float64, shape (m,), optional
            Time of each node. Later edges, and edges to later nodes, are ignored. Each edge type,
            or the type of its neighbors, must declare the feature that is its time. Not with
            ``probabilities``.
        strict : bool, default False
            Ignore edges of exactly that time too.
        strategy : {"uniform", "last"}, default "uniform"
            "uniform" samples, by weight if ``weighted``. "last" takes the n latest edges, latest
            first, regardless of weight; it needs ``replace=False``. The values are those of PyG's
            ``temporal_strategy``.
        edge_times : bool, default False
            Return the time of each edge; needs ``times``.
        weights : bool, default True
            Return the edge weights, those that ``weight`` names.
        edge_ids : bool, default False
            Return the edge ids.
        probabilities : bool, default False
            Return the probability of each sampled edge: its share of the weight of the node's edges
            of all these types; without replacement, its share of what the node's earlier draws
            left, and 1 where a node returns all its edges. The sample does not change.
        seed : int, optional
            Seed of the call. None: a random one, which the record returns.
        version : int, optional
            Version to read. None: the version of this graph, or the current one.

        Returns
        -------
        NeighborSample
            ``nodes`` ndarray of int64, shape (m, n), padded with -1. Of a share, n is the largest
            number of neighbors of a node.

        Raises
        ------
        InvalidRequest
            If arguments do not fit together, or ``where`` is not a valid filter.
        NotFound
            If there is no such edge type, weight table or version.

        Examples
        --------
        >>> graph.sample_neighbors([7, 8], "buys", 3, seed=7).nodes  # doctest: +SKIP
        array([[17,  4, 17],
               [ 9, -1, -1]])
        """
        edge_types = self._session.edge_type_ids(
            self.space, validation.type_names("etypes", etypes)
        )
        wire_direction = parse_direction(direction)
        node_type, arrays = self._seed_sections(
            nodes, ntype, edge_types, wire_direction, version=version
        )
        temporal_filter, time_arrays = validation.temporal_filter(
            times, len(arrays["nodes"]), strict=strict, strategy=strategy, edge_times=edge_times
        )
        excluded = self._exclusion_sections(exclude, reverse_types, edge_types, version)
        count, share = validation.neighbors_per_node("n", n, replace=replace)
        resolved_seed = validation.seed(seed)
        head = graphd_pb.SampleNeighborsRequest(
            space=self.space,
            version=self._version(version),
            seed=resolved_seed,
            edge_types=edge_types,
            node_type=node_type,
            count=count,
            share=share,
            replace=replace,
            uniform=not weighted,
            weight=weight,
            where=where,
            direction=wire_direction,
            want_weights=weights,
            want_edge_ids=edge_ids,
            want_probabilities=probabilities,
            temporal_filter=temporal_filter,
        )
        return self._call(
            "sample_neighbors", decoding.neighbor_sample, head, arrays | time_arrays | excluded
        )
