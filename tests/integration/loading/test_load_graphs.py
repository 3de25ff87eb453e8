"""Load NetworkX, SciPy, pandas and igraph objects, and compare the space with the object."""

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
import pyarrow as pa
import pytest
import scipy.sparse as sp
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S
from tests.kit.whole import edges_of, nodes_of

import asterism
from asterism import Client, InvalidRequest
from asterism.calls.loads import Load
from asterism.objects import graph_tables


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with asterism.open(tmp_path_factory.mktemp("objects")) as opened:
        yield opened


def edge_counter(
    edges: list[tuple[int, int, dict[str, Any]]], *names: str
) -> Counter[tuple[Any, ...]]:
    return Counter(
        (src, dst, *(attributes[name] for name in names)) for src, dst, attributes in edges
    )


def test_undirected_graph_with_text_ids_loads_both_ways(client: Client) -> None:
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
    expected = Counter()
    for u, v, attributes in club.edges(data=True):
        expected.update({(u, v, float(attributes["weight"])), (v, u, float(attributes["weight"]))})
    edges = edges_of(graph, "edge")
    assert (
        edge_counter(
            [(names[src], names[dst], attributes) for src, dst, attributes in edges], "weight"
        )
        == expected
    )
    assert {names[i]: attributes for i, attributes in nodes_of(graph, "node").items()} == {
        name: {"weight": 1.0, "club": attributes["club"], "place": attributes["place"]}
        for name, attributes in club.nodes(data=True)
    }


def test_parallel_edges_keep_ids_attributes_and_order(client: Client) -> None:
    multigraph = nx.MultiDiGraph()
    multigraph.add_nodes_from([(70, {"age": 3}), (5, {"age": 4}), (1 << 40, {"age": 5})])
    multigraph.add_edge(70, 5, cost=2, kind="road")
    multigraph.add_edge(70, 5, cost=3, kind="rail")
    multigraph.add_edge(5, 1 << 40, cost=4, kind="")
    loaded = client.load_graph(
        "roads",
        multigraph,
        weights="cost",
        rename={"kind": "way"},
        node_type="town",
        relation="leads",
        build=True,
        parts=2,
    )
    assert (loaded.names, loaded.left_out, loaded.edges) == ({}, ("edge keys",), 3)
    graph = client.graph("roads")
    assert [edge.name for edge in graph.schema.edge_types] == ["town:leads:town"]
    assert {node: attributes["age"] for node, attributes in nodes_of(graph, "town").items()} == {
        70: 3,
        5: 4,
        1 << 40: 5,
    }
    assert edges_of(graph, "leads") == [
        (70, 5, {"weight": 2.0, "cost": 2, "way": "road"}),
        (70, 5, {"weight": 3.0, "cost": 3, "way": "rail"}),
        (5, 1 << 40, {"weight": 4.0, "cost": 4, "way": ""}),
    ]


def test_missing_weights_are_one_and_other_gaps_use_fill(client: Client) -> None:
    nx_graph = nx.Graph()
    nx_graph.add_edge("a", "b", weight=2.5)
    nx_graph.add_edge("b", "c", hue=7)
    with pytest.raises(
        InvalidRequest,
        match=r"attribute 'hue', row 0: expected a value, found a missing one .* `fill`",
    ):
        client.load_graph("gaps", nx_graph)
    assert [space.name for space in client.spaces() if space.name == "gaps"] == [], (
        "what is refused leaves no space"
    )
    client.load_graph("gaps", nx_graph, fill={"hue": -1}, build=True, parts=2)
    assert edges_of(client.graph("gaps"), "edge") == [
        (0, 1, {"weight": 2.5, "hue": -1}),
        (1, 2, {"weight": 1.0, "hue": 7}),
        (1, 0, {"weight": 2.5, "hue": -1}),
        (2, 1, {"weight": 1.0, "hue": 7}),
    ]


def test_duplicate_matrix_entries_are_summed(client: Client) -> None:
    matrix = sp.coo_array(([1.0, 2.0, 4.0, 0.0], ([0, 0, 1, 2], [1, 1, 2, 0])), shape=(3, 3))
    client.load_graph("summed", matrix, build=True, parts=2)
    assert edges_of(client.graph("summed"), "edge") == [
        (0, 1, {"weight": 3.0}),
        (1, 2, {"weight": 4.0}),
        (2, 0, {"weight": 0.0}),
    ]


def test_matrices_by_type_join_types_of_several_sizes(client: Client) -> None:
    buys = sp.random_array((30, 7), density=0.2, rng=np.random.default_rng(2), format="csr")
    likes = sp.random_array((30, 30), density=0.1, rng=np.random.default_rng(3), format="csc")
    client.load_graph(
        "bought", {("user", "buys", "item"): buys, "user:likes:user": likes}, build=True, parts=2
    )
    graph = client.graph("bought")
    assert {kind.name: len(nodes_of(graph, kind.name)) for kind in graph.schema.node_types} == {
        "user": 30,
        "item": 7,
    }
    for name, matrix in (("buys", buys), ("likes", likes)):
        coo = matrix.tocoo()
        expected = Counter(
            zip(
                coo.coords[0].tolist(),
                coo.coords[1].tolist(),
                coo.data.astype(np.float32).tolist(),
                strict=True,
            )
        )
        assert edge_counter(edges_of(graph, name), "weight") == expected


def test_frames_of_texts_and_numbers_keep_every_column(client: Client) -> None:
    users = pd.DataFrame(
        {
            "id": ["ann", "bob", "eve"],
            "age": np.array([30, 40, 50], np.int16),
            "town": pd.Categorical(["x", "y", "x"]),
        }
    )
    items = pd.DataFrame({"price": [1.5, 2.5]}, index=[10, 77])
    buys = pd.DataFrame(
        {
            "who": ["eve", "ann", "eve"],
            "what": [77, 10, 77],
            "weight": [1, 2, 3],
            "note": ["a", "b", "ü"],
            "paid": [True, False, True],
        }
    )
    knows = pd.DataFrame({"who": ["ann"], "what": ["bob"]})
    loaded = client.load_graph(
        "frames",
        {("user", "buys", "item"): buys, "user:knows:user": knows},
        nodes={"user": users, "item": items},
        ends=("who", "what"),
        build=True,
    )
    assert {name: labels.tolist() for name, labels in loaded.names.items()} == {
        "user": ["ann", "bob", "eve"]
    }
    graph = client.graph("frames")
    assert graph.schema.node_types[0].feature("age").dtype == "int16"
    assert nodes_of(graph, "user") == {
        i: {"weight": 1.0, "age": 30 + 10 * i, "town": "xyx"[i]} for i in range(3)
    }
    assert nodes_of(graph, "item") == {
        10: {"weight": 1.0, "price": 1.5},
        77: {"weight": 1.0, "price": 2.5},
    }
    assert edges_of(graph, "buys") == [
        (2, 77, {"weight": 1.0, "note": "a", "paid": True}),
        (0, 10, {"weight": 2.0, "note": "b", "paid": False}),
        (2, 77, {"weight": 3.0, "note": "ü", "paid": True}),
    ]
    assert edges_of(graph, "knows") == [(0, 1, {"weight": 1.0})]


def test_edge_frame_alone_defines_its_nodes(client: Client) -> None:
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(
        {
            "src": rng.integers(0, 500, 3000) * 7,
            "dst": rng.integers(0, 500, 3000) * 7,
            "weight": rng.random(3000, np.float32),
        }
    )
    client.load_graph("lone", frame, build=True, parts=2)
    graph = client.graph("lone")
    assert sorted(nodes_of(graph, "node")) == sorted(set(frame.src) | set(frame.dst))
    assert [
        (src, dst, attributes["weight"]) for src, dst, attributes in edges_of(graph, "edge")
    ] == list(frame.itertuples(index=False, name=None))


def test_types_of_any_script_work_in_filters_and_statements(client: Client) -> None:
    sales = pa.table(
        {"src": [0, 1, 1], "dst": [0, 0, 1], "время": pa.array([5, 7, 9], pa.timestamp("s"))}
    )
    users = pa.table({"id": [0, 1], "年龄": [30, 40]})
    client.load_graph(
        "scripts",
        {("User", "buys", "товар"): sales},
        nodes={"User": users},
        types={"User": "用户", ("User", "buys", "товар"): "購買"},
        time_unit="s",
        build=True,
        parts=2,
    )
    graph = client.graph("scripts")
    assert [t.name for t in graph.schema.edge_types] == ["用户:購買:товар"]
    assert nodes_of(graph, "用户")[1]["年龄"] == 40
    assert set(graph.sample_nodes(5, "用户", where="`年龄` > 35", seed=1).nodes.tolist()) == {1}
    near = graph.sample_neighbors([1], "購買", 3, where="`время` > 7", seed=1)
    assert near.nodes.tolist() == [[1, 1, 1]]
    statement = "GO FROM 1 OVER `購買` WHERE `время` > 7 YIELD `время`, $^.`年龄`"
    assert list(client.query(statement, space="scripts").rows()) == [(9, 40)]


def test_array_of_edges_keeps_nodes_without_edges(client: Client) -> None:
    index = np.array([[0, 1, 1], [1, 0, 2]])
    loaded = client.load_graph("array", index, nodes=5, build=True, parts=2)
    assert (loaded.nodes, loaded.edges) == (5, 3)
    graph = client.graph("array")
    assert Counter((src, dst) for src, dst, _ in edges_of(graph, "edge")) == Counter(
        zip(*index.tolist(), strict=True)
    )
    assert set(nodes_of(graph, "node")) == set(range(5))


@pytest.mark.parametrize("directed", [True, False])
def test_igraph_graph_keeps_vertices_edges_and_attributes(client: Client, directed: bool) -> None:
    ig_graph = igraph.Graph(n=6, edges=[(0, 1), (1, 2), (2, 2), (4, 0)], directed=directed)
    ig_graph.vs["name"] = [f"v{i}" for i in range(6)]
    ig_graph.vs["x"] = [[i, i + 1] for i in range(6)]
    ig_graph.es["weight"] = [1, 2, 3, 0.5]
    ig_graph["made"] = "today"
    space = f"vertices-{directed}".lower()
    loaded = client.load_graph(space, ig_graph, build=True, parts=2)
    assert loaded.left_out == ("graph.made",)
    graph = client.graph(space)
    assert nodes_of(graph, "node") == {
        i: {"weight": 1.0, "name": f"v{i}", "x": [i, i + 1]} for i in range(6)
    }
    forward = [(0, 1, 1.0), (1, 2, 2.0), (2, 2, 3.0), (4, 0, 0.5)]
    backward = [] if directed else [(1, 0, 1.0), (2, 1, 2.0), (0, 4, 0.5)]
    assert edge_counter(edges_of(graph, "edge"), "weight") == Counter(forward + backward), (
        "igraph writes an undirected edge from its smaller end"
    )


def test_chunk_size_does_not_change_what_is_loaded(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    nx_graph = nx.gnp_random_graph(60, 0.2, seed=1)
    nx.set_node_attributes(nx_graph, {i: f"{'n' * i}" for i in nx_graph}, "text")
    nx.set_edge_attributes(
        nx_graph, {edge: float(i) for i, edge in enumerate(nx_graph.edges)}, "weight"
    )
    client.load_graph("in-one", nx_graph, build=True, parts=2)
    monkeypatch.setattr(graph_tables, "PIECE_ROWS", 7)
    client.load_graph("in-many", nx_graph, build=True, parts=2)
    one, many = (client.graph(space) for space in ("in-one", "in-many"))
    assert edges_of(one, "edge") == edges_of(many, "edge")
    assert len(edges_of(one, "edge")) == 2 * nx_graph.number_of_edges() > 500
    assert nodes_of(one, "node") == nodes_of(many, "node")


def test_existing_space_takes_only_graphs_that_fit(client: Client) -> None:
    matrix = sp.csr_array(np.eye(3))
    client.load_graph("there", matrix, build=True, parts=2)
    client.load_graph("there", matrix, build=True, parts=2)
    assert len(edges_of(client.graph("there"), "edge")) == 6, "edges are added"
    with pytest.raises(
        InvalidRequest, match=r"space='there': expected a space with .*: no node type 'thing'"
    ):
        client.load_graph("there", matrix, node_type="thing")


def test_cluster_loads_a_graph_as_an_embedded_service_does(client: Client) -> None:
    nx_graph = nx.gnm_random_graph(200, 900, seed=5, directed=True)
    nx.set_edge_attributes(nx_graph, {edge: [i, -i] for i, edge in enumerate(nx_graph.edges)}, "x")
    client.load_graph("remote", nx_graph, build=True, parts=2)
    with LocalCluster(storageds=2) as cluster, cluster.client() as remote:
        assert remote.load_graph("remote", nx_graph, build=True, parts=2).edges == 900
        assert edges_of(remote.graph("remote"), "edge") == edges_of(client.graph("remote"), "edge")
        assert len(edges_of(remote.graph("remote"), "edge")) == 900


def test_reading_an_object_imports_no_other_library() -> None:
    program = (
        "import sys, asterism.objects.detection as o\n"
        "from asterism.objects.read_options import ReadOptions\n"
        "try:\n    o.read_tables(object(), ReadOptions())\nexcept o.InvalidRequest as error:\n    "
        "assert 'DGLGraph' in str(error)\n"
        "print(*({'torch', 'torch_geometric', 'dgl', 'networkx', 'scipy', 'pandas', "
        "'igraph', 'pyarrow', 'numba'} & set(sys.modules)))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            timeout=HANG_S,
        ).stdout.split()
        == []
    )


def test_failed_abandon_keeps_the_first_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with asterism.open(tmp_path) as opened:

        def fail_write(load: Load, *_: object, **__: object) -> None:
            opened.close()
            raise InvalidRequest("the first fault")

        monkeypatch.setattr(Load, "write_edges", fail_write)
        with pytest.raises(InvalidRequest, match="the first fault") as caught:
            opened.load_graph("path", nx.path_graph(3))
    assert "could not be abandoned" in caught.value.__notes__[0]
