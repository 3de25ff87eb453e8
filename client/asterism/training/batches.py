"""Epochs of batches for any framework: made ahead in threads, shared over ranks and workers, going
on where a trainer stopped.

The adapters for PyTorch and TensorFlow are thin over this; nothing of either is known here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

from asterism import hashing
from asterism.calls import validation
from asterism.calls.clusters import ClusterBatch, ClusterGrouping, describe_version
from asterism.calls.clusters import ClusterInput as GivenClusters
from asterism.calls.epoch_cursor import EpochCursor
from asterism.graph import Graph
from asterism.records.samples import EdgeRows, Ids, LinkSeeds, Subgraph
from asterism.saint import Sampler
from asterism.transport.retries import DEFAULT_PATIENCE_S, check_patience, retry_read
from asterism_proto.errors import InvalidRequest

NodeBatchFunction = Callable[[Graph, Ids, int], Any]
"""What a batch is made by, of the graph, the batch's nodes and the seed of its draws."""
LinkBatchFunction = Callable[[Graph, "EdgeRows | LinkSeeds", int], Any]
"""What a batch is made by, of the graph, the batch's edges, with their negatives where there are
any, and the seed of its draws.
"""

ClusterBatchFunction = Callable[[Graph, ClusterBatch, int], Any]
"""What a batch is made by, of the graph, the subgraph of the batch's clusters, and a seed."""
SubgraphBatchFunction = Callable[[Graph, Subgraph, int], Any]
"""What a batch is made by, of the graph, the subgraph that was drawn, and a seed."""


class WorkerBatch(NamedTuple):
    """A batch, and where the worker that made it is behind it."""

    worker: int
    worker_count: int
    state: dict[str, Any]
    value: Any


class EpochBatches(ABC):
    """Every row of something once an epoch over all ranks, in shuffled batches; each made in
    threads ahead of time.
    """

    def __init__(
        self,
        graph: Graph,
        size: Callable[[], int],
        batch_size: int,
        *,
        seed: int,
        rank: int,
        world: int,
        ahead: int,
        patience_s: float,
    ) -> None:
        if graph.version is None:
            raise InvalidRequest(
                f"space {graph.space!r} is read at its current version, which may change in "
                "an epoch; hold one: with graph.pin() as held"
            )
        self.graph, self.seed = graph, validation.seed(seed)
        self.batch_size, self._prefetch = (
            validation.count("batch_size", batch_size, minimum=1),
            validation.count("ahead", ahead),
        )
        self._patience_s = check_patience(patience_s)
        self.rank, self.world = rank, world
        self._cursor = EpochCursor(size(), seed=self.seed, rank=rank, world=world)
        self._worker_cursors: list[EpochCursor] = []
        """Of the workers that go through the rest of the epoch, as far as batches came; none:
        nobody has begun.
        """

    @abstractmethod
    def _make_batch(self, positions: Ids, key: int) -> Any:
        """The batch of some places; ``key`` is the seed of its draws."""

    @abstractmethod
    def _description(self) -> dict[str, Any]:
        """What it goes through, in plain values."""

    @property
    def epoch(self) -> int:
        """The one that is under way, from 0."""
        return self._cursor.epoch

    @property
    def left(self) -> int:
        """Places of this rank not yet visited in this epoch."""
        return self._remaining().left

    def __iter__(self) -> Iterator[Any]:
        for worker_batch in self._worker_batches():
            yield worker_batch.value

    def set_epoch(self, epoch: int) -> None:
        """Begin an epoch."""
        self._cursor = EpochCursor(
            self._cursor.size, seed=self.seed, rank=self.rank, world=self.world, epoch=epoch
        )
        self._worker_cursors = []

    def state_dict(self) -> dict[str, Any]:
        """Where this rank is, in plain values: batches that were given count as visited."""
        return {
            "version": self.graph.version,
            **self._description(),
            "epoch": self.epoch,
            "seed": self.seed,
            "parts": [
                cursor.state_dict() for cursor in self._worker_cursors or self._cursor.split(1)
            ],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where a rank was, with any number of workers; InvalidRequest where it was of
        another type or version.
        """
        self._check(state)
        self._resume(EpochCursor.resharded(state["parts"], rank=0, world=1), state)

    def reshard(self, states: Iterable[Mapping[str, Any]]) -> None:
        """Take this rank's share of what all ranks of another number of them left of their epoch:
        of every one's state.
        """
        rank_states = list(states)
        for state in rank_states:
            self._check(state)
        if not rank_states or len({(state["epoch"], state["seed"]) for state in rank_states}) > 1:
            raise InvalidRequest(
                f"states of epochs {[state['epoch'] for state in rank_states]}: expected one "
                "of every rank, of one epoch of one order"
            )
        worker_states = [worker_state for state in rank_states for worker_state in state["parts"]]
        renumbered = [
            {**worker_state, "rank": worker, "world": len(worker_states)}
            for worker, worker_state in enumerate(worker_states)
        ]
        self._resume(
            EpochCursor.resharded(renumbered, rank=self.rank, world=self.world), rank_states[0]
        )

    def _check(self, state: Mapping[str, Any]) -> None:
        current = self._description()
        recorded = {name: state.get(name) for name in current}
        if (state["version"], recorded) != (self.graph.version, current):
            recorded_text, current_text = (
                " ".join(repr(value) for value in description.values() if value) or "something else"
                for description in (recorded, current)
            )
            raise InvalidRequest(
                f"the state is of {recorded_text} in version {state['version']}, this reads "
                f"{current_text} in version {self.graph.version}; "
                "make it with a graph of the version that the state is of"
            )

    def _resume(self, cursor: EpochCursor, state: Mapping[str, Any]) -> None:
        self.seed = state["seed"]
        self._cursor, self._worker_cursors = cursor, []

    def _remaining(self) -> EpochCursor:
        """What nobody was given yet."""
        return (
            EpochCursor.resharded(
                [cursor.state_dict() for cursor in self._worker_cursors], rank=0, world=1
            )
            if self._worker_cursors
            else self._cursor
        )

    def _record_progress(self, worker_batch: WorkerBatch) -> None:
        """Take over where the worker behind a batch is."""
        self._worker_cursors[worker_batch.worker].load_state_dict(worker_batch.state)

    def _split_over_workers(self, worker_count: int) -> None:
        """Split what is left over workers."""
        self._worker_cursors = self._remaining().split(worker_count)

    def _worker_share(self) -> tuple[int, int]:
        """Which worker of how many this process is."""
        return 0, 1

    def _worker_batches(self) -> Iterator[WorkerBatch]:
        """This worker's share of what is left, batch by batch."""
        worker, worker_count = self._worker_share()
        self._split_over_workers(worker_count)
        for worker_batch in self._prefetched_batches(
            worker, worker_count, self._worker_cursors[worker]
        ):
            self._record_progress(worker_batch)
            yield worker_batch
        self.set_epoch(self.epoch + 1)

    def _prefetched_batches(
        self, worker: int, worker_count: int, recorded: EpochCursor
    ) -> Iterator[WorkerBatch]:
        """Batches in order, some of them in the making ahead of the one that is given."""
        cursor = recorded.split(1)[0]
        cursor.load_state_dict(recorded.state_dict())
        if not self._prefetch:
            while cursor.left:
                positions, key, state = self._next(cursor)
                yield WorkerBatch(worker, worker_count, state, self._value(positions, key))
            return
        pool = ThreadPoolExecutor(self._prefetch, thread_name_prefix="batches")
        pending: deque[tuple[Future[Any], dict[str, Any]]] = deque()

        def fill() -> None:
            while cursor.left and len(pending) < self._prefetch:
                positions, key, state = self._next(cursor)
                pending.append((pool.submit(self._value, positions, key), state))

        try:
            fill()
            while pending:
                future, state = pending.popleft()
                value = future.result()
                # before this one is given, so that as many are in the making while it is trained on
                fill()
                yield WorkerBatch(worker, worker_count, state, value)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _next(self, cursor: EpochCursor) -> tuple[Ids, int, dict[str, Any]]:
        key = hashing.key_of(self.seed, hashing.BATCH, cursor.epoch, cursor.next_place())
        return cursor.take(self.batch_size), key, cursor.state_dict()

    def _value(self, positions: Ids, key: int) -> Any:
        return retry_read(lambda: self._make_batch(positions, key), self._patience_s)


class NodeEpochBatches(EpochBatches):
    """Every node of a type once an epoch over all ranks, in shuffled batches; each made by ``make``
    in threads ahead of time.

    Parameters as of `asterism.torch.NodeBatches`.
    """

    def __init__(
        self,
        graph: Graph,
        ntype: str,
        batch_size: int,
        make: NodeBatchFunction | None = None,
        *,
        seed: int,
        rank: int = 0,
        world: int = 1,
        ahead: int = 2,
        patience_s: float = DEFAULT_PATIENCE_S,
    ) -> None:
        self.ntype, self._make = ntype, make
        super().__init__(
            graph,
            lambda: graph.count_nodes(ntype),
            batch_size,
            seed=seed,
            rank=rank,
            world=world,
            ahead=ahead,
            patience_s=patience_s,
        )

    def _description(self) -> dict[str, Any]:
        return {"ntype": self.ntype}

    def _make_batch(self, positions: Ids, key: int) -> Any:
        nodes = self.graph.nodes_at(self.ntype, positions)
        return (
            self._plain_batch(nodes) if self._make is None else self._make(self.graph, nodes, key)
        )

    def _plain_batch(self, nodes: Ids) -> Any:
        """A batch that nothing is made of."""
        return nodes


class LinkEpochBatches(EpochBatches):
    """Every edge of a type once an epoch over all ranks, in shuffled batches; each made by ``make``
    in threads ahead of time.

    Parameters as of `asterism.torch.EdgeBatches`.
    """

    def __init__(
        self,
        graph: Graph,
        etype: str,
        batch_size: int,
        make: LinkBatchFunction | None = None,
        *,
        negatives: Mapping[str, Any] | None = None,
        weight: str = "",
        where: str = "",
        seed: int,
        rank: int = 0,
        world: int = 1,
        ahead: int = 2,
        patience_s: float = DEFAULT_PATIENCE_S,
    ) -> None:
        self.etype, self._make, self._weight, self._where = etype, make, weight, where
        self._negatives = None if negatives is None else dict(negatives)
        reserved = sorted({"seed", "version", "edges", "etype"} & set(negatives or ()))
        if reserved:
            raise InvalidRequest(
                f"negatives of {', '.join(reserved)}: these are the batches' own; leave this out"
            )
        super().__init__(
            graph,
            lambda: graph.count_edges(etype, where=where),
            batch_size,
            seed=seed,
            rank=rank,
            world=world,
            ahead=ahead,
            patience_s=patience_s,
        )

    def _description(self) -> dict[str, Any]:
        return {"etype": self.etype, "where": self._where}

    def _make_batch(self, positions: Ids, key: int) -> Any:
        edges = self.graph.edges_at(self.etype, positions, weight=self._weight, where=self._where)
        links = (
            edges
            if self._negatives is None
            else self.graph.link_seeds(edges, self.etype, seed=key, **self._negatives)
        )
        return links if self._make is None else self._make(self.graph, links, key)


class SubgraphEpochBatches(EpochBatches):
    """So many subgraphs an epoch over all ranks, each drawn as a whole by a sampler of
    `asterism.saint`, in threads ahead of time.

    Parameters as of `asterism.torch.SaintBatches`.
    """

    def __init__(
        self,
        sampler: Sampler,
        count: int,
        make: SubgraphBatchFunction | None = None,
        *,
        seed: int,
        rank: int = 0,
        world: int = 1,
        ahead: int = 2,
        patience_s: float = DEFAULT_PATIENCE_S,
    ) -> None:
        self._sampler, self._make, size = sampler, make, validation.count("count", count, minimum=1)
        super().__init__(
            sampler.graph,
            lambda: size,
            1,
            seed=seed,
            rank=rank,
            world=world,
            ahead=ahead,
            patience_s=patience_s,
        )

    def _description(self) -> dict[str, Any]:
        return {"sampler": self._sampler.described(), "count": self._cursor.size}

    def _make_batch(self, positions: Ids, key: int) -> Any:
        subgraph = self._sampler.keyed(key)
        return subgraph if self._make is None else self._make(self.graph, subgraph, key)


class ClusterEpochBatches(EpochBatches):
    """Every cluster once an epoch over all ranks, in shuffled groups; each made by ``make`` in
    threads ahead of time.

    Parameters as of `asterism.torch.ClusterBatches`.
    """

    def __init__(
        self,
        graph: Graph,
        clusters: GivenClusters,
        q: int,
        make: ClusterBatchFunction | None = None,
        *,
        reading: Mapping[str, Any] | None = None,
        seed: int,
        rank: int = 0,
        world: int = 1,
        ahead: int = 2,
        patience_s: float = DEFAULT_PATIENCE_S,
    ) -> None:
        self._make, options = make, dict(reading or {})
        reserved = sorted({"nodes", "indptr", "ntype", "version"} & set(options))
        if reserved:
            raise InvalidRequest(
                f"reading with {', '.join(reserved)}: these are the batches' own; leave this out"
            )

        def size() -> int:
            self._grouping = ClusterGrouping.from_input(
                graph, clusters, options, describe_version(graph, None)
            )
            return self._grouping.clusters.count

        super().__init__(
            graph, size, q, seed=seed, rank=rank, world=world, ahead=ahead, patience_s=patience_s
        )

    def _description(self) -> dict[str, Any]:
        return {"clusters": self._grouping.clusters.identity}

    def _make_batch(self, positions: Ids, key: int) -> Any:
        assert self.graph.version is not None
        batch = self._grouping.batch(self.graph, positions, self.graph.version)
        return batch if self._make is None else self._make(self.graph, batch, key)
