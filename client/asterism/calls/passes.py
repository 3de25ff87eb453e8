"""Passes over the rows of a type, epoch after epoch: every node, or every edge, once; and over
clusters.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from asterism.calls import validation
from asterism.calls.clusters import ClusterBatch, ClusterGrouping
from asterism.calls.epoch_cursor import EpochCursor
from asterism.calls.graph_protocol import GraphProtocol
from asterism.records.samples import EdgeRows, Ids
from asterism_proto.errors import InvalidRequest

Batch = TypeVar("Batch")


class _RowPasses(ABC, Generic[Batch]):
    """Every row of something once an epoch, in shuffled batches."""

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
        """The rows at some places."""

    @abstractmethod
    def _description(self) -> dict[str, Any]:
        """What it goes through, in plain values."""

    @property
    def epoch(self) -> int:
        """The one that is under way, from 0."""
        return self.cursor.epoch

    def next_batch(self) -> Batch:
        """The next rows of the epoch; none where it is over."""
        return self._rows_at(self.cursor.take(self.batch_size))

    def __iter__(self) -> Iterator[Batch]:
        while self.cursor.left:
            yield self.next_batch()
        self.cursor.next_epoch()

    def state_dict(self) -> dict[str, Any]:
        """Where it is, in plain values: batches that were given count as visited."""
        return {"version": self.version, **self._description(), "cursor": self.cursor.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where passes were; InvalidRequest where it was of something else, or of another
        version.
        """
        self._check(state)
        self.cursor.load_state_dict(state["cursor"])

    def reshard(self, states: Iterable[Mapping[str, Any]]) -> None:
        """Take this rank's share of what passes of another number of ranks left of their epoch: of
        every one's state.
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
                " ".join(repr(value) for value in description.values() if value) or "something else"
                for description in (recorded, current)
            )
            raise InvalidRequest(
                f"the state is of {recorded_text} in version {state['version']}, this reads "
                f"{current_text} in version {self.version}; "
                "make it with the version that the state is of, and pin that version"
            )


def _ids_digest(ids: Ids) -> str:
    """What tells some nodes, in their order, from others."""
    return hashlib.blake2b(np.ascontiguousarray(ids, "<i8").tobytes(), digest_size=8).hexdigest()


class NodePasses(_RowPasses[Ids]):
    """Every node of a type once an epoch, in shuffled batches: what `Passes.node_batches` gives.

    Going through it (``for nodes in passes``) gives what is left of the epoch, and begins the next
    one. All of it is of one version."""

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


class EdgePasses(_RowPasses[EdgeRows]):
    """Every edge of a type once an epoch, in shuffled batches: what `Passes.edge_batches` gives.

    Going through it (``for edges in passes``) gives what is left of the epoch, and begins the next
    one. All of it is of one version."""

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
        return {"etype": self.etype, "where": self._where}


class ClusterPasses(_RowPasses[ClusterBatch]):
    """Every cluster once an epoch, in shuffled groups: what `Graph.cluster_batches` gives.

    Going through it (``for batch in passes``) gives what is left of the epoch, and begins the next
    one. All of it is of one version."""

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
