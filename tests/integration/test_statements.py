"""A statement gives what the call that it stands for gives, byte for byte, on a cluster and inside a process, over gRPC and HTTP."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from tests.kit import cases
from tests.kit.cases_clusters import cases_cluster
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S

import asterism
from asterism import Graph
from asterism.records import Result
from asterism_proto.errors import AsterismError, InvalidRequest, NotFound, NotReady

PEOPLE = cases.person_ids()[:20]
CITED = tuple(part[:6] for part in cases.edges()["cites"][:2])
GIVEN = {
    "people": PEOPLE,
    "papers": np.arange(12),
    "n": 30,
    "old": 40,
    "names": ["person 3", "person 4"],
    "fan": [4, 3],
    "from": CITED[0],
    "to": CITED[1],
}
WRITES, CITES = 0, 1


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with cases_cluster(2) as started:
        yield started


@pytest.fixture(scope="module")
def graphs(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Graph]]:
    with cluster.client() as client, asterism.open(cases.built_in(tmp_path_factory.mktemp("statements"))) as inside:
        yield {"cluster": client.graph("cases"), "embedded": inside.graph("cases")}


@pytest.fixture(params=["cluster", "embedded"])
def graph(request: pytest.FixtureRequest, graphs: Mapping[str, Graph]) -> Graph:
    return graphs[request.param]


def kept(sample: Any, near: Any, *columns: Any) -> list[Any]:
    """Columns of neighbors [m, n], row after row, without places where there is none; the nodes that they are of first."""
    there = (sample.nodes >= 0).reshape(-1)
    rows = np.repeat(near, sample.nodes.shape[1])
    return [column.reshape(-1)[there] for column in (rows, sample.nodes, *columns)]


def fanned(graph: Graph) -> list[Any]:
    sample = graph.sample_fanout(PEOPLE, ["writes", "cites"], [4, 3], seed=7)
    first, last = sample.hops
    there = last.nodes >= 0
    return [np.repeat(first.nodes, 3)[there], last.nodes[there], last.weights[there]]


def layered(graph: Graph) -> list[Any]:
    sample = graph.sample_layer(PEOPLE, "writes", 9, measure="sqrt", seed=7)
    edges = sample.adjacency
    return [PEOPLE[edges.rows], sample.nodes[edges.cols], edges.weights]


def everything(graph: Graph) -> list[Any]:
    found = graph.neighbors(PEOPLE, "writes", where="when > 1000")
    return [np.repeat(PEOPLE, np.diff(found.indptr)), found.nodes, found.weights, graph.edge_features(found.edge_ids, ["when"], "writes")["when"]]


def two_steps(graph: Graph) -> list[Any]:
    found = graph.multi_hop_neighbors(PEOPLE, ["writes", "cites"])
    edges = found.adjacencies[1]
    return [found.nodes[1][edges.rows], found.nodes[2][edges.cols]]


def first_ones(graph: Graph) -> list[Any]:
    """Two edges of each author's, and three of each paper's that these lead to, once each."""
    found = graph.neighbors(PEOPLE, "writes")
    kept_ = np.concatenate([np.arange(a, min(a + 2, b)) for a, b in pairwise(found.indptr.tolist())])
    papers = found.nodes[np.sort(kept_)]
    papers = papers[np.sort(np.unique(papers, return_index=True)[1])]
    later = graph.neighbors(papers, "cites")
    kept_ = np.concatenate([np.arange(a, min(a + 3, b)) for a, b in pairwise(later.indptr.tolist())]).astype(np.int64)
    return [np.repeat(papers, np.diff(later.indptr))[kept_], later.nodes[kept_], later.weights[kept_]]


def between(graph: Graph) -> list[Any]:
    """All edges between each pair, from all edges of its source."""
    rows = []
    for src, dst in zip(*(ends.tolist() for ends in CITED), strict=True):
        found = graph.neighbors([src], "cites", edge_ids=True)
        assert found.edge_ids is not None
        rows += [(src, dst, weight, edge) for node, weight, edge in zip(found.nodes, found.weights, found.edge_ids, strict=True) if node == dst]
    assert len(rows) >= len(CITED[0])
    return [np.array(column, kind) for column, kind in zip(zip(*rows, strict=True), ("i8", "i8", "f4", "i8"), strict=True)]


def contrasted(graph: Graph) -> list[Any]:
    sample = graph.sample_negatives(PEOPLE, 3, "paper", seed=7)
    return [np.repeat(np.arange(20), 3), sample.nodes.reshape(-1)]


def walked(graph: Graph) -> list[Any]:
    sample = graph.random_walk(PEOPLE, ["writes", "by"], 5, p=0.5, q=2, walks=2, edge_ids=True, seed=7)
    return [PEOPLE[sample.starts], sample.nodes, sample.edge_ids]


def with_features(graph: Graph) -> list[Any]:
    nodes = graph.sample_nodes(30, "person", where="age > 40", weight="aged", seed=7).nodes
    return [nodes, graph.node_features(nodes, ["age"], "person")["age"]]


CALLS: list[tuple[str, Callable[[Graph], list[Any]]]] = [
    ("SAMPLE $n VERTICES SEED 7 YIELD id, probability",
     lambda g: (lambda s: [s.nodes, s.probabilities])(g.sample_nodes(30, probabilities=True, seed=7))),
    ("SAMPLE $n VERTICES ON person WHERE age > $old WEIGHT aged SEED 7 YIELD id, age", with_features),
    ("SAMPLE 50 VERTICES ON paper, person UNIFORM WITHOUT REPLACEMENT SEED 7 YIELD id",
     lambda g: [g.sample_nodes(50, ["paper", "person"], weighted=False, replace=False, seed=7).nodes]),
    ("SAMPLE 2 VERTICES LIKE $people ON person SEED 7 YIELD id",
     lambda g: [g.sample_nodes_like(PEOPLE, 2, ntype="person", seed=7).nodes.reshape(-1)]),
    ("SAMPLE 40 EDGES ON writes, cites WEIGHT recent SEED 7 YIELD src, dst, edge_id, weight",
     lambda g: (lambda s: [s.src, s.dst, s.edge_ids, s.weights])(g.sample_edges(40, ["writes", "cites"], weight="recent", seed=7))),
    ("SAMPLE 5 NEIGHBORS FROM $people OVER writes WHERE $$.paper.vec[0] > 50 SEED 7 YIELD src, dst, weight, edge_id, probability",
     lambda g: (lambda s: kept(s, PEOPLE, s.weights, s.edge_ids, s.probabilities))(
         g.sample_neighbors(PEOPLE, "writes", 5, where="dst.vec[0] > 50", edge_ids=True, probabilities=True, seed=7))),
    ("SAMPLE 5 NEIGHBORS FROM $papers OVER writes, cites REVERSELY WITHOUT REPLACEMENT SEED 7 YIELD dst, src",
     lambda g: (lambda s: kept(s, np.arange(12)))(
         g.sample_neighbors(np.arange(12), ["writes", "cites"], 5, direction="in", replace=False, seed=7))),
    ("SAMPLE 5 NEIGHBORS FROM $people OVER writes PADDED SEED 7 YIELD dst",
     lambda g: [g.sample_neighbors(PEOPLE, "writes", 5, seed=7).nodes.reshape(-1)]),
    ("TOP 3 NEIGHBORS FROM $people OVER writes YIELD src, dst, weight",
     lambda g: (lambda s: kept(s, PEOPLE, s.weights))(g.top_k_neighbors(PEOPLE, "writes", 3))),
    ("GO 2 STEPS FROM $people OVER writes THEN cites SAMPLE $fan SEED 7 YIELD src, dst, weight", fanned),
    ("GO FROM $people OVER writes WHERE when > 1000 YIELD src, dst, weight, when", everything),
    ("GO 2 STEPS FROM $people OVER writes THEN cites YIELD src, dst", two_steps),
    ("GO 2 STEPS FROM $people OVER writes THEN cites YIELD DISTINCT dst | ORDER BY dst", lambda g: [np.unique(two_steps(g)[1])]),
    ("GO 2 STEPS FROM $people OVER writes THEN cites YIELD src, dst, weight LIMIT [2, 3]", first_ones),
    ("FETCH PROP ON cites $from -> $to YIELD src, dst, weight, edge_id", between),
    ("SAMPLE LAYER 9 FROM $people OVER writes BY SQRT SEED 7 YIELD src, dst, weight", layered),
    ("SAMPLE LAYER 9 FROM $people OVER writes SEED 7 YIELD id, probability",
     lambda g: (lambda s: [s.nodes, s.probabilities])(g.sample_layer(PEOPLE, "writes", 9, seed=7))),
    ("SAMPLE LAYERS [9, 8] FROM $people OVER writes THEN cites SEED 7 YIELD id",
     lambda g: [np.concatenate([one.nodes for one in g.sample_fanout_layerwise(PEOPLE, ["writes", "cites"], [9, 8], seed=7).layers])]),
    ("SAMPLE 3 NEGATIVES FROM $people ON paper SEED 7 YIELD row, id", contrasted),
    ("WALK 5 STEPS FROM $people OVER writes THEN by P 0.5 Q 2 WALKS 2 SEED 7 YIELD start, path, edge_ids", walked),
    ("FETCH PROP ON paper $papers YIELD vec", lambda g: [g.node_features(np.arange(12), ["vec"], "paper")["vec"]]),
    ("FETCH PROP ON writes 3, 4, 5 YIELD edge_id, when", lambda g: [np.array([3, 4, 5]), g.edge_features([3, 4, 5], ["when"], "writes")["when"]]),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "call"), CALLS, ids=[statement[:60] for statement, _ in CALLS])
def test_a_statement_gives_what_its_call_gives(graph: Graph, statement: str, call: Callable[[Graph], list[Any]]) -> None:
    found = graph.query(statement, GIVEN)
    expected = call(graph)
    assert len(found.columns) == len(expected)
    assert len(found) == len(expected[0]) > 0
    for name, array in zip(found.columns, expected, strict=True):
        column: Any = found[name]
        assert column.dtype == array.dtype, name
        assert column.tobytes() == array.tobytes(), name
    assert (found.version, found.space) == (1, "cases")
    assert found.seed == (7 if "SEED" in statement else None)


BOTH_WAYS = [
    "SAMPLE 5 NEIGHBORS FROM $papers ON paper OVER * BIDIRECT WITHOUT REPLACEMENT SEED 7 YIELD src, dst, edge_id, probability, type",
    "GO 1 TO 2 STEPS FROM $people OVER writes BIDIRECT SAMPLE $fan SEED 7 YIELD step, row, src, dst, probability",
    "GO 2 STEPS FROM $people OVER writes BIDIRECT YIELD src, dst, weight LIMIT [2, 1]",
]


@pytest.mark.parametrize("statement", [*(statement for statement, _ in CALLS), *BOTH_WAYS], ids=lambda statement: statement[:60])
def test_a_cluster_and_a_process_give_the_same(graphs: Mapping[str, Graph], statement: str) -> None:
    one, other = (graphs[name].query(statement, GIVEN) for name in ("cluster", "embedded"))
    assert one.rows() == other.rows()


def test_every_column_of_several_types_is_there_and_what_is_of_no_type_is_zero(graph: Graph) -> None:
    found = graph.query("SAMPLE 400 VERTICES UNIFORM SEED 3 YIELD id, type, age, name, vec, words, weight")
    ids, types = found["id"], found["type"]
    assert isinstance(types, np.ndarray)
    assert set(types.tolist()) == {"person", "paper"}
    people = types == "person"
    for names, kind, chosen in ((["age", "name", "weight"], "person", people), (["vec", "words"], "paper", ~people)):
        for name, column in graph.node_features(np.asarray(ids)[chosen], names, kind).items():
            of_all: Any = found[name]
            if isinstance(column, tuple):
                indptr, values = of_all
                rows = [values[indptr[i] : indptr[i + 1]].tolist() for i in np.flatnonzero(chosen)]
                assert rows == [column[1][a:b].tolist() for a, b in zip(column[0], column[0][1:], strict=False)]
                assert np.diff(indptr)[~chosen].sum() == 0
            else:
                assert np.array_equal(of_all[chosen], column)
                assert name == "weight" or not of_all[~chosen].any()


def test_a_token_of_a_statement_makes_its_call_again(graph: Graph) -> None:
    found = graph.query("SAMPLE 30 VERTICES ON person WHERE age > 40")
    again = graph.replay(found.token)
    assert np.array_equal(again.nodes, np.asarray(found["id"]))
    assert again.seed == found.seed
    assert found.digest == graph.manifest().digest
    both = graph.query("SAMPLE 3 NEIGHBORS FROM $papers OVER cites BIDIRECT", GIVEN)
    assert (both.token, both.seed is None) == ("", False), "no one call makes it again"


def test_a_query_goes_on_in_the_space_that_it_ended_in(graph: Graph) -> None:
    client = graph.client
    assert client.query("USE cases").space == "cases"
    assert client.query("USE cases; SAMPLE 2 VERTICES; SHOW SPACES")["name"].tolist() == ["cases"]  # type: ignore[union-attr]
    with pytest.raises(InvalidRequest, match="a statement about no space"):
        client.query("SAMPLE 2 VERTICES")
    assert len(client.query("SAMPLE 2 VERTICES", space="cases")) == 2
    nothing = client.query("  # nothing\n;")
    assert (len(nothing), nothing.columns, nothing.kind) == (0, (), "nothing")


def test_the_catalog_is_shown_as_the_client_has_it(graph: Graph) -> None:
    client, schema = graph.client, graph.schema
    assert graph.query("SHOW TAGS")["name"].tolist() == [kind.name for kind in schema.node_types]  # type: ignore[union-attr]
    assert graph.query("SHOW EDGES")["name"].tolist() == [kind.name for kind in schema.edge_types]  # type: ignore[union-attr]
    stats = {row[1]: row[2:] for row in graph.query("SHOW STATS")}
    info = graph.manifest()
    assert stats["person"] == (cases.PEOPLE, info.weight("NODE", 0))
    assert stats["person:writes:paper"] == (cases.WRITES, info.weight("EDGE", WRITES))
    assert graph.query("SHOW VERSIONS")["digest"].tolist() == [info.digest]  # type: ignore[union-attr]
    assert len(graph.query("SHOW PARTS")) == cases.PARTS
    assert set(graph.query("SHOW HOSTS")["host"].tolist()) == {host.address for host in client.hosts()}  # type: ignore[union-attr]
    jobs = graph.query("SHOW JOBS")
    assert jobs["job"].tolist() == [job.job_id for job in client.jobs("cases")]  # type: ignore[union-attr]
    assert graph.query("SHOW JOB $j", {"j": info.job_id}).rows()[0][:4] == (info.job_id, "build", "", "FINISHED")
    assert graph.query("DESC EDGE paper:cites:paper").rows() == graph.query("DESCRIBE EDGE cites").rows()
    assert graph.query("DESCRIBE TAG paper")["name"].tolist() == ["vec", "words", "aged"]  # type: ignore[union-attr]
    assert graph.query("DESC SPACE cases").rows() == [("cases", 1, cases.PARTS, "per_type", "mix64", "both")]


def test_a_space_is_made_by_the_statement_that_shows_it(graph: Graph) -> None:
    client = graph.client
    said = client.query("SHOW CREATE SPACE cases")["statement"][0]  # type: ignore[index]
    client.query(said.replace("SPACE `cases`", "SPACE `again`"))
    try:
        assert client.describe("again").schema == graph.schema
        with pytest.raises(AsterismError) as refused:
            client.query(said.replace("SPACE `cases`", "SPACE `again`").replace("parts = 10", "parts = 3"))
        assert refused.value.code == "ALREADY_EXISTS"
        again = client.graph("again")
        again.upsert_nodes([1, 2], "paper")
        job = client.query("USE again; SUBMIT JOB STATS")
        assert job["kind"].tolist() == ["build"]  # type: ignore[union-attr]
        number = int(job["job"][0])  # type: ignore[arg-type]
        assert client.wait(number).state == "FINISHED"
        assert client.query("USE again; SAMPLE 4 VERTICES ON paper").version == 1
        with pytest.raises(AsterismError, match=f"job {number}"):
            client.query(f"RECOVER JOB {number}")
    finally:
        dropped = client.query("DROP SPACE again; SHOW SPACES")
    assert dropped["name"].tolist() == ["cases"]  # type: ignore[union-attr]
    client.query("DROP SPACE IF EXISTS again")
    with pytest.raises(NotFound, match=r"line 1, column 12: space 'again' does not exist"):
        client.query("DROP SPACE again")


@pytest.mark.parametrize(
    ("statement", "error", "column", "said"),
    [
        ("SAMPLE 5 VERTICES ON persn", NotFound, 22, "no node type 'persn'; there are person, paper"),
        ("SAMPLE 5 EDGES ON write", NotFound, 19, "no edge type 'write'"),
        ("SAMPLE 5 VERTICES ON person WHERE agge > 3", NotFound, 35, "node type 'person' has no feature 'agge'"),
        ("SAMPLE 5 VERTICES ON person WHERE age > 'old'", InvalidRequest, 35, "no comparison with 'old'"),
        ("SAMPLE 5 VERTICES ON person YIELD id, agge", NotFound, 39, "no feature 'agge'"),
        ("SAMPLE 5 VERTICES ON person YIELD id, id", InvalidRequest, 1, "two columns are called 'id'"),
        ("SAMPLE 5 VERTICES ON person YIELD src", NotFound, 35, "no feature 'src'"),
        ("SAMPLE 5 NEIGHBORS FROM $people OVER *", InvalidRequest, 1, "say which with ON"),
        ("SAMPLE 5 NEIGHBORS FROM $people OVER writes THEN by", InvalidRequest, 50, "the edge types of one step"),
        ("SAMPLE $old NEIGHBORS FROM $names OVER writes", InvalidRequest, 28, "whole numbers: ids"),
        ("SAMPLE 5 VERTICES WEIGHT no", NotFound, 1, "'no'"),
        ("SAMPLE 5 VERTICES VERSION 9", NotFound, 1, "version 9"),
        ("GO 2 STEPS FROM 1 OVER cites SAMPLE [1]", InvalidRequest, 30, "a number for each step"),
        ("GO 3 TO 2 STEPS FROM 1 OVER cites SAMPLE [1, 2]", InvalidRequest, 1, "steps 3 to 2"),
        ("GO FROM 1 OVER cites UNIFORM", InvalidRequest, 22, "GO that draws nothing"),
        ("GO 2 STEPS FROM 1 OVER cites LIMIT [1]", InvalidRequest, 30, "a number for each step"),
        ("GO 2 STEPS FROM 1 OVER cites LIMIT [1, -2]", InvalidRequest, 30, "numbers of 0 or more"),
        ("GO 1 STEPS FROM 1 OVER cites SAMPLE [1] LIMIT [1]", InvalidRequest, 41, "one of them"),
        ("GO FROM 1 OVER cites THEN by SAMPLE [1]", InvalidRequest, 27, "the edge types of one step"),
        ("GO FROM $people OVER cites SAMPLE $names", InvalidRequest, 35, "whole numbers"),
        ("GO FROM 1 ON person OVER cites BIDIRECT", InvalidRequest, 1, "none of paper:cites:paper starts at person"),
        ("FETCH PROP ON cites $people -> $papers", InvalidRequest, 1, "as many sources as destinations"),
        ("FETCH PROP ON paper 1 -> 2", NotFound, 15, "no edge type 'paper'"),
        ("SAMPLE 5 VERTICES SEED 1.5", InvalidRequest, 19, "a whole number"),
        ("SAMPLE 5 VERTICES VERSION -1", InvalidRequest, 19, "expected 0 or more"),
        ("SHOW JOB -1", InvalidRequest, 1, "expected 0 or more"),
        ("WALK 3 STEPS FROM 1 OVER cites BIDIRECT", InvalidRequest, 32, "BIDIRECT"),
        ("FETCH PROP ON nothing 1", NotFound, 15, "no edge type 'nothing'"),
        ("SUBMIT JOB dance", InvalidRequest, 12, "job kind 'dance'"),
        ("SHOW JOB 999999", NotFound, 1, "job 999999"),
        ("SAMPLE 5 VERTICES ON paper | ORDER BY nope", InvalidRequest, 1, "ORDER BY nope: the table has id, type"),
        ("CREATE SPACE x (partition_nums = 3) TAG a", InvalidRequest, 17, "partition_num"),
        ("CREATE SPACE x TAG a (p floaty)", InvalidRequest, 14, "floaty"),
    ],
)  # fmt: skip
def test_what_can_not_be_is_refused_at_its_place(graph: Graph, statement: str, error: type[AsterismError], column: int, said: str) -> None:
    with pytest.raises(error) as refused:
        graph.query(statement, GIVEN)
    assert said in refused.value.message
    place = refused.value.place
    assert place is not None, refused.value.message
    assert (place.line, place.column) == (1, column), refused.value.message
    assert not place.incomplete


def test_a_graph_at_a_version_is_asked_at_it_and_a_session_never_falls_behind(cluster: LocalCluster) -> None:
    with cluster.client() as client:
        client.create_space("versions", {"nodes": {"n": {}}})
        graph = client.graph("versions")
        with pytest.raises(NotReady):
            graph.query("SAMPLE 1 VERTICES")
        for version in (1, 2):
            graph.upsert_nodes([version], "n")
            graph.build()
        assert set(np.asarray(graph.at(1).query("SAMPLE 50 VERTICES")["id"]).tolist()) == {1}
        assert set(np.asarray(graph.query("SAMPLE 50 VERTICES")["id"]).tolist()) == {1, 2}
        old = graph.query("SAMPLE 50 VERTICES VERSION $v", {"v": 1})
        assert (old.version, set(np.asarray(old["id"]).tolist())) == (1, {1})
        client.drop_space("versions")


def test_a_plan_says_what_would_be_asked_and_changes_nothing(graph: Graph) -> None:
    told = graph.query("EXPLAIN SAMPLE 300 VERTICES ON person SEED 7")
    account = graph.explain.sample_nodes(300, "person", seed=7)
    assert told["rows"].tolist() == [asked.rows for asked in account.asked]  # type: ignore[union-attr]
    assert told["host"].tolist() == [asked.host for asked in account.asked]  # type: ignore[union-attr]
    assert "Graph.SampleNodes(" in told.plan
    assert f"{account.reply_bytes:,} bytes" in told.plan
    assert graph.query("EXPLAIN DROP SPACE cases").plan.splitlines()[1] == "call       Catalog.DropSpace()"
    assert [info.name for info in graph.client.spaces()] == ["cases"]
    assert graph.client.query("EXPLAIN USE cases").space == ""
    assert not graph.query("PROFILE SHOW SPACES; SHOW SPACES").stages
    profiled = graph.query("PROFILE SAMPLE 5 NEIGHBORS FROM $people OVER writes SEED 7 YIELD dst, dst.vec", GIVEN)
    plain = graph.query("SAMPLE 5 NEIGHBORS FROM $people OVER writes SEED 7 YIELD dst, dst.vec", GIVEN)
    assert profiled.rows() == plain.rows()
    assert [stage.name for stage in profiled.stages] == ["read", "call sample_neighbors", "call node_features", "table"]
    assert profiled.stages[-1].rows == len(plain)
    assert all(stage.took_s >= 0 for stage in profiled.stages)
    assert sum(stage.took_s for stage in profiled.stages) <= profiled.took_s


def post(address: str, body: Mapping[str, Any]) -> tuple[int, Any]:
    request = urllib.request.Request(f"http://{address}/query", json.dumps(body).encode(), {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=HANG_S) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)


def test_statements_are_asked_over_http_too(cluster: LocalCluster, graphs: Mapping[str, Graph]) -> None:
    address = cluster["graphd-0"].http_address
    statement = "SAMPLE 40 VERTICES UNIFORM SEED 3 YIELD id, type, age, name, vec, words"
    status, answer = post(address, {"statement": statement, "space": "cases", "rows": 7})
    found: Result = graphs["cluster"].query(statement)
    assert status == 200
    assert [(column["name"], column["type"]) for column in answer["columns"]] == list(zip(found.columns, found.types, strict=True))
    assert answer["rows"] == [[cell.hex() if isinstance(cell, bytes) else cell for cell in row] for row in found.rows(7)]
    assert (answer["length"], answer["seed"], answer["version"], answer["space"]) == (40, "3", 1, "cases")
    _, given = post(address, {"statement": "USE cases; TOP 2 NEIGHBORS FROM $p OVER writes", "parameters": {"p": PEOPLE[:2].tolist()}})
    assert given["rows"] == [list(row) for row in graphs["cluster"].query("TOP 2 NEIGHBORS FROM $p OVER writes", {"p": PEOPLE[:2]}).rows()]
    for body, expected in (
        ({"statement": "SAMPLE 5"}, (400, "InvalidRequest", 1, 9, True)),
        ({"statement": "USE cases;\nSAMPLE 5 FISH"}, (400, "InvalidRequest", 2, 10, False)),
        ({"statement": "USE nope"}, (404, "NotFound", 1, 5, False)),
    ):
        status, problem = post(address, body)
        assert (status, problem["error"], problem["line"], problem["column"], problem["incomplete"]) == expected
        assert isinstance(problem["expected"], list)
    for wrong, code in (({"statement": "SHOW SPACES", "rows": -1}, 422), ({"statment": "x"}, 422), ({"statement": "x" * 70_000}, 422)):
        assert post(address, wrong)[0] == code
    status, late = post(address, {"statement": "SAMPLE 5 VERTICES", "space": "cases", "timeout_s": 1e-6})
    assert (status, late["error"]) == (504, "Deadline")
    with urllib.request.urlopen(f"http://{address}/openapi.json", timeout=HANG_S) as reply:
        described = json.load(reply)
    route = described["paths"]["/query"]["post"]
    assert {"200", "400", "404", "409", "422", "429", "503", "504"} <= set(route["responses"])
    assert {"line", "column", "expected", "incomplete"} <= set(described["components"]["schemas"]["Problem"]["properties"])
