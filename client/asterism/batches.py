"""Epochs of batches for any framework: made ahead in threads, shared over ranks and workers, going on where a trainer stopped.

The adapters for PyTorch and TensorFlow are thin over this; nothing of either is known here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

from asterism import arguments, mixing
from asterism.epochs import EpochCursor
from asterism.graph import Graph
from asterism.patience import PATIENCE_S, patience, patiently
from asterism.records import Ids
from asterism_proto.errors import InvalidRequest

Make = Callable[[Graph, Ids, int], Any]
"""What a batch is made by, of the graph, the batch's nodes and the seed of its draws."""


class Given(NamedTuple):
    """A batch, and where the worker that made it is behind it."""

    part: int
    parts: int
    state: dict[str, Any]
    value: Any


class Batches:
    """Every node of a type once an epoch over all ranks, in shuffled batches; each made by ``make`` in threads ahead of time.

    Parameters as of `asterism.torch.NodeBatches`.
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
        """Begin an epoch."""
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

    def _note(self, given: Given) -> None:
        """Take over where the worker behind a batch is."""
        self._parts[given.part].load_state_dict(given.state)

    def _begin(self, parts: int) -> None:
        """Split what is left over workers."""
        self._parts = self._rest().split(parts)

    def _share(self) -> tuple[int, int]:
        """Which worker of how many this process is."""
        return 0, 1

    def _given(self) -> Iterator[Given]:
        """This worker's share of what is left, batch by batch."""
        part, parts = self._share()
        self._begin(parts)
        for given in self._made(part, parts, self._parts[part]):
            self._note(given)
            yield given
        self.set_epoch(self.epoch + 1)

    def _made(self, part: int, parts: int, noted: EpochCursor) -> Iterator[Given]:
        """Batches in order, some of them in the making ahead of the one that is given."""
        cursor = noted.split(1)[0]
        cursor.load_state_dict(noted.state_dict())
        if not self._ahead:
            while cursor.left:
                nodes, key, state = self._next(cursor)
                yield Given(part, parts, state, self._value(nodes, key))
            return
        pool = ThreadPoolExecutor(self._ahead, thread_name_prefix="batches")
        under_way: deque[tuple[Future[Any], dict[str, Any]]] = deque()

        def fill() -> None:
            while cursor.left and len(under_way) < self._ahead:
                nodes, key, state = self._next(cursor)
                under_way.append((pool.submit(self._value, nodes, key), state))

        try:
            fill()
            while under_way:
                future, state = under_way.popleft()
                value = future.result()
                fill()  # before this one is given, so that as many are in the making while it is trained on
                yield Given(part, parts, state, value)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _next(self, cursor: EpochCursor) -> tuple[Ids, int, dict[str, Any]]:
        key = mixing.key_of(self.seed, mixing.BATCH, cursor.epoch, cursor.next_place())
        return cursor.take(self.batch_size), key, cursor.state_dict()

    def _value(self, places: Ids, key: int) -> Any:
        return patiently(lambda: self._made_of(places, key), self._patience_s)

    def _made_of(self, places: Ids, key: int) -> Any:
        nodes = self.graph.nodes_at(self.ntype, places)
        return self._nodes(nodes) if self._make is None else self._make(self.graph, nodes, key)

    def _nodes(self, nodes: Ids) -> Any:
        """A batch that nothing is made of."""
        return nodes
