"""Statements with BIDIRECT sample the edges of both directions of a node.

RECOVER JOB resumes all jobs, parameters are only values, and results convert to frames.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.distributions.checks.basis import require_counts
from tests.kit import cases
from tests.kit.waiting import HANG_S

import asterism
from asterism import Graph
from asterism_proto.errors import AsterismError, Conflict, InvalidRequest, NotFound

PEOPLE = cases.person_ids()[:20]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cases.copy_built_graph(tmp_path_factory.mktemp("stepping"))


@pytest.fixture(scope="module")
def graph(folder: Path) -> Iterator[Graph]:
    with asterism.open(folder) as client:
        yield client.graph("cases")


def test_bidirect_samples_edges_of_both_directions_by_weight(graph: Graph) -> None:
    paper = np.array([5])
    n = 20_000
    result = graph.query(
        "SAMPLE $n NEIGHBORS FROM $p OVER cites BIDIRECT SEED 11 YIELD src, dst, edge_id, $$.vec",
        {"n": n, "p": paper},
    )
    shares: dict[int, float] = {}
    for direction in ("out", "in"):
        edges = graph.neighbors(paper, "cites", direction=direction)
        for edge, weight in zip(
            np.asarray(edges.edge_ids).tolist(), np.asarray(edges.weights).tolist(), strict=True
        ):
            shares[edge] = shares.get(edge, 0.0) + weight
    total = sum(shares.values())
    expected = {edge: n * weight / total for edge, weight in shares.items() if weight}
    counts = dict(
        zip(
            *(
                part.tolist()
                for part in np.unique(np.asarray(result["edge_id"]), return_counts=True)
            ),
            strict=True,
        )
    )
    assert set(counts) <= set(expected)
    chi = sum((counts.get(edge, 0) - mean) ** 2 / mean for edge, mean in expected.items())
    assert min(expected.values()) > 5
    assert chi < len(expected) + 5 * np.sqrt(2 * len(expected)), (chi, len(expected))
    src, dst = np.asarray(result["src"]), np.asarray(result["dst"])
    assert ((src == 5) | (dst == 5)).all()
    other_ends = np.where(src == 5, dst, src)
    assert np.array_equal(np.asarray(result["$$.vec"])[:, 0], other_ends * 3)
    fewer = graph.query(
        "SAMPLE 100 NEIGHBORS FROM $p OVER cites BIDIRECT SEED 11 YIELD edge_id", {"p": paper}
    )
    assert np.array_equal(np.asarray(fewer["edge_id"]), np.asarray(result["edge_id"])[:100]), (
        "the first of n draws are the draws of fewer"
    )


def citation_weights(graph: Graph, paper: int) -> dict[tuple[bool, int], float]:
    """Return a paper's edge weights in both directions, by (is incoming, edge id)."""
    weights = {}
    for direction in ("out", "in"):
        edges = graph.neighbors([paper], "cites", direction=direction, edge_ids=True)
        assert edges.edge_ids is not None
        weights |= {
            (direction == "in", edge): weight
            for edge, weight in zip(
                edges.edge_ids.tolist(), np.asarray(edges.weights).tolist(), strict=True
            )
        }
    return weights


def test_bidirect_without_replacement_draws_successively(graph: Graph) -> None:
    edges, n = {key: weight for key, weight in citation_weights(graph, 5).items() if weight}, 20_000
    result = graph.query(
        (
            "SAMPLE 2 NEIGHBORS FROM $p OVER cites BIDIRECT WITHOUT REPLACEMENT SEED 11 YIELD "
            "row, dst, edge_id, probability"
        ),
        {"p": np.full(n, 5)},
    )
    is_incoming, ids = (
        (np.asarray(result["dst"]) == 5).tolist(),
        np.asarray(result["edge_id"]).tolist(),
    )
    assert len(result) == 2 * n
    samples = list(zip(is_incoming, ids, strict=True))
    observed = Counter(zip(samples[::2], samples[1::2], strict=True))
    total = sum(edges.values())
    expected = {
        (a, b): n * edges[a] / total * edges[b] / (total - edges[a])
        for a in edges
        for b in edges
        if a != b
    }
    assert set(observed) <= set(expected)
    require_counts([observed[pair] for pair in expected], list(expected.values()), "pairs of edges")
    shares = np.asarray(result["probability"]).reshape(n, 2).prod(axis=1) * n
    assert np.allclose(
        shares,
        [expected[pair] for pair in zip(samples[::2], samples[1::2], strict=True)],
        rtol=1e-9,
    )
    exhaustive = graph.query(
        "SAMPLE 500 NEIGHBORS FROM 5 OVER cites BIDIRECT WITHOUT REPLACEMENT YIELD dst, "
        "edge_id, weight, probability"
    )
    assert [((dst == 5), edge) for dst, edge, *_ in exhaustive.rows()] == list(edges), (
        "all of them, those along first"
    )
    assert {p for *_, p in exhaustive.rows()} == {1.0}


def test_bidirect_steps_continue_from_either_end(graph: Graph) -> None:
    author, n = int(PEOPLE[0]), 20_000
    result = graph.query(
        "GO 1 TO 2 STEPS FROM $a OVER writes BIDIRECT SAMPLE [1, 1] SEED 5 YIELD step, src, dst",
        {"a": np.full(n, author)},
    )
    step, src, dst = (np.asarray(result[name]) for name in result.columns)
    assert (step == np.repeat([1, 2], n)).all()
    assert np.array_equal(dst[:n], dst[n:]), (
        "from an author to a paper, and from that paper to an author"
    )
    assert (src[:n] == author).all()
    probabilities: dict[int, float] = {}
    first = graph.neighbors([author], "writes")
    for paper, weight in zip(
        first.nodes.tolist(), np.asarray(first.weights, np.float64).tolist(), strict=True
    ):
        authors = graph.neighbors([paper], "writes", direction="in")
        share = weight / np.asarray(first.weights, np.float64).sum()
        for other, other_weight in zip(
            authors.nodes.tolist(), np.asarray(authors.weights, np.float64).tolist(), strict=True
        ):
            probabilities[other] = (
                probabilities.get(other, 0.0)
                + share * other_weight / np.asarray(authors.weights, np.float64).sum()
            )
    observed = Counter(src[n:].tolist())
    assert set(observed) <= set(probabilities)
    require_counts(
        [observed[other] for other in probabilities],
        [n * share for share in probabilities.values()],
        "authors two steps away",
    )
    fewer = graph.query(
        "GO 1 TO 2 STEPS FROM $a OVER writes BIDIRECT SAMPLE [1, 1] SEED 5 YIELD step, src, dst",
        {"a": np.full(50, author)},
    )
    assert np.array_equal(np.asarray(fewer["src"])[50:], src[n : n + 50]), (
        "a place's draws have nothing to do with how many there are"
    )


LINKS = {
    "to": ((0, 1, 2.0), (0, 0, 1.0), (2, 0, 3.0), (1, 2, 1.0)),
    "by": ((0, 2, 1.0), (1, 0, 4.0), (2, 1, 0.5)),
}
"""(source, destination, weight) of each edge of two types; one joins node 0 to itself."""
End = tuple[str, int, int]
"""An edge as seen from one of its ends: (edge type, edge id, node at the other end)."""


def incident_edges(node: int) -> list[tuple[End, float]]:
    """Return the edges of a node in both directions; a loop is in both."""
    out = [
        ((name, e, dst), weight)
        for name, rows in LINKS.items()
        for e, (src, dst, weight) in enumerate(rows)
        if src == node
    ]
    return out + [
        ((name, e, src), weight)
        for name, rows in LINKS.items()
        for e, (src, dst, weight) in enumerate(rows)
        if dst == node
    ]


def test_bidirect_steps_over_several_types_draw_successively(graph: Graph) -> None:
    """Every pair of edges of the first step, with the edge after the first, has its frequency."""
    n = 12_000
    client = graph.client
    edge_types = {f"n:{name}:n": {"weighted": True} for name in LINKS}
    client.create_space(
        "links", {"parts": 3, "direction": "both", "nodes": {"n": {}}, "edges": edge_types}
    )
    links = client.graph("links")
    links.upsert_nodes([0, 1, 2], "n")
    for name, rows in LINKS.items():
        src, dst, weights = zip(*rows, strict=True)
        links.upsert_edges(src, dst, name, weights=weights)
    links.build()
    result = links.query(
        "GO 1 TO 2 STEPS FROM $a OVER * BIDIRECT WITHOUT REPLACEMENT SAMPLE [2, 1] SEED 3 "
        "YIELD step, row, type, edge_id, probability",
        {"a": np.zeros(n, np.int64)},
    )
    steps, rows, types, edge_ids, shares = (np.asarray(result[name]) for name in result.columns)
    first = steps == 1
    assert (rows[first] == np.repeat(np.arange(n), 2)).all()
    assert (rows[~first] == np.arange(2 * n)).all()
    edges = [(str(name).split(":")[1], int(e)) for name, e in zip(types, edge_ids, strict=True)]
    chosen, after = edges[: 2 * n], edges[2 * n :]
    observed = Counter(zip(chosen[::2], chosen[1::2], after[::2], strict=True))
    expected: dict[Any, float] = {}
    pair_shares: dict[Any, float] = {}
    start = incident_edges(0)
    total = sum(weight for _, weight in start)
    for i, (one, one_weight) in enumerate(start):
        for j, (two, two_weight) in enumerate(start):
            if i == j:
                continue
            p = one_weight / total * two_weight / (total - one_weight)
            pair_shares[one[:2], two[:2]] = p
            reached = incident_edges(one[2])
            for (name, e, _), weight in reached:
                key = (one[:2], two[:2], (name, e))
                share = p * weight / sum(weight for _, weight in reached)
                expected[key] = expected.get(key, 0.0) + share
    assert abs(sum(expected.values()) - 1) < 1e-12
    assert set(observed) <= set(expected)
    require_counts(
        [observed[key] for key in expected], [n * p for p in expected.values()], "two steps"
    )
    assert np.allclose(
        shares[first].reshape(n, 2).prod(axis=1),
        [pair_shares[pair] for pair in zip(chosen[::2], chosen[1::2], strict=True)],
        rtol=1e-12,
    )


def test_bidirect_without_sampling_returns_all_edges(graph: Graph) -> None:
    src, dst, _ = cases.edges()["cites"]
    frontier, edges = {3, 5}, []
    for _ in range(2):
        edges = [
            (a, b) for a, b in zip(src.tolist(), dst.tolist(), strict=True) if a in frontier
        ] + [(a, b) for a, b in zip(src.tolist(), dst.tolist(), strict=True) if b in frontier]
        frontier = {b for a, b in edges if a in frontier} | {a for a, b in edges if b in frontier}
    result = graph.query("GO 2 STEPS FROM 3, 5 OVER cites BIDIRECT YIELD src, dst")
    assert Counter(result.rows()) == Counter(edges)
    mixed = graph.query(
        "GO 2 STEPS FROM 3 ON paper OVER * BIDIRECT YIELD src, dst, type, src.age, dst.vec, "
        "$$.id | LIMIT 9"
    )
    assert len(mixed) == 9


def test_recover_job_resumes_all_recoverable_jobs(graph: Graph, tmp_path: Path) -> None:
    client = graph.client
    (tmp_path / "file").touch()  # so no folder can be created below it
    failed = []
    for name in ("a", "b", "a"):
        failed.append(
            client.submit_job(
                "cases", "backup", options={"to": f"file://{tmp_path}/file/{name}"}
            ).job_id
        )
        assert client.wait(failed[-1], timeout_s=HANG_S).state == "FAILED"
    recovered = graph.query("RECOVER JOB")
    assert recovered["job"].tolist() == [failed[2], failed[1]], "of two of the same the newer one"  # type: ignore[union-attr]
    for job in failed[1:]:
        client.wait(job, timeout_s=HANG_S)
    with pytest.raises(InvalidRequest, match="needs a space"):
        client.query("RECOVER JOB")


VALUES = [
    0,
    1,
    -1,
    3,
    2**63 - 1,
    -(2**63),
    1.5,
    float("nan"),
    True,
    "",
    "aged",
    "a' or 1 == 1 or 'b",
    "²",
    "\\'\"`\n",
    ["a", "b'"],
    [1, 2],
    [1.5],
    [],
    np.zeros((2, 2), np.int64),
    np.array(3),
    np.array([True]),
    np.zeros(0, np.float32),
    np.array([2**64 - 1], np.uint64),
    np.array([-1, 5]),
]
STATEMENTS = [
    "SAMPLE $a VERTICES ON person WHERE age > $b WEIGHT $c SEED $d VERSION $e YIELD id, name",
    "SAMPLE 2 VERTICES ON person WHERE name == $a OR name IN $b YIELD name",
    "SAMPLE $a NEIGHBORS FROM $b OVER cites BIDIRECT WITHOUT REPLACEMENT YIELD probability, $$.vec",
    "SAMPLE LAYERS $a FROM $b OVER cites",
    "WALK $a STEPS FROM $b OVER cites P $c Q $d RESTART $e",
    "GO $a TO $c STEPS FROM $b OVER cites SAMPLE $d",
    "GO FROM $b OVER cites LIMIT [$a, $c] | LIMIT $d, $e",
    "FETCH PROP ON cites $a -> $b, $c -> $d",
    "FETCH PROP ON writes $a YIELD when",
    "SHOW JOB $a",
    "STOP JOB $b",
    "SUBMIT JOB EXPORT-TABLES VERSION $c WITH (format = 'no such')",
]


def test_any_parameter_value_is_accepted_or_refused(graph: Graph) -> None:
    rng = random.Random(4)
    accepted = refused = 0
    for _ in range(60):
        for statement in STATEMENTS:
            parameters = {
                name: rng.choice(VALUES if rng.random() < 0.3 else [1, 2, [1, 2]])
                for name in "abcde"
            }
            try:
                graph.query(statement, parameters)
                accepted += 1
            except (InvalidRequest, NotFound, Conflict):
                refused += 1
    assert min(accepted, refused) > 50


def test_text_parameters_cannot_inject_statements(graph: Graph) -> None:
    for text in ("x' or age >= 0 or name == 'x", 'x" or age >= 0', "person 3\\", "person 3' --"):
        for statement in (
            "SAMPLE 3 VERTICES ON person WHERE name == $t",
            "SAMPLE 3 VERTICES ON person WHERE name IN $many",
        ):
            with pytest.raises(AsterismError) as raised:
                graph.query(statement, {"t": text, "many": [text]})
            assert (
                "nothing to draw" in raised.value.message.lower()
                or raised.value.code == "NOT_FOUND"
            ), raised.value


def test_results_convert_to_pandas_and_arrow(graph: Graph) -> None:
    result = graph.query("SAMPLE 9 VERTICES UNIFORM SEED 3 YIELD id, type, age, name, vec, words")
    frame, arrow = result.to_pandas(), result.to_arrow()
    assert list(frame.columns) == list(result.columns) == arrow.column_names
    rows = result.rows()
    assert [tuple(row.values()) for row in arrow.to_pylist()] == rows
    assert frame["id"].tolist() == [row[0] for row in rows]
    assert frame["words"].tolist() == [row[5] for row in rows]
    assert repr(result).startswith(
        "QueryResult(9 rows, id int64, type text, age int16, name bytes, vec float32, words "
        "list<int64>, space='cases', version=1"
    )
    assert result._repr_html_().count("<tr>") == 10
    with pytest.raises(KeyError, match="column 'nope': expected one of id"):
        result["nope"]


def test_folder_reader_runs_read_only_statements(tmp_path: Any) -> None:
    with asterism.open(cases.copy_built_graph(tmp_path / "g"), space="cases", mode="r") as reader:
        result = reader.query("SAMPLE 30 VERTICES ON person SEED 7")
        assert np.array_equal(
            np.asarray(result["id"]), reader.sample_nodes(30, "person", seed=7).nodes
        )
        with pytest.raises(InvalidRequest, match="open for reading"):
            reader.query("SUBMIT JOB BUILD")
