"""Graphs of NetworkX, SciPy, pandas and igraph in a space: what is read back is what the object holds."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import igraph
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S
from tests.kit.whole import edges_of, nodes_of

import asterism
from asterism import Client, InvalidRequest
from asterism.loading import Load
from asterism.objects import tables


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with asterism.open(tmp_path_factory.mktemp("objects")) as opened:
        yield opened


def counted(edges: list[tuple[int, int, dict[str, Any]]], *names: str) -> Counter[tuple[Any, ...]]:
    return Counter((src, dst, *(held[name] for name in names)) for src, dst, held in edges)


def test_an_undirected_graph_with_texts_is_numbered_and_goes_both_ways(client: Client) -> None:
    club = nx.karate_club_graph()
    club = nx.relabel_nodes(club, {i: f"member {i}" for i in club})
    club.add_edge("member 3", "member 3", weight=9)
    nx.set_node_attributes(club, {name: [float(i), i / 2] for i, name in enumerate(club)}, "place")
    loaded = client.load_graph("club", club, build=True, parts=2)
    names = loaded.names["node"]
    assert names.tolist() == list(club)
    assert (loaded.nodes, loaded.edges, loaded.version) == (34, 2 * 78 + 1, 1)
    assert set(loaded.left_out) == {"graph.name"}
    graph = client.graph("club")
    wanted = Counter()
    for u, v, held in club.edges(data=True):
        wanted.update({(u, v, float(held["weight"])), (v, u, float(held["weight"]))})
    found = edges_of(graph, "edge")
    assert counted([(names[src], names[dst], held) for src, dst, held in found], "weight") == wanted
    assert {names[i]: held for i, held in nodes_of(graph, "node").items()} == {
        name: {"weight": 1.0, "club": held["club"], "place": held["place"]} for name, held in club.nodes(data=True)
    }


def test_parallel_directed_edges_between_whole_numbers_keep_ids_attributes_and_order(client: Client) -> None:
    made = nx.MultiDiGraph()
    made.add_nodes_from([(70, {"age": 3}), (5, {"age": 4}), (1 << 40, {"age": 5})])
    made.add_edge(70, 5, cost=2, kind="road")
    made.add_edge(70, 5, cost=3, kind="rail")
    made.add_edge(5, 1 << 40, cost=4, kind="")
    loaded = client.load_graph("roads", made, weights="cost", rename={"kind": "way"}, node_type="town", relation="leads", build=True, parts=2)
    assert (loaded.names, loaded.left_out, loaded.edges) == ({}, ("edge keys",), 3)
    graph = client.graph("roads")
    assert [edge.name for edge in graph.schema.edge_types] == ["town:leads:town"]
    assert {node: held["age"] for node, held in nodes_of(graph, "town").items()} == {70: 3, 5: 4, 1 << 40: 5}
    assert edges_of(graph, "leads") == [
        (70, 5, {"weight": 2.0, "cost": 2, "way": "road"}),
        (70, 5, {"weight": 3.0, "cost": 3, "way": "rail"}),
        (5, 1 << 40, {"weight": 4.0, "cost": 4, "way": ""}),
    ]


def test_weights_that_some_edges_lack_are_one_and_other_gaps_are_filled_as_told(client: Client) -> None:
    made = nx.Graph()
    made.add_edge("a", "b", weight=2.5)
    made.add_edge("b", "c", hue=7)
    with pytest.raises(InvalidRequest, match=r"attribute 'hue' is missing in row 0 .* `fill`"):
        client.load_graph("gaps", made)
    assert [space.name for space in client.spaces() if space.name == "gaps"] == [], "what is refused leaves no space"
    client.load_graph("gaps", made, fill={"hue": -1}, build=True, parts=2)
    assert edges_of(client.graph("gaps"), "edge") == [
        (0, 1, {"weight": 2.5, "hue": -1}),
        (1, 2, {"weight": 1.0, "hue": 7}),
        (1, 0, {"weight": 2.5, "hue": -1}),
        (2, 1, {"weight": 1.0, "hue": 7}),
    ]


def test_entries_that_are_there_twice_are_added_up_as_scipy_does(client: Client) -> None:
    made = sp.coo_array(([1.0, 2.0, 4.0, 0.0], ([0, 0, 1, 2], [1, 1, 2, 0])), shape=(3, 3))
    client.load_graph("summed", made, build=True, parts=2)
    assert edges_of(client.graph("summed"), "edge") == [(0, 1, {"weight": 3.0}), (1, 2, {"weight": 4.0}), (2, 0, {"weight": 0.0})]


def test_matrices_by_type_join_types_of_several_sizes(client: Client) -> None:
    buys = sp.random_array((30, 7), density=0.2, rng=np.random.default_rng(2), format="csr")
    likes = sp.random_array((30, 30), density=0.1, rng=np.random.default_rng(3), format="csc")
    client.load_graph("bought", {("user", "buys", "item"): buys, "user:likes:user": likes}, build=True, parts=2)
    graph = client.graph("bought")
    assert {kind.name: len(nodes_of(graph, kind.name)) for kind in graph.schema.node_types} == {"user": 30, "item": 7}
    for name, matrix in (("buys", buys), ("likes", likes)):
        coo = matrix.tocoo()
        wanted = Counter(zip(coo.coords[0].tolist(), coo.coords[1].tolist(), coo.data.astype(np.float32).tolist(), strict=True))
        assert counted(edges_of(graph, name), "weight") == wanted


def test_frames_of_texts_and_numbers_keep_every_column(client: Client) -> None:
    users = pd.DataFrame({"id": ["ann", "bob", "eve"], "age": np.array([30, 40, 50], np.int16), "town": pd.Categorical(["x", "y", "x"])})
    items = pd.DataFrame({"price": [1.5, 2.5]}, index=[10, 77])
    buys = pd.DataFrame(
        {"who": ["eve", "ann", "eve"], "what": [77, 10, 77], "weight": [1, 2, 3], "note": ["a", "b", "ü"], "paid": [True, False, True]}
    )
    knows = pd.DataFrame({"who": ["ann"], "what": ["bob"]})
    loaded = client.load_graph(
        "frames", {("user", "buys", "item"): buys, "user:knows:user": knows}, nodes={"user": users, "item": items}, ends=("who", "what"), build=True
    )
    assert {name: labels.tolist() for name, labels in loaded.names.items()} == {"user": ["ann", "bob", "eve"]}
    graph = client.graph("frames")
    assert graph.schema.node_types[0].feature("age").dtype == "int16"
    assert nodes_of(graph, "user") == {i: {"weight": 1.0, "age": 30 + 10 * i, "town": "xyx"[i]} for i in range(3)}
    assert nodes_of(graph, "item") == {10: {"weight": 1.0, "price": 1.5}, 77: {"weight": 1.0, "price": 2.5}}
    assert edges_of(graph, "buys") == [
        (2, 77, {"weight": 1.0, "note": "a", "paid": True}),
        (0, 10, {"weight": 2.0, "note": "b", "paid": False}),
        (2, 77, {"weight": 3.0, "note": "ü", "paid": True}),
    ]
    assert edges_of(graph, "knows") == [(0, 1, {"weight": 1.0})]


def test_a_lone_frame_of_edges_has_the_nodes_that_it_names(client: Client) -> None:
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"src": rng.integers(0, 500, 3000) * 7, "dst": rng.integers(0, 500, 3000) * 7, "weight": rng.random(3000, np.float32)})
    client.load_graph("lone", frame, build=True, parts=2)
    graph = client.graph("lone")
    assert sorted(nodes_of(graph, "node")) == sorted(set(frame.src) | set(frame.dst))
    assert [(src, dst, held["weight"]) for src, dst, held in edges_of(graph, "edge")] == list(frame.itertuples(index=False, name=None))


@pytest.mark.parametrize("directed", [True, False])
def test_a_graph_of_igraph_keeps_vertices_edges_and_attributes(client: Client, directed: bool) -> None:
    made = igraph.Graph(n=6, edges=[(0, 1), (1, 2), (2, 2), (4, 0)], directed=directed)
    made.vs["name"] = [f"v{i}" for i in range(6)]
    made.vs["x"] = [[i, i + 1] for i in range(6)]
    made.es["weight"] = [1, 2, 3, 0.5]
    made["made"] = "today"
    space = f"vertices-{directed}".lower()
    loaded = client.load_graph(space, made, build=True, parts=2)
    assert loaded.left_out == ("graph.made",)
    graph = client.graph(space)
    assert nodes_of(graph, "node") == {i: {"weight": 1.0, "name": f"v{i}", "x": [i, i + 1]} for i in range(6)}
    there = [(0, 1, 1.0), (1, 2, 2.0), (2, 2, 3.0), (4, 0, 0.5)]
    back = [] if directed else [(1, 0, 1.0), (2, 1, 2.0), (0, 4, 0.5)]
    assert counted(edges_of(graph, "edge"), "weight") == Counter(there + back), "igraph writes an undirected edge from its smaller end"


def test_pieces_make_no_difference_to_what_is_loaded(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    made = nx.gnp_random_graph(60, 0.2, seed=1)
    nx.set_node_attributes(made, {i: f"{'n' * i}" for i in made}, "text")
    nx.set_edge_attributes(made, {edge: float(i) for i, edge in enumerate(made.edges)}, "weight")
    client.load_graph("in-one", made, build=True, parts=2)
    monkeypatch.setattr(tables, "PIECE_ROWS", 7)
    client.load_graph("in-many", made, build=True, parts=2)
    one, many = (client.graph(space) for space in ("in-one", "in-many"))
    assert edges_of(one, "edge") == edges_of(many, "edge")
    assert len(edges_of(one, "edge")) == 2 * made.number_of_edges() > 500
    assert nodes_of(one, "node") == nodes_of(many, "node")


def test_a_space_that_is_there_takes_what_fits_it_and_refuses_what_does_not(client: Client) -> None:
    made = sp.csr_array(np.eye(3))
    client.load_graph("there", made, build=True, parts=2)
    client.load_graph("there", made, build=True, parts=2)
    assert len(edges_of(client.graph("there"), "edge")) == 6, "edges are added"
    with pytest.raises(InvalidRequest, match=r"space 'there' can not hold the graph: no node type 'thing'"):
        client.load_graph("there", made, node_type="thing")


def test_a_cluster_takes_a_graph_as_an_embedded_service_does(client: Client) -> None:
    made = nx.gnm_random_graph(200, 900, seed=5, directed=True)
    nx.set_edge_attributes(made, {edge: [i, -i] for i, edge in enumerate(made.edges)}, "x")
    client.load_graph("remote", made, build=True, parts=2)
    with LocalCluster(storageds=2) as cluster, cluster.client() as remote:
        assert remote.load_graph("remote", made, build=True, parts=2).edges == 900
        assert edges_of(remote.graph("remote"), "edge") == edges_of(client.graph("remote"), "edge")
        assert len(edges_of(remote.graph("remote"), "edge")) == 900


def test_no_library_is_imported_that_the_object_is_not_of() -> None:
    program = (
        "import sys, asterism.objects.opening as o\nfrom asterism.objects.asked import Asked\n"
        "try:\n    o.read_tables(object(), Asked())\nexcept o.InvalidRequest as error:\n    assert 'DGLGraph' in str(error)\n"
        "print(*({'torch', 'torch_geometric', 'dgl', 'networkx', 'scipy', 'pandas', 'igraph', 'pyarrow', 'numba'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=HANG_S).stdout.split() == []


def test_a_load_that_can_not_be_given_up_either_fails_with_what_went_wrong_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with asterism.open(tmp_path) as opened:

        def refused(load: Load, *_: object, **__: object) -> None:
            opened.close()
            raise InvalidRequest("the first fault")

        monkeypatch.setattr(Load, "write_edges", refused)
        with pytest.raises(InvalidRequest, match="the first fault") as failed:
            opened.load_graph("path", nx.path_graph(3))
    assert "could not be given up" in failed.value.__notes__[0]
