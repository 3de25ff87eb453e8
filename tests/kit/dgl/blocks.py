"""Check of served blocks against the graph's edges, and of a DGL model on them.

The model on all neighbors must equal the same on the entire graph. Prints OK.

python blocks.py ADDRESS
"""

from __future__ import annotations

import sys
from collections import Counter

import dgl
import numpy as np
import torch
from dgl.nn.pytorch import HeteroGraphConv, SAGEConv
from known import edges, refused

import asterism
from asterism.dgl import NeighborSampler


def one_type(graph: asterism.Graph) -> None:
    """Check every block's edges, counts and order; then a model."""
    edges_by_id = edges(graph, "cites")
    degree = Counter(dst for _, dst in edges_by_id.values())
    seeds = np.random.default_rng(1).permutation(2708)[:64]
    inputs, outputs, mfgs = NeighborSampler(graph, [3, 5]).sample_blocks(
        torch.from_numpy(seeds), seed=2
    )
    assert outputs.tolist() == seeds.tolist()
    assert torch.equal(inputs, mfgs[0].srcdata[dgl.NID])
    assert torch.equal(mfgs[0].dstdata[dgl.NID], mfgs[1].srcdata[dgl.NID])
    assert torch.equal(mfgs[1].dstdata[dgl.NID], outputs)
    for block, fanout in zip(mfgs, (3, 5), strict=True):
        src, dst = block.edges()
        ends = zip(
            block.srcdata[dgl.NID][src].tolist(), block.dstdata[dgl.NID][dst].tolist(), strict=True
        )
        assert [edges_by_id[edge] for edge in block.edata[dgl.EID].tolist()] == list(ends)
        expected_degrees = torch.tensor(
            [min(fanout, degree[node]) for node in block.dstdata[dgl.NID].tolist()]
        )
        assert torch.equal(block.in_degrees(), expected_degrees)
        assert torch.equal(block.srcdata[dgl.NID][: block.num_dst_nodes()], block.dstdata[dgl.NID])

    torch.manual_seed(1)
    layers = [SAGEConv(16, 8, "mean"), SAGEConv(8, 4, "mean")]
    x = torch.randn(2708, 16)
    ends = np.array(list(edges_by_id.values()))
    full_graph = dgl.graph(
        (torch.from_numpy(ends[:, 0]), torch.from_numpy(ends[:, 1])), num_nodes=2708
    )
    expected = layers[1](full_graph, layers[0](full_graph, x).relu())[torch.from_numpy(seeds)]
    inputs, _, mfgs = NeighborSampler(graph, [-1, -1]).sample_blocks(seeds)
    h = layers[0](mfgs[0], (x[inputs], x[inputs][: mfgs[0].num_dst_nodes()])).relu()
    actual = layers[1](mfgs[1], (h, h[: mfgs[1].num_dst_nodes()]))
    assert torch.allclose(actual, expected, atol=1e-5)
    refused(
        lambda: NeighborSampler(graph, [2]).sample_blocks([4, 9, 4]),
        "seeds with 4 of 'paper' twice",
    )


def several_types(graph: asterism.Graph) -> None:
    """Check blocks of several types, with weights, and a DGL model on them."""
    triples = [tuple(t.name.split(":")) for t in graph.schema.edge_types]
    edges_by_type = {triple: edges(graph, ":".join(triple)) for triple in triples}
    weights = {
        int(e): float(w)
        for batch in graph.scan_edges("route")
        for e, w in zip(batch.edge_ids, batch.weights, strict=True)
    }
    airports = next(iter(graph.scan_nodes("airport"))).ids[:100]
    airlines = next(iter(graph.scan_nodes("airline"))).ids[:20]
    sampler = NeighborSampler(
        graph, dict.fromkeys(triples, (2, 3)), prob="weight", edge_weights=True
    )
    inputs, outputs, mfgs = sampler.sample_blocks(
        {"airport": airports, "airline": airlines}, seed=3
    )
    assert outputs["airport"].tolist() == airports.tolist()
    assert outputs["airline"].tolist() == airlines.tolist()
    for block, fanout in zip(mfgs, (2, 3), strict=True):
        for triple in triples:
            src, dst = block.edges(etype=triple)
            ends = (
                block.srcnodes[triple[0]].data[dgl.NID][src],
                block.dstnodes[triple[-1]].data[dgl.NID][dst],
            )
            eids = block.edges[triple].data[dgl.EID].tolist()
            assert [edges_by_type[triple][edge] for edge in eids] == list(
                zip(*(e.tolist() for e in ends), strict=True)
            )
            degree = Counter(dst for _, dst in edges_by_type[triple].values())
            expected_degrees = [
                min(fanout, degree[node])
                for node in block.dstnodes[triple[-1]].data[dgl.NID].tolist()
            ]
            assert block.in_degrees(etype=triple).tolist() == expected_degrees
        route = block.edges["route"]
        assert route.data["weight"].tolist() == [
            weights[edge] for edge in route.data[dgl.EID].tolist()
        ]
    convolutions = {relation: SAGEConv(4, 4, "mean") for _, relation, _ in triples}
    model = HeteroGraphConv(convolutions, aggregate="sum")
    outputs_by_type = model(
        mfgs[0], {name: torch.randn(len(ids), 4) for name, ids in inputs.items()}
    )
    assert len(outputs_by_type["airport"]) == mfgs[1].num_src_nodes("airport")
    refused(lambda: sampler.sample_blocks([1, 2]), "seeds: expected a dict of node type to nodes")
    refused(
        lambda: NeighborSampler(graph, {("a", "b", "c"): [1]}), "fanouts with [('a', 'b', 'c')]"
    )


with asterism.connect(sys.argv[1], timeout_s=600) as client:
    refused(
        lambda: NeighborSampler(client.graph("citations"), [2]),
        "use graph.pin()",
    )
    with client.graph("citations").pin() as papers:
        one_type(papers)
    with client.graph("openflights").pin() as flights:
        several_types(flights)
print("OK")
