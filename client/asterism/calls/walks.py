"""Random walks."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from asterism.calls import decoding, validation
from asterism.calls.base import GraphCalls, Names, parse_direction
from asterism.calls.metapaths import Metapath, parse_metapaths
from asterism.calls.string_ids import NodeTypes
from asterism.records.samples import WalkSample
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from asterism_proto.v1 import storaged_pb2 as storaged_pb


class WalkCalls(GraphCalls):
    """The walking half of a graph."""

    def metapaths(self, text: str) -> tuple[Metapath, ...]:
        """Metapaths as PGLBox writes them, ``u2click2i-i2click2u;i2click2u-u2click2i``, in the
        types of this space.

        Raises
        ------
        InvalidRequest
            Where a step means nothing here; the message says which, and where it stands. See
            `asterism.calls.metapaths`.

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
        """Walk from each node: every step goes to one neighbor, drawn by edge weight or uniformly.

        Parameters
        ----------
        nodes : int64[m]
            Where to start; a node that is there twice walks twice, each walk by itself. -1 goes
            nowhere.
        metapath : list of (str or list of str), optional
            The edge types of each step, begun again where the walk is longer; one of `metapaths`;
            None: every edge type at every step. One whose edge types start elsewhere than where a
            walk is, is a dead end to it.
        length : int, optional
            Steps; as many as ``metapath`` has where left out.
        ntype : str or int[m], optional
            The type of the nodes, or of each. It may be left out where the first step's edge types
            start at the same one.
        weighted, weight, where
            By edge weight, of that name ("" are the edges' own); otherwise uniformly over edges; a
            condition as of `sample_neighbors`.
        p, q : float
            node2vec's: a step back to where the walk was is 1 / p times as likely as its weight
            alone makes it, a step to a node that is not joined to where the walk was 1 / q times;
            in 0.001 .. 1000. Joined is: there is an edge to it along the edge types of the step
            before. The first step, and the one after a restart, know no p and q.
        restart : float
            The probability that a step leads back to the start instead, in 0 .. 1; a walk at a dead
            end may return too.
        direction : {"out", "in"}
            Along the edges, or against them (where the schema keeps in-copies).
        walks : int, optional
            Walks from each node; None: one.
        first_step : {"independent", "distinct"}
            "distinct": the first step goes to ``walks`` different neighbors, without replacement
            (by the weight of all edges to each, of whatever type), and a walk goes on from each
            that there is: a node with two has two walks, one without none.
        edge_ids : bool
            Whether to give the edges' ids too.

        Returns
        -------
        WalkSample
            ``nodes`` int64[m, length + 1], the start first; behind a dead end -1. With ``walks``,
            ``starts`` says whose each is.

        Notes
        -----
        With p = q = 1 and without restart, step s is the draw that `sample_fanout` makes of one
        neighbor at hop s, so that both give the same nodes for the same seed. Walk j of node i is
        drawn as number ``i * walks + j``, however many others there are. p and q: Grover & Leskovec
        2016, *node2vec*, KDD, section 3.2; drawn exactly, by acceptance.

        Examples
        --------
        >>> graph.random_walk([1, 2], ["follows", "likes"], 4, seed=3).nodes.shape  # doctest: +SKIP
        (2, 5)
        """
        steps = self._steps(metapath, length)
        _check_walk_options(walks, first_step)
        wire_direction = parse_direction(direction)
        node_type, arrays = self._seed_sections(
            nodes, ntype, steps[0], wire_direction, version=version
        )
        head = graphd_pb.RandomWalkRequest(
            space=self.space,
            version=self._version(version),
            seed=validation.seed(seed),
            steps=[storaged_pb.Step(edge_types=step) for step in steps],
            length=len(steps) if length is None else validation.count("length", length),
            node_type=node_type,
            uniform=not weighted,
            weight=weight,
            where=where,
            direction=wire_direction,
            restart=validation.number("restart", restart, 0, 1),
            p=validation.number("p", p, 1e-3, 1e3),
            q=validation.number("q", q, 1e-3, 1e3),
            want_edge_ids=edge_ids,
            walks=0 if walks is None else validation.count("walks", walks, minimum=1),
            distinct_first_step=first_step == "distinct",
        )
        return self._call("random_walk", decoding.walk_sample, head, arrays)


def _check_walk_options(walks: int | None, first_step: str) -> None:
    """Refuse how walks can not go."""
    if first_step not in ("independent", "distinct"):
        raise InvalidRequest(f"first_step {first_step!r}: expected 'independent' or 'distinct'")
    if first_step == "distinct" and walks is None:
        raise InvalidRequest(
            "first_step 'distinct' needs to know how many walks from each node; say walks"
        )
