"""PyG's NodeLoader over calls of the graph: what it gives is what the call gave, with the batch's own nodes first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.loader import LinkLoader, NodeLoader

from asterism import Graph
from asterism.pyg import SubgraphSampler, stores
from asterism.records import Ids, Subgraph
from asterism.torch import batch_seed
from asterism_proto.errors import InvalidRequest


def ego(graph: Graph, nodes: Ids, ntype: str, seed: int) -> Subgraph:
    return graph.sample_ego_subgraphs(nodes, [4, 3], ntype=ntype, direction="in", weighted=False, seed=seed)


def labor(graph: Graph, nodes: Ids, ntype: str, seed: int) -> Subgraph:
    return graph.sample_labor(nodes, [5, 5], ntype=ntype, direction="in", weighted=False, edge_ids=True, seed=seed)


def without_edge_ids(graph: Graph, nodes: Ids, ntype: str, seed: int) -> Subgraph:
    return graph.sample_subgraph(nodes, [2], ntype=ntype, edge_ids=False, seed=seed)


def edges(node: Any, row: Any, col: Any, edge: Any) -> set[tuple[int, int, int]]:
    """Edges by the ids of their ends, and their own."""
    return set(zip(np.asarray(node)[np.asarray(row)].tolist(), np.asarray(node)[np.asarray(col)].tolist(), np.asarray(edge).tolist(), strict=True))


@pytest.mark.parametrize("sample", [ego, labor])
def test_batches_are_what_the_call_gives_with_their_own_nodes_first(papers: Graph, sample: Any) -> None:
    seeds = torch.arange(0, 2708, 40)
    moved = 0
    for batch in NodeLoader(stores(papers), SubgraphSampler(papers, sample, seed=5), input_nodes=seeds, batch_size=16):
        asked = seeds[batch.input_id]
        assert batch.n_id[: batch.batch_size].tolist() == asked.tolist()
        law = sample(papers, asked.numpy(), "paper", batch_seed(5, asked.numpy()))
        ((name, ids),) = law.row.items()
        whole = edges(law.nodes["paper"], ids, law.col[name], law.edge_ids[name])
        assert len(whole) > 20
        assert edges(batch.n_id, batch.edge_index[0], batch.edge_index[1], batch.e_id) == whole
        assert sorted(batch.n_id.tolist()) == sorted(law.nodes["paper"].tolist())
        moved += law.seeds.tolist() != list(range(len(asked)))
        if law.batch is not None:  # a component of its own for every root: no edge leaves it
            assert batch.batch[: batch.batch_size].tolist() == list(range(len(asked)))
            assert torch.equal(batch.batch[batch.edge_index[0]], batch.batch[batch.edge_index[1]])
    assert (moved > 0) == (sample is ego)


def test_workers_give_the_batches_that_one_process_gives(papers: Graph) -> None:
    def epoch(**more: Any) -> list[Any]:
        return list(NodeLoader(stores(papers), SubgraphSampler(papers, ego, seed=3), input_nodes=torch.arange(64), batch_size=16, **more))

    for one, other in zip(epoch(), epoch(num_workers=2, multiprocessing_context="fork"), strict=True):
        assert torch.equal(one.n_id, other.n_id)
        assert torch.equal(one.edge_index, other.edge_index)


def test_types_are_named_where_there_are_several(flights: Graph) -> None:
    airports = torch.tensor(flights.node_batches("airport", 12, seed=1).next_batch())
    (batch,) = NodeLoader(stores(flights), SubgraphSampler(flights, ego, seed=3), input_nodes=("airport", airports), batch_size=12)
    assert batch["airport"].n_id[:12].tolist() == airports.tolist()
    law = ego(flights, airports.numpy(), "airport", batch_seed(3, airports.numpy()))
    assert law.edge_ids is not None
    for triple in batch.edge_types:
        name, ((src, row), (dst, col)) = ":".join(triple), zip((triple[0], triple[2]), batch[triple].edge_index, strict=True)
        met = set(zip(batch[src].n_id[row].tolist(), batch[dst].n_id[col].tolist(), batch[triple].e_id.tolist(), strict=True))
        numbers = (law.nodes[triple[0]][law.row[name]], law.nodes[triple[2]][law.col[name]], law.edge_ids[name])
        assert met == set(zip(*(some.tolist() for some in numbers), strict=True))


def test_what_pygs_loaders_can_not_take_is_refused_with_a_word(papers: Graph) -> None:
    data = stores(papers)
    with pytest.raises(InvalidRequest, match="have the call give them, by edge_ids=True"):
        next(iter(NodeLoader(data, SubgraphSampler(papers, without_edge_ids), input_nodes=torch.arange(4), batch_size=4)))
    with pytest.raises(InvalidRequest, match="seed 3 of 'paper' is no node, or twice"):
        next(iter(NodeLoader(data, SubgraphSampler(papers, labor), input_nodes=torch.tensor([3, 3]), batch_size=2)))
    links = LinkLoader(data, SubgraphSampler(papers, ego), edge_label_index=(None, torch.tensor([[1], [2]])))
    with pytest.raises(InvalidRequest, match="it takes nodes; give it to a NodeLoader"):
        next(iter(links))
    ((twice,),) = [list(NodeLoader(data, SubgraphSampler(papers, ego, seed=1), input_nodes=torch.tensor([3, 3]), batch_size=2))]
    assert twice.n_id[:2].tolist() == [3, 3]  # each has a subgraph of its own
