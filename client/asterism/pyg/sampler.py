"""PyG's neighbor sampler over a graph.

It samples neighbors of nodes and links, with negatives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
import torch
from torch_geometric import sampler as pyg
from torch_geometric.sampler.neighbor_sampler import edge_sample, node_sample

from asterism import permutations
from asterism.calls import validation
from asterism.graph import Graph
from asterism.pyg.view import GraphView, Triple
from asterism.records.samples import Ids, Subgraph, Values
from asterism.torch import batch_seed, tensor
from asterism.training.message_flow import require_existing_seeds, require_in_edges
from asterism.transport.read_retries import DEFAULT_PATIENCE_S, retry_read
from asterism_proto.errors import InvalidRequest

NumNeighbors = Sequence[int] | Mapping[Triple, Sequence[int]]


class NeighborSampler(pyg.BaseSampler):  # type: ignore[misc]  # PyG has no types here
    """Counterpart of PyG's `NeighborSampler` for a graph that is not in memory.

    Each hop samples, for each node and edge type, ``num_neighbors`` neighbors at the sources of
    edges to the node. Pass the sampler to ``NodeLoader`` as ``node_sampler``, or to ``LinkLoader``
    as ``link_sampler``. It may cross a fork or be pickled into their workers.

    Parameters
    ----------
    graph : Graph
        Graph of one version, from `Graph.pin` or `Graph.at`, with ``direction: both``.
    num_neighbors : list of int, or dict of triple to list of int
        Neighbors to sample in each hop; -1 takes all, 0 none. Edge types that a dict omits are not
        followed.
    replace : bool
        Sample with replacement, as in PyG.
    disjoint : bool
        Sample a separate tree for every seed, as in PyG; always so with ``time_attr``.
    subgraph_type : {"directional", "bidirectional"}
        Type of the subgraph, as in PyG.
    weight_attr : str, optional
        Weight column to sample edges by; ``"weight"`` is the weight of the edge. None: uniformly.
    negative_weight : str, optional
        Weight column of nodes to sample negatives by; ``"weight"`` is the weight of the node. None:
        uniformly, or by ``src_weight`` and ``dst_weight`` of PyG's ``NegativeSampling``.
    seed : int, optional
        Random seed. Samples of a batch depend on it and on the batch alone, not on the number of
        workers; an evaluation in fixed order is reproducible. None: each batch takes a seed from
        torch's generator, which ``torch.manual_seed`` sets.
    hetero : bool, optional
        True if types are named. None: True if there are several node types or edge types.
    patience_s : float
        Seconds for which a failed read is retried while the service is unavailable. Choose a value
        that covers a restart of the service.
    time_attr : str, optional
        Feature that edge types, node types or both declare as their time. The tree of a seed
        excludes edges after its time and edges from nodes after its time; types without a time are
        not filtered. Loaders then need ``input_time`` or ``edge_label_time``. A ``NodeLoader`` may
        omit it if the seed nodes have a time.
    temporal_strategy : {"uniform", "last"}
        Sample from the visible edges, or take the latest ones, as in PyG. The time of an edge is
        the later of its own time and that of its source.
    exclude : bool
        Around links, sample as if the links of the batch did not exist: all edges of their type
        from their sources to their destinations. False: sample from all edges, as PyG does, which
        shows a model the links that it is to predict.
    reverse_types : dict of triple to triple, optional
        Edge type of the reverse edges of an edge type, which are excluded too. For a graph of one
        edge type with both directions of each edge, the reverse of the type is the type itself.

    Raises
    ------
    InvalidRequest
        If ``time_attr`` is not the only time that the followed types declare, ``subgraph_type`` is
        induced, or the graph is not of one version or has no in-edges. A batch raises it if a seed
        repeats and trees are not disjoint, or if times are missing or unexpected.
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
        exclude: bool = True,
        reverse_types: Mapping[Triple, Triple] | None = None,
    ) -> None:
        if subgraph_type not in ("directional", "bidirectional"):
            raise InvalidRequest(
                f"subgraph_type={subgraph_type!r}: expected 'directional' or 'bidirectional'"
            )
        if temporal_strategy not in ("uniform", "last"):
            raise InvalidRequest(
                f"temporal_strategy={temporal_strategy!r}: expected 'uniform' or 'last'"
            )
        self._view = GraphView(graph, hetero, patience_s)
        require_in_edges(graph)
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
        self._exclude = exclude
        self._reverse_types = self._reverse_names(reverse_types)
        self._seed = None if seed is None else validation.seed(seed)

    @property
    def edge_permutation(self) -> None:
        """Permutation of edges: None, because edge ids identify edges."""
        return

    def sample_from_nodes(self, index: Any, **_: Any) -> Any:
        """Sample around a batch of nodes.

        Parameters
        ----------
        index : NodeSamplerInput
            Seed nodes, with their times if the sampler has ``time_attr``.

        Returns
        -------
        SamplerOutput or HeteroSamplerOutput
            Sampled subgraph.

        Raises
        ------
        InvalidRequest
            If a seed repeats and trees are not disjoint, or times are missing or unexpected.
        NotFound
            If a seed is not in the graph.
        """
        if self._timed and index.time is None:
            index = self._with_node_times(index)
        self._check_times("input_time", index.time)
        key = self._key(index.node)
        return self._as_requested_direction(
            node_sample(index, lambda seeds, times: self._sample(seeds, times, key))
        )

    def sample_from_edges(self, index: Any, neg_sampling: Any = None, **_: Any) -> Any:
        """Sample around a batch of links and their negatives.

        Parameters
        ----------
        index : EdgeSamplerInput
            Links, with their times if the sampler has ``time_attr``.
        neg_sampling : NegativeSampling, optional
            Negative samples to add. None: none.

        Returns
        -------
        SamplerOutput or HeteroSamplerOutput
            Sampled subgraph.

        Raises
        ------
        InvalidRequest
            If a seed repeats and trees are not disjoint, or times are missing or unexpected.
        NotFound
            If a seed is not in the graph.
        """
        self._check_times("edge_label_time", index.time)
        key = self._key(torch.cat([index.row, index.col]))
        negatives = (
            None
            if neg_sampling is None
            else self._negative_sampling(neg_sampling, index.input_type, key)
        )
        # `edge_sample` passes these counts to `negatives`, which ignores them and samples from the
        # graph.
        counts = dict.fromkeys(self._view.node_types, 0) if self._view.hetero else 0
        excluded = self._excluded_links(index) if self._exclude else None
        return self._as_requested_direction(
            edge_sample(
                index,
                lambda seeds, times: self._sample(seeds, times, key, excluded),
                counts,
                self._disjoint,
                None,
                negatives,
            )
        )

    def _reverse_names(
        self, reverse_types: Mapping[Triple, Triple] | None
    ) -> dict[str, str] | None:
        """Return the names of reverse edge types."""
        if reverse_types is None:
            return None
        if not self._exclude:
            raise InvalidRequest(
                "reverse_types with exclude=False: expected exclude=True; leave reverse_types out"
            )
        unknown = [
            triple
            for pair in reverse_types.items()
            for triple in pair
            if tuple(triple) not in self._view.edge_types
        ]
        if unknown:
            raise InvalidRequest(
                f"reverse_types with {unknown}: expected edge types, of "
                f"{list(self._view.edge_types)}"
            )
        return {
            self._view.edge_types[triple]: self._view.edge_types[reverse]
            for triple, reverse in reverse_types.items()
        }

    def _excluded_links(self, index: Any) -> dict[str, tuple[Ids, Ids]]:
        """Return the links of a batch, by the name of their edge type."""
        name = (
            next(iter(self._view.edge_types.values()))
            if index.input_type is None
            else self._view.edge_types[index.input_type]
        )
        return {name: (np.asarray(index.row, np.int64), np.asarray(index.col, np.int64))}

    def _as_requested_direction(self, out: Any) -> Any:
        return out.to_bidirectional() if self._bidirectional else out

    def _require_time(self, time_attr: str) -> None:
        """Raise InvalidRequest unless all followed types with a time declare ``time_attr``."""
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
                f"time_attr={time_attr!r}: expected the time that the followed edge types, or "
                f"their source types, declare; these are {details}"
            )

    def _time_of(self, node_type: str) -> str:
        """Return the feature that is the time of a node type; "" if there is none."""
        schema = self._view.graph.schema
        return schema.node_types[schema.node_type_id(node_type)].time

    def _with_node_times(self, index: Any) -> Any:
        """Return a batch of nodes with the times of the nodes, if their type has a time."""
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
                f"{argument}: expected None, because this sampler has no time_attr; pass time_attr "
                "to the sampler"
            )
        if times is None and self._timed:
            raise InvalidRequest(
                f"{argument}=None: expected the time of each seed, because this sampler has a "
                f"time_attr; pass {argument} to the loader"
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
                f"num_neighbors with {unknown}: expected edge types, of "
                f"{list(self._view.edge_types)}"
            )
        return {self._view.edge_types[triple]: list(hops) for triple, hops in num_neighbors.items()}

    def _key(self, seeds: Any) -> int:
        """Return the random seed of a batch."""
        return batch_seed(self._seed, seeds.numpy())

    def _negative_sampling(self, neg_sampling: Any, input_type: Triple | None, key: int) -> Any:
        ends = {"src": self._view.node_types[0], "dst": self._view.node_types[0]}
        if input_type is not None:
            ends = {"src": input_type[0], "dst": input_type[-1]}
        return _GraphNegativeSampling(neg_sampling, self._view, ends, self._negative_weight, key)

    def _sample(
        self,
        seeds: Any,
        times: Any,
        key: int,
        excluded: Mapping[str, tuple[Ids, Ids]] | None = None,
    ) -> Any:
        """Return PyG's record of a subgraph around seeds.

        Seeds are a tensor, or tensors by node type. Times have the same form, or are None.
        """
        if self._view.hetero != isinstance(seeds, Mapping):
            raise seed_type_error(hetero=self._view.hetero)
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
            lambda: self._sample_subgraph(ids, ntype, seed_times, key, excluded),
            self._view.patience_s,
        )
        if not self._disjoint:
            for name, type_seeds in by_type.items():
                require_unique_seeds(
                    name, np.asarray(type_seeds), subgraph.num_sampled_nodes[name][0]
                )
        retry_read(
            lambda: require_existing_seeds(self._view.graph, subgraph), self._view.patience_s
        )
        return (
            to_hetero_output(subgraph, self._view)
            if self._view.hetero
            else to_homogeneous_output(subgraph)
        )

    def _sample_subgraph(
        self,
        ids: Ids,
        ntype: str | Ids,
        times: Values | None,
        key: int,
        excluded: Mapping[str, tuple[Ids, Ids]] | None,
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
            exclude=excluded,
            reverse_types=None if excluded is None else self._reverse_types,
            seed=key,
        )


def seed_type_error(*, hetero: bool) -> InvalidRequest:
    """Return the error for seeds with or without a node type, where the other is expected."""
    return InvalidRequest(
        "input_nodes without a type: expected (node type, nodes), because the graph is hetero"
        if hetero
        else "input_nodes with a type: expected nodes alone, because the graph is not hetero; pass "
        "hetero=True to the sampler and the stores to name types"
    )


def require_unique_seeds(node_type: str, seeds: Ids, node_count: int) -> None:
    """Raise InvalidRequest if a seed repeats or is missing.

    Loaders take the first nodes of a batch as its seeds. A repeated seed appears only once among
    them, so all later seeds would be misaligned.
    """
    if node_count != len(seeds):
        unique_seeds, counts = np.unique(seeds, return_counts=True)
        wrong = unique_seeds[(counts > 1) | (unique_seeds < 0)]
        raise InvalidRequest(
            f"seeds with {wrong[0]} of {node_type!r}: expected existing nodes, each once in a "
            "batch; leave it out, or sample with disjoint=True"
        )


def to_homogeneous_output(subgraph: Subgraph) -> Any:
    """Return PyG's record of a subgraph with one node type and one edge type."""
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
    """Return PyG's record of a subgraph with named types."""
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
    """Negative sampling of one batch from the nodes of the graph.

    Node ids may be arbitrary, whereas PyG expects the integers from 0 on.
    """

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
        """Sample nodes of the type at one end of the links."""
        node_type = self._ends[endpoint]
        key = permutations.key_of(self._key, permutations.NEGATIVE, ("src", "dst").index(endpoint))
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
                f"{endpoint}_weight of length {len(node_weights)}: expected {count}, one value for "
                f"each node of type {node_type!r}"
            )
        return torch.multinomial(
            node_weights.double(),
            num_samples,
            replacement=True,
            generator=torch.Generator().manual_seed(key >> 1),
        )
