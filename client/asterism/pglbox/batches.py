"""What a configuration's trainings and inferences go through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from asterism.records.arrays import ArrayRecord, FeatureValue, Ids, Types
from asterism.records.samples import Subgraph, WalkSample


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Nodes(ArrayRecord):
    """The nodes that a batch is about, each once, with what a model reads of them."""

    ids: Mapping[str, Ids]
    """By node type, int64 [n]: with ``sage_mode`` those of ``subgraph``, the batch's own first."""
    features: Mapping[str, Mapping[str, FeatureValue]]
    """By node type and slot: ``(indptr, values)``, a row for each of ``ids``, at most
    ``max_slot_value_size`` values each.
    """
    degrees: Mapping[str, Ids] | None
    """By edge type, int64 [n]: how many edges each of the ``ids`` of its source type has; None
    without ``use_degree_norm``.
    """
    subgraph: Subgraph | None
    """Of ``samples`` or ``infer_samples``, along every edge type; None without ``sage_mode``."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class TrainBatch(ArrayRecord):
    """Pairs of walks, shuffled."""

    pairs: Ids
    """int64 [k, 2]: a node, and one near it on its walk; k is ``batch_size`` at most."""
    types: Types
    """int32 [k, 2], node type ids."""
    places: Ids
    """int64 [k, 2]: where they are among ``nodes.ids`` of their types."""
    labels: Types | None
    """int32 [k]: what ``pair_label`` says of their types, 0 where it says nothing; None without
    it.
    """
    negatives: Ids | None
    """int64 [k, neg_num]: nodes of the type of each pair's second one; None where it is 0."""
    negative_places: Ids | None
    """int64 [k, neg_num]: where they are."""
    nodes: Nodes
    walks: WalkSample | None
    """With ``need_dump_walk``: the walks that these pairs and those of the batches behind it are
    from; None where they were given before.
    """
    metapath: str
    epoch: int
    version: int

    def __len__(self) -> int:
        return len(self.pairs)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class InferBatch(ArrayRecord):
    """Nodes of one type, to be embedded."""

    ids: Ids
    """int64 [k]; k is ``infer_batch_size`` at most."""
    ntype: str
    places: Ids
    """int64 [k]: where they are among ``nodes.ids`` of their type."""
    nodes: Nodes
    version: int

    def __len__(self) -> int:
        return len(self.ids)
