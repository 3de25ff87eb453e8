"""Nodes of the types that others have, and negatives: nodes that are not some others."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from asterism.calls import decoding, validation
from asterism.calls.base import GraphCalls, Names
from asterism.calls.string_ids import NodeTypes
from asterism.records.samples import NodeRows
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import graphd_pb2 as graphd_pb


class NegativeCalls(GraphCalls):
    """The part of a graph that contrasts are drawn from."""

    def sample_nodes_like(
        self,
        src: ArrayLike,
        n: int,
        *,
        ntype: NodeTypes = None,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        unknown: str = "error",
        probabilities: bool = False,
        seed: int | None = None,
        version: int | None = None,
    ) -> NodeRows:
        """Draw n nodes of the type of each node, from the whole graph.

        Parameters
        ----------
        src : int64[m]
            Node ids.
        n : int
            How many of each one's type.
        ntype : str or int[m], optional
            The type of the nodes, or of each: then nothing is looked up, and -1 alone is no node.
            In a space of global ids it may be left out.
        weighted, weight
            As of `sample_nodes`; a table by that name is needed of every type that may be drawn.
        where : str
            As of `sample_nodes`, of the nodes that are drawn.
        unknown : {"error", "none"}
            Whether a node that is not there is refused, or has a row of -1.
        probabilities : bool
            Whether to give back the probability of each draw too: its share of the weight of its
            type.

        Returns
        -------
        NodeRows
            ``nodes`` int64[m, n], ``types`` int32[m, n].

        Raises
        ------
        NotFound
            Where a node is not there (``unknown="error"``), or there is nothing to draw of a type.

        Notes
        -----
        Draw k of row i is draw ``i * n + k`` of `sample_nodes` of that type with the same seed.

        Examples
        --------
        >>> graph.sample_nodes_like([3, 17], 2, seed=1).nodes.shape  # doctest: +SKIP
        (2, 2)
        """
        if unknown not in ("error", "none"):
            raise InvalidRequest(f"unknown {unknown!r}: expected 'error' or 'none'")
        node_type, arrays = self._type_sections("src", src, ntype, version)
        head = graphd_pb.SampleNodesLikeRequest(
            space=self.space,
            version=self._version(version),
            seed=validation.seed(seed),
            node_type=node_type,
            count=validation.count("n", n),
            uniform=not weighted,
            allow_unknown=unknown == "none",
            want_probabilities=probabilities,
            weight=weight,
            where=where,
        )
        return self._call("sample_nodes_like", decoding.nodes_like, head, arrays)

    def sample_negatives(
        self,
        pairs: ArrayLike,
        n: int,
        ntype: Names = None,
        *,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        shared: bool = False,
        exclude: validation.Exclusions = None,
        exclude_edges: Names = None,
        probabilities: bool = False,
        seed: int | None = None,
        version: int | None = None,
    ) -> NodeRows:
        """Draw n negatives for each pair, or n for all of them: nodes that are not among their
        positives.

        Parameters
        ----------
        pairs : int64[m] or int64[m, 2]
            One row of negatives for each. Of pairs (source, destination) the destination is a
            positive; of sources alone nothing is known.
        n : int
            Negatives per row.
        ntype : str or list of str, optional
            What negatives are: of these types together; None: of all.
        weighted, weight
            As of `sample_nodes`: by node weight, uniformly, or by a named table, such as
            ``pow(degree, 0.75)`` of a column.
        where : str
            As of `sample_nodes`, of the negatives.
        shared : bool
            One row of n for the whole batch; it leaves out the positives of every pair.
        exclude : (indptr, ids), RaggedNeighbors or int64[m, k], optional
            Further positives of each row; -1 is none.
        exclude_edges : str or list of str, optional
            Edge types: whatever an edge of these leads to from a row's source is left out too, so
            that no negative is a true edge. Sources are not read, but asked whether they are joined
            to what was drawn, whatever degree they have.
        probabilities : bool
            Whether to give back the probability of each draw too: its share of the weight of all
            that its row does not leave out.

        Returns
        -------
        NodeRows
            ``nodes`` int64[m, n] (or int64[1, n] where shared), ``types`` int32 likewise; -1 where
            a row leaves nothing to draw.

        Raises
        ------
        NotFound
            Where there is nothing to draw at all.
        InvalidRequest
            Where positives are left out among several types of a space whose ids are per type: ask
            type by type; where no edge of ``exclude_edges`` leads to what is drawn; where
            ``shared`` or ``probabilities`` is asked for too and the neighbors of all sources, which
            are read then, do not fit into one reply.

        Notes
        -----
        Every draw is by itself: node v with probability w_v / (the weight of all that its row does
        not leave out). Draw k of row i is draw ``i * n + k`` of `sample_nodes` with the same seed
        unless the row leaves that out; then it is drawn again until it is not.

        Examples
        --------
        >>> edges = graph.sample_edges(512, "cites")  # doctest: +SKIP
        >>> pairs = np.stack([edges.src, edges.dst], axis=1)  # doctest: +SKIP
        >>> graph.sample_negatives(pairs, 5, "paper", exclude_edges="cites").nodes  # doctest: +SKIP
        """
        types = [
            self._session.node_type(self.space, name)[0]
            for name in validation.type_names("ntype", ntype)
        ]
        edge_types = [
            self._session.edge_type(self.space, name)[0]
            for name in validation.type_names("exclude_edges", exclude_edges)
        ]
        pair_ids = self._resolve_pairs(pairs, types or None, edge_types, version)
        arrays = validation.exclusion_sections(
            pair_ids, self._resolve_exclusions(exclude, types or None, version), shared=shared
        )
        if edge_types:
            arrays["sources"] = validation.pair_sources(pair_ids)
        head = graphd_pb.SampleNegativesRequest(
            space=self.space,
            version=self._version(version),
            seed=validation.seed(seed),
            types=types,
            rows=1 if shared else len(np.asarray(pairs)),
            count=validation.count("n", n),
            uniform=not weighted,
            want_probabilities=probabilities,
            weight=weight,
            where=where,
            exclude_edge_types=edge_types,
        )
        return self._call("sample_negatives", decoding.negatives, head, arrays)
