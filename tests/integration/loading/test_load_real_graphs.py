"""Real graphs from files to a published version, checked with the csv module and numpy."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit.shared import ROOT, shared_or_skip

import asterism
from asterism import Client, Graph, ingest
from asterism.formats import open_source
from asterism.formats.generate import Shop, write_dgl, write_numpy
from asterism.ingest import LoadProgress
from asterism_proto.errors import Conflict, InvalidRequest, NotFound, NotReady, Unavailable

SCHEMAS = ROOT / "examples" / "schemas"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with asterism.open(tmp_path_factory.mktemp("service")) as client:
        yield client


def table(path: Path, *, header: bool = False) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))[1 if header else 0 :]


def edges_of(graph: Graph, etype: str) -> Counter[tuple[int, int, float]]:
    counts: Counter[tuple[int, int, float]] = Counter()
    for batch in graph.scan_edges(etype):
        counts.update(
            zip(batch.src.tolist(), batch.dst.tolist(), batch.weights.tolist(), strict=True)
        )
    return counts


def texts(value: Any) -> list[str]:
    indptr, data = value
    return [bytes(data[a:b]).decode() for a, b in pairwise(indptr)]


def load(client: Client, name: str, root: Path, **options: Any) -> ingest.LoadReport:
    source = SCHEMAS / f"{name}.yaml"
    return ingest.load(
        client, name, source, schema=open_source(source, root=root).schema, root=root, **options
    )


def test_cora_has_citations_both_ways_and_every_papers_words(client: Client) -> None:
    folder = shared_or_skip("data", "cora")
    events: list[LoadProgress] = []
    report = load(client, "cora", folder, progress=events.append)
    pairs = [(int(a), int(b)) for a, b in table(folder / "edges.csv", header=True)]
    papers = table(folder / "papers.csv", header=True)
    assert (report.nodes, report.edges, report.rejected, report.rejects) == (
        len(papers),
        2 * len(pairs),
        0,
        None,
    )
    assert [progress.phase for progress in events] == ["nodes", "edges", "edges", "commit"]
    assert (
        events[-1].bytes_done
        == events[-1].bytes_total
        == sum((folder / name).stat().st_size for name in ("papers.csv", "edges.csv"))
    )
    graph = client.graph("cora")
    graph.build()
    assert edges_of(graph, "cites") == Counter((a, b, 1.0) for a, b in pairs)
    assert edges_of(graph, "cited_by") == Counter((b, a, 1.0) for a, b in pairs)
    ids = [int(row[0]) for row in papers]
    features = graph.node_features(ids, ["label", "split", "words"], "paper")
    assert np.asarray(features["label"]).tolist() == [int(row[1]) for row in papers]
    assert texts(features["split"]) == [row[2] for row in papers]
    indptr, words = features["words"]
    assert [words[a:b].tolist() for a, b in pairwise(indptr)] == [
        [int(word) for word in row[3].split()] for row in papers
    ]


def test_facebook_is_symmetric_and_keeps_its_names(client: Client) -> None:
    folder = shared_or_skip("data", "facebook")
    report = load(client, "facebook", folder)
    pairs = [(int(a), int(b)) for a, b in table(folder / "edges.csv", header=True)]
    pages = table(folder / "nodes.csv", header=True)
    loops = sum(a == b for a, b in pairs)
    assert (report.nodes, report.edges) == (len(pages), 2 * len(pairs) - loops)
    graph = client.graph("facebook")
    graph.build()
    assert edges_of(graph, "likes") == Counter((a, b, 1.0) for a, b in pairs) + Counter(
        (b, a, 1.0) for a, b in pairs if a != b
    )
    features = graph.node_features(
        [int(row[0]) for row in pages], ["facebook_id", "page_name", "page_type"], "page"
    )
    assert np.asarray(features["facebook_id"]).tolist() == [int(row[1]) for row in pages]
    assert texts(features["page_name"]) == [row[2] for row in pages]
    assert texts(features["page_type"]) == [row[3] for row in pages]


def node_id_or_none(text: str) -> int | None:
    return int(text) if text.removeprefix("-").isdigit() and int(text) >= 0 else None


class OpenflightsGraph:
    """The openflights graph in plain Python, by its schema."""

    def __init__(self, folder: Path) -> None:
        self.airports = {int(row[0]): row for row in table(folder / "airports.dat")}
        airlines = table(folder / "airlines.dat")
        self.airlines = {int(row[0]): row for row in airlines if int(row[0]) >= 0}
        countries = table(folder / "countries.dat")
        self.countries = {
            name: number for number, name in enumerate(dict.fromkeys(row[0] for row in countries))
        }
        self.rejects = Counter(
            {
                "airlines.dat": len(airlines) - len(self.airlines),
                "countries.dat": len(countries) - len(self.countries),
            }
        )
        self.routes: Counter[tuple[int, int]] = Counter()
        self.serves: Counter[tuple[int, int]] = Counter()
        for row in table(folder / "routes.dat"):
            airline, source, destination = (node_id_or_none(row[i]) for i in (1, 3, 5))
            if source in self.airports and destination in self.airports:
                self.routes[int(row[3]), int(row[5])] += 1
            else:
                self.rejects["routes.dat"] += 1
            if airline in self.airlines and source in self.airports:
                self.serves[int(row[1]), int(row[3])] += 1
            else:
                self.rejects["routes.dat"] += 1
        self.country_of_airport = {
            number: self.countries[row[3]]
            for number, row in self.airports.items()
            if row[3] in self.countries
        }
        self.rejects["airports.dat"] = len(self.airports) - len(self.country_of_airport)


def test_openflights_loads_and_lists_its_bad_rows(client: Client, tmp_path: Path) -> None:
    folder = shared_or_skip("data", "openflights")
    expected = OpenflightsGraph(folder)
    report = load(
        client, "openflights", folder, on_bad_rows="skip", rejects=tmp_path / "rejects.csv"
    )
    assert report.nodes == len(expected.airports) + len(expected.airlines) + len(expected.countries)
    assert report.edges == len(expected.routes) + 2 * len(expected.serves) + 2 * len(
        expected.country_of_airport
    )
    rejected_rows = table(tmp_path / "rejects.csv", header=True)
    assert Counter(row[0] for row in rejected_rows) == expected.rejects
    assert report.rejected == len(rejected_rows) == expected.rejects.total()
    assert report.rejects == tmp_path / "rejects.csv"

    graph = client.graph("openflights")
    graph.build()
    assert edges_of(graph, "route") == Counter(
        (a, b, float(n)) for (a, b), n in expected.routes.items()
    )
    assert edges_of(graph, "serves") == Counter(
        (a, b, float(n)) for (a, b), n in expected.serves.items()
    )
    assert edges_of(graph, "served_by") == Counter(
        (b, a, float(n)) for (a, b), n in expected.serves.items()
    )
    assert edges_of(graph, "in") == Counter(
        (a, b, 1.0) for a, b in expected.country_of_airport.items()
    )
    features = graph.node_features(
        list(expected.airports), ["name", "position", "altitude"], "airport"
    )
    assert texts(features["name"]) == [row[1] for row in expected.airports.values()]
    assert np.asarray(features["position"]).tolist() == [
        [float(row[6]), float(row[7])] for row in expected.airports.values()
    ]
    assert texts(
        graph.node_features(list(expected.countries.values()), "name", "country")["name"]
    ) == list(expected.countries)


def test_each_reject_names_the_line_that_has_its_value(client: Client, tmp_path: Path) -> None:
    folder = shared_or_skip("data", "openflights")
    load(
        client,
        "openflights",
        folder,
        on_bad_rows="skip",
        rejects=tmp_path / "rejects.csv",
        again=True,
    )
    columns = {edge.name: edge.table.csv.columns for edge in openflights_spec(folder).edges}
    column_names = {
        "airlines.dat": ("id",),
        "countries.dat": ("name",),
        "routes.dat": columns["airport:route:airport"],
        "airports.dat": columns["airport:in:country"],
    }
    lines = {name: table(folder / name) for name in column_names}
    for file, row, column, value, reason in table(tmp_path / "rejects.csv", header=True):
        assert lines[file][int(row) - 1][column_names[file].index(column)] == value
        assert reason


def openflights_spec(folder: Path) -> Any:
    source: Any = open_source(SCHEMAS / "openflights.yaml", root=folder)
    return source.spec


def test_first_bad_row_aborts_the_load_and_keeps_nothing(client: Client) -> None:
    folder = shared_or_skip("data", "openflights")
    schema = open_source(SCHEMAS / "openflights.yaml", root=folder).schema
    with pytest.raises(
        InvalidRequest,
        match=r"airlines\.dat, row 1, column 'id', value '-1': an id is not negative",
    ):
        ingest.load(client, "strict", SCHEMAS / "openflights.yaml", schema=schema, root=folder)
    with pytest.raises(NotReady, match="no committed load"):
        client.submit_job("strict")
    assert not client.graph("strict").find_nodes([1, 2, 3], "airport").any()


@pytest.mark.parametrize("write", [write_dgl, write_numpy])
def test_generated_shop_is_read_back_edge_by_edge(
    client: Client, tmp_path: Path, write: Any
) -> None:
    shop = Shop(users=500, items=90, categories=7, clicks=4000, buys=600, follows=900, seed=3)
    source = write(shop, tmp_path / "shop")
    name = f"shop_{write.__name__}"
    report = ingest.load(client, name, source, schema=ingest.schema_of(source), chunk_rows=1000)
    assert (report.nodes, report.edges) == (sum(shop.nodes.values()), sum(shop.edges.values()))
    graph = client.graph(name)
    graph.build()
    pairs, weights = (
        shop.column("user:clicks:item", column, 0, shop.clicks) for column in ("edges", "weight")
    )
    assert edges_of(graph, "clicks") == Counter(
        zip(*pairs.T.tolist(), weights.tolist(), strict=True)
    )
    days = {
        batch.edge_ids[i]: batch.features["day"][i]
        for batch in graph.scan_edges("buys", "day")
        for i in range(len(batch))
    }
    assert np.array_equal(
        [days[i] for i in sorted(days)], shop.column("user:buys:item", "day", 0, shop.buys)
    )
    features = graph.node_features(np.arange(90), ["look", "weight"], "item")
    assert np.array_equal(np.asarray(features["look"]), shop.column("item", "look", 0, 90))
    assert np.array_equal(np.asarray(features["weight"]), shop.column("item", "weight", 0, 90))


class Interrupted(Exception):
    """Exception that simulates a broken connection."""


def test_interrupted_load_resends_no_written_chunk(client: Client, tmp_path: Path) -> None:
    shop = Shop(users=300, items=50, categories=5, clicks=3000, buys=100, follows=100, seed=4)
    source = write_dgl(shop, tmp_path / "shop")
    schema = ingest.schema_of(source)

    def interrupt(progress: LoadProgress) -> None:
        if progress.rows_done > 1800:
            raise Interrupted

    with pytest.raises(Interrupted):
        ingest.load(client, "resumed", source, schema=schema, chunk_rows=500, progress=interrupt)
    sent_chunks: list[int] = []
    session: Any = client.session
    graph_call = session.graph

    def record_writes(name: str, head: Any, arrays: Any) -> Any:
        if name == "write":
            sent_chunks.append(head.chunk)
        return graph_call(name, head, arrays)

    session.graph = record_writes
    try:
        report = ingest.load(client, "resumed", source, chunk_rows=500)
    finally:
        del session.graph
    assert (report.nodes, report.edges) == (sum(shop.nodes.values()), sum(shop.edges.values()))
    assert 0 < len(sent_chunks) < 9
    graph = client.graph("resumed")
    graph.build()
    pairs, weights = (
        shop.column("user:clicks:item", column, 0, shop.clicks) for column in ("edges", "weight")
    )
    assert edges_of(graph, "clicks") == Counter(
        zip(*pairs.T.tolist(), weights.tolist(), strict=True)
    )


def test_source_that_does_not_fit_the_space_is_refused(client: Client, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,w,x\n1,2,3\n")
    schema_file = tmp_path / "plain.yaml"
    schema_file.write_text("nodes: {a: {files: a.csv, id: id}}\n")
    with pytest.raises(NotFound, match="nowhere"):
        ingest.load(client, "nowhere", schema_file)
    ingest.load(client, "fits", schema_file, schema=ingest.schema_of(schema_file))
    for text, error, message in (
        ("nodes: {b: {files: a.csv, id: id}}", NotFound, "no node type 'b'"),
        (
            "nodes: {a: {files: a.csv, id: id, weight: w}}",
            InvalidRequest,
            "with weights in the source",
        ),
        ("nodes: {a: {files: a.csv, id: id, features: {x: int8}}}", NotFound, "no feature 'x'"),
    ):
        schema_file.write_text(text)
        with pytest.raises(error, match=message):
            ingest.load(client, "fits", schema_file)


def test_edge_ends_are_found_in_earlier_loads_or_created(client: Client, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n5\n900\n")
    (tmp_path / "e.csv").write_text("s,d\n5,900\n5,6\n")
    (tmp_path / "nodes.yaml").write_text("nodes: {a: {files: a.csv, id: id}}\n")
    (tmp_path / "edges.yaml").write_text(
        "nodes: {a: {}}\nedges: {a:e:a: {files: e.csv, src: s, dst: d}}\n"
    )
    (tmp_path / "create.yaml").write_text(
        "nodes: {a: {}}\nedges: {a:e:a: {files: e.csv, src: s, dst: d, missing: create}}\n"
    )
    client.create_space("two", ingest.schema_of(tmp_path / "edges.yaml"))
    ingest.load(client, "two", tmp_path / "nodes.yaml")
    with pytest.raises(
        InvalidRequest,
        match=r"e\.csv, row 3, column 'd', value '6': there is no such node of type 'a'",
    ):
        ingest.load(client, "two", tmp_path / "edges.yaml")
    report = ingest.load(
        client, "two", tmp_path / "edges.yaml", on_bad_rows="skip", rejects=tmp_path / "r.csv"
    )
    assert (report.edges, report.rejected) == (1, 1)
    client.create_space("made", ingest.schema_of(tmp_path / "create.yaml"))
    ingest.load(client, "made", tmp_path / "create.yaml")
    graph = client.graph("made")
    graph.build()
    assert sorted(np.concatenate([batch.ids for batch in graph.scan_nodes("a")]).tolist()) == [
        5,
        6,
        900,
    ]
    assert edges_of(graph, "e") == Counter([(5, 900, 1.0), (5, 6, 1.0)])


def test_service_error_leaves_the_load_resumable(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_dgl(
        Shop(users=10, items=5, categories=2, clicks=50, buys=0, follows=0), tmp_path / "shop"
    )
    from asterism.calls.loads import Load

    def unavailable(*_: Any, **__: Any) -> Any:
        raise Unavailable("storaged is away")

    with monkeypatch.context() as patched:
        patched.setattr(Load, "write_edges", unavailable)
        with pytest.raises(Unavailable, match="storaged is away"):
            ingest.load(client, "patient", source, schema=ingest.schema_of(source))
    first = client.begin_load(
        "patient", resume_key=ingest.bulk_load.resume_key(open_source(source), "fail")
    )
    assert len(first.written) >= 2
    assert ingest.load(client, "patient", source).load_id == first.load_id


def test_changed_source_conflicts_once_and_then_loads_afresh(
    client: Client, tmp_path: Path
) -> None:
    shop = Shop(users=50, items=9, categories=2, clicks=500, buys=0, follows=0)
    source = write_dgl(shop, tmp_path / "shop")

    def interrupt(progress: LoadProgress) -> None:
        if progress.rows_done > 300:
            raise Interrupted

    with pytest.raises(Interrupted):
        ingest.load(
            client,
            "changed",
            source,
            schema=ingest.schema_of(source),
            chunk_rows=100,
            progress=interrupt,
        )
    pairs = shop.column("user:clicks:item", "edges", 0, 500)
    pairs[0] = 49, 8
    np.save(tmp_path / "shop" / "user_clicks_item-edges-0.npy", pairs)
    with pytest.raises(Conflict, match=r"expected the files that load .* that load was abandoned"):
        ingest.load(client, "changed", source, chunk_rows=100)
    assert ingest.load(client, "changed", source, chunk_rows=100).edges == 509
    graph = client.graph("changed")
    graph.build()
    assert Counter((a, b) for a, b, _ in edges_of(graph, "clicks").elements()) == Counter(
        map(tuple, pairs.tolist())
    )


def test_later_row_wins_for_a_repeated_id(client: Client, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,x\n5,1\n6,1\n5,2\n")
    (tmp_path / "b.csv").write_text("id,x\n6,9\n")
    schema_file = tmp_path / "plain.yaml"
    schema_file.write_text("nodes: {a: {files: [a.csv, b.csv], id: id, features: {x: int64}}}\n")
    ingest.load(client, "twice", schema_file, schema=ingest.schema_of(schema_file))
    graph = client.graph("twice")
    graph.build()
    assert np.asarray(graph.node_features([5, 6], "x", "a")["x"]).tolist() == [2, 9]
    assert sum(len(batch) for batch in graph.scan_nodes("a")) == 2
