"""PyG's sampler over a graph: neighbors of nodes and of links, with negatives, by one request a
batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
import torch
from torch_geometric import sampler as pyg
from torch_geometric.sampler.neighbor_sampler import edge_sample, node_sample

from asterism import hashing
from asterism.calls import validation
from asterism.graph import Graph
from asterism.pyg.view import GraphView, Triple
from asterism.records.samples import Ids, Subgraph, Values
from asterism.torch import batch_seed, tensor
from asterism.transport.retries import DEFAULT_PATIENCE_S, retry_read
from asterism_proto.errors import InvalidRequest

NumNeighbors = Sequence[int] | Mapping[Triple, Sequence[int]]


class NeighborSampler(pyg.BaseSampler):  # type: ignore[misc]  # PyG has no types here
    """Draws what PyG's `NeighborSampler` draws, from a graph that is not in memory.

    Each node of a hop gives neighbors that edges come from, ``num_neighbors`` of each edge type.
    Give it to ``NodeLoader`` as ``node_sampler``, to ``LinkLoader`` as ``link_sampler``; it may
    cross a fork or be pickled into their workers.

    Parameters
    ----------
    graph : Graph
        Of one version, with ``direction: both``.
    num_neighbors : list of int, or dict of triple to list of int
        Neighbors of each hop; -1 are all, 0 none. Edge types that a dict does not name are not
        followed.
    replace, disjoint : bool
        As of PyG: with replacement; a tree of its own for every seed, always where there are times.
    subgraph_type : {"directional", "bidirectional"}
        As of PyG.
    weight_attr : str, optional
        Draw in proportion to these weights: ``"weight"`` are the edges' own, other names are
        tables. None: uniformly.
    negative_weight : str, optional
        Draw negatives in proportion to these weights of nodes: ``"weight"``, or a table. None:
        uniformly, or by the ``src_weight`` and ``dst_weight`` of PyG's ``NegativeSampling``.
    seed : int, optional
        Then the draws of a batch follow from it and from the batch, however many workers there are;
        an evaluation in fixed order is the same each time. None: each batch takes a fresh one from
        torch's generator, which ``torch.manual_seed`` sets.
    hetero : bool, optional
        Whether types are named; None: where there are several.
    patience_s : float
        How long a batch is tried again, in seconds, while the service does not answer: as long as
        its restart may take.
    time_attr : str, optional
        The feature that edge types, node types or both have declared to be their time: edges after
        a seed's time, and edges from later nodes, are not in its tree; those of types without a
        time are. Loaders then need ``input_time``, or ``edge_label_time``; a ``NodeLoader`` of
        nodes that have a time themselves takes theirs where it is left out.
    temporal_strategy : {"uniform", "last"}
        As of PyG: draw from the edges that are seen, or take the latest; an edge is as late as the
        later of itself and its source.

    Raises
    ------
    InvalidRequest
        For a ``time_attr`` that no type has as its time, induced subgraphs, or a graph of no
        version; of a batch: where it has a seed twice, and trees are not disjoint, or where times
        are missing, or not expected.
    """

    def __init__(
        self,
        graph: Graph,
        num_neighbors: NumNeighbors,
        *,
        replace: bool = False,
        disjoint: bool = False,
        subgraph_type: str = "directional",
        weight_attr: str | None = None,
        negative_weight: str | None = None,
        seed: int | None = None,
        hetero: bool | None = None,
        patience_s: float = DEFAULT_PATIENCE_S,
        time_attr: str | None = None,
        temporal_strategy: str = "uniform",
    ) -> None:
        if subgraph_type not in ("directional", "bidirectional"):
            raise InvalidRequest(
                f"subgraph_type {subgraph_type!r}: expected 'directional' or 'bidirectional'"
            )
        self._view = GraphView(graph, hetero, patience_s)
        self._fanouts = self._fanouts_of(num_neighbors)
        self._timed, self._strategy = time_attr is not None, temporal_strategy
        if time_attr is not None:
            self._require_time(time_attr)
        self._replace, self._disjoint, self._bidirectional = (
            replace,
            disjoint or self._timed,
            subgraph_type == "bidirectional",
        )
        self._weight_attr, self._negative_weight = weight_attr, negative_weight
        self._seed = None if seed is None else validation.seed(seed)

    @property
    def edge_permutation(self) -> None:
        """Edges are named by their ids: nothing was put in another order."""
        return

    def sample_from_nodes(self, index: Any, **_: Any) -> Any:
        """What was drawn around a batch of nodes."""
        if self._timed and index.time is None:
            index = self._with_node_times(index)
        self._check_times("input_time", index.time)
        key = self._key(index.node)
        return self._as_requested_direction(
            node_sample(index, lambda seeds, times: self._sample(seeds, times, key))
        )

    def sample_from_edges(self, index: Any, neg_sampling: Any = None, **_: Any) -> Any:
        """What was drawn around a batch of links and their negatives."""
        self._check_times("edge_label_time", index.time)
        key = self._key(torch.cat([index.row, index.col]))
        negatives = (
            None
            if neg_sampling is None
            else self._negative_sampling(neg_sampling, index.input_type, key)
        )
        # It hands numbers of nodes on to `negatives`, which asks the graph instead.
        counts = dict.fromkeys(self._view.node_types, 0) if self._view.hetero else 0
        return self._as_requested_direction(
            edge_sample(
                index,
                lambda seeds, times: self._sample(seeds, times, key),
                counts,
                self._disjoint,
                None,
                negatives,
            )
        )

    def _as_requested_direction(self, out: Any) -> Any:
        return out.to_bidirectional() if self._bidirectional else out

    def _require_time(self, time_attr: str) -> None:
        """Refuse a time that is not that of every edge type which has one."""
        if self._strategy not in ("uniform", "last"):
            raise InvalidRequest(
                f"temporal_strategy {self._strategy!r}: expected 'uniform' or 'last'"
            )
        schema, declared = self._view.graph.schema, {}
        for name in self._fanouts:
            edge = schema.edge_types[schema.edge_type_id(name)]
            declared[name] = {time for time in (edge.time, self._time_of(edge.src_type)) if time}
        if set().union(*declared.values()) != {time_attr}:
            details = ", ".join(
                f"{name}: {' and '.join(sorted(times)) or 'none'}"
                for name, times in declared.items()
            )
            raise InvalidRequest(
                f"time_attr {time_attr!r}: expected the time that edge types, or the nodes "
                f"they come from, have declared; these are {details}"
            )

    def _time_of(self, node_type: str) -> str:
        """The feature that is the time of a node type; "" where none is."""
        schema = self._view.graph.schema
        return schema.node_types[schema.node_type_id(node_type)].time

    def _with_node_times(self, index: Any) -> Any:
        """A batch of nodes with their own times, where they have any."""
        node_type = index.input_type or self._view.node_types[0]
        time = self._time_of(node_type)
        if not time:
            return index
        features = retry_read(
            lambda: self._view.graph.node_features(index.node.numpy(), [time], node_type),
            self._view.patience_s,
        )
        index = copy(index)
        index.time = torch.from_numpy(np.array(features[time]))
        return index

    def _check_times(self, argument: str, times: Any) -> None:
        if times is not None and not self._timed:
            raise InvalidRequest(
                f"{argument} to a sampler without times; name the edges' time: time_attr"
            )
        if times is None and self._timed:
            raise InvalidRequest(
                f"a sampler with time_attr, and no {argument}; give the loader the time of each"
            )

    def _fanouts_of(self, num_neighbors: NumNeighbors) -> dict[str, list[int]]:
        if isinstance(num_neighbors, pyg.NumNeighbors):
            num_neighbors = num_neighbors.get_values(
                list(self._view.edge_types) if self._view.hetero else None
            )
        if not isinstance(num_neighbors, Mapping):
            return {name: list(num_neighbors) for name in self._view.edge_types.values()}
        unknown = [triple for triple in num_neighbors if tuple(triple) not in self._view.edge_types]
        if unknown:
            raise InvalidRequest(
                f"num_neighbors of {unknown}: there are edge types {list(self._view.edge_types)}"
            )
        return {self._view.edge_types[triple]: list(hops) for triple, hops in num_neighbors.items()}

    def _key(self, seeds: Any) -> int:
        """The seed of a batch's draws."""
        return batch_seed(self._seed, seeds.numpy())

    def _negative_sampling(self, neg_sampling: Any, input_type: Triple | None, key: int) -> Any:
        ends = {"src": self._view.node_types[0], "dst": self._view.node_types[0]}
        if input_type is not None:
            ends = {"src": input_type[0], "dst": input_type[-1]}
        return _GraphNegativeSampling(neg_sampling, self._view, ends, self._negative_weight, key)

    def _sample(self, seeds: Any, times: Any, key: int) -> Any:
        """PyG's record of a subgraph around seeds: a tensor, or tensors by node type; times
        likewise, or None.
        """
        if self._view.hetero != isinstance(seeds, Mapping):
            raise InvalidRequest(
                f"seeds {'without' if self._view.hetero else 'with'} a type: this sampler is "
                f"{'' if self._view.hetero else 'not '}hetero"
            )
        by_type = seeds if isinstance(seeds, Mapping) else {self._view.node_types[0]: seeds}
        ids: Ids = np.concatenate(
            [np.asarray(type_seeds, np.int64) for type_seeds in by_type.values()]
        )
        kinds = [
            np.full(len(type_seeds), self._view.graph.schema.node_type_id(name))
            for name, type_seeds in by_type.items()
        ]
        ntype = next(iter(by_type)) if len(by_type) == 1 else np.concatenate(kinds)
        seed_times = None
        if times is not None:
            seed_times = (
                np.concatenate([np.asarray(times[name]) for name in by_type])
                if isinstance(times, Mapping)
                else np.asarray(times)
            )
        subgraph = retry_read(
            lambda: self._sample_subgraph(ids, ntype, seed_times, key), self._view.patience_s
        )
        if not self._disjoint:
            for name, type_seeds in by_type.items():
                require_unique_seeds(
                    name, np.asarray(type_seeds), subgraph.num_sampled_nodes[name][0]
                )
        return (
            to_hetero_output(subgraph, self._view)
            if self._view.hetero
            else to_homogeneous_output(subgraph)
        )

    def _sample_subgraph(
        self, ids: Ids, ntype: str | Ids, times: Values | None, key: int
    ) -> Subgraph:
        return self._view.graph.sample_subgraph(
            ids,
            self._fanouts,
            ntype=ntype,
            weighted=self._weight_attr is not None,
            weight=self._weight_attr or "",
            replace=self._replace,
            direction="in",
            disjoint=self._disjoint,
            times=times,
            strategy=self._strategy if times is not None else "uniform",
            seed=key,
        )


def require_unique_seeds(node_type: str, seeds: Ids, node_count: int) -> None:
    """Loaders take the first nodes of a batch to be its seeds: they are, unless one is there twice,
    so that fewer were numbered.
    """
    if node_count != len(seeds):
        unique_seeds, counts = np.unique(seeds, return_counts=True)
        wrong = unique_seeds[(counts > 1) | (unique_seeds < 0)]
        raise InvalidRequest(
            f"seed {wrong[0]} of {node_type!r} is no node, or twice in a batch of "
            f"{len(seeds)}; sample with disjoint=True, or each once"
        )


def to_homogeneous_output(subgraph: Subgraph) -> Any:
    """PyG's record of a subgraph whose types are not named."""
    ((node_type, ids),) = subgraph.nodes.items()
    ((name, row),) = subgraph.row.items()
    assert subgraph.edge_ids is not None
    return pyg.SamplerOutput(
        node=tensor(ids),
        row=tensor(row),
        col=tensor(subgraph.col[name]),
        edge=tensor(subgraph.edge_ids[name]),
        batch=None if subgraph.batch is None else tensor(subgraph.batch[node_type]),
        num_sampled_nodes=list(subgraph.num_sampled_nodes[node_type]),
        num_sampled_edges=list(subgraph.num_sampled_edges[name]),
    )


def to_hetero_output(subgraph: Subgraph, view: GraphView) -> Any:
    """PyG's record of a subgraph by types."""
    assert subgraph.edge_ids is not None
    type_names = {triple: name for triple, name in view.edge_types.items() if name in subgraph.row}
    return pyg.HeteroSamplerOutput(
        node={name: tensor(ids) for name, ids in subgraph.nodes.items()},
        row={triple: tensor(subgraph.row[name]) for triple, name in type_names.items()},
        col={triple: tensor(subgraph.col[name]) for triple, name in type_names.items()},
        edge={triple: tensor(subgraph.edge_ids[name]) for triple, name in type_names.items()},
        batch=None
        if subgraph.batch is None
        else {name: tensor(batch_index) for name, batch_index in subgraph.batch.items()},
        num_sampled_nodes={
            name: list(counts) for name, counts in subgraph.num_sampled_nodes.items()
        },
        num_sampled_edges={
            triple: list(subgraph.num_sampled_edges[name]) for triple, name in type_names.items()
        },
    )


class _GraphNegativeSampling(pyg.NegativeSampling):  # type: ignore[misc]  # PyG has no types here
    """PyG's negatives of one batch, drawn from the graph's nodes, whatever their ids are."""

    def __init__(
        self,
        neg_sampling: Any,
        view: GraphView,
        ends: Mapping[str, str],
        weight: str | None,
        key: int,
    ) -> None:
        super().__init__(
            neg_sampling.mode, neg_sampling.amount, neg_sampling.src_weight, neg_sampling.dst_weight
        )
        self._view, self._ends, self._weight, self._key = view, ends, weight, key

    def sample(self, num_samples: int, endpoint: str, num_nodes: int | None = None) -> Any:
        """Nodes of the type at one end of the links."""
        node_type = self._ends[endpoint]
        key = hashing.key_of(self._key, hashing.NEGATIVE, ("src", "dst").index(endpoint))
        node_weights = self.src_weight if endpoint == "src" else self.dst_weight
        if node_weights is None:
            graph, weight_name = self._view.graph, self._weight or ""
            sample = retry_read(
                lambda: graph.sample_nodes(
                    num_samples, node_type, weighted=bool(weight_name), weight=weight_name, seed=key
                ),
                self._view.patience_s,
            )
            return tensor(sample.nodes)
        count = self._view.require_dense_ids(node_type, f"{endpoint}_weight")
        if len(node_weights) != count:
            raise InvalidRequest(
                f"{endpoint}_weight has {len(node_weights)} entries for {count} nodes of "
                f"type {node_type!r}"
            )
        return torch.multinomial(
            node_weights.double(),
            num_samples,
            replacement=True,
            generator=torch.Generator().manual_seed(key >> 1),
        )
