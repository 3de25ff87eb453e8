"""PyG's sampler for heterogeneous graph transformers over a graph: as many nodes of each type as
asked for, layer by layer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from asterism.graph import Graph
from asterism.pyg.subgraphs import SeedNodeSampler
from asterism.records.samples import Ids, Subgraph
from asterism.transport.retries import DEFAULT_PATIENCE_S
from asterism_proto.errors import InvalidRequest


class HGTSampler(SeedNodeSampler):
    """Draws what PyG's `HGTSampler` draws, from a graph that is not in memory.

    What ``HGTLoader(data, num_samples, input_nodes, ...)`` is, ``NodeLoader(stores(held),
    HGTSampler(held, num_samples), input_nodes, ...)`` is here. It may cross a fork or be pickled
    into the loader's workers.

    Parameters
    ----------
    graph : Graph
        Of one version, with ``direction: both``.
    num_samples : list of int, or dict of node type to list of int
        Nodes to draw in each layer, of each node type; of types that a dict does not name none are.
    weight_attr : str, optional
        Nodes give along edges in proportion to these weights: ``"weight"`` are the edges' own,
        other names are tables. None: to all alike, as PyG.
    seed : int, optional
        As of `NeighborSampler`.
    hetero : bool, optional
        Whether types are named; None: where there are several.
    patience_s : float
        As of `NeighborSampler`.

    Raises
    ------
    InvalidRequest
        For node types that are not there, or a graph of no version; of a batch: where it has a seed
        twice.

    Notes
    -----
    PyG lets 50 neighbors count of a node that has more, drawn anew for budgets and for edges; here
    all count, and all edges among the nodes are given. `asterism.Graph.sample_hgt` states the law.
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
        if isinstance(num_samples, Mapping):
            unknown = sorted(set(num_samples) - set(self._view.node_types))
            if unknown:
                raise InvalidRequest(
                    f"num_samples of {unknown}: there are node types "
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
