"""Records of the batches that a configuration describes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from asterism.records.arrays import ArrayRecord, FeatureValue, Ids, Types
from asterism.records.samples import Subgraph, WalkSample


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Nodes(ArrayRecord):
    """Distinct nodes of a batch, with the inputs of a model."""

    ids: Mapping[str, Ids]
    """Node ids by node type, int64 [n].

    With ``sage_mode`` these are the nodes of ``subgraph``, starting with those of the batch.
    """
    features: Mapping[str, Mapping[str, FeatureValue]]
    """Features by node type and slot, as ``(indptr, values)``.

    Each has one row per element of ``ids``, with at most ``max_slot_value_size`` values.
    """
    degrees: Mapping[str, Ids] | None
    """Number of edges of each node by edge type, int64 [n].

    Rows follow ``ids`` of the source type. None unless ``sage_mode`` and ``use_degree_norm`` are
    set.
    """
    subgraph: Subgraph | None
    """Neighborhood sampled along every edge type; None without ``sage_mode``.

    The fanouts are ``samples`` for training and ``infer_samples`` for inference.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class TrainBatch(ArrayRecord):
    """Shuffled skip-gram pairs of walks."""

    pairs: Ids
    """Pairs of a node and a node near it on its walk, int64 [k, 2]; k <= ``batch_size``."""
    types: Types
    """Node type ids of the pairs, int32 [k, 2]."""
    places: Ids
    """Positions of the pairs in ``nodes.ids`` of their types, int64 [k, 2]."""
    labels: Types | None
    """Labels of the pairs by their types, int32 [k].

    ``pair_label`` assigns them; types without a label have 0. None without ``pair_label``.
    """
    negatives: Ids | None
    """Negatives of the type of each pair's second node, int64 [k, neg_num].

    None if ``neg_num`` is 0.
    """
    negative_places: Ids | None
    """Positions of the negatives in ``nodes.ids`` of their types, int64 [k, neg_num]."""
    nodes: Nodes
    walks: WalkSample | None
    """Walks that the pairs of this batch and of the following ones come from.

    None without ``need_dump_walk``, or if an earlier batch contains them.
    """
    metapath: str
    epoch: int
    version: int

    def __len__(self) -> int:
        return len(self.pairs)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class InferBatch(ArrayRecord):
    """Nodes of one type to compute embeddings of."""

    ids: Ids
    """Node ids, int64 [k]; k <= ``infer_batch_size``."""
    ntype: str
    places: Ids
    """Positions of the nodes in ``nodes.ids`` of their type, int64 [k]."""
    nodes: Nodes
    version: int

    def __len__(self) -> int:
        return len(self.ids)
