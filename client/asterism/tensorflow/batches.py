"""Epochs as datasets of ``tf.data``, that go on where a trainer stopped."""

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
from asterism.transport.retries import DEFAULT_PATIENCE_S
from asterism_proto.errors import AsterismError, InvalidRequest


# TensorFlow is not installed where types are checked.
class NodeBatches(NodeEpochBatches, tf.train.experimental.PythonState):  # type: ignore[misc]
    """Every node of a type once an epoch over all ranks, in shuffled batches; each made by ``make``
    in threads ahead of time.

    Going through it gives what is left of the epoch, as tensors, and begins the next one; `dataset`
    gives the same to what takes datasets. Its position is kept by ``tf.train.Checkpoint(model=...,
    batches=batches)``, or as plain values by `state_dict`.

    Parameters
    ----------
    graph : Graph
        Of one version: from a `Graph.pin`, or `Graph.at`.
    ntype : str
        The node type.
    batch_size : int
        Nodes of a batch; the last of an epoch may have fewer.
    make : callable, optional
        Gives a batch of ``(graph, nodes int64[m], seed)``: an array, a record such as `Subgraph`,
        or mappings and tuples of these. Records become dicts by the names of their fields, lists of
        numbers arrays; what is None or text is left out. None: the nodes.
    seed : int
        Of the order and of all draws. All ranks give the same.
    rank, world : int
        Which share of how many trainers: ``context.input_pipeline_id`` of
        ``context.num_input_pipelines``.
    ahead : int
        Batches in the making while one is trained on, each in a thread; 0: none.
    patience_s : float
        How long a batch is tried again, in seconds, while the service does not answer.
    signature : nested tf.TensorSpec, optional
        Of a batch. None: as a first one is, which is made for that, the first dimension of every
        array open.

    Examples
    --------
    >>> def made(graph, nodes, seed):  # doctest: +SKIP
    ...     return graph.sample_subgraph(nodes, [10, 5], direction="in", seed=seed)
    >>> with graph.pin() as held:  # doctest: +SKIP
    ...     batches = NodeBatches(held, "paper", 512, made, seed=1)
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
        """Batches that the latest pass gave to the pipeline, and nobody has noted yet."""

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
        """What is left of the epoch as a ``tf.data.Dataset``, for ``model.fit`` or a loop in a
        ``tf.function``.

        A pass through it moves nothing by itself, for nobody can see how far ahead a pipeline has
        read: say `note` after each step, as `noting` does where Keras trains. The last step of an
        epoch begins the next one."""

        def start_pass() -> Iterator[Any]:
            if not self.left:
                self.set_epoch(self.epoch + 1)
            self._split_over_workers(1)
            self._unrecorded = deque()
            return self._recorded_pass(self._unrecorded, [])

        return self._pipeline(start_pass)

    def note(self, steps: int = 1) -> None:
        """Count the next batches of the latest pass through `dataset` as visited.

        Raises
        ------
        InvalidRequest
            Where the pass did not give as many.
        """
        if steps > len(self._unrecorded):
            raise InvalidRequest(
                f"steps {steps}: the pass through the dataset has {len(self._unrecorded)} "
                "batches that were given and not noted"
            )
        for _ in range(steps):
            self._record_progress(self._unrecorded.popleft())
        if not self.left:
            self.set_epoch(self.epoch + 1)

    def noting(self) -> Any:
        """A callback for ``model.fit(batches.dataset(), callbacks=[...])`` that notes each step."""
        return tf.keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: self.note())

    def serialize(self) -> str:
        """The state as a checkpoint of TensorFlow keeps it."""
        return json.dumps(self.state_dict())

    def deserialize(self, string_value: str) -> None:
        """Go on where a checkpoint was."""
        self.load_state_dict(json.loads(string_value))

    def _pipeline(self, start: Any) -> Any:
        if self._signature is None:
            self._signature = tf.nest.map_structure(_spec, self._example_batch())
        return tf.data.Dataset.from_generator(start, output_signature=self._signature).prefetch(1)

    def _example_batch(self) -> Any:
        """A batch like any other."""
        if not self._cursor.size:
            raise InvalidRequest(
                f"there are no nodes of type {self.ntype!r}, by which to see what a batch "
                "is; say signature"
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
    """A batch as ``tf.data`` takes it: arrays in dicts and tuples."""
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
