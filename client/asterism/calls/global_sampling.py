"""Sampling of nodes and edges of the whole graph."""

from __future__ import annotations

from asterism.calls import decoding, validation
from asterism.calls.base import GraphCalls, Names
from asterism.records.samples import (
    EdgeSample,
    NodeSample,
)
from asterism_proto.v1 import graphd_pb2 as graphd_pb


class GlobalSamplingCalls(GraphCalls):
    """Calls that sample nodes and edges of the whole graph.

    Every call takes ``seed`` (an int; None picks a random one, which the record returns, so that
    any call can be replayed) and ``version`` (a published version; None reads the current one,
    which the record returns). The same content, request and seed give the same bytes on any number
    of hosts.
    """

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
        """Sample nodes by weight or uniformly.

        Parameters
        ----------
        n : int
            Number of nodes. The first m of n nodes equal those of a request for m.
        ntype : str or list of str, optional
            Node types to sample from, together. None: all.
        weighted : bool, default True
            Sample in proportion to node weights. False: uniformly.
        weight : str, default ""
            Name of the weights: a weight table of all these types
            (`asterism_model.schema.weight_tables.WeightTable`). "": the nodes' own weights.
        where : str, default ""
            Filter on the nodes, such as ``"price > 3 and brand in ('a', 'b')"``. Nodes that do not
            match are ignored; the rest keep their weights. "": no filter. The syntax is in
            `asterism_model.filters.syntax` and docs/sampling.md.
        replace : bool, default True
            Sample with replacement. False: n distinct nodes, in the order of successive draws.
        probabilities : bool, default False
            Return the probability of each draw: its share of the weight of all requested types;
            without replacement, its share of what the earlier draws left. The sample does not
            change.
        seed : int, optional
            Seed of the call. None: a random one, which the record returns.
        version : int, optional
            Version to read. None: the version of this graph, or the current one.

        Returns
        -------
        NodeSample
            ``nodes`` ndarray of int64, shape (n,); ``types`` int32, shape (n,); ``probabilities``
            float64, shape (n,), or None.

        Raises
        ------
        NotFound
            If there is nothing to sample from, or no such version.
        InvalidRequest
            If ``replace=False`` and fewer than n nodes can be sampled, or ``where`` is not a valid
            filter.

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
        """Sample edges by weight or uniformly.

        Parameters
        ----------
        n : int
            Number of edges.
        etype : str or list of str, optional
            Edge types to sample from, together: a triple, or a relation if it is unambiguous. None:
            all.
        weighted : bool, default True
            Sample in proportion to edge weights. False: uniformly.
        weight : str, default ""
            Name of the weights to sample by and to return: a weight table of all these types. "":
            the edges' own weights.
        where : str, default ""
            Filter on the edges. It may read ``src`` and ``dst``, and features of these nodes:
            ``"rating >= 4 and dst.price < 10"``. Edges that do not match are ignored. "": no
            filter.
        replace : bool, default True
            Sample with replacement. False: n distinct edges, in the order of successive draws.
        probabilities : bool, default False
            Return the probability of each draw, as in `sample_nodes`.
        seed : int, optional
            Seed of the call. None: a random one, which the record returns.
        version : int, optional
            Version to read. None: the version of this graph, or the current one.

        Returns
        -------
        EdgeSample
            ``src``, ``dst`` and ``edge_ids`` ndarray of int64, shape (n,); ``types`` int32, shape
            (n,); ``weights`` float32, shape (n,); ``probabilities`` float64, shape (n,), or None.

        Raises
        ------
        NotFound
            If there is nothing to sample from, or no such version.
        InvalidRequest
            If ``replace=False`` and fewer than n edges can be sampled, or ``where`` is not a valid
            filter.

        Examples
        --------
        >>> edges = graph.sample_edges(64, "buys", seed=7)  # doctest: +SKIP
        >>> edges.src.shape, edges.weights.dtype  # doctest: +SKIP
        ((64,), dtype('float32'))
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
