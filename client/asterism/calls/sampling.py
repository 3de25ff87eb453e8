"""Sampling calls: nodes, edges, neighbors; and making any of them again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from asterism.calls import decoding, replay, validation
from asterism.calls.base import TYPE_PER_NODE, GraphCalls, Names, parse_direction
from asterism.calls.string_ids import NodeTypes
from asterism.records.samples import (
    EdgeSample,
    NeighborSample,
    NodeSample,
)
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import graphd_pb2 as graphd_pb


class SamplingCalls(GraphCalls):
    """The sampling half of a graph.

    Every call takes ``seed`` (a whole number; drawn fresh where None, and returned, so that any
    call can be replayed) and ``version`` (a published one; None is the current one, returned). Same
    content, request and seed: same bytes, on any number of hosts."""

    def sample_nodes(
        self,
        n: int,
        ntype: Names = None,
        *,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        replace: bool = True,
        probabilities: bool = False,
        seed: int | None = None,
        version: int | None = None,
    ) -> NodeSample:
        """Draw nodes.

        Parameters
        ----------
        n : int
            How many. The first m of n draws are the draws of a request for m.
        ntype : str or list of str, optional
            From these types together; None: from all.
        weighted : bool
            By node weight; otherwise uniformly.
        weight : str
            The name of the weights: a table of all these types
            (`asterism_model.schema.weight_tables.WeightTable`); "" are the nodes' own.
        where : str
            A condition on the nodes, such as ``"price > 3 and brand in ('a', 'b')"``: those that
            satisfy it are drawn by their weights among themselves, the others are as if they were
            not there. "" is none. Words: `asterism_model.filters.syntax`; docs/sampling.md.
        replace : bool
            False: n distinct nodes, in the order of successive draws.
        probabilities : bool
            Whether to give back the probability of each draw too: its share of the weight of all
            types asked for; without replacement, its share of what the earlier draws left. The
            draws are the same.

        Returns
        -------
        NodeSample
            ``nodes`` int64[n], ``types`` int32[n], ``probabilities`` float64[n] or None.

        Raises
        ------
        NotFound
            Where there is nothing to draw, or no such version.
        InvalidRequest
            Where ``replace=False`` and fewer than n can be drawn, or ``where`` is no condition.

        Examples
        --------
        >>> graph.sample_nodes(4, "paper", seed=7).nodes  # doctest: +SKIP
        array([12, 3, 3, 40])
        """
        resolved_seed = validation.seed(seed)
        head = graphd_pb.SampleNodesRequest(
            space=self.space,
            version=self._version(version),
            seed=resolved_seed,
            count=validation.count("n", n),
            types=[
                self._session.node_type(self.space, name)[0]
                for name in validation.type_names("ntype", ntype)
            ],
            uniform=not weighted,
            weight=weight,
            where=where,
            distinct=not replace,
            want_probabilities=probabilities,
        )
        return self._call("sample_nodes", decoding.node_sample, head, {})

    def sample_edges(
        self,
        n: int,
        etype: Names = None,
        *,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        replace: bool = True,
        probabilities: bool = False,
        seed: int | None = None,
        version: int | None = None,
    ) -> EdgeSample:
        """Draw edges, by edge weight or uniformly.

        Parameters
        ----------
        n : int
            How many.
        etype : str or list of str, optional
            From these types together (a triple, or a relation where that is unambiguous); None:
            from all.
        weighted, weight, where, replace, probabilities
            As of `sample_nodes`; the weights of that name are given back too. Conditions on edges
            may read ``src`` and ``dst``, and features of these nodes: ``"rating >= 4 and dst.price
            < 10"``.

        Returns
        -------
        EdgeSample
            ``src``, ``dst``, ``edge_ids`` int64[n], ``types`` int32[n], ``weights`` float32[n],
            ``probabilities`` float64[n] or None.
        """
        resolved_seed = validation.seed(seed)
        head = graphd_pb.SampleEdgesRequest(
            space=self.space,
            version=self._version(version),
            seed=resolved_seed,
            count=validation.count("n", n),
            types=[
                self._session.edge_type(self.space, name)[0]
                for name in validation.type_names("etype", etype)
            ],
            uniform=not weighted,
            weight=weight,
            where=where,
            distinct=not replace,
            want_probabilities=probabilities,
        )
        return self._call("sample_edges", decoding.edge_sample, head, {})

    def sample_neighbors(
        self,
        nodes: ArrayLike,
        etypes: Names,
        n: int,
        *,
        ntype: NodeTypes = None,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
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
        """Draw n neighbors of each node, over the union of the edge types.

        Parameters
        ----------
        nodes : int64[m]
            Node ids; -1 is "no node" and has no neighbors. A node that is there twice draws twice.
        etypes : str or list of str, or None
            Edge types; None: all.
        n : int
            Neighbors per node.
        ntype : str or int[m], optional
            The type of the nodes, or of each. It may be left out where all edge types start at the
            same one.
        weighted : bool
            By edge weight; otherwise uniformly.
        weight : str
            The name of the weights to draw by and to give back: a table of all these edge types; ""
            are the edges' own.
        where : str
            A condition on the edges, as of `sample_edges`: ``"rating >= 4"``, or of the neighbors,
            ``"dst.price < 10"`` (against the edges' direction: ``src``). Other edges are as if they
            were not there.
        replace : bool
            False: distinct edges; a node with n or fewer gives all of them.
        direction : {"out", "in"}
            Along the edges, or against them (where the schema keeps in-copies).
        times : int64[m] or float64[m], optional
            The time of each node: edges after it, and edges to later nodes, are as if they were not
            there. Each edge type, or the type of its neighbors, must declare which feature is its
            time; without ``probabilities``.
        strict : bool
            Edges of that time itself are not there either.
        strategy : {"uniform", "last"}
            "last" takes the n latest of them, the latest first, whatever they weigh; with
            ``replace=False``. "uniform" draws, by weight where ``weighted``. The words are PyG's
            ``temporal_strategy``.
        edge_times : bool
            Whether to give back the time of each edge too; with ``times``.
        weights, edge_ids : bool
            Whether to give these back too.
        probabilities : bool
            Whether to give back the probability of each drawn edge too: its share of the weight of
            the node's edges of all these types; without replacement, its share of what the node's
            earlier draws left, and 1 where a node gives all that it has. The draws are the same.

        Returns
        -------
        NeighborSample
            ``nodes`` int64[m, n], padded with -1.
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
        resolved_seed = validation.seed(seed)
        head = graphd_pb.SampleNeighborsRequest(
            space=self.space,
            version=self._version(version),
            seed=resolved_seed,
            edge_types=edge_types,
            node_type=node_type,
            count=validation.count("n", n),
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
        return self._call("sample_neighbors", decoding.neighbor_sample, head, arrays | time_arrays)

    def replay(
        self,
        token: str,
        nodes: ArrayLike | None = None,
        ntype: ArrayLike | None = None,
        *,
        exclude: validation.Exclusions = None,
        times: ArrayLike | None = None,
    ) -> Any:
        """Make a sampling call again: the same record, whoever made the call, wherever and
        whenever.

        Parameters
        ----------
        token : str
            Of a sample: its ``token``. It holds everything that was asked but the nodes.
        nodes : int64[m], optional
            The nodes that the call started from, where it started from nodes.
        ntype : int[m], optional
            Their types, where the call had one for each.
        exclude : optional
            Of `sample_negatives`, whose pairs are ``nodes``.
        times : int64[m] or float64[m], optional
            The times of the nodes, where the call had them.

        Returns
        -------
        NodeSample, or whatever record the call gave
            Of the same version, to the last bit.

        Raises
        ------
        InvalidRequest
            Where the token is none, or of another space, or the nodes are not the same.
        NotFound
            Where the version is no longer held, or is another one by the same number.

        Examples
        --------
        >>> first = graph.sample_neighbors(seeds, "cites", 5)  # doctest: +SKIP
        >>> again = graph.replay(first.token, seeds)  # doctest: +SKIP
        """
        call, request = replay.decode_token(token)
        if request.space != self.space:
            raise InvalidRequest(
                f"the token is of a call to space {request.space!r}, this graph is "
                f"{self.space!r}; ask that one"
            )
        request.version = self._version(request.version)
        node_type: int = getattr(request, "node_type", TYPE_PER_NODE)
        ntypes = [node_type] if node_type >= 0 else list(getattr(request, "types", ())) or ntype
        if nodes is not None:
            edges = getattr(request, "exclude_edge_types", ())
            nodes = (
                self._resolve_pairs(nodes, ntypes, edges, request.version or None)
                if edges
                else self._as_ids("nodes", nodes, ntypes, request.version or None)
            )
        arrays = replay.replay_sections(
            call, request, nodes, self._resolve_exclusions(exclude, ntypes, request.version or None)
        )
        if ntype is not None and "nodes" in arrays:
            arrays["types"] = self._types(np.asarray(ntype).reshape(-1), arrays["nodes"])
        if times is not None:
            arrays["times"] = validation.times(times, len(arrays.get("nodes", ())))
        replay.check_nodes(call, request, arrays)
        decode = replay.DECODERS[call.method]
        return self._call(
            call.method,
            decode,
            request,
            arrays,
            check=lambda head: replay.check_version(call, self.space, head),
        )
