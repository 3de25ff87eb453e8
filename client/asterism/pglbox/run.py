"""A configuration over a graph: batches for training and inference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from asterism import permutations
from asterism.calls import validation
from asterism.calls.epoch_iterators import PairEpochs
from asterism.formats.pglbox.config import Config, read_config
from asterism.formats.pglbox.nodes import slots_of
from asterism.formats.pglbox.source import read_nodes
from asterism.graph import Graph
from asterism.pglbox.batches import InferBatch, Nodes, TrainBatch
from asterism.records.samples import FeatureValue, Ids, PairBatch, Types, WalkSample
from asterism_proto.errors import InvalidRequest

_TRAIN, _INFER = 0, 1


class PGLBox:
    """Batches that a PGLBox configuration describes, over a graph space.

    Parameters
    ----------
    graph : Graph
        Graph with the node and edge types of the configuration's files; a load of the configuration
        creates them.
    config : Config, str or Path
        Configuration, or a file that `read_config` reads.
    seed : int, optional
        Random seed of all samples; the same seed gives the same batches. Required if ``world`` > 1;
        all ranks pass the same value. Default: random.
    rank, world : int
        Index of this trainer, and number of trainers. Together the trainers start walks at every
        node once per epoch.

    Raises
    ------
    NotFound
        If the graph does not have the types of the configuration.
    InvalidRequest
        If the configuration is invalid, or there are several trainers and no seed. Iteration raises
        it if a node of ``train_start_nodes`` or ``infer_nodes`` is not in the graph.

    Examples
    --------
    >>> with graph.pin() as held:  # doctest: +SKIP
    ...     box = asterism.pglbox.PGLBox(held, "lightgcn.yaml", seed=1)
    ...     for batch in box.train():
    ...         step(batch)
    """

    def __init__(
        self,
        graph: Graph,
        config: Config | str | Path,
        *,
        seed: int | None = None,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        self.graph, self.config = (
            graph,
            config if isinstance(config, Config) else read_config(config),
        )
        if seed is None and world > 1:
            raise InvalidRequest(
                f"seed=None with world={world}: expected a seed, so that all ranks visit rows in "
                "one order; pass the same seed on all ranks"
            )
        self.seed, self._rank, self._world = validation.seed(seed), rank, world
        schema = graph.schema
        for name in self.config.node_files:
            schema.node_type_id(name)
        for triple in self.config.triples:
            schema.edge_type_id(":".join(triple))
        self._slots: dict[str, list[str]] = {}
        self._state: dict[str, Any] = {}
        for slot in slots_of(self.config):
            for name in [slot.ntype] if slot.ntype else self.config.node_files:
                schema.node_types[schema.node_type_id(name)].feature(slot.feature.name)
                self._slots.setdefault(name, []).append(slot.feature.name)

    def train(self) -> Iterator[TrainBatch]:
        """Yield the batches of all epochs; none if ``need_train`` is off.

        Start nodes are shuffled, and metapaths alternate. The walks of each start node are sampled
        once per epoch. All batches are of one version. A second call continues after the last batch
        that the first one returned.

        Yields
        ------
        TrainBatch
            Next batch.

        Raises
        ------
        InvalidRequest
            If the configuration has no metapaths, a start node is not in the graph, or the loaded
            state is of other metapaths or another version.
        """
        config = self.config
        if not config["need_train"]:
            return
        if not config.metapaths:
            raise InvalidRequest(
                f"{config.path}: meta_path: expected at least one metapath to walk"
            )
        passes = self._passes()
        if self._state:
            passes.load_state_dict(self._state["passes"])
        yielded, steps = int(self._state.get("given", 0)), int(self._state.get("steps", 0))
        while passes.epoch < config["epochs"] and not 0 < config["max_steps"] <= steps:
            pair_batches = iter(passes)
            pass_state = passes.state_dict()
            while (pair_batch := next(pair_batches, None)) is not None:
                for first in range(
                    yielded * config["batch_size"], len(pair_batch), config["batch_size"]
                ):
                    batch = self._train_batch(pair_batch, first, steps)
                    yielded, steps = yielded + 1, steps + 1
                    self._state = {
                        "seed": self.seed,
                        "passes": pass_state,
                        "given": yielded,
                        "steps": steps,
                    }
                    yield batch
                    if steps == config["max_steps"]:
                        return
                yielded, pass_state = 0, passes.state_dict()

    def state_dict(self) -> dict[str, Any]:
        """Return the position of `train` as plain values.

        Batches that were returned count as visited.

        Returns
        -------
        dict
            State for `load_state_dict`; empty before the first batch.
        """
        return dict(self._state)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue the next `train` where one with the same configuration and seed stopped.

        Parameters
        ----------
        state : mapping
            State that `state_dict` returned.

        Raises
        ------
        InvalidRequest
            If the state is of another seed. `train` raises it if the state is of other metapaths or
            another version.
        """
        if state and state["seed"] != self.seed:
            raise InvalidRequest(
                f"seed={self.seed}: expected {state['seed']}, the seed of the state; pass that seed"
            )
        self._state = dict(state)

    def _passes(self) -> PairEpochs:
        config = self.config
        return self.graph.walk_pairs(
            config.metapaths,
            config["walk_len"],
            walks=config["walk_times"],
            window=config["win_size"],
            batch_size=config["batch_node_size"] or self._batch_start_count(),
            first_step="distinct",
            weighted=config["weighted_sample"],
            negatives=config["neg_num"],
            excluded=config["excluded_train_pair"],
            starts=self._listed_nodes("train_start_nodes"),
            seed=permutations.key_of(self.seed, permutations.EPOCH, _TRAIN),
            rank=self._rank,
            world=self._world,
        )

    def infer(self) -> Iterator[InferBatch]:
        """Yield batches of every node to infer; none if ``need_inference`` is off.

        Each node of ``infer_node_type`` is returned once. If ``infer_nodes`` is set, only its nodes
        are.

        Yields
        ------
        InferBatch
            Next batch.

        Raises
        ------
        InvalidRequest
            If a node of ``infer_nodes`` is not in the graph.
        """
        config = self.config
        if not config["need_inference"]:
            return
        listed, version = self._listed_nodes("infer_nodes"), None
        for number, ntype in enumerate(config.infer_types):
            passes = self.graph.node_batches(
                ntype,
                config["infer_batch_size"] or config["batch_size"],
                among=listed.get(ntype, np.zeros(0, np.int64)) if listed else None,
                seed=permutations.key_of(self.seed, permutations.EPOCH, _INFER, number),
                rank=self._rank,
                world=self._world,
                version=version,
            )
            version = passes.version
            kind = self.graph.schema.node_type_id(ntype)
            for step, ids in enumerate(passes):
                seed = permutations.key_of(
                    self.seed, permutations.BATCH, _INFER, number, step, self._rank
                )
                nodes, positions = self._nodes(
                    ids, np.full(len(ids), kind, np.int32), config["infer_samples"], seed, version
                )
                yield InferBatch(
                    ids=ids, ntype=ntype, places=positions, nodes=nodes, version=version
                )

    def _batch_start_count(self) -> int:
        """Return the number of start nodes that yield about ``batch_size`` pairs."""
        config = self.config
        length = config["walk_len"] + 1
        window = min(config["win_size"], length - 1)
        pairs_per_start = config["walk_times"] * (2 * window * length - window * (window + 1))
        starts: int = max(config["batch_size"] // pairs_per_start, 1)
        return starts

    def _train_batch(self, pair_batch: PairBatch, first: int, step: int) -> TrainBatch:
        rows = slice(first, first + self.config["batch_size"])
        pairs, types = pair_batch.pairs[rows], pair_batch.types[rows]
        negatives = None if pair_batch.negatives is None else pair_batch.negatives[rows]
        ids, kinds = [pairs.reshape(-1)], [types.reshape(-1)]
        if negatives is not None:
            ids.append(negatives.reshape(-1))
            kinds.append(np.repeat(types[:, 1], negatives.shape[1]))
        seed = permutations.key_of(self.seed, permutations.BATCH, _TRAIN, step, self._rank)
        nodes, positions = self._nodes(
            np.concatenate(ids),
            np.concatenate(kinds),
            self.config["samples"],
            seed,
            pair_batch.version,
        )
        walks: WalkSample | None = (
            pair_batch.walks if self.config["need_dump_walk"] and first == 0 else None
        )
        return TrainBatch(
            pairs=pairs,
            types=types,
            places=positions[: pairs.size].reshape(pairs.shape),
            labels=self._labels(types),
            negatives=negatives,
            negative_places=None
            if negatives is None
            else positions[pairs.size :].reshape(negatives.shape),
            nodes=nodes,
            walks=walks,
            metapath=pair_batch.metapath,
            epoch=pair_batch.epoch,
            version=pair_batch.version,
        )

    def _labels(self, types: Types) -> Types | None:
        if not self.config.pair_labels:
            return None
        schema = self.graph.schema
        table = np.zeros((len(schema.node_types),) * 2, np.int32)
        for (a, b), label in self.config.pair_labels.items():
            table[schema.node_type_id(a), schema.node_type_id(b)] = label
        labels: Types = table[types[:, 0], types[:, 1]]
        return labels

    def _nodes(
        self, ids: Ids, types: Types, samples: tuple[int, ...], seed: int, version: int
    ) -> tuple[Nodes, Ids]:
        """Return the distinct nodes with the inputs of a model, and positions in them.

        There is one position per given node. The configuration determines the inputs.
        """
        config, schema = self.config, self.graph.schema
        unique_ids, kinds, inverse = _unique_nodes(ids, types)
        subgraph = None
        if config["sage_mode"]:
            subgraph = self.graph.sample_subgraph(
                unique_ids,
                samples,
                [":".join(triple) for triple in config.triples],
                ntype=kinds,
                weighted=config["weighted_sample"],
                weights=config["return_weight"],
                edge_ids=False,
                seed=seed,
                version=version,
            )
            by_type: Mapping[str, Ids] = subgraph.nodes
            rows = subgraph.seeds
        else:
            by_type = {
                schema.node_types[kind].name: unique_ids[kinds == kind]
                for kind in np.unique(kinds).tolist()
            }
            starts = np.searchsorted(kinds, kinds)
            rows = np.arange(len(unique_ids)) - starts
        features = {
            name: {
                slot: self._trim_values(value)
                for slot, value in self.graph.node_features(
                    type_nodes, self._slots[name], name, version=version
                ).items()
            }
            for name, type_nodes in by_type.items()
            if self._slots.get(name)
        }
        degrees = None
        if config["sage_mode"] and config["use_degree_norm"]:
            degrees = {
                ":".join(triple): self.graph.degrees(
                    by_type[triple[0]], ":".join(triple), ntype=triple[0], version=version
                )[:, 0]
                for triple in config.triples
                if triple[0] in by_type
            }
        return Nodes(ids=by_type, features=features, degrees=degrees, subgraph=subgraph), rows[
            inverse
        ]

    def _trim_values(self, value: FeatureValue) -> FeatureValue:
        """Keep the first ``max_slot_value_size`` values of each row."""
        limit = self.config["max_slot_value_size"]
        if (
            limit is None
            or not isinstance(value, tuple)
            or value[1].dtype == np.uint8
            or not (np.diff(value[0]) > limit).any()
        ):
            return value
        indptr, values = value
        lengths = np.minimum(np.diff(indptr), limit)
        ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
        return ends, values[np.arange(ends[-1]) + np.repeat(indptr[:-1] - ends[:-1], lengths)]

    def _listed_nodes(self, key: str) -> dict[str, Ids]:
        """Return the nodes in the files of a key; raise InvalidRequest if one is unknown."""
        if not self.config[key]:
            return {}
        listed = read_nodes(self.config, key)
        for name, ids in listed.items():
            unknown = ids[~self.graph.find_nodes(ids, name)]
            if len(unknown):
                raise InvalidRequest(
                    f"{self.config.path}: {key}: node {unknown[0]}: expected a node of type "
                    f"{name!r} of the graph ({len(unknown) - 1} more)"
                )
        return listed


def _unique_nodes(ids: Ids, types: Types) -> tuple[Ids, Types, Ids]:
    """Return the distinct nodes, ordered by type and id, and the position of each node."""
    order = np.lexsort((ids, types))
    sorted_ids, sorted_types = ids[order], types[order]
    is_first = np.ones(len(ids), np.bool_)
    is_first[1:] = (sorted_ids[1:] != sorted_ids[:-1]) | (sorted_types[1:] != sorted_types[:-1])
    positions = np.empty(len(ids), np.int64)
    positions[order] = np.cumsum(is_first) - 1
    return sorted_ids[is_first], sorted_types[is_first], positions
