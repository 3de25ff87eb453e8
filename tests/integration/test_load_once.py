"""Files are loaded once: what a space has already is told, after a restart too, and loaded again only on request."""

from __future__ import annotations

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
from asterism.ingest import LoadReport, Progress
from asterism_proto.errors import Conflict

SHOP = Shop(users=60, items=20, categories=3, clicks=400, buys=0, follows=0, seed=5)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with asterism.open(tmp_path_factory.mktemp("service")) as client:
        yield client


def edges_of(client: Client, space: str) -> Counter[tuple[int, int]]:
    graph = client.graph(space)
    graph.build()
    found: Counter[tuple[int, int]] = Counter()
    for batch in graph.scan_edges(graph.schema.edge_types[0].name):
        found.update(zip(batch.src.tolist(), batch.dst.tolist(), strict=True))
    return found


def plain(folder: Path, edges: str = "s,d\n1,2\n2,3\n") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "nodes.csv").write_text("id\n1\n2\n3\n")
    (folder / "edges.csv").write_text(edges)
    source = folder / "graph.yaml"
    source.write_text("nodes: {a: {files: nodes.csv, id: id}}\nedges: {a:e:a: {files: edges.csv, src: s, dst: d}}\n")
    return source


def told(report: LoadReport) -> tuple[int, int, bool]:
    return report.nodes, report.edges, report.already


def test_the_same_files_are_loaded_once_also_after_a_restart_and_again_on_request(tmp_path: Path) -> None:
    source = write_dgl(SHOP, tmp_path / "shop")
    seen: list[Progress] = []
    with asterism.open(tmp_path / "service") as client:
        first = ingest.load(client, "shop", source, schema=ingest.schema_of(source))
        assert told(first) == (sum(SHOP.nodes.values()), sum(SHOP.edges.values()), False)
        # The folder is named in another way, but it is the same one.
        second = ingest.load(client, "shop", Path(os.path.relpath(source.parent)), progress=seen.append)
        assert told(second) == (0, 0, True)
        once = edges_of(client, "shop")
    with asterism.open(tmp_path / "service") as client:
        third = ingest.load(client, "shop", source, progress=seen.append, resume=False)
        assert told(third) == (0, 0, True)
        assert (third.commit, third.load_id) == (second.commit, second.load_id) == (first.commit, first.load_id)
        assert seen == []
        assert edges_of(client, "shop") == once
        for _ in range(2):
            more = ingest.load(client, "shop", source, again=True)
            assert told(more) == (sum(SHOP.nodes.values()), sum(SHOP.edges.values()), False)
        assert more.commit == first.commit + 2
        assert ingest.load(client, "shop", source).commit == first.commit
        assert edges_of(client, "shop") == Counter({edge: 3 * n for edge, n in once.items()})


@pytest.mark.parametrize("file", ["edges.csv", "nodes.csv", "graph.yaml"])
def test_a_file_that_was_touched_makes_it_another_source(client: Client, tmp_path: Path, file: str) -> None:
    source = plain(tmp_path / "files")
    space = "touched_" + file.partition(".")[0]
    first = ingest.load(client, space, source, schema=ingest.schema_of(source))
    assert ingest.load(client, space, source).already
    before = (source.parent / file).stat()
    os.utime(source.parent / file, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    second = ingest.load(client, space, source)
    assert (second.already, second.commit) == (False, first.commit + 1)
    assert ingest.load(client, space, source).commit == second.commit
    # As it was when it was loaded first.
    os.utime(source.parent / file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert ingest.load(client, space, source).commit == first.commit


def test_what_one_space_has_another_has_not(client: Client, tmp_path: Path) -> None:
    source = plain(tmp_path / "files")
    for space in ("here", "there"):
        assert not ingest.load(client, space, source, schema=ingest.schema_of(source)).already
    client.drop_space("here")
    assert not ingest.load(client, "here", source, schema=ingest.schema_of(source)).already


def test_all_files_of_a_source_are_named_what_describes_it_first(tmp_path: Path) -> None:
    source = plain(tmp_path / "files")
    assert [path.name for path in open_source(source).files] == ["graph.yaml", "nodes.csv", "edges.csv"]
    chunked = write_dgl(SHOP, tmp_path / "shop")
    found = open_source(chunked).files
    assert found[0].name == "metadata.json"
    assert {path.resolve() for path in found} == {path.resolve() for path in (tmp_path / "shop").rglob("*") if path.is_file()}


class Cut(Exception):
    """The line is cut."""


def cut(client: Client, space: str, source: Path, *, after: int, again: bool = False) -> None:
    def stop(progress: Progress) -> None:
        if progress.rows_done >= after:
            raise Cut

    with pytest.raises(Cut):
        ingest.load(client, space, source, schema=ingest.schema_of(source), chunk_rows=1, progress=stop, again=again)


def test_a_load_that_was_cut_off_and_touched_is_found_as_what_it_was_ended_as(client: Client, tmp_path: Path) -> None:
    source = plain(tmp_path / "files")
    cut(client, "cut", source, after=4)
    os.utime(source.parent / "edges.csv", ns=(1, 1))
    report = ingest.load(client, "cut", source, chunk_rows=1)
    assert told(report) == (3, 2, False)
    assert ingest.load(client, "cut", source, chunk_rows=1).commit == report.commit
    assert edges_of(client, "cut") == Counter([(1, 2), (2, 3)])


def test_rows_that_a_cut_off_load_wrote_and_the_source_lost_are_a_conflict(client: Client, tmp_path: Path) -> None:
    source = plain(tmp_path / "files")
    cut(client, "shrunk", source, after=5)
    plain(tmp_path / "files", "s,d\n1,2\n")
    with pytest.raises(Conflict, match=r"has changed since .* \(it has 5 chunks, the source makes 4 now\)"):
        ingest.load(client, "shrunk", source, chunk_rows=1)
    assert told(ingest.load(client, "shrunk", source, chunk_rows=1)) == (3, 1, False)
    assert edges_of(client, "shrunk") == Counter([(1, 2)])


def test_a_load_that_was_cut_off_is_given_up_where_it_is_not_to_go_on(client: Client, tmp_path: Path) -> None:
    source = plain(tmp_path / "files")
    cut(client, "anew", source, after=4)
    plain(tmp_path / "files", "s,d\n3,1\n")
    assert told(ingest.load(client, "anew", source, chunk_rows=1, resume=False)) == (3, 1, False)
    assert edges_of(client, "anew") == Counter([(3, 1)])


def test_loading_again_goes_on_only_with_a_load_of_its_own_kind(client: Client, tmp_path: Path) -> None:
    source = plain(tmp_path / "files")
    cut(client, "kinds", source, after=4)
    cut(client, "kinds", source, after=4, again=True)
    again = ingest.load(client, "kinds", source, chunk_rows=1, again=True)
    first = ingest.load(client, "kinds", source, chunk_rows=1)
    assert (again.already, first.already, again.load_id) == (False, False, first.load_id + 1)
    assert edges_of(client, "kinds") == Counter({(1, 2): 2, (2, 3): 2})


def test_the_command_says_that_files_are_loaded_already(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = plain(tmp_path / "files")
    schema = source.rename(tmp_path / "graph.yaml")
    load = ["load", "g", str(schema), "--root", str(tmp_path / "files"), "--path", str(tmp_path / "service")]
    assert run([*load, "--create", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["edges"], report["already"]) == (2, False)
    assert run(load) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert f"already loaded as commit {report['commit']}; --again loads it once more" in out
    assert run([*load, "--again", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["commit"] == report["commit"] + 1


def test_a_committed_load_knows_its_number(client: Client) -> None:
    client.create_space("numbers", {"nodes": {"a": {}}})
    load = client.begin_load("numbers", source="by hand", resume_key="k")
    assert load.commit_number == 0
    load.write_nodes(0, "a", np.arange(3))
    assert load.commit() == load.commit_number > 0
    found = client.begin_load("numbers", source="by hand", resume_key="k")
    assert (found.load_id, found.commit_number, found.written) == (load.load_id, load.commit_number, {0})
    assert client.begin_load("numbers", source="otherwise", resume_key="k").commit_number == 0
