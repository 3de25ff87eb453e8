"""Epochs of batches for any framework.

Batches are created ahead of time in threads, divided over ranks and workers, and resumable. The
adapters for PyTorch and TensorFlow are thin; this module depends on neither.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

from asterism import permutations
from asterism.calls import validation
from asterism.calls.clusters import ClusterBatch, ClusterGrouping, describe_version
from asterism.calls.clusters import ClusterInput as GivenClusters
from asterism.calls.epoch_cursor import EpochCursor
from asterism.calls.excluded_edges import ReverseTypes
from asterism.graph import Graph
from asterism.records.samples import EdgeRows, Ids, LinkSeeds, Subgraph
from asterism.saint import Sampler
from asterism.transport.read_retries import DEFAULT_PATIENCE_S, check_patience, retry_read
from asterism_proto.errors import InvalidRequest

NodeBatchFunction = Callable[[Graph, Ids, int], Any]
"""Function from the graph, the nodes of a batch and a random seed to a batch."""
LinkBatchFunction = Callable[[Graph, "EdgeRows | LinkSeeds", int], Any]
"""Function from the graph, the edges of a batch and a random seed to a batch.

With negative sampling the edges are a `LinkSeeds`.
"""

ClusterBatchFunction = Callable[[Graph, ClusterBatch, int], Any]
"""Function from the graph, the subgraph of a batch's clusters and a seed to a batch."""
SubgraphBatchFunction = Callable[[Graph, Subgraph, int], Any]
"""Function from the graph, a sampled subgraph and a random seed to a batch."""


class WorkerBatch(NamedTuple):
    """A batch, and the position of its worker after it."""

    worker: int
    worker_count: int
    state: dict[str, Any]
    value: Any


class EpochBatches(ABC):
    """Shuffled batches of rows, each row once per epoch over all ranks.

    Threads create batches ahead of time. Iteration returns the rest of the epoch and then begins
    the next one.
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
                f"graph of space {graph.space!r} without a version: expected a graph of one "
                "version, which does not change during an epoch; use graph.pin() or graph.at(...)"
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
        """Positions of the workers of the current iteration, after the batches received so far.

        Empty before an iteration of the epoch.
        """

    @abstractmethod
    def _make_batch(self, positions: Ids, key: int) -> Any:
        """Return the batch of some rows.

        Parameters
        ----------
        positions : ndarray of int64, shape (m,)
            Positions of the rows.
        key : int
            Random seed of the batch.

        Returns
        -------
        object
            Batch.
        """

    @abstractmethod
    def _description(self) -> dict[str, Any]:
        """Return the source of the rows as plain values, to compare with a loaded state."""

    @property
    def epoch(self) -> int:
        """Current epoch, from 0."""
        return self._cursor.epoch

    @property
    def left(self) -> int:
        """Number of rows of this rank that are not yet visited in this epoch."""
        return self._remaining().left

    def __iter__(self) -> Iterator[Any]:
        for worker_batch in self._worker_batches():
            yield worker_batch.value

    def set_epoch(self, epoch: int) -> None:
        """Begin an epoch.

        Parameters
        ----------
        epoch : int
            Epoch, from 0.
        """
        self._cursor = EpochCursor(
            self._cursor.size, seed=self.seed, rank=self.rank, world=self.world, epoch=epoch
        )
        self._worker_cursors = []

    def state_dict(self) -> dict[str, Any]:
        """Return the position of this rank as plain values.

        Batches that were returned count as visited.

        Returns
        -------
        dict
            State for `load_state_dict` or `reshard`.
        """
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
        """Continue where a rank stopped, with any number of workers.

        Parameters
        ----------
        state : mapping
            State that `state_dict` returned.

        Raises
        ------
        InvalidRequest
            If the state is of other rows, such as another type, or another version.
        """
        self._check(state)
        self._resume(EpochCursor.resharded(state["parts"], rank=0, world=1), state)

    def reshard(self, states: Iterable[Mapping[str, Any]]) -> None:
        """Continue the epoch of a run with another number of ranks.

        This rank takes its share of the rows that the ranks of that run have not visited.

        Parameters
        ----------
        states : iterable of mapping
            State of every rank of the run.

        Raises
        ------
        InvalidRequest
            If there are no states, or they differ in epoch or seed, or are of other rows or another
            version.
        """
        rank_states = list(states)
        for state in rank_states:
            self._check(state)
        if not rank_states or len({(state["epoch"], state["seed"]) for state in rank_states}) > 1:
            raise InvalidRequest(
                f"states of epochs {[state['epoch'] for state in rank_states]}: expected one "
                "state of every rank, of one epoch and one seed"
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
        # States of earlier releases have no weight.
        recorded = {name: state.get(name, "") for name in current}
        if (state["version"], recorded) != (self.graph.version, current):
            recorded_text, current_text = (
                " ".join(repr(value) for value in description.values() if value) or "other rows"
                for description in (recorded, current)
            )
            raise InvalidRequest(
                f"state of {recorded_text} in version {state['version']}: expected the state of "
                f"{current_text} in version {self.graph.version}; pass the same arguments and a "
                "graph of the version that the state was saved with"
            )

    def _resume(self, cursor: EpochCursor, state: Mapping[str, Any]) -> None:
        self.seed = state["seed"]
        self._cursor, self._worker_cursors = cursor, []

    def _remaining(self) -> EpochCursor:
        """Return the position of the rows that no worker has returned."""
        return (
            EpochCursor.resharded(
                [cursor.state_dict() for cursor in self._worker_cursors], rank=0, world=1
            )
            if self._worker_cursors
            else self._cursor
        )

    def _record_progress(self, worker_batch: WorkerBatch) -> None:
        """Record the position of a worker after its batch."""
        self._worker_cursors[worker_batch.worker].load_state_dict(worker_batch.state)

    def _split_over_workers(self, worker_count: int) -> None:
        """Divide the remaining rows over workers."""
        self._worker_cursors = self._remaining().split(worker_count)

    def _worker_share(self) -> tuple[int, int]:
        """Return the index of this worker process, and the number of workers."""
        return 0, 1

    def _worker_batches(self) -> Iterator[WorkerBatch]:
        """Yield the batches of this worker's share of the remaining rows."""
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
        """Yield batches in order, with some of the following ones in progress."""
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
                # Refill before the yield, so that the prefetch continues while the batch is in use.
                fill()
                yield WorkerBatch(worker, worker_count, state, value)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _next(self, cursor: EpochCursor) -> tuple[Ids, int, dict[str, Any]]:
        key = permutations.key_of(self.seed, permutations.BATCH, cursor.epoch, cursor.next_place())
        return cursor.take(self.batch_size), key, cursor.state_dict()

    def _value(self, positions: Ids, key: int) -> Any:
        return retry_read(lambda: self._make_batch(positions, key), self._patience_s)


class NodeEpochBatches(EpochBatches):
    """Shuffled batches of all nodes of a type, each node once per epoch over all ranks.

    `asterism.torch.NodeBatches` describes the parameters.
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
        """Return the batch of nodes without ``make``."""
        return nodes


class LinkEpochBatches(EpochBatches):
    """Shuffled batches of all edges of a type, each edge once per epoch over all ranks.

    `asterism.torch.EdgeBatches` describes the parameters.
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
        exclude: bool = True,
        reverse_types: ReverseTypes = None,
        seed: int,
        rank: int = 0,
        world: int = 1,
        ahead: int = 2,
        patience_s: float = DEFAULT_PATIENCE_S,
    ) -> None:
        self.etype, self._make, self._weight, self._where = etype, make, weight, where
        self._exclude, self._reverse_types = exclude, reverse_types
        if reverse_types and not exclude:
            raise InvalidRequest(
                "reverse_types with exclude=False: expected exclude=True; leave reverse_types out, "
                "or exclude the edges of a batch"
            )
        self._negatives = None if negatives is None else dict(negatives)
        reserved = sorted({"seed", "version", "edges", "etype"} & set(negatives or ()))
        if reserved:
            raise InvalidRequest(
                f"negatives with {', '.join(reserved)}: expected other arguments of link_seeds, "
                "because the batches determine these; leave them out"
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
        return {"etype": self.etype, "where": self._where, "weight": self._weight}

    def _make_batch(self, positions: Ids, key: int) -> Any:
        edges = self.graph.edges_at(self.etype, positions, weight=self._weight, where=self._where)
        links = (
            edges
            if self._negatives is None
            else self.graph.link_seeds(edges, self.etype, seed=key, **self._negatives)
        )
        if self._make is None:
            return links
        graph = self.graph
        if self._exclude:
            # Without edge ids, so that no parallel edge shows the link.
            pairs = edges.src, edges.dst
            graph = graph.without_edges({self.etype: pairs}, reverse_types=self._reverse_types)
        return self._make(graph, links, key)


class SubgraphEpochBatches(EpochBatches):
    """Epochs of subgraphs that a sampler of `asterism.saint` samples as a whole.

    `asterism.torch.SaintBatches` describes the parameters.
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
    """Shuffled groups of clusters, each cluster once per epoch over all ranks.

    `asterism.torch.ClusterBatches` describes the parameters.
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
                f"reading with {', '.join(reserved)}: expected other arguments of "
                "induced_subgraph, because the batches determine these; leave them out"
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
