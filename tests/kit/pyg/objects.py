"""Tests that PyG objects read back from a graph space are equal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.kit.whole import edges_of, nodes_of
from torch_geometric.data import Data, HeteroData
from torch_geometric.transforms import ToSparseTensor

import asterism
from asterism import Client, InvalidRequest


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with asterism.open(Path(tmp_path_factory.mktemp("objects"))) as client:
        yield client


def random_tensor(seed: int, *shape: int) -> Any:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def test_a_data_keeps_edges_weights_features_labels_and_masks(service: Client) -> None:
    index = torch.randint(50, (2, 300), generator=torch.Generator().manual_seed(1))
    data = Data(
        x=random_tensor(2, 50, 4).half(),
        y=torch.arange(50),
        train_mask=random_tensor(3, 50) < 0.5,
        edge_index=index,
        edge_attr=random_tensor(4, 300, 2, 3),
        edge_weight=random_tensor(5, 300),
        names=[f"paper {i}" for i in range(50)],
        title="papers",
        split=torch.tensor([1, 2, 3]),
    )
    loaded = service.load_graph(
        "data", data, node_type="paper", relation="cites", build=True, parts=2
    )
    assert (loaded.nodes, loaded.edges, loaded.names, sorted(loaded.left_out)) == (
        50,
        300,
        {},
        ["split", "title"],
    )
    graph = service.graph("data")
    kind = graph.schema.node_types[0]
    assert {f.name: (f.kind, f.shape) for f in kind.features} == {
        "x": ("dense", (4,)),
        "y": ("dense", ()),
        "train_mask": ("dense", ()),
        "names": ("bytes", ()),
    }
    assert (kind.feature("x").dtype, kind.feature("train_mask").dtype) == ("float16", "bool")
    nodes = nodes_of(graph, "paper")
    assert nodes == {
        i: {
            "weight": 1.0,
            "x": data.x[i].tolist(),
            "y": i,
            "train_mask": bool(data.train_mask[i]),
            "names": f"paper {i}",
        }
        for i in range(50)
    }
    assert edges_of(graph, "cites") == [
        (
            int(index[0, e]),
            int(index[1, e]),
            {"weight": float(data.edge_weight[e]), "edge_attr": data.edge_attr[e].tolist()},
        )
        for e in range(300)
    ]


def test_a_hetero_data_keeps_every_type(service: Client) -> None:
    data = HeteroData()
    data["user"].num_nodes = 20
    data["item"].x = random_tensor(1, 9, 3).to(torch.bfloat16)
    data["item"].weight = torch.arange(9)
    data["user", "buys", "item"].edge_index = torch.stack([torch.arange(20), torch.arange(20) % 9])
    data["user", "buys", "item"].paid = random_tensor(2, 20, 1)
    data["item", "rev_buys", "user"].edge_index = data["user", "buys", "item"].edge_index.flip(0)
    data["user", "knows", "user"].edge_index = torch.zeros(2, 0, dtype=torch.int64)
    data.year = 2020
    with pytest.raises(
        InvalidRequest, match=r"weight 'paid' of float32\[1\]: expected one number for each row"
    ):
        service.load_graph("hetero", data, weights={"user:buys:item": "paid"})
    data["user", "buys", "item"].paid = data["user", "buys", "item"].paid[:, 0]
    loaded = service.load_graph(
        "hetero", data, weights={"user:buys:item": "paid"}, build=True, parts=2
    )
    assert (loaded.nodes, loaded.edges, loaded.left_out) == (29, 40, ("year",))
    graph = service.graph("hetero")
    assert [kind.name for kind in graph.schema.edge_types] == [
        "user:buys:item",
        "item:rev_buys:user",
        "user:knows:user",
    ]
    paid = data["user", "buys", "item"].paid.tolist()
    assert edges_of(graph, "buys") == [
        (i, i % 9, {"weight": paid[i], "paid": paid[i]}) for i in range(20)
    ]
    assert edges_of(graph, "rev_buys") == [(i % 9, i, {"weight": 1.0}) for i in range(20)]
    assert nodes_of(graph, "item") == {
        i: {"weight": float(i), "x": data["item"].x[i].float().tolist()} for i in range(9)
    }
    assert sorted(nodes_of(graph, "user")) == list(range(20))


def test_transposed_sparse_adjacency_keeps_direction(service: Client) -> None:
    data = Data(
        edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 0, 0]]),
        edge_weight=torch.tensor([1.0, 2.0, 3.0, 4.0]),
        num_nodes=5,
    )
    sparse_data = ToSparseTensor(attr="edge_weight", layout=torch.sparse_csr)(data.clone())
    assert "edge_index" not in sparse_data
    service.load_graph("sparse", sparse_data, build=True, parts=2)
    weights = {
        (src, dst): columns["weight"]
        for src, dst, columns in edges_of(service.graph("sparse"), "edge")
    }
    assert weights == {(0, 1): 1.0, (1, 2): 2.0, (2, 0): 3.0, (3, 0): 4.0}
    assert sorted(nodes_of(service.graph("sparse"), "node")) == [0, 1, 2, 3, 4]


def test_invalid_values_are_rejected_with_their_row(service: Client) -> None:
    index = torch.tensor([[0, 1, 2], [1, 2, 7]])
    with pytest.raises(
        InvalidRequest,
        match=(
            r"edge type 'node:edge:node', row 2, destination 7: expected a node of "
            r"'node', 0 to 2"
        ),
    ):
        service.load_graph("refused", Data(x=torch.ones(3, 1), edge_index=index))
    with pytest.raises(InvalidRequest, match=r"row 1, weight nan"):
        service.load_graph(
            "refused",
            Data(num_nodes=8, edge_index=index, edge_weight=torch.tensor([1.0, float("nan"), 2.0])),
        )
    with pytest.raises(InvalidRequest, match=r"attribute 'x': expected a dense tensor"):
        service.load_graph(
            "refused", Data(x=torch.eye(8).to_sparse(), edge_index=index, num_nodes=8)
        )
    with pytest.raises(InvalidRequest, match=r"attribute 'x' of dtype complex64"):
        service.load_graph(
            "refused", Data(x=torch.ones(8, dtype=torch.complex64), edge_index=index)
        )
    assert "refused" not in [space.name for space in service.spaces()]


def test_with_as_many_nodes_as_edges_names_decide(service: Client) -> None:
    """PyG remembers its answers in the object, and they depend on which question came first."""
    ring = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]])
    data = Data(
        edge_index=ring,
        title=list("abcde"),
        number=torch.arange(5),
        edge_title=list("vwxyz"),
        edge_number=torch.arange(5),
        num_nodes=5,
    )
    before = set(data._store.__dict__)
    service.load_graph("ring", data, build=True)
    schema = service.graph("ring").schema
    assert [f.name for f in schema.node_types[0].features] == ["title", "number"]
    assert [f.name for f in schema.edge_types[0].features] == ["edge_title", "edge_number"]
    assert set(data._store.__dict__) == before, "the caller's object is as it was"
    assert data.is_node_attr("title")
    hetero = HeteroData()
    hetero["a"].title = list("abcde")
    hetero["a"].num_nodes = 5
    hetero["a", "e", "a"].edge_index = ring
    hetero["a", "e", "a"].word = list("vwxyz")
    service.load_graph("hetero_ring", hetero, build=True)
    kinds = service.graph("hetero_ring").schema
    assert [f.name for f in kinds.node_types[0].features] == ["title"]
    assert [f.name for f in kinds.edge_types[0].features] == ["word"]
