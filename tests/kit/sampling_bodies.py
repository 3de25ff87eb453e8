"""Bodies of the HTTP sampling routes, for the graph of `tests.kit.cases`."""

from __future__ import annotations

from typing import Any

from tests.kit import cases

PEOPLE = cases.person_ids()[:4].tolist()


def _without_edges() -> dict[str, dict[str, Any]]:
    """Return a body with excluded edges for each call that takes them, by the name of the call."""
    src, dst, _ = cases.edges()["writes"]
    writes = [[a, b] for a, b in zip(src.tolist(), dst.tolist(), strict=True) if a in PEOPLE][::2]
    src, dst, _ = cases.edges()["cites"]
    cites = [[a, b, row] for row, (a, b) in enumerate(zip(src.tolist(), dst.tolist(), strict=True))]
    cites = cites[::2]  # every other edge, by edge id
    both = {"exclude": {"writes": writes, "cites": cites}, "reverse_types": {"writes": "by"}}
    papers = list(range(20))
    return {
        "sample_neighbors": {"nodes": PEOPLE, "etypes": "writes", "n": 4, "exclude": writes},
        "sample_fanout": {
            "nodes": PEOPLE,
            "metapath": ["writes", ["cites", "by"]],
            "fanouts": [3, 2],
            "replace": False,
            **both,
        },
        "random_walk": {"nodes": PEOPLE, "metapath": ["writes", "cites"], "length": 4, **both},
        "sample_pinsage": {
            "nodes": papers,
            "metapath": ["cites"],
            "n": 3,
            "walks": 9,
            "exclude": cites,
        },
        "personalized_pagerank": {"nodes": papers[:3], "etypes": "cites", "k": 4, "exclude": cites},
        "sample_layer": {"nodes": PEOPLE, "etypes": "writes", "n": 9, "exclude": writes},
        "sample_layers": {"nodes": PEOPLE, "metapath": ["writes", "cites"], "counts": [4, 3]}
        | both,
        "sample_subgraph": {"seeds": PEOPLE, "fanouts": [3, 2], "ntype": "person", **both},
        "sample_ego_subgraphs": {
            "seeds": papers,
            "fanouts": [3, 2],
            "etypes": "cites",
            "exclude": cites,
            "reverse_types": {"cites": "cites"},
        },
        "sample_labor": {"seeds": papers, "fanouts": [3, 2], "etypes": "cites", "exclude": cites},
        "sample_hgt": {"seeds": papers, "counts": [5, 4], "ntype": "paper", **both},
    }


WITHOUT_EDGES = _without_edges()
BODIES: dict[str, list[dict[str, Any]]] = {
    "sample_nodes": [
        {"n": 9, "ntype": "person", "probabilities": True},
        {"n": 7, "ntype": ["person", "paper"], "weighted": False, "replace": False},
        {"n": 5, "ntype": "person", "where": "age > 30", "weight": "aged"},
    ],
    "sample_nodes_like": [
        {"src": [*PEOPLE, -1], "n": 3, "ntype": "person", "unknown": "none"},
        {"src": [1, 2], "n": 2, "ntype": [1, 1], "weighted": False, "probabilities": True},
    ],
    "sample_negatives": [
        {"pairs": [[PEOPLE[0], 1], [PEOPLE[1], 2]], "n": 4, "ntype": "paper"},
        {"pairs": PEOPLE, "n": 3, "ntype": "paper", "exclude_edges": "writes"},
        {"pairs": PEOPLE[:2], "n": 5, "ntype": "paper", "exclude": [[3, 4, 5], [6]]},
    ],
    "sample_edges": [
        {"n": 8, "etype": "writes", "probabilities": True},
        {"n": 8, "weighted": False},
    ],
    "sample_neighbors": [
        {"nodes": [*PEOPLE, -1], "etypes": "writes", "n": 4, "edge_ids": True},
        {
            "nodes": PEOPLE,
            "etypes": "writes",
            "n": 3,
            "replace": False,
            "times": [2400, 100, 2500, 0],
            "edge_times": True,
        },
        {"nodes": [1, 2], "etypes": ["cites", "by"], "n": 2, "direction": "out", "weights": False},
    ],
    "sample_fanout": [
        {
            "nodes": PEOPLE,
            "metapath": ["writes", ["cites", "by"]],
            "fanouts": [3, 2],
            "node_features": ["vec", "words", "name", "age"],
        },
        {"nodes": PEOPLE, "metapath": ["writes", "by"], "fanouts": [0.5, 2], "replace": False},
    ],
    "random_walk": [
        {"nodes": PEOPLE, "metapath": ["writes", "by"], "length": 4, "edge_ids": True},
        {"nodes": [1, 2], "metapath": ["cites"], "length": 3, "walks": 3, "p": 0.5, "q": 2.0},
    ],
    "sample_pinsage": [{"nodes": [1, 2, 3], "metapath": ["cites"], "n": 3, "walks": 9}],
    "personalized_pagerank": [{"nodes": [1, 2, -1], "etypes": "cites", "k": 4, "epsilon": 1e-3}],
    "sample_layer": [
        {"nodes": PEOPLE, "etypes": "writes", "n": 5, "replace": False, "edge_ids": True},
        {"nodes": [PEOPLE[:2], PEOPLE[2:]], "etypes": "writes", "n": 3, "measure": "sqrt"},
    ],
    "sample_layers": [{"nodes": PEOPLE, "metapath": ["writes", "cites"], "counts": [4, 3]}],
    "sample_subgraph": [
        {
            "seeds": PEOPLE,
            "fanouts": {"writes": [3, 0], "cites": [2, 2]},
            "ntype": "person",
            "weights": True,
            "node_features": {"paper": ["vec", "words"], "person": ["name"]},
        },
        {
            "seeds": PEOPLE,
            "fanouts": [3],
            "etypes": "writes",
            "disjoint": True,
            "times": [2400.0, 100.0, 2500.0, 0.0],
            "edge_times": True,
        },
    ],
    "sample_ego_subgraphs": [{"seeds": [1, 2, 1], "fanouts": [3, 2], "etypes": "cites"}],
    "sample_labor": [{"seeds": [1, 2, 3], "fanouts": [3, 2], "etypes": "cites", "importance": 1}],
    "sample_hgt": [{"seeds": PEOPLE, "counts": {"person": [3], "paper": [4]}, "ntype": "person"}],
    "sample_graph_labels": [{"n": 6}],
}
"""Bodies by the name of the call, without seeds; each call has one at least."""
for _method, _body in WITHOUT_EDGES.items():
    BODIES[_method].append(_body)
