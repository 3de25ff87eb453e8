"""Random walks."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from asterism.calls import decoding, validation
from asterism.calls.base import GraphCalls, Names, parse_direction
from asterism.calls.excluded_edges import EdgeExclusion, ReverseTypes
from asterism.calls.metapath_notation import Metapath, parse_metapaths
from asterism.calls.string_id_hashing import NodeTypes
from asterism.records.samples import WalkSample
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from asterism_proto.v1 import storaged_pb2 as storaged_pb


class WalkCalls(GraphCalls):
    """Random walks over a graph."""

    def metapaths(self, text: str) -> tuple[Metapath, ...]:
        """Parse metapaths in PGLBox notation, using the types of this graph space.

        The notation is ``u2click2i-i2click2u;i2click2u-u2click2i``; see
        `asterism.calls.metapath_notation`.

        Parameters
        ----------
        text : str
            One metapath or several, separated by ``;``.

        Returns
        -------
        tuple of Metapath
            The metapaths, for `random_walk` and `walk_pairs`.

        Raises
        ------
        InvalidRequest
            If a step does not match the schema; the message names the step and its position.

        Examples
        --------
        >>> for path in graph.metapaths("u2buys2i-i2bought2u;u2follows2u"):  # doctest: +SKIP
        ...     graph.random_walk(users, path, 24, walks=10, first_step="distinct")
        """
        return parse_metapaths(self.schema, text)

    def random_walk(
        self,
        nodes: ArrayLike,
        metapath: Sequence[Names] | None = None,
        length: int | None = None,
        *,
        ntype: NodeTypes = None,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        p: float = 1.0,
        q: float = 1.0,
        restart: float = 0.0,
        direction: str = "out",
        walks: int | None = None,
        first_step: str = "independent",
        edge_ids: bool = False,
        seed: int | None = None,
        version: int | None = None,
    ) -> WalkSample:
        """Walk from each node: every step moves to one neighbor, by edge weight or uniformly.

        Parameters
        ----------
        nodes : array_like of int64, shape (m,)
            Start nodes. A repeated node has independent walks. -1 has an empty walk.
        metapath : list of (str or list of str), optional
            Edge types of each step, repeated if the walk is longer; or one of `metapaths`. None:
            every edge type at every step. A step with edge types that do not start at the walk's
            current node is a dead end. Each step has to start at a node type where the step before
            may end.
        length : int, optional
            Number of steps. None: as many as ``metapath`` has.
        ntype : str, or array_like of int, shape (m,), optional
            Node type of all nodes by name, or of each node by type id. Needed only where the first
            step's edge types start at several node types and ids are per type.
        weighted : bool, default True
            Choose edges in proportion to their weights. False: uniformly.
        weight : str, default ""
            Name of the edge weights: a weight table that every one of the edge types has. "": the
            edges' own weights.
        where : str, default ""
            Filter on the edges, as in `sample_neighbors`.
        exclude, reverse_types : optional
            Edges that are as if they did not exist, as in `sample_neighbors`.
        p, q : float, default 1.0
            Return and in-out parameters of node2vec, from 0.001 to 1000. The weight of a step back
            to the previous node is divided by p. The weight of a step to a node that is not joined
            to the previous node is divided by q. Joined means: an edge leads to it from the
            previous node along the edge types of the step before. The first step, and the step
            after a restart, ignore p and q.
        restart : float, default 0.0
            Probability, from 0 to 1, that a step returns to the start node instead. A walk at a
            dead end may return too.
        direction : {"out", "in"}, default "out"
            Follow edges forward, or in reverse (where the schema keeps in-copies).
        walks : int, optional
            Walks per node. None: one.
        first_step : {"independent", "distinct"}, default "independent"
            "distinct": the first steps of a node's walks lead to ``walks`` different neighbors,
            sampled without replacement by the total weight of all edges to each, over all types. A
            node with two neighbors has two walks, a node without neighbors has none.
        edge_ids : bool, default False
            Return the edge ids.
        seed : int, optional
            Seed of the call. None: a random one, which the record returns.
        version : int, optional
            Version to read. None: the version of this graph, or the current one.

        Returns
        -------
        WalkSample
            ``nodes`` ndarray of int64, shape (m, length + 1), start node first; -1 after a dead
            end. With ``walks``, ``starts`` holds the row of each walk's start node.

        Raises
        ------
        InvalidRequest
            If there is neither metapath nor length, no walk can take a step of ``metapath``, or a
            parameter is out of range.
        NotFound
            If there is no such edge type, weight table or version.

        Notes
        -----
        A step depends on the seed, its edge types, the node, and the number of the walk, which is
        ``i * walks + j`` for walk j of node i. Fewer steps are a prefix of more. p and q follow
        Grover & Leskovec 2016, *node2vec*, KDD, section 3.2, and are exact: by
        acceptance-rejection.

        Examples
        --------
        >>> graph.random_walk([1, 2], ["follows", "likes"], 4, seed=3).nodes.shape  # doctest: +SKIP
        (2, 5)
        """
        steps = self._steps(metapath, length)
        _check_walk_options(walks, first_step)
        wire_direction = parse_direction(direction)
        restart = validation.number("restart", restart, 0, 1)
        step_count = len(steps) if length is None else validation.count("length", length)
        if first_step == "distinct" and not step_count:
            raise InvalidRequest("length=0 with first_step='distinct': expected 1 or more steps")
        if metapath is not None:
            self._check_connected(steps[:step_count], ntype, wire_direction, restarts=restart > 0)
        node_type, arrays = self._seed_sections(
            nodes, ntype, steps[0], wire_direction, version=version
        )
        excluded = self._exclusion_sections(
            exclude, reverse_types, [etype for step in steps for etype in step], version
        )
        head = graphd_pb.RandomWalkRequest(
            space=self.space,
            version=self._version(version),
            seed=validation.seed(seed),
            steps=[storaged_pb.Step(edge_types=step) for step in steps],
            length=step_count,
            node_type=node_type,
            uniform=not weighted,
            weight=weight,
            where=where,
            direction=wire_direction,
            restart=restart,
            p=validation.number("p", p, 1e-3, 1e3),
            q=validation.number("q", q, 1e-3, 1e3),
            want_edge_ids=edge_ids,
            walks=0 if walks is None else validation.count("walks", walks, minimum=1),
            distinct_first_step=first_step == "distinct",
        )
        return self._call("random_walk", decoding.walk_sample, head, arrays | excluded)

    def _check_connected(
        self,
        steps: Sequence[Sequence[int]],
        ntype: NodeTypes,
        direction: common_pb.Direction,
        *,
        restarts: bool,
    ) -> None:
        """Reject a metapath with a step that no walk can take.

        The service reports a first step that does not start at the nodes.
        """
        start = ntype if isinstance(ntype, str) else None
        reached = reachable_types(self.schema, steps, start, direction, restarts=restarts)
        position = len(reached)
        if 0 < position < len(steps):
            names = [self.schema.edge_types[e].name for e in steps[position]]
            verb = "starts" if direction == common_pb.OUT else "ends"
            raise InvalidRequest(
                f"metapath[{position}]={names}: expected an edge type that {verb} at "
                f"{' or '.join(sorted(reached[-1]))}, where metapath[{position - 1}] leads"
            )


def reachable_types(
    schema: Schema,
    steps: Sequence[Sequence[int]],
    start: str | None,
    direction: common_pb.Direction,
    *,
    restarts: bool = False,
) -> list[set[str]]:
    """Return the node types that walks may reach, for each step that some walk can take.

    Parameters
    ----------
    schema : Schema
        Schema of the edge types.
    steps : list of list of int
        Edge type ids of each step.
    start : str, optional
        Node type of the start nodes. None: any type at which the first step's edge types start.
    direction : Direction
        Direction in which edges are followed.
    restarts : bool, default False
        A step may return to the start node.

    Returns
    -------
    list of set of str
        Node types after each step. It is shorter than ``steps`` if no edge type of the next step
        starts at the types reached so far.
    """
    origin = None if start is None else {start}
    reached: list[set[str]] = []
    for step in steps:
        ends = [(schema.edge_types[e].src_type, schema.edge_types[e].dst_type) for e in step]
        if direction != common_pb.OUT:
            ends = [(dst, src) for src, dst in ends]
        if origin is None:
            origin = {near for near, _ in ends}
        current = reached[-1] if reached else origin
        following = {far for near, far in ends if near in current}
        if not following:
            break
        reached.append(following | origin if restarts else following)
    return reached


def _check_walk_options(walks: int | None, first_step: str) -> None:
    """Reject walk options that do not fit together."""
    if first_step not in ("independent", "distinct"):
        raise InvalidRequest(f"first_step={first_step!r}: expected 'independent' or 'distinct'")
    if first_step == "distinct" and walks is None:
        raise InvalidRequest(
            "walks=None with first_step='distinct': expected the number of walks from each node"
        )
