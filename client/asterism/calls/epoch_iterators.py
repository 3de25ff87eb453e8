"""Iterators over shuffled epochs of nodes, edges, clusters, and pairs from random walks.

Each has the `EpochCursor` of one rank. Its state is a few numbers, which the trainer stores with
its own checkpoint.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from asterism import ops, permutations
from asterism.calls import validation
from asterism.calls.clusters import ClusterBatch, ClusterGrouping
from asterism.calls.epoch_cursor import EpochCursor
from asterism.calls.graph_protocol import GraphProtocol
from asterism.calls.metapath_notation import Metapath, parse_type_pairs
from asterism.records.samples import EdgeRows, Ids, PairBatch, Types, WalkSample
from asterism_proto.errors import InvalidRequest

MAX_NEGATIVES = 1 << 28
"""Maximum number of negatives of a batch of pairs."""
NEGATIVES_PER_REQUEST = 1 << 22
"""Number of negative nodes per request.

Part of the sampling contract: changing it changes results for a given seed.
"""

Batch = TypeVar("Batch")


class _RowEpochs(ABC, Generic[Batch]):
    """Iterator over all rows of a type, once per epoch, in shuffled batches."""

    def __init__(
        self, size: int, version: int, *, batch_size: int, seed: int, rank: int, world: int
    ) -> None:
        self.version, self.batch_size = (
            version,
            validation.count("batch_size", batch_size, minimum=1),
        )
        self.cursor = EpochCursor(size, seed=seed, rank=rank, world=world)

    @abstractmethod
    def _rows_at(self, positions: Ids) -> Batch:
        """Return the rows at some positions."""

    @abstractmethod
    def _description(self) -> dict[str, Any]:
        """Return a description of the rows in plain values."""

    @property
    def epoch(self) -> int:
        """Number of the current epoch, from 0."""
        return self.cursor.epoch

    def next_batch(self) -> Batch:
        """Return the next rows of the epoch.

        Returns
        -------
        batch
            ``batch_size`` rows, fewer at the end of the epoch; empty when it has ended.
        """
        return self._rows_at(self.cursor.take(self.batch_size))

    def __iter__(self) -> Iterator[Batch]:
        while self.cursor.left:
            yield self.next_batch()
        self.cursor.next_epoch()

    def state_dict(self) -> dict[str, Any]:
        """Return the position in plain values; batches already returned count as visited.

        Returns
        -------
        dict
            State for `load_state_dict` and `reshard`.
        """
        return {"version": self.version, **self._description(), "cursor": self.cursor.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved position.

        Parameters
        ----------
        state : dict
            Result of `state_dict`.

        Raises
        ------
        InvalidRequest
            If the state is from other rows or another version.
        """
        self._check(state)
        self.cursor.load_state_dict(state["cursor"])

    def reshard(self, states: Iterable[Mapping[str, Any]]) -> None:
        """Continue an epoch with a new number of ranks.

        Parameters
        ----------
        states : iterable of dict
            `state_dict` of every old rank. This rank takes its share of what they left of the
            epoch.

        Raises
        ------
        InvalidRequest
            If a state is from other rows or another version, or a rank's state is missing.
        """
        rank_states = list(states)
        for state in rank_states:
            self._check(state)
        self.cursor = EpochCursor.resharded(
            [state["cursor"] for state in rank_states],
            rank=self.cursor.rank,
            world=self.cursor.world,
        )

    def _check(self, state: Mapping[str, Any]) -> None:
        current = self._description()
        recorded = {
            name: description
            for name, description in state.items()
            if name not in ("version", "cursor")
        }
        if (state["version"], recorded) != (self.version, current):
            recorded_text, current_text = (
                " ".join(repr(value) for value in description.values() if value) or "other rows"
                for description in (recorded, current)
            )
            raise InvalidRequest(
                f"state of {recorded_text} in version {state['version']}: expected the state of "
                f"{current_text} in version {self.version}; iterate over the same rows of the "
                "version that the state was saved with, and pin it"
            )


def _ids_digest(ids: Ids) -> str:
    """Return a digest of some nodes in their order."""
    return hashlib.blake2b(np.ascontiguousarray(ids, "<i8").tobytes(), digest_size=8).hexdigest()


class NodeEpochs(_RowEpochs[Ids]):
    """Iterator over all nodes of a type, once per epoch, in shuffled batches.

    Returned by `EpochCalls.node_batches`. A loop (``for nodes in passes``) yields the rest of the
    epoch and begins the next one. All epochs read one version.
    """

    def __init__(
        self,
        reader: GraphProtocol,
        ntype: str,
        *,
        batch_size: int,
        seed: int,
        rank: int,
        world: int,
        version: int | None,
        among: ArrayLike | None,
    ) -> None:
        _, count, read_version = reader._nodes_at(ntype, np.zeros(0, np.int64), version)
        if among is not None:
            validation.require_one_dimension("among", validation.as_array("among", among, "ids"))
        self._among = None if among is None else reader._require_ids("among", among, ntype, version)
        self._reader, self.ntype = reader, ntype
        count = count if self._among is None else len(self._among)
        super().__init__(
            count, read_version, batch_size=batch_size, seed=seed, rank=rank, world=world
        )

    def _rows_at(self, positions: Ids) -> Ids:
        return (
            self._among[positions]
            if self._among is not None
            else self._reader.nodes_at(self.ntype, positions, version=self.version)
        )

    def _description(self) -> dict[str, Any]:
        return {
            "ntype": self.ntype,
            **({} if self._among is None else {"among": _ids_digest(self._among)}),
        }


class EdgeEpochs(_RowEpochs[EdgeRows]):
    """Iterator over all edges of a type, once per epoch, in shuffled batches.

    Returned by `EpochCalls.edge_batches`. A loop (``for edges in passes``) yields the rest of the
    epoch and begins the next one. All epochs read one version.
    """

    def __init__(
        self,
        reader: GraphProtocol,
        etype: str,
        *,
        batch_size: int,
        weight: str,
        where: str,
        seed: int,
        rank: int,
        world: int,
        version: int | None,
    ) -> None:
        self._reader, self._weight, self._where = reader, weight, where
        _, edge_type = reader._session.edge_type(reader.space, etype)
        self.etype = edge_type.name
        empty, count = reader._edges_at(etype, np.zeros(0, np.int64), weight, where, version)
        super().__init__(
            count, empty.version, batch_size=batch_size, seed=seed, rank=rank, world=world
        )

    def _rows_at(self, positions: Ids) -> EdgeRows:
        return self._reader.edges_at(
            self.etype, positions, weight=self._weight, where=self._where, version=self.version
        )

    def _description(self) -> dict[str, Any]:
        return {
            "etype": self.etype,
            "where": self._where,
            **({"weight": self._weight} if self._weight else {}),
        }


class ClusterEpochs(_RowEpochs[ClusterBatch]):
    """Iterator over all clusters, once per epoch, in shuffled groups.

    Returned by `Graph.cluster_batches`. A loop (``for batch in passes``) yields the rest of the
    epoch and begins the next one. All epochs read one version.
    """

    def __init__(
        self,
        reader: GraphProtocol,
        grouping: ClusterGrouping,
        version: int,
        *,
        batch_size: int,
        seed: int,
        rank: int,
        world: int,
    ) -> None:
        self._reader, self._grouping = reader, grouping
        super().__init__(
            grouping.clusters.count,
            version,
            batch_size=batch_size,
            seed=seed,
            rank=rank,
            world=world,
        )

    def _rows_at(self, positions: Ids) -> ClusterBatch:
        return self._grouping.batch(self._reader, positions, self.version)

    def _description(self) -> dict[str, Any]:
        return {"clusters": self._grouping.clusters.identity}


class PairEpochs:
    """Iterator over skip-gram pairs of walks from every start node.

    Returned by `EpochCalls.walk_pairs`. Metapaths take turns. Metapaths that start at the same node
    type share its nodes, and each node starts walks once per epoch. A loop yields the rest of the
    epoch and begins the next one.
    """

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
        is_list = isinstance(metapaths, Sequence)
        if not is_list or not metapaths or not all(isinstance(p, Metapath) for p in metapaths):
            raise InvalidRequest(
                f"metapaths={metapaths!r:.80}: expected at least one metapath, as text or from "
                "graph.metapaths"
            )
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
        self._starts: dict[str, NodeEpochs] = {}
        self.version = version
        for name in dict.fromkeys(path.start for path in metapaths):
            key = permutations.key_of(seed, permutations.EPOCH, schema.node_type_id(name))
            self._starts[name] = NodeEpochs(
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
        """Number of the current epoch, from 0."""
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
        # The position belongs to this batch alone, for any number of ranks, and so do the random
        # streams keyed by it.
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
            seed=permutations.key_of(self.seed, permutations.WALK, *tags),
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
            seed=permutations.key_of(self.seed, permutations.SHUFFLE, *tags),
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
        """Sample the negatives of each pair: nodes of these types by weight."""
        if len(types) * self._negatives > MAX_NEGATIVES:
            raise InvalidRequest(
                f"negatives={self._negatives} of {len(types)} pairs: expected at most "
                f"{MAX_NEGATIVES:,} in a batch; use a smaller batch_size"
            )
        out = np.empty((len(types), self._negatives), np.int64)
        rows = max(NEGATIVES_PER_REQUEST // self._negatives, 1)
        for type_id in np.unique(types).tolist():
            matching = np.flatnonzero(types == type_id)
            name = self._reader.schema.node_types[type_id].name
            for chunk_index, first in enumerate(range(0, len(matching), rows)):
                chunk = matching[first : first + rows]
                key = permutations.key_of(
                    self.seed, permutations.NEGATIVE, *tags, type_id, chunk_index
                )
                sample = self._reader.sample_nodes(
                    len(chunk) * self._negatives, name, seed=key, version=walks.version
                )
                out[chunk] = sample.nodes.reshape(len(chunk), self._negatives)
        return out

    def _description(self) -> dict[str, Any]:
        """Return the arguments that determine the pairs of an epoch, in plain values."""
        return {
            "metapaths": [path.text for path in self._metapaths],
            "walk_length": self._length,
            "walks": self._walks,
            "window": self._window,
            "first_step": self._first_step,
            "weighted": self._weighted,
            "weight": self._weight,
            "where": self._where,
            "negatives": self._negatives,
            "excluded": [list(pair) for pair in self._excluded],
        }

    def state_dict(self) -> dict[str, Any]:
        """Return the position in plain values; batches already returned count as visited.

        Returns
        -------
        dict
            State for `load_state_dict` and `reshard`.
        """
        return {
            "seed": self.seed,
            "turn": self._turn,
            **self._description(),
            "starts": {name: starts.state_dict() for name, starts in self._starts.items()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved position.

        Parameters
        ----------
        state : dict
            Result of `state_dict`.

        Raises
        ------
        InvalidRequest
            If the metapaths, another argument or the version differ.
        """
        self._check(state)
        for name, starts in self._starts.items():
            starts.load_state_dict(state["starts"][name])
        self.seed, self._turn = state["seed"], state["turn"]

    def reshard(self, states: Iterable[Mapping[str, Any]]) -> None:
        """Continue an epoch with a new number of ranks.

        Parameters
        ----------
        states : iterable of dict
            `state_dict` of every old rank. This rank takes its share of what they left of the
            epoch.

        Raises
        ------
        InvalidRequest
            If the metapaths, another argument or the version differ, or a rank's state is missing.
        """
        rank_states = list(states)
        for state in rank_states:
            self._check(state)
        for name, starts in self._starts.items():
            starts.reshard([state["starts"][name] for state in rank_states])
        self.seed, self._turn = rank_states[0]["seed"], 0

    def _check(self, state: Mapping[str, Any]) -> None:
        for name, value in self._description().items():
            # States of earlier releases have metapaths only.
            if (saved := state.get(name, value)) != value:
                raise InvalidRequest(
                    f"state with {name}={saved!r}: expected {value!r}, as here; pass the same "
                    "arguments to walk_pairs as when the state was saved"
                )
