"""Graphs for PyTorch: epochs of batches as datasets, over ranks and workers, that go on where a trainer stopped. Needs ``asterism[torch]``.

torch is imported with this module; nobody inside `asterism` but the adapters imports it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from asterism import arguments, mixing
from asterism.epochs import EpochCursor
from asterism.graph import Graph
from asterism.patience import PATIENCE_S, patience, patiently
from asterism.records import FeatureValue, Ids
from asterism_proto.errors import InvalidRequest

__all__ = ["BatchLoader", "MultiHot", "NodeBatches", "tensor"]

Make = Callable[[Graph, Ids, int], Any]
"""What a batch is made by, of the graph, the batch's nodes and the seed of its draws."""


def tensor(column: Any) -> Any:
    """An array as a tensor of its own memory where that can be written to, otherwise of a copy."""
    array = np.asarray(column)
    return torch.from_numpy(array if array.flags.writeable else array.copy())


class MultiHot:
    """Makes float32 [m, width] of a ragged column of indices: 1 where a row has an index.

    Parameters
    ----------
    width : int
        How many indices there are.

    Examples
    --------
    >>> MultiHot(4)((np.array([0, 2, 2]), np.array([3, 0])))
    tensor([[1., 0., 0., 1.],
            [0., 0., 0., 0.]])
    """

    def __init__(self, width: int) -> None:
        self.width = arguments.count("width", width, least=1)

    def __call__(self, column: FeatureValue) -> Any:
        """The rows of a column ``(indptr, indices)``."""
        if not isinstance(column, tuple):
            raise InvalidRequest(f"a dense column of shape {list(column.shape)}: expected (indptr, indices), of a ragged feature")
        indptr, indices = column
        wrong = np.flatnonzero((indices < 0) | (indices >= self.width))
        if wrong.size:
            raise InvalidRequest(f"index {indices[wrong[0]]}: expected 0 to {self.width - 1}")
        out = torch.zeros(len(indptr) - 1, self.width)
        out[tensor(np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))), tensor(indices.astype(np.int64, copy=False))] = 1.0
        return out


class _Given(NamedTuple):
    """A batch, and where the worker that made it is behind it."""

    part: int
    parts: int
    state: dict[str, Any]
    value: Any


class NodeBatches(IterableDataset):  # type: ignore[misc]  # torch is not installed where types are checked
    """Every node of a type once an epoch over all ranks and workers, in shuffled batches; each made by ``make`` in threads ahead of time.

    Going through it gives what is left of the epoch, and begins the next one. Read it through a `BatchLoader` for worker processes, or go through
    it directly; a ``DataLoader`` with ``batch_size=None`` takes it too.

    Parameters
    ----------
    graph : Graph
        Of one version: from a `Graph.pin`, or `Graph.at`.
    ntype : str
        The node type.
    batch_size : int
        Nodes of a batch; the last of a worker's share may have fewer.
    make : callable, optional
        Gives a batch of ``(graph, nodes int64[m], seed)``. None: the nodes as a tensor.
    seed : int
        Of the order and of all draws. All ranks give the same.
    rank, world : int
        Which share of how many trainers.
    ahead : int
        Batches in the making while one is trained on, each in a thread; 0: none.
    patience_s : float
        How long a batch is tried again, in seconds, while the service does not answer: as long as its restart may take.

    Notes
    -----
    The seed of a batch's draws follows from (seed, epoch, the place of its first node in the epoch's order): it is the same whatever
    was stopped and resumed before. Batches are other ones with another number of ranks or workers; every node still comes once.

    Examples
    --------
    >>> with graph.pin() as held:  # doctest: +SKIP
    ...     batches = NodeBatches(held, "paper", 512, lambda g, n, seed: g.sample_subgraph(n, [10, 5], direction="in", seed=seed), seed=1)
    ...     for batch in BatchLoader(batches, num_workers=2):
    ...         step(batch)
    """

    def __init__(
        self,
        graph: Graph,
        ntype: str,
        batch_size: int,
        make: Make | None = None,
        *,
        seed: int,
        rank: int = 0,
        world: int = 1,
        ahead: int = 2,
        patience_s: float = PATIENCE_S,
    ) -> None:
        super().__init__()
        if graph.version is None:
            raise InvalidRequest(
                f"space {graph.space!r} is read at its current version, which may change in an epoch; hold one: with graph.pin() as held"
            )
        self.graph, self.ntype, self.seed = graph, ntype, arguments.seed(seed)
        self.batch_size, self._ahead = arguments.count("batch_size", batch_size, least=1), arguments.count("ahead", ahead)
        self._make, self._patience_s = make, patience(patience_s)
        self.rank, self.world = rank, world
        self._cursor = EpochCursor(graph.count_nodes(ntype), seed=self.seed, rank=rank, world=world)
        self._parts: list[EpochCursor] = []
        """Of the workers that go through the rest of the epoch, as far as batches came; none: nobody has begun."""

    @property
    def epoch(self) -> int:
        """The one that is under way, from 0."""
        return self._cursor.epoch

    @property
    def left(self) -> int:
        """Nodes of this rank not yet visited in this epoch."""
        return self._rest().left

    def __iter__(self) -> Iterator[Any]:
        for given in self._given():
            yield given.value

    def set_epoch(self, epoch: int) -> None:
        """Begin an epoch: in the process that makes a ``DataLoader`` with workers, before each but the first. A `BatchLoader` does it."""
        self._cursor = EpochCursor(self._cursor.size, seed=self.seed, rank=self.rank, world=self.world, epoch=epoch)
        self._parts = []

    def state_dict(self) -> dict[str, Any]:
        """Where this rank is, in plain values: batches that were given count as visited."""
        return {
            "version": self.graph.version,
            "ntype": self.ntype,
            "epoch": self.epoch,
            "seed": self.seed,
            "parts": [cursor.state_dict() for cursor in self._parts or self._cursor.split(1)],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where a rank was, with any number of workers; InvalidRequest where it was of another type or version."""
        self._check(state)
        self._go_on(EpochCursor.resharded(state["parts"], rank=0, world=1), state)

    def reshard(self, states: Iterable[Mapping[str, Any]]) -> None:
        """Take this rank's share of what all ranks of another number of them left of their epoch: of every one's state."""
        known = list(states)
        for state in known:
            self._check(state)
        if not known or len({(state["epoch"], state["seed"]) for state in known}) > 1:
            raise InvalidRequest(f"states of epochs {[state['epoch'] for state in known]}: expected one of every rank, of one epoch of one order")
        parts = [part for state in known for part in state["parts"]]
        renumbered = [{**part, "rank": at, "world": len(parts)} for at, part in enumerate(parts)]
        self._go_on(EpochCursor.resharded(renumbered, rank=self.rank, world=self.world), known[0])

    def _check(self, state: Mapping[str, Any]) -> None:
        if (state["version"], state["ntype"]) != (self.graph.version, self.ntype):
            raise InvalidRequest(
                f"the state is of {state['ntype']!r} in version {state['version']}, this reads {self.ntype!r} in version {self.graph.version}; "
                "make it with a graph of the version that the state is of"
            )

    def _go_on(self, rest: EpochCursor, state: Mapping[str, Any]) -> None:
        self.seed = state["seed"]
        self._cursor, self._parts = rest, []

    def _rest(self) -> EpochCursor:
        """What nobody was given yet."""
        return EpochCursor.resharded([part.state_dict() for part in self._parts], rank=0, world=1) if self._parts else self._cursor

    def _note(self, given: _Given) -> None:
        """Take over where the worker behind a batch is."""
        self._parts[given.part].load_state_dict(given.state)

    def _begin(self, parts: int) -> None:
        """Split what is left over workers."""
        self._parts = self._rest().split(parts)

    def _given(self) -> Iterator[_Given]:
        """This worker's share of what is left, batch by batch."""
        worker = get_worker_info()
        part, parts = (worker.id, worker.num_workers) if worker is not None else (0, 1)
        self._begin(parts)
        for given in self._made(part, parts, self._parts[part]):
            self._note(given)
            yield given
        self.set_epoch(self.epoch + 1)

    def _made(self, part: int, parts: int, noted: EpochCursor) -> Iterator[_Given]:
        """Batches in order, some of them in the making ahead of the one that is given."""
        cursor = noted.split(1)[0]
        cursor.load_state_dict(noted.state_dict())
        if not self._ahead:
            while cursor.left:
                nodes, key, state = self._next(cursor)
                yield _Given(part, parts, state, self._value(nodes, key))
            return
        pool = ThreadPoolExecutor(self._ahead, thread_name_prefix="batches")
        under_way: deque[tuple[Future[Any], dict[str, Any]]] = deque()
        try:
            while cursor.left or under_way:
                while cursor.left and len(under_way) < self._ahead:
                    nodes, key, state = self._next(cursor)
                    under_way.append((pool.submit(self._value, nodes, key), state))
                future, state = under_way.popleft()
                yield _Given(part, parts, state, future.result())
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _next(self, cursor: EpochCursor) -> tuple[Ids, int, dict[str, Any]]:
        key = mixing.key_of(self.seed, mixing.BATCH, cursor.epoch, cursor.next_place())
        return cursor.take(self.batch_size), key, cursor.state_dict()

    def _value(self, places: Ids, key: int) -> Any:
        return patiently(lambda: self._made_of(places, key), self._patience_s)

    def _made_of(self, places: Ids, key: int) -> Any:
        nodes = self.graph.nodes_at(self.ntype, places)
        return tensor(nodes) if self._make is None else self._make(self.graph, nodes, key)


class _Tracked(IterableDataset):  # type: ignore[misc]  # torch is not installed where types are checked
    """Batches with where they end, for the process that counts them."""

    def __init__(self, batches: NodeBatches) -> None:
        self._batches = batches

    def __iter__(self) -> Iterator[_Given]:
        return self._batches._given()


def _as_given(given: _Given) -> _Given:
    return given


class BatchLoader:
    """Goes through `NodeBatches` with worker processes, and counts in this one what came: its state can be saved at any batch.

    Parameters
    ----------
    batches : NodeBatches
        What to go through.
    num_workers : int
        Processes; 0: none but this.
    **more
        Of torch's ``DataLoader``: ``multiprocessing_context``, ``prefetch_factor``, ``pin_memory``, ``timeout`` ...

    Raises
    ------
    InvalidRequest
        For ``persistent_workers``: workers are made for each epoch, so that an interrupted one can be gone on with.
    """

    def __init__(self, batches: NodeBatches, num_workers: int = 0, **more: Any) -> None:
        wrong = sorted({"persistent_workers", "batch_size", "shuffle", "sampler", "batch_sampler", "collate_fn", "drop_last"} & set(more))
        if wrong:
            raise InvalidRequest(f"{', '.join(wrong)}: a loader of batches makes, shuffles and shares them itself; leave this out")
        self.batches, self._workers, self._more = batches, num_workers, more

    def __iter__(self) -> Iterator[Any]:
        if not self._workers:
            yield from self.batches
            return
        loader = DataLoader(_Tracked(self.batches), batch_size=None, num_workers=self._workers, collate_fn=_as_given, **self._more)
        epoch, begun = self.batches.epoch, iter(loader)  # workers get a copy of what is left before it is split here
        self.batches._begin(self._workers)
        for given in begun:
            self.batches._note(given)
            yield given.value
        self.batches.set_epoch(epoch + 1)

    def state_dict(self) -> dict[str, Any]:
        """As of the batches."""
        return self.batches.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """As of the batches."""
        self.batches.load_state_dict(state)
