"""Neighbors by visits of random walks (PinSAGE)."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from asterism.calls import decoding, validation
from asterism.calls.base import GraphCalls, Names, parse_direction
from asterism.calls.excluded_edges import EdgeExclusion, ReverseTypes
from asterism.calls.string_id_hashing import NodeTypes
from asterism.records.samples import VisitSample
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from asterism_proto.v1 import storaged_pb2 as storaged_pb


class VisitCountCalls(GraphCalls):
    """Calls that rank nodes by the visits of random walks."""

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
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        direction: str = "out",
        seed: int | None = None,
        version: int | None = None,
    ) -> VisitSample:
        """Return the n nodes that short random walks from each node visit most (PinSAGE).

        The numbers of visits serve as importance.

        Parameters
        ----------
        nodes : array_like of int64, shape (m,)
            Start nodes. -1 and unknown ids have no neighbors. A repeated node has independent
            walks.
        metapath : list of (str or list of str), or None
            Edge types of each step of a traversal, such as ``["bought", "bought_by"]``; or one of
            `metapaths`. None: one step along any edge. It must end at the node type where it
            starts, unless ``traversals`` is 1.
        n : int
            Nodes per row.
        walks : int
            Walks per start node.
        traversals : int, default 2
            Maximum number of times a walk traverses the metapath. The end of each traversal is a
            visit, even at the start node.
        termination : float, default 0.5
            Probability, from 0 to 1, that a walk ends before each traversal except the first.
        ntype : str, or array_like of int, shape (m,), optional
            Node type of all nodes by name, or of each node by type id. Needed only where the first
            step's edge types start at several node types and ids are per type.
        weighted : bool, default True
            Choose edges in proportion to their weights. PinSAGE's own walks are uniform (False).
        weight : str, default ""
            Name of the edge weights: a weight table that every one of the edge types has. "": the
            edges' own weights.
        where : str, default ""
            Filter on the edges, as in `sample_neighbors`.
        exclude, reverse_types : optional
            Edges that are as if they did not exist, as in `sample_neighbors`.
        direction : {"out", "in"}, default "out"
            Follow edges forward, or in reverse (where the schema keeps in-copies).
        seed : int, optional
            Seed of the call. None: a random one, which the record returns.
        version : int, optional
            Version to read. None: the version of this graph, or the current one.

        Returns
        -------
        VisitSample
            ``nodes`` and ``counts`` ndarray of int64, shape (m, n): most visits first, ties by id,
            then by node type; padded with -1 and 0. ``types`` int32, shape (m, n), node type ids.

        Raises
        ------
        InvalidRequest
            If the metapath does not end where it starts, or the result, or the walks of one node,
            do not fit into one reply.

        Notes
        -----
        Walks are those of `random_walk` with the same seed and walks, and ``traversals`` times the
        steps, cut where they end. Where a walk ends does not depend on its steps. Ying et al. 2018,
        *Graph convolutional neural networks for web-scale recommender systems*, KDD, section 3.1;
        over any metapath as in DGL's ``RandomWalkNeighborSampler`` (which breaks ties by the larger
        id).

        Examples
        --------
        >>> sample = graph.sample_pinsage(  # doctest: +SKIP
        ...     items, ["bought_by", "buys"], 10, walks=200, seed=3
        ... )
        >>> sample.counts / sample.counts.sum(axis=1, keepdims=True)  # doctest: +SKIP
        """
        steps = self._steps(metapath, 1)
        wire_direction = parse_direction(direction)
        node_type, arrays = self._seed_sections(
            nodes, ntype, steps[0], wire_direction, version=version
        )
        excluded = self._exclusion_sections(
            exclude, reverse_types, [etype for step in steps for etype in step], version
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
        return self._call("sample_pinsage", decoding.visit_sample, head, arrays | excluded)
