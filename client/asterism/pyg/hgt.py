"""PyG's sampler for heterogeneous graph transformers (HGT) over a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from asterism.graph import Graph
from asterism.pyg.subgraph_sampler import SeedNodeSampler
from asterism.records.samples import Ids, Subgraph
from asterism.training.message_flow import require_in_edges
from asterism.transport.read_retries import DEFAULT_PATIENCE_S
from asterism_proto.errors import InvalidRequest


class HGTSampler(SeedNodeSampler):
    """Counterpart of PyG's `HGTSampler` for a graph that is not in memory.

    It samples a fixed number of nodes of each type in each layer (Hu et al., Heterogeneous Graph
    Transformer, 2020). Instead of ``HGTLoader(data, num_samples, input_nodes, ...)`` use
    ``NodeLoader(stores(held), HGTSampler(held, num_samples), input_nodes, ...)``. The sampler may
    cross a fork or be pickled into the workers of the loader.

    Parameters
    ----------
    graph : Graph
        Graph of one version, from `Graph.pin` or `Graph.at`, with ``direction: both``.
    num_samples : list of int, or dict of node type to list of int
        Nodes to sample of each node type in each layer. Types that a dict omits are not sampled.
    weight_attr : str, optional
        Weight column that divides the budget of a node among its edges; ``"weight"`` is the weight
        of the edge. None: equal weights, as in PyG.
    seed : int, optional
        Random seed. Samples of a batch depend on it and on the batch alone, not on the number of
        workers; an evaluation in fixed order is reproducible. None: each batch takes a seed from
        torch's generator, which ``torch.manual_seed`` sets.
    hetero : bool, optional
        True if types are named. None: True if there are several node types or edge types.
    patience_s : float
        Seconds for which a failed read is retried while the service is unavailable. Choose a value
        that covers a restart of the service.

    Raises
    ------
    InvalidRequest
        If a node type is unknown, or the graph is not of one version or has no in-edges. A batch
        raises it if a seed repeats.

    Notes ----- PyG considers at most 50 neighbors of each node, and samples these separately for
    budgets and for edges. Here all neighbors count, and all edges between the sampled nodes are
    returned. `asterism.Graph.sample_hgt` states the distribution.
    """

    def __init__(
        self,
        graph: Graph,
        num_samples: Sequence[int] | Mapping[str, Sequence[int]],
        *,
        weight_attr: str | None = None,
        seed: int | None = None,
        hetero: bool | None = None,
        patience_s: float = DEFAULT_PATIENCE_S,
    ) -> None:
        super().__init__(graph, seed, hetero, patience_s)
        require_in_edges(graph)
        if isinstance(num_samples, Mapping):
            unknown = sorted(set(num_samples) - set(self._view.node_types))
            if unknown:
                raise InvalidRequest(
                    f"num_samples with {unknown}: expected node types, of "
                    f"{', '.join(self._view.node_types)}"
                )
            self._counts: Any = {name: list(counts) for name, counts in num_samples.items()}
        else:
            self._counts = list(num_samples)
        self._weight_attr = weight_attr

    def _sample_subgraph(self, nodes: Ids, ntype: str, seed: int) -> Subgraph:
        return self._view.graph.sample_hgt(
            nodes,
            self._counts,
            ntype=ntype,
            weighted=self._weight_attr is not None,
            weight=self._weight_attr or "",
            direction="in",
            seed=seed,
        )
