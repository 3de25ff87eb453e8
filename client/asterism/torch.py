"""Graphs for PyTorch: epochs of batches as datasets, over ranks and workers, that go on where a
trainer stopped. Needs ``asterism-graph[torch]``.

torch is imported with this module; nobody inside `asterism` but the adapters imports it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from asterism import hashing
from asterism.calls import validation
from asterism.calls.epoch_cursor import EpochCursor
from asterism.extras import required
from asterism.records.samples import FeatureValue, Ids
from asterism.training.batches import (
    ClusterEpochBatches,
    LinkEpochBatches,
    NodeEpochBatches,
    SubgraphEpochBatches,
    WorkerBatch,
)
from asterism_proto.errors import InvalidRequest

with required("torch", "asterism.torch"):
    import torch
    from torch.utils.data import DataLoader, IterableDataset, Sampler, get_worker_info

__all__ = [
    "BatchLoader",
    "BatchOrder",
    "ClusterBatches",
    "EdgeBatches",
    "MultiHot",
    "NodeBatches",
    "SaintBatches",
    "tensor",
]

_SEEDS = 1 << 62


def tensor(column: Any) -> Any:
    """An array as a tensor of its own memory where that can be written to, otherwise of a copy."""
    array = np.asarray(column)
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def batch_seed(seed: int | None, ids: Any) -> int:
    """The seed of a batch's draws: of ``seed`` and its nodes, or without one a fresh one from
    torch's generator.
    """
    if seed is None:
        return int(torch.randint(_SEEDS, (1,)))
    digest = hashlib.blake2b(np.ascontiguousarray(ids).tobytes(), digest_size=8).digest()
    return hashing.key_of(seed, hashing.BATCH, int.from_bytes(digest, "little"))


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
        self.width = validation.count("width", width, minimum=1)

    def __call__(self, column: FeatureValue) -> Any:
        """The rows of a column ``(indptr, indices)``."""
        if not isinstance(column, tuple):
            raise InvalidRequest(
                f"a dense column of shape {list(column.shape)}: expected (indptr, indices), "
                "of a ragged feature"
            )
        indptr, indices = column
        wrong = np.flatnonzero((indices < 0) | (indices >= self.width))
        if wrong.size:
            raise InvalidRequest(f"index {indices[wrong[0]]}: expected 0 to {self.width - 1}")
        out = torch.zeros(len(indptr) - 1, self.width)
        out[
            tensor(np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))),
            tensor(indices.astype(np.int64, copy=False)),
        ] = 1.0
        return out


def _worker_index() -> tuple[int, int]:
    """Which of how many worker processes this is."""
    worker = get_worker_info()
    return (worker.id, worker.num_workers) if worker is not None else (0, 1)


# Torch is not installed where types are checked.
class NodeBatches(NodeEpochBatches, IterableDataset):  # type: ignore[misc]
    """Every node of a type once an epoch over all ranks and workers, in shuffled batches; each made
    by ``make`` in threads ahead of time.

    Going through it gives what is left of the epoch, and begins the next one. Read it through a
    `BatchLoader` for worker processes, or go through it directly; a ``DataLoader`` with
    ``batch_size=None`` takes it too, where `set_epoch` is called before each epoch but the first.

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
        How long a batch is tried again, in seconds, while the service does not answer: as long as
        its restart may take.

    Notes
    -----
    The seed of a batch's draws follows from (seed, epoch, the place of its first node in the
    epoch's order): it is the same whatever was stopped and resumed before. Batches are other ones
    with another number of ranks or workers; every node still comes once.

    Examples
    --------
    >>> def made(graph, nodes, seed):  # doctest: +SKIP
    ...     return graph.sample_subgraph(nodes, [10, 5], direction="in", seed=seed)
    >>> with graph.pin() as held:  # doctest: +SKIP
    ...     batches = NodeBatches(held, "paper", 512, made, seed=1)
    ...     for batch in BatchLoader(batches, num_workers=2):
    ...         step(batch)
    """

    def _worker_share(self) -> tuple[int, int]:
        return _worker_index()

    def _plain_batch(self, nodes: Ids) -> Any:
        return tensor(nodes)


# Torch is not installed where types are checked.
class EdgeBatches(LinkEpochBatches, IterableDataset):  # type: ignore[misc]
    """Every edge of a type once an epoch over all ranks and workers, in shuffled batches, with
    negatives; each made by ``make`` ahead of time.

    Gone through, stopped, resumed and shared over ranks and workers as `NodeBatches` are.

    Parameters
    ----------
    graph : Graph
        Of one version: from a `Graph.pin`, or `Graph.at`.
    etype : str
        The edge type.
    batch_size : int
        Edges of a batch; the last of a worker's share may have fewer.
    make : callable, optional
        Gives a batch of ``(graph, edges, seed)``, where edges are an `EdgeRows`, or with
        ``negatives`` a `LinkSeeds`. None: these.
    negatives : mapping, optional
        What `Graph.link_seeds` is to draw beside the edges, by its arguments: ``{"mode": "triplet",
        "amount": 5}``.
    weight, where
        As of `Graph.edge_batches`.
    seed, rank, world, ahead, patience_s
        As of `NodeBatches`.

    Examples
    --------
    >>> def made(graph, links, seed):  # doctest: +SKIP
    ...     nodes = np.concatenate([links.src, links.dst])
    ...     batch = graph.sample_subgraph(nodes, [10, 5], "cites", direction="in", seed=seed)
    ...     return links.labels, batch
    >>> with graph.pin() as held:  # doctest: +SKIP
    ...     batches = EdgeBatches(
    ...         held, "cites", 512, made, negatives={"amount": 1}, where="year < 2019", seed=1
    ...     )
    ...     for labels, batch in BatchLoader(batches, num_workers=2):
    ...         step(labels, batch)
    """

    def _worker_share(self) -> tuple[int, int]:
        return _worker_index()


# Torch is not installed where types are checked.
class ClusterBatches(ClusterEpochBatches, IterableDataset):  # type: ignore[misc]
    """Every cluster once an epoch over all ranks and workers, q at a time, with all edges among
    their nodes; each made ahead of time.

    Gone through, stopped, resumed and shared over ranks and workers as `NodeBatches` are.

    Parameters
    ----------
    graph : Graph
        Of one version: from a `Graph.pin`, or `Graph.at`.
    clusters, q
        As of `Graph.cluster_batches`.
    make : callable, optional
        Gives a batch of ``(graph, batch, seed)``, where batch is a `ClusterBatch`. None: that.
    reading : mapping, optional
        How subgraphs are read, by the arguments of `Graph.induced_subgraph`: ``{"etypes": "cites",
        "node_features": ["vec"]}``.
    seed, rank, world, ahead, patience_s
        As of `NodeBatches`.

    Examples
    --------
    >>> with graph.pin() as held:  # doctest: +SKIP
    ...     batches = ClusterBatches(
    ...         held, "clusters", 20, reading={"node_features": ["vec"]}, seed=1
    ...     )
    ...     for batch in BatchLoader(batches, num_workers=2):
    ...         step(batch.subgraph)
    """

    def _worker_share(self) -> tuple[int, int]:
        return _worker_index()


# Torch is not installed where types are checked.
class SaintBatches(SubgraphEpochBatches, IterableDataset):  # type: ignore[misc]
    """So many subgraphs an epoch over all ranks and workers, each drawn as a whole (GraphSAINT), in
    threads ahead of time.

    Gone through, stopped, resumed and shared over ranks and workers as `NodeBatches` are. The nodes
    of a subgraph follow from the sampler, its seed, ``seed``, the epoch and the subgraph's place in
    it; the sampler's `normalize` counts others of the same law.

    Parameters
    ----------
    sampler : asterism.saint.Sampler
        Of a graph of one version: from a `Graph.pin`, or `Graph.at`.
    count : int
        Subgraphs of an epoch.
    make : callable, optional
        Gives a batch of ``(graph, subgraph, seed)``. None: the subgraph.
    seed, rank, world, ahead, patience_s
        As of `NodeBatches`.

    Examples
    --------
    >>> sampler = RandomWalkSampler(held, "cites", 2000, 2, seed=1)  # doctest: +SKIP
    >>> norms = sampler.normalize(50)  # doctest: +SKIP
    >>> batches = SaintBatches(  # doctest: +SKIP
    ...     sampler, 30, lambda graph, found, seed: (found, *norms.of(found)), seed=1
    ... )
    """

    def _worker_share(self) -> tuple[int, int]:
        return _worker_index()


Dataset = NodeBatches | EdgeBatches | ClusterBatches | SaintBatches


# Torch is not installed where types are checked.
class _TrackedBatches(IterableDataset):  # type: ignore[misc]
    """Batches with where they end, for the process that counts them."""

    def __init__(self, batches: Dataset) -> None:
        self._batches = batches

    def __iter__(self) -> Iterator[WorkerBatch]:
        return self._batches._worker_batches()


def _identity(batch: WorkerBatch) -> WorkerBatch:
    return batch


class BatchLoader:
    """Goes through `NodeBatches` and their like with worker processes, and counts in this one what
    came: its state can be saved at any batch.

    Parameters
    ----------
    batches : NodeBatches, EdgeBatches, ClusterBatches or SaintBatches
        What to go through.
    num_workers : int
        Processes; 0: none but this.
    **loader_options
        Of torch's ``DataLoader``: ``multiprocessing_context``, ``prefetch_factor``, ``pin_memory``,
        ``timeout`` ...

    Raises
    ------
    InvalidRequest
        For ``persistent_workers``: workers are made for each epoch, so that an interrupted one can
        be gone on with.
    """

    def __init__(self, batches: Dataset, num_workers: int = 0, **loader_options: Any) -> None:
        reserved = sorted(
            {
                "persistent_workers",
                "batch_size",
                "shuffle",
                "sampler",
                "batch_sampler",
                "collate_fn",
                "drop_last",
            }
            & set(loader_options)
        )
        if reserved:
            raise InvalidRequest(
                f"{', '.join(reserved)}: a loader of batches makes, shuffles and shares them "
                "itself; leave this out"
            )
        self.batches, self._workers, self._more = batches, num_workers, loader_options

    def __iter__(self) -> Iterator[Any]:
        if not self._workers:
            yield from self.batches
            return
        loader = DataLoader(
            _TrackedBatches(self.batches),
            batch_size=None,
            num_workers=self._workers,
            collate_fn=_identity,
            **self._more,
        )
        epoch, iterator = (
            self.batches.epoch,
            iter(loader),
        )  # workers get a copy of what is left before it is split here
        self.batches._split_over_workers(self._workers)
        for worker_batch in iterator:
            self.batches._record_progress(worker_batch)
            yield worker_batch.value
        self.batches.set_epoch(epoch + 1)

    def state_dict(self) -> dict[str, Any]:
        """As of the batches."""
        return self.batches.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """As of the batches."""
        self.batches.load_state_dict(state)


class BatchOrder(Sampler):  # type: ignore[misc]  # torch is not installed where types are checked
    """The order of an epoch for loaders that batch places, such as PyG's: every place below
    ``size`` once, and where a trainer is in it.

    It is the loader's ``batch_sampler``; go through the loader by `through`, which counts in this
    process what came, whatever workers have made ahead.

    Parameters
    ----------
    size : int
        How many places: ``len(input_nodes)``, or links.
    batch_size : int
        Places of a batch; the last of an epoch may have fewer.
    seed : int
        Of the order. All ranks give the same.
    rank, world : int
        Which share of how many trainers.

    Examples
    --------
    >>> order = BatchOrder(len(train), 128, seed=1)  # doctest: +SKIP
    >>> loader = NodeLoader(  # doctest: +SKIP
    ...     data, sampler, input_nodes=train, batch_sampler=order, num_workers=2
    ... )
    >>> for batch in order.through(loader):  # doctest: +SKIP
    ...     step(batch)
    ...     checkpoint = order.state_dict()
    """

    def __init__(
        self, size: int, batch_size: int, *, seed: int, rank: int = 0, world: int = 1
    ) -> None:
        self._cursor = EpochCursor(
            validation.count("size", size), seed=validation.seed(seed), rank=rank, world=world
        )
        self.batch_size = validation.count("batch_size", batch_size, minimum=1)

    @property
    def epoch(self) -> int:
        """The one that is under way, from 0."""
        return self._cursor.epoch

    def __len__(self) -> int:
        return -(-self._cursor.left // self.batch_size)

    def __iter__(self) -> Iterator[list[int]]:
        cursor = self._cursor.split(1)[0]
        while cursor.left:
            yield cursor.take(self.batch_size).tolist()

    def through(self, loader: Iterable[Any]) -> Iterator[Any]:
        """What is left of the epoch, batch by batch, and then the next one begins; a batch that was
        given counts as visited.
        """
        for batch in loader:
            self._cursor.take(self.batch_size)
            yield batch
        self._cursor.next_epoch()

    def state_dict(self) -> dict[str, Any]:
        """Where this rank is, in plain values."""
        return self._cursor.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where a rank was; InvalidRequest where it was of another number of places."""
        self._cursor.load_state_dict(state)

    def reshard(self, states: Iterable[Mapping[str, Any]]) -> None:
        """Take this rank's share of what all ranks of another number of them left of their epoch:
        of every one's state.
        """
        self._cursor = EpochCursor.resharded(
            states, rank=self._cursor.rank, world=self._cursor.world
        )
