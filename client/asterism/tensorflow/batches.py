"""Epochs of batches as resumable ``tf.data`` datasets."""

from __future__ import annotations

import dataclasses
import json
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from asterism.graph import Graph
from asterism.training.batches import NodeBatchFunction, NodeEpochBatches, WorkerBatch
from asterism.transport.read_retries import DEFAULT_PATIENCE_S
from asterism_proto.errors import AsterismError, InvalidRequest


# TensorFlow is not installed where types are checked.
class NodeBatches(NodeEpochBatches, tf.train.experimental.PythonState):  # type: ignore[misc]
    """Shuffled batches of all nodes of a type, each node once per epoch over all ranks.

    Threads create batches ahead of time by calling ``make``. Iteration returns the rest of the
    epoch as tensors and then begins the next epoch. `dataset` returns the same for interfaces that
    accept datasets. ``tf.train.Checkpoint(model=..., batches=batches)`` saves the position;
    `state_dict` returns it as plain values.

    Parameters
    ----------
    graph : Graph
        Graph of one version, from `Graph.pin` or `Graph.at`.
    ntype : str
        Node type.
    batch_size : int
        Nodes per batch; the last batch of an epoch may have fewer.
    make : callable, optional
        Function from ``(graph, nodes int64[m], seed)`` to a batch: an array, a record such as
        `Subgraph`, or mappings and tuples of these. Records become dicts by field name, and lists
        of numbers become arrays; fields that are None or strings are omitted. None: the batch is
        the nodes.
    seed : int
        Random seed of the order and of all samples. All ranks pass the same value.
    rank, world : int
        Index of this trainer, and number of trainers: ``context.input_pipeline_id`` and
        ``context.num_input_pipelines``.
    ahead : int
        Number of batches to prefetch, each in a thread; 0: none.
    patience_s : float
        Seconds for which a failed batch is retried while the service is unavailable. Choose a value
        that covers a restart of the service.
    signature : nested tf.TensorSpec, optional
        Specification of a batch. None: that of a batch created for this purpose, with the first
        dimension of every array unspecified.

    Raises
    ------
    InvalidRequest
        If the graph is not of one version.

    Examples
    --------
    >>> def make_batch(graph, nodes, seed):  # doctest: +SKIP
    ...     return graph.sample_subgraph(nodes, [10, 5], direction="in", seed=seed)
    >>> with graph.pin() as held:  # doctest: +SKIP
    ...     batches = NodeBatches(held, "paper", 512, make_batch, seed=1)
    ...     checkpoint = tf.train.Checkpoint(model=model, batches=batches)
    ...     for batch in batches:
    ...         step(batch["nodes"], batch["row"], batch["col"])
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
        signature: Any = None,
    ) -> None:
        super().__init__(
            graph,
            ntype,
            batch_size,
            make,
            seed=seed,
            rank=rank,
            world=world,
            ahead=ahead,
            patience_s=patience_s,
        )
        self._signature = signature
        self._unrecorded: deque[WorkerBatch] = deque()
        """Batches that the latest iteration passed to the pipeline and `note` has not counted."""

    def __iter__(self) -> Iterator[Any]:
        failures: list[AsterismError] = []
        unrecorded: deque[WorkerBatch] = deque()
        self._split_over_workers(1)
        try:
            for value in self._pipeline(lambda: self._recorded_pass(unrecorded, failures)):
                self._record_progress(unrecorded.popleft())
                yield value
        except tf.errors.OpError as error:
            if not failures:
                raise
            raise failures[0] from error
        self.set_epoch(self.epoch + 1)

    def dataset(self) -> Any:
        """Return the rest of the epoch as a dataset.

        Use it for ``model.fit``, or for a loop in a ``tf.function``. Iteration does not advance the
        position, because it is unknown how far ahead a pipeline reads. Call `note` after each step,
        or pass the callback `noting` to Keras. After the last step of an epoch the next epoch
        begins.

        Returns
        -------
        tf.data.Dataset
            Remaining batches of this rank.

        Raises
        ------
        InvalidRequest
            If there are no nodes to derive the specification of a batch from.
        """

        def start_pass() -> Iterator[Any]:
            if not self.left:
                self.set_epoch(self.epoch + 1)
            self._split_over_workers(1)
            self._unrecorded = deque()
            return self._recorded_pass(self._unrecorded, [])

        return self._pipeline(start_pass)

    def note(self, steps: int = 1) -> None:
        """Count the next batches of the latest iteration of `dataset` as visited.

        Parameters
        ----------
        steps : int
            Number of batches.

        Raises
        ------
        InvalidRequest
            If the iteration has returned fewer batches that are not yet counted.
        """
        if steps > len(self._unrecorded):
            raise InvalidRequest(
                f"steps={steps}: expected at most {len(self._unrecorded)}, the batches that the "
                "dataset returned and that are not counted yet"
            )
        for _ in range(steps):
            self._record_progress(self._unrecorded.popleft())
        if not self.left:
            self.set_epoch(self.epoch + 1)

    def noting(self) -> Any:
        """Return a Keras callback that calls `note` after each step.

        Pass it to ``model.fit(batches.dataset(), callbacks=[...])``.

        Returns
        -------
        tf.keras.callbacks.Callback
            Callback.
        """
        return tf.keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: self.note())

    def serialize(self) -> str:
        """Return the state as stored in a TensorFlow checkpoint.

        Returns
        -------
        str
            State as JSON.
        """
        return json.dumps(self.state_dict())

    def deserialize(self, string_value: str) -> None:
        """Continue from the state in a TensorFlow checkpoint.

        Parameters
        ----------
        string_value : str
            State that `serialize` returned.

        Raises
        ------
        InvalidRequest
            If the state is of another node type or version.
        """
        self.load_state_dict(json.loads(string_value))

    def _pipeline(self, start: Any) -> Any:
        if self._signature is None:
            self._signature = tf.nest.map_structure(_spec, self._example_batch())
        return tf.data.Dataset.from_generator(start, output_signature=self._signature).prefetch(1)

    def _example_batch(self) -> Any:
        """Return a batch to derive the specification from."""
        if not self._cursor.size:
            raise InvalidRequest(
                f"signature=None: expected the signature of a batch, because there are no nodes "
                f"of type {self.ntype!r} to derive it from"
            )
        return _arrays(self._value(np.arange(min(self.batch_size, self._cursor.size)), self.seed))

    def _recorded_pass(
        self, unrecorded: deque[WorkerBatch], failures: list[AsterismError]
    ) -> Iterator[Any]:
        try:
            for worker_batch in self._prefetched_batches(0, 1, self._worker_cursors[0]):
                unrecorded.append(worker_batch)
                yield _arrays(worker_batch.value)
        except AsterismError as error:
            failures.append(error)
            raise


def _arrays(value: Any) -> Any:
    """Return a batch in the form that ``tf.data`` accepts: arrays in dicts and tuples."""
    if dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {
            name: _arrays(item)
            for name, item in fields.items()
            if item is not None and not isinstance(item, str)
        }
    if isinstance(value, Mapping):
        return {name: _arrays(item) for name, item in value.items()}
    if isinstance(value, tuple | list) and any(not isinstance(item, int | float) for item in value):
        return tuple(_arrays(item) for item in value)
    return np.asarray(value)


def _spec(array: Any) -> Any:
    shape = np.shape(array)
    return tf.TensorSpec((None, *shape[1:]) if shape else (), tf.as_dtype(np.asarray(array).dtype))
