"""Check that DGL graphs read back from a graph space are equal; prints OK.

python objects.py ADDRESS
"""

from __future__ import annotations

import sys

import dgl
import torch
from tests.kit.whole import edges_of, nodes_of

import asterism
from asterism_proto.errors import InvalidRequest


def one_type(client: asterism.Client) -> None:
    """Check a homogeneous graph of 32-bit ids, with parallel edges and loops."""
    generator = torch.Generator().manual_seed(1)
    src, dst = torch.randint(40, (2, 200), generator=generator, dtype=torch.int32)
    graph = dgl.graph((src, dst), num_nodes=45)
    graph.ndata["x"] = torch.rand(45, 3, generator=generator, dtype=torch.float64)
    graph.ndata["train_mask"] = torch.rand(45, generator=generator) < 0.5
    graph.edata["weight"] = torch.rand(200, generator=generator)
    graph.edata["year"] = torch.randint(2000, 2020, (200,), generator=generator)
    loaded = client.load_graph("one", graph, build=True, parts=2)
    assert (loaded.nodes, loaded.edges, loaded.version, loaded.left_out) == (45, 200, 1, ())
    space = client.graph("one")
    assert [kind.name for kind in space.schema.edge_types] == ["node:edge:node"]
    x, mask = graph.ndata["x"].tolist(), graph.ndata["train_mask"].tolist()
    assert nodes_of(space, "node") == {
        i: {"weight": 1.0, "x": x[i], "train_mask": mask[i]} for i in range(45)
    }
    rows = zip(
        src.tolist(),
        dst.tolist(),
        graph.edata["weight"].tolist(),
        graph.edata["year"].tolist(),
        strict=True,
    )
    assert edges_of(space, "edge") == [
        (a, b, {"weight": weight, "year": year}) for a, b, weight, year in rows
    ]


def several_types(client: asterism.Client) -> None:
    """Check a heterogeneous graph with weights of nodes and edges."""
    graph = dgl.heterograph(
        {
            ("user", "buys", "item"): (torch.tensor([0, 0, 2]), torch.tensor([3, 1, 0])),
            ("user", "knows", "user"): (torch.tensor([1]), torch.tensor([2])),
            ("item", "bought-by", "user"): (torch.tensor([3, 1, 0]), torch.tensor([0, 0, 2])),
        },
        num_nodes_dict={"user": 3, "item": 4},
    )
    graph.nodes["item"].data["clicks"] = torch.arange(4)
    graph.edges["buys"].data["amount"] = torch.tensor([1, 2, 3])
    loaded = client.load_graph(
        "several",
        graph,
        weights={"item": "clicks", "user:buys:item": "amount"},
        build=True,
        parts=2,
    )
    assert (loaded.nodes, loaded.edges) == (7, 7)
    space = client.graph("several")
    assert nodes_of(space, "item") == {i: {"weight": float(i), "clicks": i} for i in range(4)}
    assert nodes_of(space, "user") == {i: {"weight": 1.0} for i in range(3)}
    assert edges_of(space, "buys") == [
        (0, 3, {"weight": 1.0, "amount": 1}),
        (0, 1, {"weight": 2.0, "amount": 2}),
        (2, 0, {"weight": 3.0, "amount": 3}),
    ]
    assert edges_of(space, "knows") == [(1, 2, {"weight": 1.0})]
    assert [row[:2] for row in edges_of(space, "bought-by")] == [(3, 0), (1, 0), (0, 2)]


def refusals(client: asterism.Client) -> None:
    """Check refusals: invalid weights, named by row, and a block, which is not a graph."""
    graph = dgl.graph(([0, 1], [1, 0]))
    graph.edata["weight"] = torch.tensor([1.0, -3.0])
    for bad_graph, expected_text in (
        (graph, "edge type 'node:edge:node', row 1, weight -3.0"),
        (dgl.create_block(([0], [0])), "found a block"),
    ):
        message = ""
        try:
            client.load_graph("refused", bad_graph)
        except InvalidRequest as error:
            message = error.message
        assert expected_text in message, message or f"not refused: {expected_text}"
    assert sorted(space.name for space in client.spaces()) == ["one", "several"]


if __name__ == "__main__":
    with asterism.connect(sys.argv[1], timeout_s=600) as client:
        one_type(client)
        several_types(client)
        refusals(client)
    assert "pyarrow" not in sys.modules
    assert "numba" not in sys.modules
    print("OK")
