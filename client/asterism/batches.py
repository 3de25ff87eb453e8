"""Epochs of batches for any framework: made ahead in threads, shared over ranks and workers, going on where a trainer stopped.

The adapters for PyTorch and TensorFlow are thin over this; nothing of either is known here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

from asterism import arguments, mixing
from asterism.clusters import ClusterBatch, Grouping, described
from asterism.clusters import Given as GivenClusters
from asterism.epochs import EpochCursor
from asterism.graph import Graph
from asterism.patience import PATIENCE_S, patience, patiently
from asterism.records import EdgeRows, Ids, LinkSeeds, Subgraph
from asterism.saint import Sampler
from asterism_proto.errors import InvalidRequest

Make = Callable[[Graph, Ids, int], Any]
"""What a batch is made by, of the graph, the batch's nodes and the seed of its draws."""
MakeOfEdges = Callable[[Graph, "EdgeRows | LinkSeeds", int], Any]
"""What a batch is made by, of the graph, the batch's edges, with their negatives where there are any, and the seed of its draws."""

MakeOfClusters = Callable[[Graph, ClusterBatch, int], Any]
"""What a batch is made by, of the graph, the subgraph of the batch's clusters, and a seed."""
MakeOfSubgraph = Callable[[Graph, Subgraph, int], Any]
"""What a batch is made by, of the graph, the subgraph that was drawn, and a seed."""


class Given(NamedTuple):
    """A batch, and where the worker that made it is behind it."""

    part: int
    parts: int
    state: dict[str, Any]
    value: Any


class Epochs(ABC):
    """Every row of something once an epoch over all ranks, in shuffled batches; each made in threads ahead of time."""

    def __init__(
        self, graph: Graph, size: Callable[[], int], batch_size: int, *, seed: int, rank: int, world: int, ahead: int, patience_s: float
    ) -> None:
        if graph.version is None:
            raise InvalidRequest(
                f"space {graph.space!r} is read at its current version, which may change in an epoch; hold one: with graph.pin() as held"
            )
        self.graph, self.seed = graph, arguments.seed(seed)
        self.batch_size, self._ahead = arguments.count("batch_size", batch_size, least=1), arguments.count("ahead", ahead)
        self._patience_s = patience(patience_s)
        self.rank, self.world = rank, world
        self._cursor = EpochCursor(size(), seed=self.seed, rank=rank, world=world)
        self._parts: list[EpochCursor] = []
        """Of the workers that go through the rest of the epoch, as far as batches came; none: nobody has begun."""

    @abstractmethod
    def _made_of(self, places: Ids, key: int) -> Any:
        """The batch of some places; ``key`` is the seed of its draws."""

    @abstractmethod
    def _said(self) -> dict[str, Any]:
        """What it goes through, in plain values."""

    @property
    def epoch(self) -> int:
        """The one that is under way, from 0."""
        return self._cursor.epoch

    @property
    def left(self) -> int:
        """Places of this rank not yet visited in this epoch."""
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
            **self._said(),
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
        mine = self._said()
        theirs = {name: state.get(name) for name in mine}
        if (state["version"], theirs) != (self.graph.version, mine):
            of, here = (" ".join(repr(value) for value in said.values() if value) or "something else" for said in (theirs, mine))
            raise InvalidRequest(
                f"the state is of {of} in version {state['version']}, this reads {here} in version {self.graph.version}; "
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


class Batches(Epochs):
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
        self.ntype, self._make = ntype, make
        super().__init__(graph, lambda: graph.count_nodes(ntype), batch_size, seed=seed, rank=rank, world=world, ahead=ahead, patience_s=patience_s)

    def _said(self) -> dict[str, Any]:
        return {"ntype": self.ntype}

    def _made_of(self, places: Ids, key: int) -> Any:
        nodes = self.graph.nodes_at(self.ntype, places)
        return self._nodes(nodes) if self._make is None else self._make(self.graph, nodes, key)

    def _nodes(self, nodes: Ids) -> Any:
        """A batch that nothing is made of."""
        return nodes


class LinkBatches(Epochs):
    """Every edge of a type once an epoch over all ranks, in shuffled batches; each made by ``make`` in threads ahead of time.

    Parameters as of `asterism.torch.EdgeBatches`.
    """

    def __init__(
        self,
        graph: Graph,
        etype: str,
        batch_size: int,
        make: MakeOfEdges | None = None,
        *,
        negatives: Mapping[str, Any] | None = None,
        weight: str = "",
        where: str = "",
        seed: int,
        rank: int = 0,
        world: int = 1,
        ahead: int = 2,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.etype, self._make, self._weight, self._where = etype, make, weight, where
        self._negatives = None if negatives is None else dict(negatives)
        wrong = sorted({"seed", "version", "edges", "etype"} & set(negatives or ()))
        if wrong:
            raise InvalidRequest(f"negatives of {', '.join(wrong)}: these are the batches' own; leave this out")
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

    def _said(self) -> dict[str, Any]:
        return {"etype": self.etype, "where": self._where}

    def _made_of(self, places: Ids, key: int) -> Any:
        edges = self.graph.edges_at(self.etype, places, weight=self._weight, where=self._where)
        links = edges if self._negatives is None else self.graph.link_seeds(edges, self.etype, seed=key, **self._negatives)
        return links if self._make is None else self._make(self.graph, links, key)


class DrawnSubgraphs(Epochs):
    """So many subgraphs an epoch over all ranks, each drawn as a whole by a sampler of `asterism.saint`, in threads ahead of time.

    Parameters as of `asterism.torch.SaintBatches`.
    """

    def __init__(
        self,
        sampler: Sampler,
        count: int,
        make: MakeOfSubgraph | None = None,
        *,
        seed: int,
        rank: int = 0,
        world: int = 1,
        ahead: int = 2,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._sampler, self._make, size = sampler, make, arguments.count("count", count, least=1)
        super().__init__(sampler.graph, lambda: size, 1, seed=seed, rank=rank, world=world, ahead=ahead, patience_s=patience_s)

    def _said(self) -> dict[str, Any]:
        return {"sampler": self._sampler.described(), "count": self._cursor.size}

    def _made_of(self, places: Ids, key: int) -> Any:
        found = self._sampler.keyed(key)
        return found if self._make is None else self._make(self.graph, found, key)


class ClusterGroups(Epochs):
    """Every cluster once an epoch over all ranks, in shuffled groups; each made by ``make`` in threads ahead of time.

    Parameters as of `asterism.torch.ClusterBatches`.
    """

    def __init__(
        self,
        graph: Graph,
        clusters: GivenClusters,
        q: int,
        make: MakeOfClusters | None = None,
        *,
        reading: Mapping[str, Any] | None = None,
        seed: int,
        rank: int = 0,
        world: int = 1,
        ahead: int = 2,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._make, how = make, dict(reading or {})
        wrong = sorted({"nodes", "indptr", "ntype", "version"} & set(how))
        if wrong:
            raise InvalidRequest(f"reading with {', '.join(wrong)}: these are the batches' own; leave this out")

        def size() -> int:
            self._grouping = Grouping.of(graph, clusters, how, described(graph, None))
            return self._grouping.clusters.count

        super().__init__(graph, size, q, seed=seed, rank=rank, world=world, ahead=ahead, patience_s=patience_s)

    def _said(self) -> dict[str, Any]:
        return {"clusters": self._grouping.clusters.identity}

    def _made_of(self, places: Ids, key: int) -> Any:
        assert self.graph.version is not None
        batch = self._grouping.batch(self.graph, places, self.graph.version)
        return batch if self._make is None else self._make(self.graph, batch, key)
