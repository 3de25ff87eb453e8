"""A statement returns the same bytes as the equivalent call.

Statements run on a cluster and embedded, over gRPC and HTTP.
"""

from __future__ import annotations

import json
import math
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
from asterism.records.samples import QueryResult
from asterism_proto.errors import AsterismError, InvalidRequest, NotFound, NotReady

PEOPLE = cases.person_ids()[:20]
CITATIONS = tuple(part[:6] for part in cases.edges()["cites"][:2])
PARAMETERS = {
    "people": PEOPLE,
    "papers": np.arange(12),
    "n": 30,
    "old": 40,
    "names": ["person 3", "person 4"],
    "fan": [4, 3],
    "from": CITATIONS[0],
    "to": CITATIONS[1],
    "wrapped": np.array([2**64 - 1], np.uint64),
    "beyond": 2**63,
}
WRITES, CITES = 0, 1


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with cases_cluster(2) as started:
        yield started


@pytest.fixture(scope="module")
def graphs(
    cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, Graph]]:
    with (
        cluster.client() as client,
        asterism.open(cases.copy_built_graph(tmp_path_factory.mktemp("statements"))) as inside,
    ):
        yield {"cluster": client.graph("cases"), "embedded": inside.graph("cases")}


@pytest.fixture(params=["cluster", "embedded"])
def graph(request: pytest.FixtureRequest, graphs: Mapping[str, Graph]) -> Graph:
    return graphs[request.param]


def valid_columns(sample: Any, sources: Any, *columns: Any) -> list[Any]:
    """Flatten neighbor columns of shape (m, n) row by row, without empty slots.

    The source nodes come first.
    """
    valid = (sample.nodes >= 0).reshape(-1)
    rows = np.repeat(sources, sample.nodes.shape[1])
    return [column.reshape(-1)[valid] for column in (rows, sample.nodes, *columns)]


def fanout_columns(graph: Graph) -> list[Any]:
    sample = graph.sample_fanout(PEOPLE, ["writes", "cites"], [4, 3], seed=7)
    first, last = sample.hops
    valid = last.nodes >= 0
    return [np.repeat(first.nodes, 3)[valid], last.nodes[valid], last.weights[valid]]


def layer_columns(graph: Graph) -> list[Any]:
    sample = graph.sample_layer(PEOPLE, "writes", 9, measure="sqrt", seed=7)
    edges = sample.adjacency
    return [PEOPLE[edges.rows], sample.nodes[edges.cols], edges.weights]


def neighbor_columns(graph: Graph) -> list[Any]:
    neighbors = graph.neighbors(PEOPLE, "writes", where="when > 1000")
    return [
        np.repeat(PEOPLE, np.diff(neighbors.indptr)),
        neighbors.nodes,
        neighbors.weights,
        graph.edge_features(neighbors.edge_ids, ["when"], "writes")["when"],
    ]


def two_hop_columns(graph: Graph) -> list[Any]:
    hops = graph.multi_hop_neighbors(PEOPLE, ["writes", "cites"])
    edges = hops.adjacencies[1]
    return [hops.nodes[1][edges.rows], hops.nodes[2][edges.cols]]


def limited_columns(graph: Graph) -> list[Any]:
    """Return up to three citations of each paper among up to two papers per author.

    Each paper is used once.
    """
    written = graph.neighbors(PEOPLE, "writes")
    selected = np.concatenate(
        [np.arange(a, min(a + 2, b)) for a, b in pairwise(written.indptr.tolist())]
    )
    papers = written.nodes[np.sort(selected)]
    papers = papers[np.sort(np.unique(papers, return_index=True)[1])]
    citations = graph.neighbors(papers, "cites")
    selected = np.concatenate(
        [np.arange(a, min(a + 3, b)) for a, b in pairwise(citations.indptr.tolist())]
    ).astype(np.int64)
    return [
        np.repeat(papers, np.diff(citations.indptr))[selected],
        citations.nodes[selected],
        citations.weights[selected],
    ]


def pair_columns(graph: Graph) -> list[Any]:
    """Return all edges between each pair, found among all edges of its source."""
    rows = []
    for src, dst in zip(*(ends.tolist() for ends in CITATIONS), strict=True):
        neighbors = graph.neighbors([src], "cites", edge_ids=True)
        assert neighbors.edge_ids is not None
        rows += [
            (src, dst, weight, edge)
            for node, weight, edge in zip(
                neighbors.nodes, neighbors.weights, neighbors.edge_ids, strict=True
            )
            if node == dst
        ]
    assert len(rows) >= len(CITATIONS[0])
    return [
        np.array(column, kind)
        for column, kind in zip(zip(*rows, strict=True), ("i8", "i8", "f4", "i8"), strict=True)
    ]


def negative_columns(graph: Graph) -> list[Any]:
    sample = graph.sample_negatives(PEOPLE, 3, "paper", seed=7)
    return [np.repeat(np.arange(20), 3), sample.nodes.reshape(-1)]


def walk_columns(graph: Graph) -> list[Any]:
    sample = graph.random_walk(
        PEOPLE, ["writes", "by"], 5, p=0.5, q=2, walks=2, edge_ids=True, seed=7
    )
    return [PEOPLE[sample.starts], sample.nodes, sample.edge_ids]


def feature_columns(graph: Graph) -> list[Any]:
    nodes = graph.sample_nodes(30, "person", where="age > 40", weight="aged", seed=7).nodes
    return [nodes, graph.node_features(nodes, ["age"], "person")["age"]]


CALLS: list[tuple[str, Callable[[Graph], list[Any]]]] = [
    (
        "SAMPLE $n VERTICES SEED 7 YIELD id, probability",
        lambda g: (lambda s: [s.nodes, s.probabilities])(
            g.sample_nodes(30, probabilities=True, seed=7)
        ),
    ),
    (
        "SAMPLE $n VERTICES ON person WHERE age > $old WEIGHT aged SEED 7 YIELD id, age",
        feature_columns,
    ),
    (
        "SAMPLE 50 VERTICES ON paper, person UNIFORM WITHOUT REPLACEMENT SEED 7 YIELD id",
        lambda g: [
            g.sample_nodes(50, ["paper", "person"], weighted=False, replace=False, seed=7).nodes
        ],
    ),
    (
        "SAMPLE 2 VERTICES LIKE $people ON person SEED 7 YIELD id",
        lambda g: [g.sample_nodes_like(PEOPLE, 2, ntype="person", seed=7).nodes.reshape(-1)],
    ),
    (
        "SAMPLE 40 EDGES ON writes, cites WEIGHT recent SEED 7 YIELD src, dst, edge_id, weight",
        lambda g: (lambda s: [s.src, s.dst, s.edge_ids, s.weights])(
            g.sample_edges(40, ["writes", "cites"], weight="recent", seed=7)
        ),
    ),
    (
        (
            "SAMPLE 5 NEIGHBORS FROM $people OVER writes WHERE $$.paper.vec[0] > 50 SEED 7 YIELD "
            "src, dst, weight, edge_id, probability"
        ),
        lambda g: (lambda s: valid_columns(s, PEOPLE, s.weights, s.edge_ids, s.probabilities))(
            g.sample_neighbors(
                PEOPLE,
                "writes",
                5,
                where="dst.vec[0] > 50",
                edge_ids=True,
                probabilities=True,
                seed=7,
            )
        ),
    ),
    (
        (
            "SAMPLE 5 NEIGHBORS FROM $papers OVER writes, cites REVERSELY WITHOUT REPLACEMENT "
            "SEED 7 YIELD dst, src"
        ),
        lambda g: (lambda s: valid_columns(s, np.arange(12)))(
            g.sample_neighbors(
                np.arange(12), ["writes", "cites"], 5, direction="in", replace=False, seed=7
            )
        ),
    ),
    (
        "SAMPLE 5 NEIGHBORS FROM $people OVER writes PADDED SEED 7 YIELD dst",
        lambda g: [g.sample_neighbors(PEOPLE, "writes", 5, seed=7).nodes.reshape(-1)],
    ),
    (
        "TOP 3 NEIGHBORS FROM $people OVER writes YIELD src, dst, weight",
        lambda g: (lambda s: valid_columns(s, PEOPLE, s.weights))(
            g.top_k_neighbors(PEOPLE, "writes", 3)
        ),
    ),
    (
        "GO 2 STEPS FROM $people OVER writes THEN cites SAMPLE $fan SEED 7 YIELD src, dst, weight",
        fanout_columns,
    ),
    (
        "GO FROM $people OVER writes WHERE when > 1000 YIELD src, dst, weight, when",
        neighbor_columns,
    ),
    ("GO 2 STEPS FROM $people OVER writes THEN cites YIELD src, dst", two_hop_columns),
    (
        "GO 2 STEPS FROM $people OVER writes THEN cites YIELD DISTINCT dst | ORDER BY dst",
        lambda g: [np.unique(two_hop_columns(g)[1])],
    ),
    (
        "GO 2 STEPS FROM $people OVER writes THEN cites YIELD src, dst, weight LIMIT [2, 3]",
        limited_columns,
    ),
    ("FETCH PROP ON cites $from -> $to YIELD src, dst, weight, edge_id", pair_columns),
    (
        "SAMPLE LAYER 9 FROM $people OVER writes BY SQRT SEED 7 YIELD src, dst, weight",
        layer_columns,
    ),
    (
        "SAMPLE LAYER 9 FROM $people OVER writes SEED 7 YIELD id, probability",
        lambda g: (lambda s: [s.nodes, s.probabilities])(
            g.sample_layer(PEOPLE, "writes", 9, seed=7)
        ),
    ),
    (
        "SAMPLE LAYERS [9, 8] FROM $people OVER writes THEN cites SEED 7 YIELD id",
        lambda g: [
            np.concatenate(
                [
                    one.nodes
                    for one in g.sample_fanout_layerwise(
                        PEOPLE, ["writes", "cites"], [9, 8], seed=7
                    ).layers
                ]
            )
        ],
    ),
    ("SAMPLE 3 NEGATIVES FROM $people ON paper SEED 7 YIELD row, id", negative_columns),
    (
        (
            "WALK 5 STEPS FROM $people OVER writes THEN by P 0.5 Q 2 WALKS 2 SEED 7 YIELD start, "
            "path, edge_ids"
        ),
        walk_columns,
    ),
    (
        "FETCH PROP ON paper $papers YIELD vec",
        lambda g: [g.node_features(np.arange(12), ["vec"], "paper")["vec"]],
    ),
    (
        "FETCH PROP ON writes 3, 4, 5 YIELD edge_id, when",
        lambda g: [np.array([3, 4, 5]), g.edge_features([3, 4, 5], ["when"], "writes")["when"]],
    ),
]


@pytest.mark.parametrize(
    ("statement", "call"), CALLS, ids=[statement[:60] for statement, _ in CALLS]
)
def test_a_statement_gives_what_its_call_gives(
    graph: Graph, statement: str, call: Callable[[Graph], list[Any]]
) -> None:
    result = graph.query(statement, PARAMETERS)
    expected = call(graph)
    assert len(result.columns) == len(expected)
    assert len(result) == len(expected[0]) > 0
    for name, array in zip(result.columns, expected, strict=True):
        column: Any = result[name]
        assert column.dtype == array.dtype, name
        assert column.tobytes() == array.tobytes(), name
    assert (result.version, result.space) == (1, "cases")
    assert result.seed == (7 if "SEED" in statement else None)


BOTH_WAYS = [
    (
        "SAMPLE 5 NEIGHBORS FROM $papers ON paper OVER * BIDIRECT WITHOUT REPLACEMENT SEED 7 "
        "YIELD src, dst, edge_id, probability, type"
    ),
    (
        "GO 1 TO 2 STEPS FROM $people OVER writes BIDIRECT SAMPLE $fan SEED 7 YIELD step, row, "
        "src, dst, probability"
    ),
    "GO 2 STEPS FROM $people OVER writes BIDIRECT YIELD src, dst, weight LIMIT [2, 1]",
]


@pytest.mark.parametrize(
    "statement",
    [*(statement for statement, _ in CALLS), *BOTH_WAYS],
    ids=lambda statement: statement[:60],
)
def test_a_cluster_and_a_process_give_the_same(graphs: Mapping[str, Graph], statement: str) -> None:
    one, other = (graphs[name].query(statement, PARAMETERS) for name in ("cluster", "embedded"))
    assert one.rows() == other.rows()


def test_columns_missing_in_a_node_type_are_zero(graph: Graph) -> None:
    result = graph.query(
        "SAMPLE 400 VERTICES UNIFORM SEED 3 YIELD id, type, age, name, vec, words, weight"
    )
    ids, types = result["id"], result["type"]
    assert isinstance(types, np.ndarray)
    assert set(types.tolist()) == {"person", "paper"}
    people = types == "person"
    for names, kind, of_kind in (
        (["age", "name", "weight"], "person", people),
        (["vec", "words"], "paper", ~people),
    ):
        for name, column in graph.node_features(np.asarray(ids)[of_kind], names, kind).items():
            merged: Any = result[name]
            if isinstance(column, tuple):
                indptr, values = merged
                rows = [values[indptr[i] : indptr[i + 1]].tolist() for i in np.flatnonzero(of_kind)]
                assert rows == [
                    column[1][a:b].tolist() for a, b in zip(column[0], column[0][1:], strict=False)
                ]
                assert np.diff(indptr)[~of_kind].sum() == 0
            else:
                assert np.array_equal(merged[of_kind], column)
                assert name == "weight" or not merged[~of_kind].any()


def test_statement_token_replays_its_call(graph: Graph) -> None:
    result = graph.query("SAMPLE 30 VERTICES ON person WHERE age > 40")
    replayed = graph.replay(result.token)
    assert np.array_equal(replayed.nodes, np.asarray(result["id"]))
    assert replayed.seed == result.seed
    assert result.digest == graph.manifest().digest
    bidirectional = graph.query("SAMPLE 3 NEIGHBORS FROM $papers OVER cites BIDIRECT", PARAMETERS)
    assert (bidirectional.token, bidirectional.seed is None) == ("", False), (
        "no one call makes it again"
    )


def test_statements_of_a_query_share_its_current_space(graph: Graph) -> None:
    client = graph.client
    assert client.query("USE cases").space == "cases"
    assert client.query("USE cases; SAMPLE 2 VERTICES; SHOW SPACES")["name"].tolist() == ["cases"]  # type: ignore[union-attr]
    with pytest.raises(InvalidRequest, match="a statement that needs a space"):
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
    assert set(graph.query("SHOW HOSTS")["host"].tolist()) == {
        host.address for host in client.hosts()
    }  # type: ignore[union-attr]
    jobs = graph.query("SHOW JOBS")
    assert jobs["job"].tolist() == [job.job_id for job in client.jobs("cases")]  # type: ignore[union-attr]
    assert graph.query("SHOW JOB $j", {"j": info.job_id}).rows()[0][:4] == (
        info.job_id,
        "build",
        "",
        "FINISHED",
    )
    assert (
        graph.query("DESC EDGE paper:cites:paper").rows()
        == graph.query("DESCRIBE EDGE cites").rows()
    )
    assert graph.query("DESCRIBE TAG paper")["name"].tolist() == ["vec", "words", "aged"]  # type: ignore[union-attr]
    assert graph.query("DESC SPACE cases").rows() == [
        ("cases", 1, cases.PARTS, "per_type", "mix64", "both")
    ]


def test_show_create_space_output_recreates_the_space(graph: Graph) -> None:
    client = graph.client
    statement = client.query("SHOW CREATE SPACE cases")["statement"][0]  # type: ignore[index]
    client.query(statement.replace("SPACE `cases`", "SPACE `again`"))
    try:
        assert client.describe("again").schema == graph.schema
        with pytest.raises(AsterismError) as raised:
            client.query(
                statement.replace("SPACE `cases`", "SPACE `again`").replace(
                    "parts = 10", "parts = 3"
                )
            )
        assert raised.value.code == "ALREADY_EXISTS"
        copy = client.graph("again")
        copy.upsert_nodes([1, 2], "paper")
        job = client.query("USE again; SUBMIT JOB STATS")
        assert job["kind"].tolist() == ["build"]  # type: ignore[union-attr]
        number = int(job["job"][0])  # type: ignore[arg-type]
        assert client.wait(number).state == "FINISHED"
        assert client.query("USE again; SAMPLE 4 VERTICES ON paper").version == 1
        with pytest.raises(AsterismError, match=f"job {number}"):
            client.query(f"RECOVER JOB {number}")
    finally:
        remaining = client.query("DROP SPACE again; SHOW SPACES")
    assert remaining["name"].tolist() == ["cases"]  # type: ignore[union-attr]
    client.query("DROP SPACE IF EXISTS again")
    with pytest.raises(NotFound, match=r"line 1, column 12: space 'again' does not exist"):
        client.query("DROP SPACE again")


@pytest.mark.parametrize(
    ("statement", "error", "column", "said"),
    [
        (
            "SAMPLE 5 VERTICES ON persn",
            NotFound,
            22,
            "no node type 'persn'; there are person, paper",
        ),
        ("SAMPLE 5 EDGES ON write", NotFound, 19, "no edge type 'write'"),
        (
            "SAMPLE 5 VERTICES ON person WHERE agge > 3",
            NotFound,
            35,
            "node type 'person' has no feature 'agge'",
        ),
        (
            "SAMPLE 5 VERTICES ON person WHERE age > 'old'",
            InvalidRequest,
            35,
            "a number instead of 'old'",
        ),
        ("SAMPLE 5 VERTICES ON person YIELD id, agge", NotFound, 39, "no feature 'agge'"),
        (
            "SAMPLE 5 VERTICES ON person YIELD id, id",
            InvalidRequest,
            1,
            "two columns are called 'id'",
        ),
        ("SAMPLE 5 VERTICES ON person YIELD src", NotFound, 35, "no feature 'src'"),
        (
            "GO FROM 1 ON paper OVER writes",
            InvalidRequest,
            25,
            "none of person:writes:paper starts at paper",
        ),
        (
            "SAMPLE 5 NEIGHBORS FROM 1 ON person OVER writes REVERSELY",
            InvalidRequest,
            42,
            "none of person:writes:paper ends at person",
        ),
        (
            "SAMPLE 5 NEIGHBORS FROM $people OVER *",
            InvalidRequest,
            1,
            "write ON and the type after the nodes",
        ),
        (
            "SAMPLE 5 NEIGHBORS FROM $people OVER writes THEN by",
            InvalidRequest,
            50,
            "the edge types of one step",
        ),
        (
            "SAMPLE $old NEIGHBORS FROM $names OVER writes",
            InvalidRequest,
            28,
            "expected integers, the ids",
        ),
        ("SAMPLE 5 VERTICES WEIGHT no", NotFound, 1, "'no'"),
        ("SAMPLE 5 VERTICES VERSION 9", NotFound, 1, "version 9"),
        ("GO 2 STEPS FROM 1 OVER cites SAMPLE [1]", InvalidRequest, 30, "one number for each step"),
        ("GO 3 TO 2 STEPS FROM 1 OVER cites SAMPLE [1, 2]", InvalidRequest, 1, "steps 3 to 2"),
        ("GO FROM 1 OVER cites UNIFORM", InvalidRequest, 22, "a GO that does not sample"),
        ("GO 2 STEPS FROM 1 OVER cites LIMIT [1]", InvalidRequest, 30, "one number for each step"),
        ("GO 2 STEPS FROM 1 OVER cites LIMIT [1, -2]", InvalidRequest, 30, "numbers of 0 or more"),
        (
            "GO 1 STEPS FROM 1 OVER cites SAMPLE [1] LIMIT [1]",
            InvalidRequest,
            41,
            "only one of them",
        ),
        (
            "GO FROM 1 OVER cites THEN by SAMPLE [1]",
            InvalidRequest,
            27,
            "the edge types of one step",
        ),
        ("GO FROM $people OVER cites SAMPLE $names", InvalidRequest, 35, "integers"),
        (
            "GO FROM 1 ON person OVER cites BIDIRECT",
            InvalidRequest,
            26,
            "none of paper:cites:paper starts or ends at person",
        ),
        (
            "FETCH PROP ON cites $people -> $papers",
            InvalidRequest,
            1,
            "as many sources as destinations",
        ),
        ("FETCH PROP ON paper 1 -> 2", NotFound, 15, "no edge type 'paper'"),
        ("SAMPLE 5 VERTICES SEED 1.5", InvalidRequest, 19, "an integer"),
        ("SAMPLE 5 VERTICES VERSION -1", InvalidRequest, 19, "expected 0 or more"),
        ("SHOW JOB -1", InvalidRequest, 1, "expected 0 or more"),
        ("GO FROM 9223372036854775808 OVER cites", InvalidRequest, 1, "an id below 2^63"),
        ("FETCH PROP ON paper 18446744073709551615", InvalidRequest, 1, "an id below 2^63"),
        ("FETCH PROP ON cites 1 -> 9223372036854775808", InvalidRequest, 1, "an id below 2^63"),
        ("WALK 2 STEPS FROM $wrapped OVER cites", InvalidRequest, 19, "ids below 2^63"),
        ("SAMPLE 2 NEIGHBORS FROM $beyond OVER cites", InvalidRequest, 25, "ids below 2^63"),
        ("GO 1 TO 0 STEPS FROM 1 OVER cites", InvalidRequest, 1, "0 <= m <= n"),
        ("GO FROM 1 OVER cites YIELD sum(*)", InvalidRequest, 28, "expected count(*)"),
        ("GO FROM 1 OVER cites YIELD src YIELD count(*)", InvalidRequest, 32, "YIELD twice"),
        ("WALK 3 STEPS FROM 1 OVER cites BIDIRECT", InvalidRequest, 32, "BIDIRECT"),
        ("FETCH PROP ON nothing 1", NotFound, 15, "no edge type 'nothing'"),
        ("SUBMIT JOB dance", InvalidRequest, 12, "job kind 'dance'"),
        ("SHOW JOB 999999", NotFound, 1, "job 999999"),
        (
            "SAMPLE 5 VERTICES ON paper | ORDER BY nope",
            InvalidRequest,
            1,
            "ORDER BY nope: the columns are id, type",
        ),
        ("CREATE SPACE x (partition_nums = 3) TAG a", InvalidRequest, 17, "partition_num"),
        ("CREATE SPACE x TAG a (p floaty)", InvalidRequest, 14, "floaty"),
    ],
)
def test_invalid_statements_are_refused_with_a_position(
    graph: Graph, statement: str, error: type[AsterismError], column: int, said: str
) -> None:
    with pytest.raises(error) as raised:
        graph.query(statement, PARAMETERS)
    assert said in raised.value.message
    location = raised.value.place
    assert location is not None, raised.value.message
    assert (location.line, location.column) == (1, column), raised.value.message
    assert not location.incomplete


def test_vertices_that_do_not_exist_have_no_row(graph: Graph) -> None:
    found = graph.query("FETCH PROP ON paper $ids YIELD id, vec", {"ids": [7, 500, 3, -1, 7]})
    assert found["id"].tolist() == [7, 3, 7]
    assert np.array_equal(found["vec"], graph.node_features([7, 3, 7], "vec", "paper")["vec"])
    none = graph.query("FETCH PROP ON paper 500, 501")
    assert (len(none), none.columns) == (0, ("id", "vec", "words"))


def test_zero_steps_have_no_edges_and_count_as_the_first(graph: Graph) -> None:
    none = graph.query("GO 0 STEPS FROM $papers OVER cites YIELD src, dst.vec, weight", PARAMETERS)
    assert (len(none), none.version) == (0, 1)
    assert none.types == ("int64", "float32", "float32")
    assert len(graph.query("GO 0 TO 0 STEPS FROM 1 OVER cites SAMPLE $fan", PARAMETERS)) == 0
    for options in ("", " SAMPLE [3, 2] SEED 7", " LIMIT [3, 2]"):
        steps = f"STEPS FROM $papers OVER cites YIELD step, src, dst{options}"
        zero, one = (graph.query(f"GO {m} TO 2 {steps}", PARAMETERS).rows() for m in (0, 1))
        assert zero == one
        assert zero


def test_rows_are_counted_with_and_without_a_pipe(graph: Graph) -> None:
    edges = graph.query("GO FROM $papers OVER cites YIELD dst", PARAMETERS)
    for statement, count in (
        ("GO FROM $papers OVER cites YIELD count(*) AS n", len(edges)),
        ("GO FROM $papers OVER cites YIELD dst | YIELD COUNT(*) AS n", len(edges)),
        ("GO FROM $papers OVER cites YIELD DISTINCT dst | YIELD count(*) AS n", -1),
        ("GO FROM $papers OVER cites YIELD dst | LIMIT 3 | YIELD count(*) AS n", 3),
        ("WALK 2 STEPS FROM $papers OVER cites YIELD count(*) AS n", 12),
        ("SAMPLE LAYER 5 FROM $papers OVER cites YIELD count(*) AS n", 5),
        ("FETCH PROP ON paper 1, 500 YIELD count(*) AS n", 1),
        ("FETCH PROP ON cites $from -> $to YIELD count(*) AS n", -2),
        ("SAMPLE 5 VERTICES YIELD count(*) AS n", 5),
    ):
        expected = {
            -1: len(set(edges["dst"].tolist())),
            -2: len(graph.query("FETCH PROP ON cites $from -> $to", PARAMETERS)),
        }.get(count, count)
        result = graph.query(statement, PARAMETERS)
        assert (result.columns, result.types, result.rows()) == (("n",), ("int64",), [(expected,)])
    assert graph.query("SAMPLE 5 VERTICES YIELD count(*)").columns == ("count(*)",)


def test_samples_end_at_vertices_without_edges_of_the_step(graph: Graph) -> None:
    statement = (
        "GO 1 TO 3 STEPS FROM $people OVER writes YIELD step, src, dst SAMPLE [2, 1, 2] SEED 7"
    )
    found = graph.query(statement, PARAMETERS)
    assert set(found["step"].tolist()) == {1}
    padded = graph.query(f"{statement} PADDED", PARAMETERS)
    for step, rows in ((1, 40), (2, 40), (3, 80)):
        remote = padded["dst"][padded["step"] == step]
        assert len(remote) == rows
        assert (remote == -1).all() == (step > 1)


def test_parameters_of_filters_are_never_read_as_text(graph: Graph) -> None:
    for value, expected in (
        (math.inf, True),
        (-math.inf, False),
        (5e-324, True),
        (-1.7e308, False),
        (2**64 - 1, True),
    ):
        people = graph.query(
            "SAMPLE 50 VERTICES ON person UNIFORM WHERE age < $x OR id == 3", {"x": value}
        )
        assert (len(set(people["id"].tolist())) > 1) == expected
    for name in ("inf", "nan", "true", "age", "'' or age > 0", '"', "\\", "`", "$x"):
        with pytest.raises(NotFound, match="has no such node"):
            graph.query("SAMPLE 5 VERTICES ON person WHERE name == $x", {"x": name})
    every = graph.query("SAMPLE 50 VERTICES ON person WHERE age NOT IN $x SEED 1", {"x": []})
    plain = graph.query("SAMPLE 50 VERTICES ON person SEED 1")
    assert set(every["id"].tolist()) <= set(cases.person_ids().tolist())
    assert len(plain) == len(every)
    with pytest.raises(NotFound, match="has no such node"):
        graph.query("SAMPLE 5 VERTICES ON person WHERE age IN []")
    assert (
        len(graph.query("SAMPLE 5 VERTICES ON person WHERE age IN $x", {"x": np.arange(500)})) == 5
    )


def test_queries_read_their_version_or_the_newest_build(cluster: LocalCluster) -> None:
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


def test_explain_lists_requests_and_changes_nothing(graph: Graph) -> None:
    result = graph.query("EXPLAIN SAMPLE 300 VERTICES ON person SEED 7")
    explanation = graph.explain.sample_nodes(300, "person", seed=7)
    assert result["rows"].tolist() == [request.rows for request in explanation.storage_requests]  # type: ignore[union-attr]
    assert result["host"].tolist() == [request.host for request in explanation.storage_requests]  # type: ignore[union-attr]
    assert "Graph.SampleNodes(" in result.plan
    assert f"{explanation.reply_bytes:,} bytes" in result.plan
    assert (
        graph.query("EXPLAIN DROP SPACE cases").plan.splitlines()[1]
        == "call       Catalog.DropSpace()"
    )
    assert [info.name for info in graph.client.spaces()] == ["cases"]
    assert graph.client.query("EXPLAIN USE cases").space == ""
    assert not graph.query("PROFILE SHOW SPACES; SHOW SPACES").stages
    profiled = graph.query(
        "PROFILE SAMPLE 5 NEIGHBORS FROM $people OVER writes SEED 7 YIELD dst, dst.vec", PARAMETERS
    )
    plain = graph.query(
        "SAMPLE 5 NEIGHBORS FROM $people OVER writes SEED 7 YIELD dst, dst.vec", PARAMETERS
    )
    assert profiled.rows() == plain.rows()
    assert [stage.name for stage in profiled.stages] == [
        "read",
        "call sample_neighbors",
        "call node_features",
        "table",
    ]
    assert profiled.stages[-1].rows == len(plain)
    assert all(stage.took_s >= 0 for stage in profiled.stages)
    assert sum(stage.took_s for stage in profiled.stages) <= profiled.took_s


def post(address: str, body: Mapping[str, Any]) -> tuple[int, Any]:
    request = urllib.request.Request(
        f"http://{address}/query", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=HANG_S) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_statements_run_over_http(cluster: LocalCluster, graphs: Mapping[str, Graph]) -> None:
    address = cluster["graphd-0"].http_address
    statement = "SAMPLE 40 VERTICES UNIFORM SEED 3 YIELD id, type, age, name, vec, words"
    status, document = post(address, {"statement": statement, "space": "cases", "rows": 7})
    result: QueryResult = graphs["cluster"].query(statement)
    assert status == 200
    assert [(column["name"], column["type"]) for column in document["columns"]] == list(
        zip(result.columns, result.types, strict=True)
    )
    assert document["rows"] == [
        [cell.hex() if isinstance(cell, bytes) else cell for cell in row] for row in result.rows(7)
    ]
    assert (
        document["length"],
        document["truncated"],
        document["seed"],
        document["version"],
        document["space"],
    ) == (
        40,
        True,
        "3",
        1,
        "cases",
    )
    _, with_parameters = post(
        address,
        {
            "statement": "USE cases; TOP 2 NEIGHBORS FROM $p OVER writes",
            "parameters": {"p": PEOPLE[:2].tolist()},
        },
    )
    assert with_parameters["truncated"] is False
    heaviest = graphs["cluster"].query("TOP 2 NEIGHBORS FROM $p OVER writes", {"p": PEOPLE[:2]})
    assert heaviest.types[-1] == "float32"
    assert with_parameters["rows"] == [
        [*row[:-1], float(str(np.float32(row[-1])))] for row in heaviest.rows()
    ]
    for body, expected in (
        ({"statement": "SAMPLE 5"}, (400, "InvalidRequest", 1, 9, True)),
        ({"statement": "USE cases;\nSAMPLE 5 FISH"}, (400, "InvalidRequest", 2, 10, False)),
        ({"statement": "USE nope"}, (404, "NotFound", 1, 5, False)),
        (
            {"statement": "GO FROM 9223372036854775808 OVER cites", "space": "cases"},
            (400, "InvalidRequest", 1, 1, False),
        ),
        (
            {
                "statement": "GO FROM $x OVER cites",
                "space": "cases",
                "parameters": {"x": [18446744073709551615]},
            },
            (400, "InvalidRequest", 1, 9, False),
        ),
    ):
        status, problem = post(address, body)
        assert (
            status,
            problem["error"],
            problem["line"],
            problem["column"],
            problem["incomplete"],
        ) == expected
        assert isinstance(problem["expected"], list)
    for invalid_body, code in (
        ({"statement": "SHOW SPACES", "rows": -1}, 422),
        ({"statment": "x"}, 422),
        ({"statement": "x" * 70_000}, 422),
        ({"statement": "GO FROM $x OVER cites", "parameters": {"x": ["a", 1]}}, 400),
        ({"statement": "GO FROM $x OVER cites", "parameters": {"x": None}}, 400),
    ):
        assert post(address, invalid_body)[0] == code
    status, timed_out = post(
        address, {"statement": "SAMPLE 5 VERTICES", "space": "cases", "timeout_s": 1e-6}
    )
    assert (status, timed_out["error"]) == (504, "Deadline")
    with urllib.request.urlopen(f"http://{address}/openapi.json", timeout=HANG_S) as reply:
        openapi = json.load(reply)
    route = openapi["paths"]["/query"]["post"]
    assert {"200", "400", "404", "409", "422", "429", "503", "504"} <= set(route["responses"])
    assert {"line", "column", "expected", "incomplete"} <= set(
        openapi["components"]["schemas"]["Problem"]["properties"]
    )
