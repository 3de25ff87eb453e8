"""Calls for nodes ranked by personalized PageRank."""

from __future__ import annotations

from numpy.typing import ArrayLike

from asterism.calls import validation
from asterism.calls.base import GraphCalls, Names, parse_direction, version_of
from asterism.calls.string_ids import NodeTypes
from asterism.records.samples import PageRanks
from asterism_proto.v1 import graphd_pb2 as graphd_pb


class PageRankCalls(GraphCalls):
    """The part of a graph that ranks nodes for others."""

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
        direction: str = "out",
        version: int | None = None,
    ) -> PageRanks:
        """The k nodes at which random walks from each node end most often, with how often:
        personalised PageRank by forward push.

        A walk ends where it is with probability ``alpha`` before each step, and at a dead end; the
        probability that a walk from s ends at v is ppr(v). Without a draw, and within bounds: see
        Notes.

        Parameters
        ----------
        nodes : int64[m]
            Where walks start; -1 and unknown ones have no row of nodes.
        etypes : str or list of str, or None
            Edge types, over which walks go together; None: all. Where none begins is a dead end.
        k : int
            Nodes to give for each: the start is one, as a rule the first.
        alpha : float
            Above 0, at most 1.
        epsilon : float
            How much a node may hold back, per unit of what its edges weigh together (its degree,
            where edges are counted); 1e-12 to 1. What is read and done for a node grows as 1 /
            (alpha * epsilon) at most, where every edge weighs 1.
        ntype : str or int[m], optional
            The type of the nodes, or of each. It may be left out where the edge types start at the
            same one.
        weighted, weight, where, direction
            As of `random_walk`: a step goes along an edge by its weight, or (``weighted=False``)
            along each alike.

        Returns
        -------
        PageRanks
            ``nodes`` int64[m, k], ``types`` int32[m, k], ``scores`` float64[m, k]: highest score
            first, ties by id, then by type; padded with -1 and 0. ``residuals`` float64[m].

        Raises
        ------
        InvalidRequest
            Where a limit is met: the answer does not fit into one reply, a node comes to too many
            others, the neighborhoods of all have too many edges. The message says which, and what
            to do.

        Notes
        -----
        Andersen, Chung & Lang 2006, *Local graph partitioning using PageRank vectors*, FOCS, with
        the walk that is not lazy, as Bojchevski et al. 2020 (PPRGo, KDD) and Fey et al. 2021
        (GNNAutoScale, ICML) have it. In rounds: every node u that holds back r(u) > epsilon * d(u),
        d(u) being what its edges weigh together, keeps alpha * r(u) as score and hands the rest on.
        A start hands on once at least. So

        * 0 <= ppr(v) - score(v) <= ``residuals`` for any graph;
        * ppr(v) - score(v) <= epsilon * d(v) where every edge is there in both directions by the
          same weight.

        The same bytes on any number of hosts, and whatever else is asked for together.

        Examples
        --------
        >>> near = graph.personalized_pagerank([7], "cites", 32, epsilon=1e-5)  # doctest: +SKIP
        """
        edge_types = self._session.edge_type_ids(
            self.space, validation.type_names("etypes", etypes)
        )
        wire_direction = parse_direction(direction)
        node_type, arrays = self._seed_sections(
            nodes, ntype, edge_types, wire_direction, version=version
        )
        head = graphd_pb.PersonalizedPagerankRequest(
            space=self.space,
            version=self._version(version),
            edge_types=edge_types,
            node_type=node_type,
            direction=wire_direction,
            uniform=not weighted,
            alpha=validation.number("alpha", alpha, 0, 1),
            epsilon=validation.number("epsilon", epsilon, 1e-12, 1),
            top=validation.count("k", k, minimum=1),
            weight=weight,
            where=where,
        )
        reply = self._session.read("personalized_pagerank", head, arrays)
        return PageRanks(
            nodes=reply.array("ids", "int64", 2),
            types=reply.array("kinds", "int32", 2),
            scores=reply.array("scores", "float64", 2),
            residuals=reply.array("residuals", "float64"),
            version=version_of(reply.head),
        )
