"""Files are loaded once: a repeated load is reported, also after a restart.

They are loaded again only on request.
"""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import asterism
from asterism import Client, ingest
from asterism.cli.app import run
from asterism.formats import open_source
from asterism.formats.generate import Shop, write_dgl
from asterism.ingest import LoadProgress, LoadReport
from asterism.ingest.bulk_load import resume_key
from asterism_proto.errors import Conflict, InvalidRequest

SHOP = Shop(users=60, items=20, categories=3, clicks=400, buys=0, follows=0, seed=5)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with asterism.open(tmp_path_factory.mktemp("service")) as client:
        yield client


def edges_of(client: Client, space: str) -> Counter[tuple[int, int]]:
    graph = client.graph(space)
    graph.build()
    counts: Counter[tuple[int, int]] = Counter()
    for batch in graph.scan_edges(graph.schema.edge_types[0].name):
        counts.update(zip(batch.src.tolist(), batch.dst.tolist(), strict=True))
    return counts


def write_source(folder: Path, edges: str = "s,d\n1,2\n2,3\n") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "nodes.csv").write_text("id\n1\n2\n3\n")
    (folder / "edges.csv").write_text(edges)
    source = folder / "graph.yaml"
    source.write_text(
        "nodes: {a: {files: nodes.csv, id: id}}\nedges: {a:e:a: {files: edges.csv, src: s, "
        "dst: d}}\n"
    )
    return source


def summary(report: LoadReport) -> tuple[int, int, bool]:
    return report.nodes, report.edges, report.already


def test_same_files_are_loaded_once_unless_requested_again(tmp_path: Path) -> None:
    source = write_dgl(SHOP, tmp_path / "shop")
    progress_events: list[LoadProgress] = []
    with asterism.open(tmp_path / "service") as client:
        first = ingest.load(client, "shop", source, schema=ingest.schema_of(source))
        assert summary(first) == (sum(SHOP.nodes.values()), sum(SHOP.edges.values()), False)
        # The same folder by another path.
        second = ingest.load(
            client, "shop", Path(os.path.relpath(source.parent)), progress=progress_events.append
        )
        assert summary(second) == (0, 0, True)
        first_edges = edges_of(client, "shop")
    with asterism.open(tmp_path / "service") as client:
        third = ingest.load(client, "shop", source, progress=progress_events.append, resume=False)
        assert summary(third) == (0, 0, True)
        assert (
            (third.commit, third.load_id)
            == (second.commit, second.load_id)
            == (first.commit, first.load_id)
        )
        assert progress_events == []
        assert edges_of(client, "shop") == first_edges
        for _ in range(2):
            repeated = ingest.load(client, "shop", source, again=True)
            assert summary(repeated) == (sum(SHOP.nodes.values()), sum(SHOP.edges.values()), False)
        assert repeated.commit == first.commit + 2
        assert ingest.load(client, "shop", source).commit == first.commit
        assert edges_of(client, "shop") == Counter({edge: 3 * n for edge, n in first_edges.items()})


@pytest.mark.parametrize("file", ["edges.csv", "nodes.csv", "graph.yaml"])
def test_touched_file_makes_another_source(client: Client, tmp_path: Path, file: str) -> None:
    source = write_source(tmp_path / "files")
    space = "touched_" + file.partition(".")[0]
    first = ingest.load(client, space, source, schema=ingest.schema_of(source))
    assert ingest.load(client, space, source).already
    before = (source.parent / file).stat()
    os.utime(source.parent / file, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    second = ingest.load(client, space, source)
    assert (second.already, second.commit) == (False, first.commit + 1)
    assert ingest.load(client, space, source).commit == second.commit
    # Restore the time of the first load.
    os.utime(source.parent / file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert ingest.load(client, space, source).commit == first.commit


def test_loaded_files_are_remembered_per_space(client: Client, tmp_path: Path) -> None:
    source = write_source(tmp_path / "files")
    for space in ("here", "there"):
        assert not ingest.load(client, space, source, schema=ingest.schema_of(source)).already
    client.drop_space("here")
    assert not ingest.load(client, "here", source, schema=ingest.schema_of(source)).already


def test_source_lists_all_its_files_with_the_schema_first(tmp_path: Path) -> None:
    source = write_source(tmp_path / "files")
    assert [path.name for path in open_source(source).files] == [
        "graph.yaml",
        "nodes.csv",
        "edges.csv",
    ]
    chunked = write_dgl(SHOP, tmp_path / "shop")
    files = open_source(chunked).files
    assert files[0].name == "metadata.json"
    assert {path.resolve() for path in files} == {
        path.resolve() for path in (tmp_path / "shop").rglob("*") if path.is_file()
    }


class Interrupted(Exception):
    """Exception that simulates a broken connection."""


def interrupt_load(
    client: Client, space: str, source: Path, *, after: int, again: bool = False
) -> None:
    def stop(progress: LoadProgress) -> None:
        if progress.rows_done >= after:
            raise Interrupted

    with pytest.raises(Interrupted):
        ingest.load(
            client,
            space,
            source,
            schema=ingest.schema_of(source),
            chunk_rows=1,
            progress=stop,
            again=again,
        )


def test_resumed_load_is_recorded_with_its_final_files(client: Client, tmp_path: Path) -> None:
    source = write_source(tmp_path / "files")
    interrupt_load(client, "cut", source, after=4)
    os.utime(source.parent / "edges.csv", ns=(1, 1))
    report = ingest.load(client, "cut", source, chunk_rows=1)
    assert summary(report) == (3, 2, False)
    assert ingest.load(client, "cut", source, chunk_rows=1).commit == report.commit
    assert edges_of(client, "cut") == Counter([(1, 2), (2, 3)])


def test_interrupted_load_of_compressed_files_resumes(client: Client, tmp_path: Path) -> None:
    source = write_source(tmp_path / "files")
    edges = source.parent / "edges.csv"
    edges.write_bytes(gzip.compress(edges.read_bytes()))
    interrupt_load(client, "packed", source, after=4)
    report = ingest.load(client, "packed", source, chunk_rows=1)
    assert summary(report) == (3, 2, False)
    assert edges_of(client, "packed") == Counter([(1, 2), (2, 3)])
    edges.write_bytes(edges.read_bytes()[:-4])
    with pytest.raises(InvalidRequest, match=r"edges\.csv: .*the file is cut off or damaged"):
        ingest.load(client, "packed", source)
    assert edges_of(client, "packed") == Counter([(1, 2), (2, 3)])


def test_resuming_with_a_shrunk_source_is_a_conflict(client: Client, tmp_path: Path) -> None:
    source = write_source(tmp_path / "files")
    interrupt_load(client, "shrunk", source, after=5)
    write_source(tmp_path / "files", "s,d\n1,2\n")
    with pytest.raises(
        Conflict,
        match=r"expected the files that load .* \(the load has 5 chunks, the source has 4 now\)",
    ):
        ingest.load(client, "shrunk", source, chunk_rows=1)
    assert summary(ingest.load(client, "shrunk", source, chunk_rows=1)) == (3, 1, False)
    assert edges_of(client, "shrunk") == Counter([(1, 2)])


def test_interrupted_load_is_abandoned_without_resume(client: Client, tmp_path: Path) -> None:
    source = write_source(tmp_path / "files")
    interrupt_load(client, "new", source, after=4)
    write_source(tmp_path / "files", "s,d\n3,1\n")
    assert summary(ingest.load(client, "new", source, chunk_rows=1, resume=False)) == (3, 1, False)
    assert edges_of(client, "new") == Counter([(3, 1)])


def test_interrupted_load_of_other_options_is_not_resumed(client: Client, tmp_path: Path) -> None:
    source = write_source(tmp_path / "files")
    interrupt_load(client, "options", source, after=4)
    assert summary(ingest.load(client, "options", source)) == (3, 2, False)
    assert edges_of(client, "options") == Counter([(1, 2), (2, 3)])


def test_files_loaded_without_bad_rows_are_still_refused(client: Client, tmp_path: Path) -> None:
    source = write_source(tmp_path / "files", "s,d\n1,2\n-1,3\n1,9\n")
    options = {"rejects": tmp_path / "rejects.csv", "schema": ingest.schema_of(source)}
    assert ingest.load(client, "bad", source, on_bad_rows="skip", **options).rejected == 2
    rejects = (tmp_path / "rejects.csv").read_text().splitlines()[1:]
    assert [line.split(",")[:4] for line in rejects] == [
        ["edges.csv", "3", "s", "-1"],
        ["edges.csv", "4", "d", "9"],
    ]
    with pytest.raises(InvalidRequest, match=r"edges\.csv, row 3, column 's', value '-1'"):
        ingest.load(client, "bad", source)
    assert ingest.load(client, "bad", source, on_bad_rows="skip", **options).already


def test_refused_load_leaves_nothing_to_resume(client: Client, tmp_path: Path) -> None:
    source = write_source(tmp_path / "files", "s,d\n1,2\n-1,3\n")
    with pytest.raises(InvalidRequest):
        ingest.load(client, "refused", source, schema=ingest.schema_of(source), chunk_rows=1)
    key = resume_key(open_source(source, chunk_rows=1), "fail")
    assert client.begin_load("refused", source="by hand", resume_key=key).registered == frozenset()


def test_repeated_load_resumes_only_a_repeated_load(client: Client, tmp_path: Path) -> None:
    source = write_source(tmp_path / "files")
    interrupt_load(client, "kinds", source, after=4)
    interrupt_load(client, "kinds", source, after=4, again=True)
    again = ingest.load(client, "kinds", source, chunk_rows=1, again=True)
    first = ingest.load(client, "kinds", source, chunk_rows=1)
    assert (again.already, first.already, again.load_id) == (False, False, first.load_id + 1)
    assert edges_of(client, "kinds") == Counter({(1, 2): 2, (2, 3): 2})


def test_command_reports_that_files_are_loaded_already(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_source(tmp_path / "files")
    schema = source.rename(tmp_path / "graph.yaml")
    load = [
        "load",
        "g",
        str(schema),
        "--root",
        str(tmp_path / "files"),
        "--path",
        str(tmp_path / "service"),
    ]
    assert run([*load, "--create", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["edges"], report["already"]) == (2, False)
    assert run(load) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert f"already loaded as commit {report['commit']}; --force loads it again" in out
    assert run([*load, "--force", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["commit"] == report["commit"] + 1


def test_a_committed_load_knows_its_number(client: Client) -> None:
    client.create_space("numbers", {"nodes": {"a": {}}})
    load = client.begin_load("numbers", source="by hand", resume_key="k")
    assert load.commit_number == 0
    load.write_nodes(0, "a", np.arange(3))
    assert load.commit() == load.commit_number > 0
    reopened = client.begin_load("numbers", source="by hand", resume_key="k")
    assert (reopened.load_id, reopened.commit_number, reopened.written) == (
        load.load_id,
        load.commit_number,
        {0},
    )
    assert client.begin_load("numbers", source="otherwise", resume_key="k").commit_number == 0
