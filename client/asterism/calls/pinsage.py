"""Nodes that walks visit most: the neighbors of PinSAGE."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from asterism.calls import decoding, validation
from asterism.calls.base import GraphCalls, Names, parse_direction
from asterism.calls.string_ids import NodeTypes
from asterism.records.samples import VisitSample
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from asterism_proto.v1 import storaged_pb2 as storaged_pb


class VisitCountCalls(GraphCalls):
    """The part of a graph that counts what walks come to."""

    def sample_pinsage(
        self,
        nodes: ArrayLike,
        metapath: Sequence[Names] | None,
        n: int,
        *,
        walks: int,
        traversals: int = 2,
        termination: float = 0.5,
        ntype: NodeTypes = None,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        direction: str = "out",
        seed: int | None = None,
        version: int | None = None,
    ) -> VisitSample:
        """The n nodes that short random walks from each node visit most: PinSAGE's neighbors, with
        their visits as importance.

        Parameters
        ----------
        nodes : int64[m]
            Where walks start; -1 and unknown ones have no neighbors. A node that is there twice
            walks by itself each time.
        metapath : list of (str or list of str), or None
            The edge types of each step of a traversal, such as ``["bought", "bought_by"]``; one of
            `metapaths`; None: one step along any edge. It ends where it begins, unless
            ``traversals`` is 1.
        n : int
            Nodes to give for each.
        walks : int
            Walks from each node.
        traversals : int
            How often a walk goes over the metapath at most. Where each traversal ends is a visit,
            at the start itself too.
        termination : float
            The probability that a walk ends before a traversal, any but its first; in 0 .. 1.
        ntype : str or int[m], optional
            The type of the nodes, or of each. It may be left out where the first step's edge types
            start at the same one.
        weighted, weight, where, direction
            As of `random_walk`; PinSAGE's own walks are uniform (``weighted=False``).

        Returns
        -------
        VisitSample
            ``nodes`` and ``counts`` int64[m, n]: by visits, most first, ties by id, then by node
            type; padded with -1 and 0. ``types`` int32[m, n], node types.

        Raises
        ------
        InvalidRequest
            Where the metapath does not end where it begins, or the answer, or one node's walks, do
            not fit into one reply.

        Notes
        -----
        Walks are those of `random_walk` with the same seed, walks and ``traversals`` times the
        steps, up to where they end: which of them do does not depend on their steps. Ying et al.
        2018, *Graph convolutional neural networks for web-scale recommender systems*, KDD, section
        3.1; over any metapath as DGL's ``RandomWalkNeighborSampler`` has it (where ties go to the
        larger id).

        Examples
        --------
        >>> near = graph.sample_pinsage(  # doctest: +SKIP
        ...     items, ["bought_by", "buys"], 10, walks=200, seed=3
        ... )
        >>> near.counts / near.counts.sum(axis=1, keepdims=True)  # doctest: +SKIP
        """
        steps = self._steps(metapath, 1)
        wire_direction = parse_direction(direction)
        node_type, arrays = self._seed_sections(
            nodes, ntype, steps[0], wire_direction, version=version
        )
        head = graphd_pb.SamplePinsageRequest(
            space=self.space,
            version=self._version(version),
            seed=validation.seed(seed),
            steps=[storaged_pb.Step(edge_types=step) for step in steps],
            traversals=validation.count("traversals", traversals, minimum=1),
            termination=validation.number("termination", termination, 0, 1),
            walks=validation.count("walks", walks, minimum=1),
            count=validation.count("n", n),
            node_type=node_type,
            uniform=not weighted,
            weight=weight,
            where=where,
            direction=wire_direction,
        )
        return self._call("sample_pinsage", decoding.visit_sample, head, arrays)
