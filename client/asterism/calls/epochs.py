"""Passes over a graph, epoch after epoch: every node of a type once, and the pairs of walks from
every node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from asterism import hashing, ops
from asterism.calls import validation
from asterism.calls.base import GraphCalls
from asterism.calls.graph_protocol import GraphProtocol
from asterism.calls.metapaths import Metapath, parse_type_pairs
from asterism.calls.passes import EdgePasses, NodePasses
from asterism.records.samples import Ids, PairBatch, Types, WalkSample
from asterism_proto.errors import InvalidRequest

NEGATIVES_PER_REQUEST = 1 << 22
"""Nodes of one request for negatives."""
UNSET: Mapping[str, ArrayLike] = MappingProxyType({})


class PairPasses:
    """Skip-gram pairs of walks from every node: what `EpochCalls.walk_pairs` gives.

    Metapaths take turns; those that start at the same node type share its nodes, each of which
    starts walks once an epoch. Going through it gives what is left of the epoch, and begins the
    next one."""

    def __init__(
        self,
        reader: GraphProtocol,
        metapaths: Sequence[Metapath],
        *,
        walk_length: int,
        walks: int,
        window: int,
        batch_size: int,
        first_step: str,
        weighted: bool,
        weight: str,
        where: str,
        negatives: int,
        excluded: str,
        seed: int,
        rank: int,
        world: int,
        version: int | None,
        starts: Mapping[str, ArrayLike],
    ) -> None:
        if not metapaths:
            raise InvalidRequest("no metapath to walk; name at least one")
        schema = reader.schema
        self._reader, self._metapaths = reader, tuple(metapaths)
        self._length, self._walks = (
            validation.count("walk_length", walk_length, minimum=1),
            validation.count("walks", walks, minimum=1),
        )
        self._window, self._negatives = (
            validation.count("window", window, minimum=1),
            validation.count("negatives", negatives),
        )
        self._first_step, self._weighted, self._weight, self._where = (
            first_step,
            weighted,
            weight,
            where,
        )
        self._excluded = [
            (schema.node_type_id(a), schema.node_type_id(b))
            for a, b in parse_type_pairs(schema, excluded)
        ]
        self._within = sorted(
            {schema.node_type_id(name) for path in metapaths for name in path.node_types}
        )
        self.seed = seed
        self._starts: dict[str, NodePasses] = {}
        self.version = version
        for name in dict.fromkeys(path.start for path in metapaths):
            key = hashing.key_of(seed, hashing.EPOCH, schema.node_type_id(name))
            self._starts[name] = NodePasses(
                reader,
                name,
                batch_size=batch_size,
                seed=key,
                rank=rank,
                world=world,
                version=self.version,
                among=starts.get(name),
            )
            self.version = self._starts[name].version
        self._turn = 0

    @property
    def epoch(self) -> int:
        """The one that is under way, from 0."""
        return next(iter(self._starts.values())).epoch

    def __iter__(self) -> Iterator[PairBatch]:
        while any(starts.cursor.left for starts in self._starts.values()):
            path = self._metapaths[self._turn % len(self._metapaths)]
            index, self._turn = self._turn % len(self._metapaths), self._turn + 1
            if self._starts[path.start].cursor.left:
                yield self._batch(index, path)
        for starts in self._starts.values():
            starts.cursor.next_epoch()
        self._turn = 0

    def _batch(self, index: int, path: Metapath) -> PairBatch:
        starts = self._starts[path.start]
        # The place is this batch's alone, whatever the ranks: so are the streams of its draws.
        tags = (starts.epoch, index, starts.cursor.next_place())
        walks = self._reader.random_walk(
            starts.next_batch(),
            path,
            self._length,
            ntype=path.start,
            weighted=self._weighted,
            weight=self._weight,
            where=self._where,
            walks=self._walks,
            first_step=self._first_step,
            seed=hashing.key_of(self.seed, hashing.WALK, *tags),
            version=self.version,
        )
        types = ops.walk_types(walks, self._reader.schema)
        positions = ops.pair_places(
            walks.nodes,
            self._window,
            self._window,
            types=types,
            excluded=self._excluded,
            within=self._within,
            seed=hashing.key_of(self.seed, hashing.SHUFFLE, *tags),
        )
        pair_types = types.reshape(-1)[positions]
        return PairBatch(
            pairs=walks.nodes.reshape(-1)[positions],
            types=pair_types,
            negatives=self._sample_negatives(pair_types[:, 1], tags, walks)
            if self._negatives
            else None,
            walks=walks,
            metapath=path.text,
            epoch=tags[0],
            version=walks.version,
        )

    def _sample_negatives(self, types: Types, tags: tuple[int, ...], walks: WalkSample) -> Ids:
        """Negatives of each pair: nodes of these types by weight."""
        out = np.empty((len(types), self._negatives), np.int64)
        rows = max(NEGATIVES_PER_REQUEST // self._negatives, 1)
        for type_id in np.unique(types).tolist():
            matching = np.flatnonzero(types == type_id)
            name = self._reader.schema.node_types[type_id].name
            for chunk_index, first in enumerate(range(0, len(matching), rows)):
                chunk = matching[first : first + rows]
                key = hashing.key_of(self.seed, hashing.NEGATIVE, *tags, type_id, chunk_index)
                sample = self._reader.sample_nodes(
                    len(chunk) * self._negatives, name, seed=key, version=walks.version
                )
                out[chunk] = sample.nodes.reshape(len(chunk), self._negatives)
        return out

    def state_dict(self) -> dict[str, Any]:
        """Where it is, in plain values: batches that were given count as visited."""
        return {
            "seed": self.seed,
            "turn": self._turn,
            "metapaths": [path.text for path in self._metapaths],
            "starts": {name: starts.state_dict() for name, starts in self._starts.items()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where passes of the same metapaths was; InvalidRequest where they, or the version,
        are others.
        """
        self._check(state)
        for name, starts in self._starts.items():
            starts.load_state_dict(state["starts"][name])
        self.seed, self._turn = state["seed"], state["turn"]

    def reshard(self, states: Iterable[Mapping[str, Any]]) -> None:
        """Take this rank's share of what passes of another number of ranks left of their epoch: of
        every one's state.
        """
        rank_states = list(states)
        for state in rank_states:
            self._check(state)
        for name, starts in self._starts.items():
            starts.reshard([state["starts"][name] for state in rank_states])
        self.seed, self._turn = rank_states[0]["seed"], 0

    def _check(self, state: Mapping[str, Any]) -> None:
        metapaths = [path.text for path in self._metapaths]
        if state["metapaths"] != metapaths:
            raise InvalidRequest(
                f"the state is of metapaths {state['metapaths']}, these are {metapaths}; go "
                "on with the same ones"
            )


class EpochCalls(GraphCalls):
    """The part of a graph that whole epochs are read through."""

    def node_batches(
        self,
        ntype: str,
        batch_size: int,
        *,
        among: ArrayLike | None = None,
        seed: int | None = None,
        rank: int = 0,
        world: int = 1,
        version: int | None = None,
    ) -> NodePasses:
        """Every node of a type once an epoch, in shuffled batches: for training, or for inference
        over all nodes.

        Parameters
        ----------
        ntype : str
            The node type.
        batch_size : int
            Nodes of a batch; the last one of an epoch may have fewer.
        among : int64[m], optional
            These instead of every node of the type; all ranks give the same, in the same order.
        seed : int, optional
            Of the order. Several ranks must give the same.
        rank, world : int
            Give the share of one of so many trainers; together they visit every node once.
        version : int, optional
            None: the current one, which it stays with. Pin it for as long as the epochs last.

        Returns
        -------
        NodePasses
            Go through it once an epoch; ``state_dict`` and ``load_state_dict`` resume it, and
            ``reshard`` with another ``world``.

        Examples
        --------
        >>> for nodes in graph.node_batches("paper", 1024, seed=1):  # doctest: +SKIP
        ...     infer(graph.sample_subgraph(nodes, [15, 10], "cites"))
        """
        return NodePasses(
            self._graph(),
            ntype,
            batch_size=batch_size,
            seed=require_shared_seed(seed, world),
            rank=rank,
            world=world,
            version=version,
            among=among,
        )

    def edge_batches(
        self,
        etype: str,
        batch_size: int,
        *,
        weight: str = "",
        where: str = "",
        seed: int | None = None,
        rank: int = 0,
        world: int = 1,
        version: int | None = None,
    ) -> EdgePasses:
        """Every edge of a type once an epoch, in shuffled batches: for training on links.

        Parameters
        ----------
        etype : str
            The edge type.
        batch_size : int
            Edges of a batch; the last one of an epoch may have fewer.
        weight : str
            The name of the weights to give back; "" are the edges' own.
        where : str
            As of `sample_edges`: only edges that satisfy it, such as those of a training split.
        seed, rank, world, version
            As of `node_batches`.

        Returns
        -------
        EdgePasses
            Go through it once an epoch; each batch is an `EdgeRows`. ``state_dict``,
            ``load_state_dict`` and ``reshard`` as of `node_batches`.

        Examples
        --------
        >>> for edges in graph.edge_batches(  # doctest: +SKIP
        ...     "cites", 1024, where="year < 2019", seed=1
        ... ):
        ...     train(graph.link_seeds(edges, "cites", mode="triplet", amount=5))
        """
        return EdgePasses(
            self._graph(),
            etype,
            batch_size=batch_size,
            weight=weight,
            where=where,
            seed=require_shared_seed(seed, world),
            rank=rank,
            world=world,
            version=version,
        )

    def walk_pairs(
        self,
        metapaths: str | Sequence[Metapath],
        walk_length: int,
        *,
        walks: int = 1,
        window: int = 1,
        batch_size: int = 1024,
        first_step: str = "distinct",
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        negatives: int = 0,
        excluded: str = "",
        starts: Mapping[str, ArrayLike] = UNSET,
        seed: int | None = None,
        rank: int = 0,
        world: int = 1,
        version: int | None = None,
    ) -> PairPasses:
        """Skip-gram pairs of walks along metapaths, from every node of their start types once an
        epoch.

        Parameters
        ----------
        metapaths : str or list of Metapath
            As `metapaths` reads them, which take turns batch by batch.
        walk_length, walks, first_step, weighted, weight, where
            As of `random_walk` (PGLBox: ``walk_len``, ``walk_times``, ``weighted_sample``).
        window : int
            Places before and behind a node that pair with it (``win_size``).
        batch_size : int
            Nodes that walks of one batch start from.
        negatives : int
            Nodes drawn by weight beside each pair, of the type of its second node (``neg_num``).
        excluded : str
            Pairs of types to leave out, the centre's first: ``w2q;q2t`` (``excluded_train_pair``).
            Pairs of types that are not on a metapath are left out too.
        starts : dict of node type to int64[m]
            Walks start at these instead of at every node of the type (``train_start_nodes``); as
            `node_batches` has ``among``.
        seed : int, optional
            Of the order of starts, of walks, of pairs and of negatives. Several ranks must give the
            same.
        rank, world, version
            As of `node_batches`.

        Returns
        -------
        PairPasses
            Go through it once an epoch; each `PairBatch` is shuffled. ``state_dict`` as of
            `node_batches`.

        Examples
        --------
        >>> passes = graph.walk_pairs(  # doctest: +SKIP
        ...     "u2click2i-i2click2u;i2click2u-u2click2i", 24, walks=10, window=3, negatives=5
        ... )
        >>> for batch in passes:  # doctest: +SKIP
        ...     train(batch.pairs, batch.negatives)
        """
        return PairPasses(
            self._graph(),
            self._graph().metapaths(metapaths) if isinstance(metapaths, str) else metapaths,
            walk_length=walk_length,
            walks=walks,
            window=window,
            batch_size=batch_size,
            first_step=first_step,
            weighted=weighted,
            weight=weight,
            where=where,
            negatives=negatives,
            excluded=excluded,
            seed=require_shared_seed(seed, world),
            rank=rank,
            world=world,
            version=version,
            starts=starts,
        )


def require_shared_seed(seed: int | None, world: int) -> int:
    """The seed of an order, which ranks must have in common."""
    if seed is None and world > 1:
        raise InvalidRequest(
            f"a share of {world} without a seed: each would visit nodes in an order of its "
            "own; give all ranks the same seed"
        )
    return validation.seed(seed)
