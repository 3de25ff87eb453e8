"""Graphs for PyTorch: resumable epochs of batches as datasets, over ranks and workers.

Needs ``asterism-graph[torch]``. This module imports torch. Inside `asterism` only adapters import
this module.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from asterism import permutations
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
    """Return an array as a tensor.

    Parameters
    ----------
    column : array_like
        Array.

    Returns
    -------
    Tensor
        Tensor that shares the memory of the array if that is writable; otherwise a copy.
    """
    array = np.asarray(column)
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def batch_seed(seed: int | None, ids: Any) -> int:
    """Return the random seed of a batch.

    It follows from ``seed`` and the nodes of the batch. If ``seed`` is None, it comes from torch's
    generator. The derivation is part of the sampling contract: changing it changes results for a
    given seed.
    """
    if seed is None:
        return int(torch.randint(_SEEDS, (1,)))
    digest = hashlib.blake2b(np.ascontiguousarray(ids).tobytes(), digest_size=8).digest()
    return permutations.key_of(seed, permutations.BATCH, int.from_bytes(digest, "little"))


class MultiHot:
    """Encoder of a ragged column of indices as a multi-hot tensor.

    The result is float32 [m, width], with 1 for each index in a row.

    Parameters
    ----------
    width : int
        Number of possible indices.

    Examples
    --------
    >>> MultiHot(4)((np.array([0, 2, 2]), np.array([3, 0])))
    tensor([[1., 0., 0., 1.],
            [0., 0., 0., 0.]])
    """

    def __init__(self, width: int) -> None:
        self.width = validation.count("width", width, minimum=1)

    def __call__(self, column: FeatureValue) -> Any:
        """Encode a column.

        Parameters
        ----------
        column : tuple of ndarray
            ``(indptr, indices)`` of m rows.

        Returns
        -------
        Tensor of float32, shape (m, width)
            1 for each index in a row, 0 elsewhere.

        Raises
        ------
        InvalidRequest
            If the column is dense, or an index is out of range.
        """
        if not isinstance(column, tuple):
            raise InvalidRequest(
                f"column of shape {list(column.shape)}: expected (indptr, indices), a ragged "
                f"feature"
            )
        indptr, indices = column
        wrong = np.flatnonzero((indices < 0) | (indices >= self.width))
        if wrong.size:
            raise InvalidRequest(
                f"column with index {indices[wrong[0]]}: expected 0 to {self.width - 1}"
            )
        out = torch.zeros(len(indptr) - 1, self.width)
        out[
            tensor(np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))),
            tensor(indices.astype(np.int64, copy=False)),
        ] = 1.0
        return out


def _worker_index() -> tuple[int, int]:
    """Return the index of this worker process, and the number of workers."""
    worker = get_worker_info()
    return (worker.id, worker.num_workers) if worker is not None else (0, 1)


# Torch is not installed where types are checked.
class NodeBatches(NodeEpochBatches, IterableDataset):  # type: ignore[misc]
    """Shuffled batches of all nodes of a type, each node once per epoch over all ranks.

    Threads create batches ahead of time by calling ``make``. Iteration returns the rest of the
    epoch and then begins the next one. Use a `BatchLoader` for worker processes, or iterate
    directly. A ``DataLoader`` with ``batch_size=None`` works too if `set_epoch` is called before
    each epoch except the first.

    Parameters
    ----------
    graph : Graph
        Graph of one version, from `Graph.pin` or `Graph.at`.
    ntype : str
        Node type.
    batch_size : int
        Nodes per batch; the last batch of a worker's share may have fewer.
    make : callable, optional
        Function from ``(graph, nodes int64[m], seed)`` to a batch. None: the batch is a tensor of
        the nodes.
    seed : int
        Random seed of the order and of all samples. All ranks pass the same value.
    rank, world : int
        Index of this trainer, and number of trainers.
    ahead : int
        Number of batches to prefetch, each in a thread; 0: none.
    patience_s : float
        Seconds for which a failed batch is retried while the service is unavailable. Choose a value
        that covers a restart of the service.

    Raises
    ------
    InvalidRequest
        If the graph is not of one version.

    Notes ----- The random seed of a batch follows from (seed, epoch, position of its first node in
    the order of the epoch), so it does not depend on interruptions. Another number of ranks or
    workers gives different batches, but still visits every node once.

    Examples
    --------
    >>> def make_batch(graph, nodes, seed):  # doctest: +SKIP
    ...     return graph.sample_subgraph(nodes, [10, 5], direction="in", seed=seed)
    >>> with graph.pin() as held:  # doctest: +SKIP
    ...     batches = NodeBatches(held, "paper", 512, make_batch, seed=1)
    ...     for batch in BatchLoader(batches, num_workers=2):
    ...         step(batch)
    """

    def _worker_share(self) -> tuple[int, int]:
        return _worker_index()

    def _plain_batch(self, nodes: Ids) -> Any:
        return tensor(nodes)


# Torch is not installed where types are checked.
class EdgeBatches(LinkEpochBatches, IterableDataset):  # type: ignore[misc]
    """Shuffled batches of all edges of a type, each edge once per epoch over all ranks.

    Batches may contain negatives. Iteration, interruption and division over ranks and workers are
    the same as for `NodeBatches`.

    Parameters
    ----------
    graph : Graph
        Graph of one version, from `Graph.pin` or `Graph.at`.
    etype : str
        Edge type.
    batch_size : int
        Edges per batch; the last batch of a worker's share may have fewer.
    make : callable, optional
        Function from ``(graph, edges, seed)`` to a batch. The edges are an `EdgeRows`, or with
        ``negatives`` a `LinkSeeds`. None: the batch is the edges.
    negatives : mapping, optional
        Arguments of `Graph.link_seeds` that determine the negatives, such as ``{"mode": "triplet",
        "amount": 5}``. None: no negatives.
    weight, where : str
        Weight column to return, and filter of the edges, as for `Graph.edge_batches`.
    exclude : bool
        The graph that ``make`` gets is `Graph.without_edges` of the edges of the batch, so that no
        sample contains the links that a model is to predict. False: it has all edges.
    reverse_types : mapping, optional
        Edge type of the reverse edges of the edge type, which are excluded too, such as ``{"buys":
        "bought_by"}``, or ``{"cites": "cites"}`` in a graph with both directions of each edge.
    seed : int
        Random seed of the order and of all samples. All ranks pass the same value.
    rank, world : int
        Index of this trainer, and number of trainers.
    ahead : int
        Number of batches to prefetch, each in a thread; 0: none.
    patience_s : float
        Seconds for which a failed batch is retried while the service is unavailable. Choose a value
        that covers a restart of the service.

    Raises
    ------
    InvalidRequest
        If the graph is not of one version, or ``negatives`` has arguments that the batches
        determine.

    Examples
    --------
    >>> def make_batch(graph, links, seed):  # doctest: +SKIP
    ...     nodes = np.concatenate([links.src, links.dst])
    ...     batch = graph.sample_subgraph(nodes, [10, 5], "cites", direction="in", seed=seed)
    ...     return links.labels, batch
    >>> with graph.pin() as held:  # doctest: +SKIP
    ...     batches = EdgeBatches(
    ...         held, "cites", 512, make_batch, negatives={"amount": 1}, where="year < 2019", seed=1
    ...     )
    ...     for labels, batch in BatchLoader(batches, num_workers=2):
    ...         step(labels, batch)
    """

    def _worker_share(self) -> tuple[int, int]:
        return _worker_index()


# Torch is not installed where types are checked.
class ClusterBatches(ClusterEpochBatches, IterableDataset):  # type: ignore[misc]
    """Shuffled groups of q clusters, each cluster once per epoch over all ranks.

    A batch contains all edges between the nodes of its clusters (Cluster-GCN; Chiang et al., 2019).
    Iteration, interruption and division over ranks and workers are the same as for `NodeBatches`.

    Parameters
    ----------
    graph : Graph
        Graph of one version, from `Graph.pin` or `Graph.at`.
    clusters, q
        Arguments of `Graph.cluster_batches`.
    make : callable, optional
        Function from ``(graph, batch, seed)`` to a batch; its argument is a `ClusterBatch`. None:
        the batch is the `ClusterBatch`.
    reading : mapping, optional
        Arguments of `Graph.induced_subgraph` for reading subgraphs, such as ``{"etypes": "cites",
        "node_features": ["vec"]}``.
    seed : int
        Random seed of the order and of all samples. All ranks pass the same value.
    rank, world : int
        Index of this trainer, and number of trainers.
    ahead : int
        Number of batches to prefetch, each in a thread; 0: none.
    patience_s : float
        Seconds for which a failed batch is retried while the service is unavailable. Choose a value
        that covers a restart of the service.

    Raises
    ------
    InvalidRequest
        If the graph is not of one version, or ``reading`` has arguments that the batches determine.

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
    """Epochs of subgraphs that are each sampled as a whole (GraphSAINT; Zeng et al., 2020).

    Iteration, interruption and division over ranks and workers are the same as for `NodeBatches`.
    The nodes of a subgraph follow from the sampler, its seed, ``seed``, the epoch and the position
    of the subgraph in it. `normalize` of the sampler counts other subgraphs of the same
    distribution.

    Parameters
    ----------
    sampler : asterism.saint.Sampler
        Sampler over a graph of one version, from `Graph.pin` or `Graph.at`.
    count : int
        Subgraphs per epoch, over all ranks.
    make : callable, optional
        Function from ``(graph, subgraph, seed)`` to a batch. None: the batch is the subgraph.
    seed : int
        Random seed of the order and of all samples. All ranks pass the same value.
    rank, world : int
        Index of this trainer, and number of trainers.
    ahead : int
        Number of batches to prefetch, each in a thread; 0: none.
    patience_s : float
        Seconds for which a failed batch is retried while the service is unavailable. Choose a value
        that covers a restart of the service.

    Raises
    ------
    InvalidRequest
        If the graph of the sampler is not of one version.

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
    """Batches with the position of their worker, for the process that records it."""

    def __init__(self, batches: Dataset) -> None:
        self._batches = batches

    def __iter__(self) -> Iterator[WorkerBatch]:
        return self._batches._worker_batches()


def _identity(batch: WorkerBatch) -> WorkerBatch:
    return batch


class BatchLoader:
    """Loader of `NodeBatches` and similar datasets with worker processes.

    This process records the batches that it received, so the state can be saved at any batch.

    Parameters
    ----------
    batches : NodeBatches, EdgeBatches, ClusterBatches or SaintBatches
        Dataset to iterate.
    num_workers : int
        Number of worker processes; 0: batches are created in this process.
    **loader_options
        Options of torch's ``DataLoader``, such as ``multiprocessing_context``, ``prefetch_factor``,
        ``pin_memory`` and ``timeout``.

    Raises
    ------
    InvalidRequest
        For options that the batches determine, such as ``batch_size`` and ``shuffle``, and for
        ``persistent_workers``: each epoch starts its own workers, so that an interrupted epoch can
        be resumed.
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
                f"{', '.join(reserved)}: expected other options of DataLoader, because this loader "
                "sets these itself; leave them out"
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
        )  # workers copy the remaining epoch before it is split here
        self.batches._split_over_workers(self._workers)
        for worker_batch in iterator:
            self.batches._record_progress(worker_batch)
            yield worker_batch.value
        self.batches.set_epoch(epoch + 1)

    def state_dict(self) -> dict[str, Any]:
        """Return the position of this rank as plain values.

        Batches that this process received count as visited.

        Returns
        -------
        dict
            State for `load_state_dict`.
        """
        return self.batches.state_dict()

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
        self.batches.load_state_dict(state)


class BatchOrder(Sampler):  # type: ignore[misc]  # torch is not installed where types are checked
    """Resumable order of an epoch, for loaders that batch positions, such as PyG's.

    Each epoch contains every position below ``size`` once. Pass it to the loader as
    ``batch_sampler``, and iterate with `through`. That method counts the batches that this process
    received, independently of the batches that workers have prefetched.

    Parameters
    ----------
    size : int
        Number of positions: ``len(input_nodes)``, or the number of links.
    batch_size : int
        Positions per batch; the last batch of an epoch may have fewer.
    seed : int
        Random seed of the order. All ranks pass the same value.
    rank, world : int
        Index of this trainer, and number of trainers.

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
        """Current epoch, from 0."""
        return self._cursor.epoch

    def __len__(self) -> int:
        return -(-self._cursor.left // self.batch_size)

    def __iter__(self) -> Iterator[list[int]]:
        cursor = self._cursor.split(1)[0]
        while cursor.left:
            yield cursor.take(self.batch_size).tolist()

    def through(self, loader: Iterable[Any]) -> Iterator[Any]:
        """Yield the remaining batches of the epoch, then begin the next epoch.

        A batch that was yielded counts as visited.

        Parameters
        ----------
        loader : iterable
            Loader that uses this order as its ``batch_sampler``.

        Yields
        ------
        object
            Batch of the loader.
        """
        for batch in loader:
            self._cursor.take(self.batch_size)
            yield batch
        self._cursor.next_epoch()

    def state_dict(self) -> dict[str, Any]:
        """Return the position of this rank as plain values.

        Returns
        -------
        dict
            State for `load_state_dict` or `reshard`.
        """
        return self._cursor.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where a rank stopped.

        Parameters
        ----------
        state : mapping
            State that `state_dict` returned.

        Raises
        ------
        InvalidRequest
            If the state is of another number of positions.
        """
        self._cursor.load_state_dict(state)

    def reshard(self, states: Iterable[Mapping[str, Any]]) -> None:
        """Continue the epoch of a run with another number of ranks.

        This rank takes its share of the positions that the ranks of that run have not visited.

        Parameters
        ----------
        states : iterable of mapping
            State of every rank of the run.

        Raises
        ------
        InvalidRequest
            If the state of a rank is missing or repeats, or the states are of different epochs or
            orders, or of another number of positions.
        """
        rank_states = list(states)
        for state in rank_states:
            self._cursor.check_size(state)
        self._cursor = EpochCursor.resharded(
            rank_states, rank=self._cursor.rank, world=self._cursor.world
        )
