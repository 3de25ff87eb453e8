"""Tests of PyG's NodeLoader over graph calls: it returns the call's result, seeds first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.loader import LinkLoader, NodeLoader

from asterism import Graph
from asterism.pyg import SubgraphSampler, stores
from asterism.records.samples import Ids, Subgraph
from asterism.torch import batch_seed
from asterism_proto.errors import InvalidRequest, NotFound


def ego(graph: Graph, nodes: Ids, ntype: str, seed: int) -> Subgraph:
    return graph.sample_ego_subgraphs(
        nodes, [4, 3], ntype=ntype, direction="in", weighted=False, seed=seed
    )


def labor(graph: Graph, nodes: Ids, ntype: str, seed: int) -> Subgraph:
    return graph.sample_labor(
        nodes, [5, 5], ntype=ntype, direction="in", weighted=False, edge_ids=True, seed=seed
    )


def without_edge_ids(graph: Graph, nodes: Ids, ntype: str, seed: int) -> Subgraph:
    return graph.sample_subgraph(nodes, [2], ntype=ntype, edge_ids=False, seed=seed)


def edges(node: Any, row: Any, col: Any, edge: Any) -> set[tuple[int, int, int]]:
    """Return edges by the ids of their ends, with edge ids."""
    return set(
        zip(
            np.asarray(node)[np.asarray(row)].tolist(),
            np.asarray(node)[np.asarray(col)].tolist(),
            np.asarray(edge).tolist(),
            strict=True,
        )
    )


@pytest.mark.parametrize("sample", [ego, labor])
def test_batches_match_the_call_with_seeds_first(papers: Graph, sample: Any) -> None:
    seeds = torch.arange(0, 2708, 40)
    reordered = 0
    for batch in NodeLoader(
        stores(papers), SubgraphSampler(papers, sample, seed=5), input_nodes=seeds, batch_size=16
    ):
        batch_seeds = seeds[batch.input_id]
        assert batch.n_id[: batch.batch_size].tolist() == batch_seeds.tolist()
        expected = sample(papers, batch_seeds.numpy(), "paper", batch_seed(5, batch_seeds.numpy()))
        ((name, ids),) = expected.row.items()
        expected_edges = edges(
            expected.nodes["paper"], ids, expected.col[name], expected.edge_ids[name]
        )
        assert len(expected_edges) > 20
        assert (
            edges(batch.n_id, batch.edge_index[0], batch.edge_index[1], batch.e_id)
            == expected_edges
        )
        assert sorted(batch.n_id.tolist()) == sorted(expected.nodes["paper"].tolist())
        reordered += expected.seeds.tolist() != list(range(len(batch_seeds)))
        if expected.batch is not None:  # a separate component for every root: no edge leaves it
            assert batch.batch[: batch.batch_size].tolist() == list(range(len(batch_seeds)))
            assert torch.equal(batch.batch[batch.edge_index[0]], batch.batch[batch.edge_index[1]])
    assert (reordered > 0) == (sample is ego)


def test_workers_give_the_batches_that_one_process_gives(papers: Graph) -> None:
    def epoch(**options: Any) -> list[Any]:
        return list(
            NodeLoader(
                stores(papers),
                SubgraphSampler(papers, ego, seed=3),
                input_nodes=torch.arange(64),
                batch_size=16,
                **options,
            )
        )

    for first, second in zip(
        epoch(), epoch(num_workers=2, multiprocessing_context="fork"), strict=True
    ):
        assert torch.equal(first.n_id, second.n_id)
        assert torch.equal(first.edge_index, second.edge_index)


def test_heterogeneous_batches_are_keyed_by_type(flights: Graph) -> None:
    airports = torch.tensor(flights.node_batches("airport", 12, seed=1).next_batch())
    (batch,) = NodeLoader(
        stores(flights),
        SubgraphSampler(flights, ego, seed=3),
        input_nodes=("airport", airports),
        batch_size=12,
    )
    assert batch["airport"].n_id[:12].tolist() == airports.tolist()
    expected = ego(flights, airports.numpy(), "airport", batch_seed(3, airports.numpy()))
    assert expected.edge_ids is not None
    for triple in batch.edge_types:
        name, ((src, row), (dst, col)) = (
            ":".join(triple),
            zip((triple[0], triple[2]), batch[triple].edge_index, strict=True),
        )
        batch_edges = set(
            zip(
                batch[src].n_id[row].tolist(),
                batch[dst].n_id[col].tolist(),
                batch[triple].e_id.tolist(),
                strict=True,
            )
        )
        expected_columns = (
            expected.nodes[triple[0]][expected.row[name]],
            expected.nodes[triple[2]][expected.col[name]],
            expected.edge_ids[name],
        )
        assert batch_edges == set(
            zip(*(column.tolist() for column in expected_columns), strict=True)
        )


@pytest.mark.parametrize("sample", [ego, labor])
def test_seeds_that_do_not_exist_are_named(papers: Graph, sample: Any) -> None:
    seeds = torch.tensor([3, 10**6, 8])
    loader = NodeLoader(
        stores(papers), SubgraphSampler(papers, sample), input_nodes=seeds, batch_size=3
    )
    with pytest.raises(NotFound, match="seeds with 1000000 of 'paper': expected nodes of version"):
        next(iter(loader))


def test_results_pyg_loaders_cannot_use_are_rejected(papers: Graph) -> None:
    data = stores(papers)
    with pytest.raises(InvalidRequest, match="pass edge_ids=True"):
        next(
            iter(
                NodeLoader(
                    data,
                    SubgraphSampler(papers, without_edge_ids),
                    input_nodes=torch.arange(4),
                    batch_size=4,
                )
            )
        )
    with pytest.raises(
        InvalidRequest, match="seeds with 3 of 'paper': expected existing nodes, each once"
    ):
        next(
            iter(
                NodeLoader(
                    data,
                    SubgraphSampler(papers, labor),
                    input_nodes=torch.tensor([3, 3]),
                    batch_size=2,
                )
            )
        )
    links = LinkLoader(
        data, SubgraphSampler(papers, ego), edge_label_index=(None, torch.tensor([[1], [2]]))
    )
    with pytest.raises(InvalidRequest, match="pass it to a NodeLoader"):
        next(iter(links))
    ((batch,),) = [
        list(
            NodeLoader(
                data,
                SubgraphSampler(papers, ego, seed=1),
                input_nodes=torch.tensor([3, 3]),
                batch_size=2,
            )
        )
    ]
    assert batch.n_id[:2].tolist() == [3, 3]  # each has its own subgraph
