"""Personalized PageRank."""

from __future__ import annotations

from numpy.typing import ArrayLike

from asterism.calls import validation
from asterism.calls.base import GraphCalls, Names, parse_direction, version_of
from asterism.calls.excluded_edges import EdgeExclusion, ReverseTypes
from asterism.calls.string_id_hashing import NodeTypes
from asterism.records.samples import PageRanks
from asterism_proto.v1 import graphd_pb2 as graphd_pb


class PageRankCalls(GraphCalls):
    """Calls that rank nodes by personalized PageRank."""

    def personalized_pagerank(
        self,
        nodes: ArrayLike,
        etypes: Names,
        k: int,
        *,
        alpha: float = 0.15,
        epsilon: float = 1e-4,
        ntype: NodeTypes = None,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        direction: str = "out",
        version: int | None = None,
    ) -> PageRanks:
        """Return the k nodes with the highest personalized PageRank for each node.

        A random walk ends with probability ``alpha`` before each step, and at a dead end. ppr(v) is
        the probability that a walk from s ends at v. Scores come from forward push: nothing is
        sampled, and the error is bounded (see Notes).

        Parameters
        ----------
        nodes : array_like of int64, shape (m,)
            Start nodes. -1 and unknown ids have empty rows.
        etypes : str or list of str, or None
            Edge types to walk along, together. None: all. A node without such edges is a dead end.
        k : int
            Nodes per row. The start node is one of them, usually the first.
        alpha : float, default 0.15
            Probability of ending, above 0 and at most 1.
        epsilon : float, default 1e-4
            Largest residual of a node per unit of its edges' total weight (its degree, if edges are
            counted), from 1e-12 to 1. Reads and work per start node grow as 1 / (alpha * epsilon)
            at most, if every edge weighs 1.
        ntype : str, or array_like of int, shape (m,), optional
            Node type of all nodes by name, or of each node by type id. Needed only where the edge
            types start at several node types and ids are per type.
        weighted : bool, default True
            Follow edges in proportion to their weights. False: uniformly.
        weight : str, default ""
            Name of the edge weights: a weight table that every one of the edge types has. "": the
            edges' own weights.
        where : str, default ""
            Filter on the edges, as in `sample_neighbors`.
        exclude, reverse_types : optional
            Edges that are as if they did not exist, as in `sample_neighbors`.
        direction : {"out", "in"}, default "out"
            Follow edges forward, or in reverse (where the schema keeps in-copies).
        version : int, optional
            Version to read. None: the version of this graph, or the current one.

        Returns
        -------
        PageRanks
            ``nodes`` ndarray of int64, ``types`` int32 and ``scores`` float64, each of shape (m,
            k): highest score first, ties by id, then by type; padded with -1 and 0. ``residuals``
            float64, shape (m,).

        Raises
        ------
        InvalidRequest
            If a limit is reached: the result does not fit into one reply, a start node reaches too
            many nodes, or all neighborhoods together have too many edges. The message names the
            limit and the remedy.

        Notes
        -----
        Andersen, Chung & Lang 2006, *Local graph partitioning using PageRank vectors*, FOCS, for
        the walk that is not lazy, as in Bojchevski et al. 2020 (PPRGo, KDD) and Fey et al. 2021
        (GNNAutoScale, ICML). Push runs in rounds. Let r(u) be the residual of node u and d(u) the
        total weight of its edges. Every node with r(u) > epsilon * d(u) keeps alpha * r(u) as score
        and passes the rest on. A start node pushes at least once. Therefore:

        * 0 <= ppr(v) - score(v) <= ``residuals`` for any graph;
        * ppr(v) - score(v) <= epsilon * d(v) if every edge exists in both directions with the same
          weight.

        The result has the same bytes on any number of hosts, and does not depend on the rest of the
        request.

        Examples
        --------
        >>> ranks = graph.personalized_pagerank([7], "cites", 32, epsilon=1e-5)  # doctest: +SKIP
        """
        edge_types = self._session.edge_type_ids(
            self.space, validation.type_names("etypes", etypes)
        )
        wire_direction = parse_direction(direction)
        node_type, arrays = self._seed_sections(
            nodes, ntype, edge_types, wire_direction, version=version
        )
        excluded = self._exclusion_sections(exclude, reverse_types, edge_types, version)
        head = graphd_pb.PersonalizedPagerankRequest(
            space=self.space,
            version=self._version(version),
            edge_types=edge_types,
            node_type=node_type,
            direction=wire_direction,
            uniform=not weighted,
            alpha=validation.number("alpha", alpha, 0, 1, above=True),
            epsilon=validation.number("epsilon", epsilon, 1e-12, 1),
            top=validation.count("k", k, minimum=1),
            weight=weight,
            where=where,
        )
        reply = self._session.read("personalized_pagerank", head, arrays | excluded)
        return PageRanks(
            nodes=reply.array("ids", "int64", 2),
            types=reply.array("kinds", "int32", 2),
            scores=reply.array("scores", "float64", 2),
            residuals=reply.array("residuals", "float64"),
            version=version_of(reply.head),
        )
