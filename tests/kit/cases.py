"""A small graph of every kind, and every call that reads.

It has two node types, skewed weights, sparse ids and each kind of feature.
"""

from __future__ import annotations

import atexit
import hashlib
import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import asterism
from asterism import Client, Graph
from asterism.records.samples import FeatureValue
from tests.kit import excluded_cases, timed_cases, whole_cases
from tests.kit.waiting import HANG_S

PEOPLE, PAPERS, WRITES, CITES = 400, 90, 2500, 900
PARTS = 10
SEED = 99


def schema(placement: str = "mix64", *, parts: int = PARTS) -> dict[str, Any]:
    """Return the schema: people (sparse ids) write papers (dense ids), papers cite papers."""
    return {
        "parts": parts,
        "placement": placement,
        "direction": "both",
        "nodes": {
            "person": {
                "weighted": True,
                "features": {"age": "int16", "name": "bytes"},
                "graph_label": "name",
                "time": "age",
                "tables": {"aged": "log1p(age) * min(weight, 1)"},
            },
            "paper": {
                "tables": {"aged": "2"},
                "features": {
                    "vec": {"dtype": "float32", "shape": [3]},
                    "words": {"kind": "ragged", "dtype": "int64"},
                },
            },
        },
        "edges": {
            "person:writes:paper": {
                "weighted": True,
                "features": {"when": "int64", "tags": {"kind": "ragged", "dtype": "float32"}},
                "time": "when",
                "index": ["when"],
                "tables": {"recent": "pow(weight, 0.25) * exp((when - 2500) / 500)"},
            },
            "paper:cites:paper": {
                "weighted": True,
                "tables": {"recent": {"expression": "log(weight)", "invalid": "zero"}},
            },
            "paper:by:person": {},
        },
    }


def person_ids() -> np.ndarray:
    """Return sparse ids in random order."""
    return (np.arange(PEOPLE, dtype=np.int64) * 7_919_993 + 3)[::-1].copy()


def edges() -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return sources, destinations and weights by relation."""
    rng = np.random.default_rng(17)
    people, papers = person_ids(), np.arange(PAPERS)
    skewed = (rng.random(WRITES) ** 8 * 1000).astype(np.float32)
    return {
        "writes": (rng.choice(people, WRITES), rng.choice(papers, WRITES), skewed),
        "cites": (
            rng.choice(papers, CITES),
            rng.choice(papers, CITES),
            rng.integers(0, 3, CITES).astype(np.float32),
        ),
        "by": (rng.choice(papers, CITES), rng.choice(people, CITES), np.ones(CITES, np.float32)),
    }


def load(client: Client, space: str, placement: str = "mix64", *, parts: int = PARTS) -> Graph:
    """Write the graph in six chunks and build it."""
    client.create_space(space, schema(placement, parts=parts))
    people, rng = person_ids(), np.random.default_rng(3)
    weights = np.concatenate(
        [[4e4], rng.random(PEOPLE - 1)]
    )  # all other people together get one draw in two hundred
    open_load = client.begin_load(space, source="cases")
    names = [f"person {i}" for i in range(PEOPLE)]
    open_load.write_nodes(
        0,
        "person",
        people,
        weights=weights,
        features={"age": np.arange(PEOPLE) % 99, "name": names},
    )
    words_indptr = np.concatenate([[0], np.cumsum(np.arange(PAPERS) % 4)])
    vec = np.arange(PAPERS * 3).reshape(PAPERS, 3)
    open_load.write_nodes(
        1,
        "paper",
        np.arange(PAPERS),
        features={"vec": vec, "words": (words_indptr, np.arange(words_indptr[-1]))},
    )
    for chunk, (relation, (src, dst, weight)) in enumerate(edges().items(), start=2):
        features: dict[str, Any] = {}
        if relation == "writes":
            tags = np.concatenate([[0], np.cumsum(np.arange(WRITES) % 3)])
            features = {"when": np.arange(WRITES), "tags": (tags, np.arange(tags[-1]) / 2)}
        open_load.write_edges(
            chunk,
            relation,
            src,
            dst,
            weights=None if relation == "by" else weight,
            features=features,
        )
    open_load.commit()
    graph = client.graph(space)
    graph.build(timeout_s=HANG_S)
    return graph


@cache
def _built_folder() -> Path:
    """Build the graph in a temporary folder that is removed with this process."""
    folder = tempfile.TemporaryDirectory(prefix="asterism-cases-")
    atexit.register(folder.cleanup)
    with asterism.open(Path(folder.name) / "graphs") as client:
        load(client, "cases")
    return Path(folder.name) / "graphs"


def copy_built_graph(folder: Path) -> Path:
    """Copy the built graph to ``folder`` and return it.

    The graph is version 1 of the space ``cases`` of an embedded service. It is built once per
    process and then copied, which takes a tenth of the time.
    """
    shutil.copytree(_built_folder(), folder, dirs_exist_ok=True)
    return folder


def calls(graph: Graph) -> dict[str, Callable[[], Any]]:
    """Return every call that reads, by a descriptive name."""
    people = np.concatenate([person_ids()[:60], [-1, 5, 10**15], person_ids()[:20]])
    papers = np.concatenate([np.arange(0, PAPERS, 2), [-1, 12345, 0, 0]])
    mixed = np.concatenate([people, papers])
    types = np.concatenate([np.zeros(len(people), np.int32), np.ones(len(papers), np.int32)])
    calls_by_name: dict[str, Callable[[], Any]] = {
        "statement": lambda: (
            graph.query(
                f"SAMPLE 7 NEIGHBORS FROM $people OVER writes SEED {SEED} YIELD src, dst, edge_id",
                {"people": people},
            ).values
        ),
        "statement, both ways without replacement": lambda: (
            graph.query(
                "GO 1 TO 2 STEPS FROM $papers ON paper OVER * BIDIRECT SAMPLE [4, 2] "
                f"WITHOUT REPLACEMENT SEED {SEED} "
                "YIELD step, row, src, dst, edge_id, probability",
                {"papers": papers},
            ).values
        ),
        "nodes": lambda: graph.sample_nodes(700, seed=SEED),
        "one node": lambda: graph.sample_nodes(1, "person", seed=SEED),
        "no node": lambda: graph.sample_nodes(0, "person", seed=SEED),
        "uniform nodes": lambda: graph.sample_nodes(
            700, ["paper", "person"], weighted=False, seed=SEED
        ),
        "distinct nodes, raced for": lambda: graph.sample_nodes(
            350, "person", replace=False, seed=SEED
        ),
        "all nodes": lambda: graph.sample_nodes(
            PEOPLE + PAPERS, replace=False, weighted=False, seed=SEED
        ),
        "edges": lambda: graph.sample_edges(900, seed=SEED),
        "uniform edges": lambda: graph.sample_edges(900, "cites", weighted=False, seed=SEED),
        "distinct edges": lambda: graph.sample_edges(600, "writes", replace=False, seed=SEED),
        "fanout": lambda: graph.sample_fanout(
            people, ["writes", "cites", "by"], [4, 3, 2], edge_ids=True, seed=SEED
        ),
        "fanout of mixed types": lambda: graph.sample_fanout(
            papers, [["cites", "by"], ["cites", "writes"]], [3, 2], replace=False, seed=SEED
        ),
        "fanout of shares": lambda: graph.sample_fanout(
            mixed,
            [["writes", "cites", "by"], ["by", "cites"], "writes"],
            [0.2, 2, 0.07],
            ntype=types,
            replace=False,
            edge_ids=True,
            probabilities=True,
            seed=SEED,
        ),
        "shares where, against the edges": lambda: graph.sample_neighbors(
            papers, ["writes"], 0.3, where="when > 900", direction="in", replace=False, seed=SEED
        ),
        "fanout against the edges": lambda: graph.sample_fanout(
            papers, ["writes", "by"], [3, 2], direction="in", seed=SEED
        ),
        "probabilities of nodes": lambda: graph.sample_nodes(700, probabilities=True, seed=SEED),
        "probabilities of distinct nodes": lambda: graph.sample_nodes(
            350, "person", replace=False, probabilities=True, seed=SEED
        ),
        "probabilities of distinct nodes, uniformly": lambda: graph.sample_nodes(
            99, replace=False, weighted=False, probabilities=True, seed=SEED
        ),
        "probabilities of edges": lambda: graph.sample_edges(
            900, ["cites", "writes"], probabilities=True, seed=SEED
        ),
        "probabilities of distinct edges": lambda: graph.sample_edges(
            2000, ["writes", "by"], replace=False, probabilities=True, seed=SEED
        ),
        "probabilities of a fanout": lambda: graph.sample_fanout(
            papers,
            [["cites", "by"], ["cites", "writes"]],
            [3, 2],
            replace=False,
            probabilities=True,
            seed=SEED,
        ),
        "nodes like others": lambda: graph.sample_nodes_like(
            mixed, 4, ntype=types, unknown="none", probabilities=True, seed=SEED
        ),
        "nodes like others, uniformly": lambda: graph.sample_nodes_like(
            papers, 3, ntype="paper", weighted=False, unknown="none", seed=SEED
        ),
        "negatives": lambda: graph.sample_negatives(
            people, 5, weighted=False, probabilities=True, seed=SEED
        ),
        "negatives but what is joined": lambda: graph.sample_negatives(
            papers, 6, "paper", exclude=graph.neighbors(papers, "cites"), weighted=False, seed=SEED
        ),
        "negatives but what edges lead to": lambda: graph.sample_negatives(
            mixed, 6, "paper", exclude_edges="cites", weight="aged", seed=SEED
        ),
        "negatives but the heaviest": lambda: graph.sample_negatives(
            np.stack([papers, np.full(len(papers), person_ids()[0])], axis=1),
            3,
            "person",
            seed=SEED,
        ),
        "negatives of a batch": lambda: graph.sample_negatives(
            papers, 40, "paper", shared=True, exclude=papers, weight="aged", seed=SEED
        ),
        "probabilities of negatives but what is joined": lambda: graph.sample_negatives(
            papers,
            6,
            "paper",
            exclude=graph.neighbors(papers, "cites"),
            weight="aged",
            probabilities=True,
            seed=SEED,
        ),
        "probabilities of negatives but the heaviest": lambda: graph.sample_negatives(
            np.stack([papers, np.full(len(papers), person_ids()[0])], axis=1),
            3,
            "person",
            probabilities=True,
            seed=SEED,
        ),
        "probabilities of negatives of a batch": lambda: graph.sample_negatives(
            papers,
            40,
            "paper",
            shared=True,
            exclude=papers,
            weighted=False,
            probabilities=True,
            seed=SEED,
        ),
        "a layer": lambda: graph.sample_layer(
            mixed, None, 64, ntype=types, edge_ids=True, seed=SEED
        ),
        "a layer of different nodes": lambda: graph.sample_layer(
            papers, ["cites"], 30, measure="squares", replace=False, seed=SEED
        ),
        "layers against the edges": lambda: graph.sample_fanout_layerwise(
            papers[:44].reshape(11, 4),
            [["cites", "writes"], None],
            [8, 5],
            ntype="paper",
            measure="sqrt",
            direction="in",
            edge_ids=True,
            seed=SEED,
        ),
        "layers by name": lambda: graph.sample_fanout_layerwise(
            people, ["writes", "cites"], [40, 20], weight="recent", replace=False, seed=SEED
        ),
        "edges between lists": lambda: graph.adjacency(
            mixed, papers, ["cites", "writes"], row_type=types, edge_ids=True
        ),
        "edges between lists, by name": lambda: graph.adjacency(
            papers, papers[::-1], "cites", weight="recent", direction="in"
        ),
        "whole neighborhoods": lambda: graph.multi_hop_neighbors(
            papers[:6], [["cites", "by"], None], ntype="paper", edge_ids=True
        ),
        "labels of graphs": lambda: graph.sample_graph_labels(50, seed=SEED),
        "nodes of graphs": lambda: graph.graph_nodes(
            [f"person {i}" for i in range(0, PEOPLE + 20, 3)]
        ),
        "types of nodes": lambda: graph.node_types(mixed, types),
        "walks": lambda: graph.random_walk(people, ["writes", "cites", "by"], 7, seed=SEED),
        "walks by any edge": lambda: graph.random_walk(
            mixed, length=6, ntype=types, edge_ids=True, seed=SEED
        ),
        "uniform walks against the edges": lambda: graph.random_walk(
            papers, ["cites"], 5, weighted=False, direction="in", seed=SEED
        ),
        "walks with p and q": lambda: graph.random_walk(
            papers[-30:], ["cites"], 4, p=0.25, q=4.0, edge_ids=True, seed=SEED
        ),
        "walks with p and q over types": lambda: graph.random_walk(
            mixed, length=6, ntype=types, p=4.0, q=0.5, restart=0.1, seed=SEED
        ),
        "walks back with p and q over types": lambda: graph.random_walk(
            mixed, length=4, ntype=types, p=0.2, q=2.0, edge_ids=True, seed=SEED
        ),
        "walks that go back": lambda: graph.random_walk(
            papers, [["cites", "by"], None], 6, restart=0.3, edge_ids=True, seed=SEED
        ),
        "several walks of each": lambda: graph.random_walk(
            papers, ["cites", None], 4, walks=3, restart=0.1, edge_ids=True, seed=SEED
        ),
        "walks over different neighbors": lambda: graph.random_walk(
            people,
            graph.metapaths("person2writes2paper-paper2by2person")[0],
            6,
            walks=5,
            first_step="distinct",
            edge_ids=True,
            seed=SEED,
        ),
        "walks over different neighbors of mixed types, with p and q": lambda: graph.random_walk(
            mixed,
            ["cites", None],
            4,
            walks=40,
            ntype=types,
            first_step="distinct",
            weighted=False,
            p=0.5,
            q=2.0,
            restart=0.1,
            seed=SEED,
        ),
        "walks over different neighbors along any edge": lambda: graph.random_walk(
            mixed,
            [["cites", "by", "writes"], None],
            4,
            walks=6,
            ntype=types,
            first_step="distinct",
            edge_ids=True,
            seed=SEED,
        ),
        "walks over different neighbors along any edge, uniformly": lambda: graph.random_walk(
            mixed,
            length=3,
            walks=9,
            ntype=types,
            first_step="distinct",
            weighted=False,
            direction="in",
            restart=0.1,
            seed=SEED,
        ),
        "walks over different neighbors, against the edges": lambda: graph.random_walk(
            papers,
            ["writes", "by"],
            4,
            walks=30,
            first_step="distinct",
            direction="in",
            weight="",
            seed=SEED,
        ),
        "walks over different neighbors by name": lambda: graph.random_walk(
            people,
            ["writes", "cites"],
            4,
            walks=4,
            first_step="distinct",
            weight="recent",
            seed=SEED,
        ),
        "visits": lambda: graph.sample_pinsage(
            papers, ["cites", "cites"], 5, walks=20, traversals=3, termination=0.3, seed=SEED
        ),
        "visits of several types": lambda: graph.sample_pinsage(
            mixed, [["cites", "by", "writes"]], 7, walks=9, ntype=types, seed=SEED
        ),
        "visits by name, against the edges": lambda: graph.sample_pinsage(
            papers, ["cites"], 4, walks=15, weight="recent", direction="in", seed=SEED
        ),
        "subgraph": lambda: graph.sample_subgraph(
            papers, [4, 3], ["cites", "by", "writes"], ntype="paper", weights=True, seed=SEED
        ),
        "disjoint subgraph against the edges": lambda: graph.sample_subgraph(
            papers[:20],
            {"cites": [-1, 2], "writes": [3, 0]},
            ntype="paper",
            direction="in",
            disjoint=True,
            expand="every",
            seed=SEED,
        ),
        "ego subgraphs": lambda: graph.sample_ego_subgraphs(
            papers,
            [3, 2],
            ["cites", "by", "writes"],
            ntype="paper",
            weights=True,
            node_features={"paper": ["vec"]},
            seed=SEED,
        ),
        "ego subgraphs of all together, by name, against the edges": lambda: (
            graph.sample_ego_subgraphs(
                papers[:20],
                [4, -1],
                "cites",
                among=["cites", "writes"],
                direction="in",
                weight="recent",
                disjoint=False,
                expand="every",
                seed=SEED,
            )
        ),
        "induced subgraph": lambda: graph.induced_subgraph(
            mixed,
            ntype=types,
            weights=True,
            node_features={"paper": ["words", "vec"], "person": ["name"]},
        ),
        "induced subgraphs of groups, by name, against the edges": lambda: graph.induced_subgraph(
            mixed,
            ["cites", "writes"],
            indptr=np.linspace(0, len(mixed), 8).astype(np.int64),
            ntype=types,
            weight="recent",
            direction="in",
            weights=True,
        ),
        "LABOR": lambda: graph.sample_labor(
            papers[-12:],
            [4, 3],
            ["cites", "by", "writes"],
            importance=-1,
            ntype="paper",
            seed=SEED,
        ),
        "LABOR against the edges, uniformly": lambda: graph.sample_labor(
            papers[:40],
            {"cites": [-1, 2], "writes": [3, 0]},
            ntype="paper",
            weighted=False,
            direction="in",
            layer_dependency=True,
            seed=SEED,
        ),
        "LABOR by name, with features": lambda: graph.sample_labor(
            papers,
            [3, 3],
            "cites",
            importance=1,
            weight="recent",
            expand="first",
            edge_ids=False,
            node_features=["vec"],
            seed=SEED,
        ),
        "fanout with features": lambda: graph.sample_fanout(
            papers,
            [["cites", "by"], None],
            [3, 2],
            node_features=["age", "name", "vec", "words", "weight"],
            seed=SEED,
        ),
        "subgraph with features": lambda: graph.sample_subgraph(
            papers[:20],
            [3, 2],
            ntype="paper",
            node_features={"paper": ["words", "vec"], "person": ["name"]},
            seed=SEED,
        ),
        "nodes by name": lambda: graph.sample_nodes(700, weight="aged", seed=SEED),
        "distinct nodes by name": lambda: graph.sample_nodes(
            300, "person", weight="aged", replace=False, probabilities=True, seed=SEED
        ),
        "edges by name": lambda: graph.sample_edges(
            900, ["writes", "cites"], weight="recent", probabilities=True, seed=SEED
        ),
        "distinct edges by name": lambda: graph.sample_edges(
            600, "writes", weight="recent", replace=False, seed=SEED
        ),
        "neighbors by name": lambda: graph.sample_neighbors(
            people, "writes", 5, weight="recent", edge_ids=True, seed=SEED
        ),
        "distinct neighbors by name, against the edges": lambda: graph.sample_neighbors(
            papers,
            ["writes", "cites"],
            5,
            weight="recent",
            direction="in",
            replace=False,
            edge_ids=True,
            seed=SEED,
        ),
        "fanout by name": lambda: graph.sample_fanout(
            people, ["writes", "cites"], [4, 3], weight="recent", probabilities=True, seed=SEED
        ),
        "all neighbors by name": lambda: graph.neighbors(
            papers, ["cites", "writes"], weight="recent", direction="in", sort="weight"
        ),
        "heaviest neighbors by name": lambda: graph.top_k_neighbors(
            papers, ["writes", "cites"], 4, direction="in", edge_ids=True, weight="recent"
        ),
        "pagerank": lambda: graph.personalized_pagerank(papers, "cites", 12, epsilon=1e-3),
        "pagerank over types, against the edges": lambda: graph.personalized_pagerank(
            mixed, None, 9, ntype=types, direction="in", weighted=False, epsilon=3e-4
        ),
        "pagerank by name where": lambda: graph.personalized_pagerank(
            papers[:20],
            "cites",
            9,
            alpha=0.3,
            epsilon=1e-4,
            weight="recent",
            where="dst.vec[1] > 30",
        ),
        "sums of weights": lambda: graph.degrees(papers, ["cites", "by"], weight="weight"),
        "sums of weights by name": lambda: graph.degrees(people, "writes", weight="recent"),
        "walks by name": lambda: graph.random_walk(
            people, ["writes", "cites", "cites"], 5, weight="recent", restart=0.2, seed=SEED
        ),
        "subgraph by name": lambda: graph.sample_subgraph(
            papers[:30],
            [3, 2],
            ["cites"],
            ntype="paper",
            weight="recent",
            weights=True,
            replace=False,
            seed=SEED,
        ),
        "scan of nodes by name": lambda: list(graph.scan_nodes("person", weight="aged", rows=23)),
        "scan of edges by name": lambda: list(
            graph.scan_edges("writes", weight="recent", rows=202)
        ),
        "the same again": lambda: graph.replay(
            graph.sample_neighbors(people, "writes", 3, seed=SEED).token, people
        ),
        "node features": lambda: graph.node_features(people, ["age", "name", "weight"], "person"),
        "paper features": lambda: graph.node_features(papers, ["words", "vec"]),
        "edge features": lambda: graph.edge_features(
            [0, 5, WRITES - 1, 10**12, -1, 5], ["tags", "when"], "writes"
        ),
        "how many nodes": lambda: graph.count_nodes("person"),
        "every node once": lambda: list(
            graph.node_batches("person", 64, seed=SEED, rank=1, world=2)
        ),
        "pairs of walks": lambda: list(
            graph.walk_pairs(
                "person2writes2paper-paper2by2person;paper2paper",
                4,
                walks=2,
                window=2,
                negatives=2,
                batch_size=150,
                seed=SEED,
            )
        ),
        "how many edges": lambda: (
            graph.count_edges("writes"),
            graph.count_edges("cites", where="weight > 1"),
        ),
        "every edge once": lambda: list(
            graph.edge_batches(
                "writes", 300, weight="recent", where="when > 900", seed=SEED, rank=1, world=2
            )
        ),
        "links with negatives": lambda: graph.link_seeds(
            graph.edges_at("writes", np.arange(90)), "writes", amount=2.5, src_weight="", seed=SEED
        ),
        "links with negatives by name": lambda: graph.link_seeds(
            np.stack(edges()["cites"][:2], axis=1)[:60],
            "cites",
            mode="triplet",
            amount=3,
            weight="aged",
            seed=SEED,
        ),
        "edges by place": lambda: graph.edges_at(
            "writes", np.arange(WRITES // 2)[::-7].copy(), weight="recent"
        ),
        "nodes by place": lambda: graph.nodes_at("person", np.arange(PEOPLE)[::-3].copy()),
        "scan of nodes": lambda: list(graph.scan_nodes("person", ["name"], rows=23)),
        "scan of edges": lambda: list(graph.scan_edges("writes", ["tags", "when"], rows=151)),
        "scan of plain edges": lambda: list(graph.scan_edges("by")),
    }
    calls_by_name |= _filtered_calls(graph, people, papers, mixed, types)
    calls_by_name |= timed_cases.temporal_calls(graph, people, papers, WRITES, SEED)
    excluded = {name: edges()[name][:2] for name in ("cites", "writes")}
    excluded = {name: (src[:300], dst[:300]) for name, (src, dst) in excluded.items()}
    calls_by_name |= excluded_cases.calls(graph, excluded, people, papers, SEED)
    for edge_direction, nodes, ntype in (("out", mixed, types), ("in", mixed, types)):
        for replace in (True, False):
            for weighted in (True, False):
                calls_by_name[
                    f"neighbors {edge_direction} replace={replace} weighted={weighted}"
                ] = lambda w=edge_direction, r=replace, q=weighted, n=nodes, t=ntype: (
                    graph.sample_neighbors(
                        n,
                        None,
                        5,
                        ntype=t,
                        direction=w,
                        replace=r,
                        weighted=q,
                        edge_ids=True,
                        seed=SEED,
                    )
                )
                calls_by_name[
                    (
                        f"probabilities of neighbors {edge_direction} replace={replace} "
                        f"weighted={weighted}"
                    )
                ] = lambda w=edge_direction, r=replace, q=weighted: graph.sample_neighbors(
                    mixed,
                    None,
                    5,
                    ntype=types,
                    direction=w,
                    replace=r,
                    weighted=q,
                    probabilities=True,
                    seed=SEED,
                )
        calls_by_name[f"heaviest neighbors {edge_direction}"] = (
            lambda w=edge_direction, n=nodes, t=ntype: graph.top_k_neighbors(
                n, None, 4, ntype=t, direction=w, edge_ids=True
            )
        )
        calls_by_name[f"degrees {edge_direction}"] = lambda w=edge_direction, n=nodes, t=ntype: (
            graph.degrees(n, ["cites", "by", "writes"], ntype=t, direction=w)
        )
        for sort in (None, "id", "weight"):
            calls_by_name[f"all neighbors {edge_direction} sort={sort}"] = (
                lambda w=edge_direction, s=sort, n=nodes, t=ntype: graph.neighbors(
                    n, ["by", "writes", "cites"], ntype=t, direction=w, sort=s
                )
            )
    return calls_by_name


def _filtered_calls(
    graph: Graph, people: np.ndarray, papers: np.ndarray, mixed: np.ndarray, types: np.ndarray
) -> dict[str, Callable[[], Any]]:
    """Return calls with filters on columns stored with the rows, at either end, and elsewhere."""
    edge_filter = (
        "type == 'writes' and when < 2000 and dst.vec[0] > 20 or type == 'cites' and "
        "dst.vec[2] < 150 or type == 'by' and dst.name != 'person 7'"
    )
    reverse_filter = (
        "type == 'writes' and src.age > 20 and when in (1, 5, 8, 13) or type == 'cites' and "
        "weight > 1 or type == 'by' and src.words is null"
    )
    feature_filter = "dst.words is not null or src.vec[1] < 90"
    return whole_cases.calls(graph, mixed, types, edge_filter, SEED) | {
        "nodes where": lambda: graph.sample_nodes(
            700, "person", where="age < 30 and name != 'person 7'", probabilities=True, seed=SEED
        ),
        "nodes of several types where": lambda: graph.sample_nodes(
            500,
            where="type == 'person' and age between 10 and 20 or type == 'paper' and vec[1] > 100",
            seed=SEED,
        ),
        "uniform nodes where": lambda: graph.sample_nodes(
            500, "paper", where="words is not null and id < 70", weighted=False, seed=SEED
        ),
        "distinct nodes by name where": lambda: graph.sample_nodes(
            150,
            "person",
            where="not age < 50",
            weight="aged",
            replace=False,
            probabilities=True,
            seed=SEED,
        ),
        "edges where": lambda: graph.sample_edges(
            900,
            "writes",
            where="when < 1000 and dst.vec[0] > 30 and src.age > 10",
            probabilities=True,
            seed=SEED,
        ),
        "distinct edges where": lambda: graph.sample_edges(
            200,
            "writes",
            where="tags is not null and src.name != 'person 1'",
            weight="recent",
            replace=False,
            seed=SEED,
        ),
        "neighbors where": lambda: graph.sample_neighbors(
            mixed,
            None,
            5,
            ntype=types,
            where=edge_filter,
            edge_ids=True,
            probabilities=True,
            seed=SEED,
        ),
        "distinct neighbors where, against the edges": lambda: graph.sample_neighbors(
            mixed,
            None,
            5,
            ntype=types,
            where=reverse_filter,
            direction="in",
            replace=False,
            edge_ids=True,
            seed=SEED,
        ),
        "uniform neighbors where": lambda: graph.sample_neighbors(
            people, "writes", 3, where="when > 900", weighted=False, seed=SEED
        ),
        "edges of an index": lambda: graph.sample_edges(
            800, "writes", where="when between 300 and 900", probabilities=True, seed=SEED
        ),
        "uniform edges of an index": lambda: graph.sample_edges(
            300, "writes", where="not when < 2000", weighted=False, replace=False, seed=SEED
        ),
        "neighbors of an index": lambda: graph.sample_neighbors(
            people,
            "writes",
            4,
            where="when < 700 or when > 1800",
            weight="recent",
            edge_ids=True,
            probabilities=True,
            seed=SEED,
        ),
        "distinct neighbors of an index, against the edges": lambda: graph.sample_neighbors(
            papers,
            "writes",
            5,
            where="when > 500",
            direction="in",
            replace=False,
            edge_ids=True,
            probabilities=True,
            seed=SEED,
        ),
        "fanout of an index": lambda: graph.sample_fanout(
            people, ["writes"], [4], where="when != 77", edge_ids=True, seed=SEED
        ),
        "fanout where": lambda: graph.sample_fanout(
            people, ["writes", ["cites", "by"]], [4, 3], where=edge_filter, edge_ids=True, seed=SEED
        ),
        "walks where": lambda: graph.random_walk(
            papers[-20:],
            ["cites"],
            4,
            where=feature_filter,
            p=0.25,
            q=4.0,
            edge_ids=True,
            seed=SEED,
        ),
        "visits where": lambda: graph.sample_pinsage(
            papers, ["cites"], 5, walks=12, where=feature_filter, weighted=False, seed=SEED
        ),
        "subgraph where": lambda: graph.sample_subgraph(
            papers, [4, 3], ["cites", "by", "writes"], ntype="paper", where=edge_filter, seed=SEED
        ),
        "LABOR where": lambda: graph.sample_labor(
            papers,
            [4, 3],
            ["cites", "by", "writes"],
            importance=1,
            ntype="paper",
            where=edge_filter,
            seed=SEED,
        ),
        "LABOR-0 where": lambda: graph.sample_labor(
            papers, [4, -1], ["cites", "by", "writes"], ntype="paper", where=edge_filter, seed=SEED
        ),
        "subgraph where, against the edges": lambda: graph.sample_subgraph(
            papers[:20],
            [-1, 2],
            ["cites", "writes"],
            ntype="paper",
            direction="in",
            where=reverse_filter,
            seed=SEED,
        ),
        "ego subgraphs where": lambda: graph.sample_ego_subgraphs(
            papers, [3, 2], ["cites", "by", "writes"], ntype="paper", where=edge_filter, seed=SEED
        ),
        "induced subgraph where": lambda: graph.induced_subgraph(
            mixed, ntype=types, where=edge_filter
        ),
        "a layer where": lambda: graph.sample_layer(
            papers, ["cites"], 30, where=feature_filter, replace=False, edge_ids=True, seed=SEED
        ),
        "negatives where": lambda: graph.sample_negatives(
            papers,
            6,
            "paper",
            exclude=papers,
            where="vec[0] > 12",
            weight="aged",
            probabilities=True,
            seed=SEED,
        ),
        "nodes like others where": lambda: graph.sample_nodes_like(
            people, 4, ntype="person", where="age > 40", unknown="none", seed=SEED
        ),
        "all neighbors where": lambda: graph.neighbors(
            mixed, ["by", "writes", "cites"], ntype=types, where=edge_filter
        ),
        "heaviest neighbors where": lambda: graph.top_k_neighbors(
            papers, ["writes", "cites"], 4, direction="in", where=reverse_filter, edge_ids=True
        ),
        "degrees where": lambda: graph.degrees(
            papers, "cites", where=feature_filter, weight="recent"
        ),
        "edges between lists where": lambda: graph.adjacency(
            papers, papers, "cites", where=feature_filter, edge_ids=True
        ),
    }


def call_digests(graph: Graph) -> dict[str, str]:
    """Return a digest of the result of every call."""
    return {name: digest(call()) for name, call in calls(graph).items()}


@cache
def embedded_digests() -> dict[str, str]:
    """Return the digests of an embedded service, which clusters of any size equal.

    `test_cluster_equality` tests that, so a test of one more way to call compares with these alone.
    """
    with asterism.open(_built_folder(), mode="r", space="cases") as graph:
        return call_digests(graph)


def digest(value: Any) -> str:
    """Return a digest of a record, mapping or list.

    It covers every array with its dtype and shape, and also versions, seeds and names of
    partitions.
    """
    state = hashlib.sha256()
    _update_digest(state.update, value)
    return state.hexdigest()[:16]


def _update_digest(update: Callable[[bytes], None], value: Any) -> None:
    if isinstance(value, np.ndarray):
        update(f"{value.dtype}{value.shape}".encode() + value.tobytes())
    elif isinstance(value, Mapping):
        for name in sorted(value):
            update(name.encode())
            _update_digest(update, value[name])
    elif isinstance(value, list | tuple):
        for item in value:
            _update_digest(update, item)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            if name not in (
                "version",
                "token",
                "cursor",
            ):  # not part of the contract: it differs after a rebuild
                _update_digest(update, getattr(value, name))
    else:
        update(repr(value).encode())


def rows_of(column: FeatureValue) -> list[Any]:
    """Return a feature column with one value per row."""
    if isinstance(column, tuple):
        indptr, values = column
        return [values[indptr[i] : indptr[i + 1]].tolist() for i in range(len(indptr) - 1)]
    return list(column.tolist())
