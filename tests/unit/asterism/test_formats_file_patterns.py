"""Tests of names and patterns of files: every file once, in a stated order, or a refusal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.kit import pglbox_files, schema_folder

from asterism import ingest
from asterism.formats import open_source
from asterism.formats.pglbox.config import read_config
from asterism_proto.errors import InvalidRequest

DEEP = {"n.csv": "id\n1\n", "a/n.csv": "id\n2\n", "a/b/n.csv": "id\n3\n", "a/b/c/n.csv": "id\n4\n"}


def schema_of(files: str, root: str = "") -> str:
    return f"{root}nodes:\n  n: {{files: {files}, id: id, format: csv}}\n"


@pytest.mark.parametrize(
    ("pattern", "ids"),
    [
        ("'**/n.csv'", [1, 2, 3, 4]),
        ("'a/**/n.csv'", [2, 3, 4]),
        ("'**/b/**/*.csv'", [3, 4]),
        ("'a/**'", [2, 3, 4]),
        ("'*/n.csv'", [2]),
        ("'[a-b]/n.csv'", [2]),
    ],
)
def test_two_stars_stand_for_any_number_of_folders(
    tmp_path: Path, pattern: str, ids: list[int]
) -> None:
    assert schema_folder.ids_of(schema_folder.nodes(tmp_path, schema_of(pattern), DEEP)) == ids
    absolute = schema_of(f"'{tmp_path}/{pattern[1:]}", "root: nowhere\n")
    assert schema_folder.ids_of(schema_folder.nodes(tmp_path, absolute)) == ids


@pytest.mark.parametrize("pattern", ["'part-*.csv'", "'.'"], ids=["pattern", "folder"])
def test_files_are_read_in_the_order_of_names(tmp_path: Path, pattern: str) -> None:
    """Disks list the files of a folder in the order of creation, or of hashes."""
    order = np.random.default_rng(5).permutation(24).tolist()
    files = {f"data/part-{i:02}.csv": f"id\n{i}\n" for i in order}
    schema = schema_of(pattern, "root: data\n")
    chunks = schema_folder.nodes(tmp_path, schema, files)
    assert [chunk.ids.tolist() for chunk in chunks] == [[i] for i in range(24)]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ("'**.csv'", r"\*\*\.csv: expected `\*\*` between slashes"),
        ("'a**/n.csv'", r"expected `\*\*` between slashes"),
        ("' '", "' ': expected the name of a file"),
        ("''", "expected a name or a list of names"),
        ("[]", "expected a name or a list of names"),
        ("'a'", "a: expected files, found the folder 'b'"),
        ("'c.csv'", r"c\.csv: no such file under"),
        ("'b*.csv'", r"b\*\.csv: no such file"),
        (f"'{'x' * 300}.csv'", "no such file under"),
        ('"n\\0.csv"', "expected the name of a file"),
        ("'~no-such-user/n.csv'", "no such file"),
    ],
)
def test_a_name_without_a_file_is_refused(tmp_path: Path, files: str, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        schema_folder.nodes(tmp_path, schema_of(files), DEEP)


def test_brackets_of_existing_names_and_of_folders_are_literal(tmp_path: Path) -> None:
    folder = tmp_path / "run[1]"
    files = {"n[0].csv": "id\n1\n", "n0.csv": "id\n2\n"}
    assert schema_folder.ids_of(schema_folder.nodes(folder, schema_of("'n[0].csv'"), files)) == [1]
    assert schema_folder.ids_of(schema_folder.nodes(folder, schema_of("'n*.csv'"))) == [1, 2]
    assert schema_folder.ids_of(schema_folder.nodes(folder, schema_of("'n[0-9].csv'"))) == [2]


def test_a_tilde_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    schema_folder.write(home, schema_of("n.csv"), DEEP)
    monkeypatch.setenv("HOME", str(home))
    for files, root in (("'~/n.csv'", ""), ("'~/**/n.csv'", ""), ("n.csv", "root: ~/a\n")):
        chunks = schema_folder.nodes(tmp_path, schema_of(files, root))
        assert len(chunks) in (1, 4)
        assert {chunk.file for chunk in chunks} <= {
            "home/n.csv",
            "n.csv",
            *(f"home/{n}" for n in DEEP),
        }
    assert schema_folder.ids_of(open_source("~/schema.yaml")) == [1]
    assert schema_folder.ids_of(open_source("~/schema.yaml", root="~/a")) == [2]
    pglbox_files.write(home)
    assert read_config("~/config.yaml").root == home / "data"
    (tmp_path / "home/config.yaml").write_text(
        (home / "config.yaml").read_text().replace("local_path: data", "local_path: ~/data")
    )
    assert read_config("~/config.yaml", root=None).root == home / "data"


def test_a_null_root_is_the_folder_of_the_schema(tmp_path: Path) -> None:
    for root in ("root:\n", "root: ~\n", "root: ''\n", "root: .\n"):
        chunks = schema_folder.nodes(tmp_path, schema_of("n.csv", root), DEEP)
        assert schema_folder.ids_of(chunks) == [1]
    (tmp_path / "2024").mkdir()
    (tmp_path / "2024/n.csv").write_text("id\n9\n")
    chunks = schema_folder.nodes(tmp_path, schema_of("n.csv", "root: 2024\n"))
    assert schema_folder.ids_of(chunks) == [9]
    with pytest.raises(InvalidRequest, match="root=True: expected the name of a folder"):
        schema_folder.nodes(tmp_path, schema_of("n.csv", "root: true\n"))


def test_a_path_that_is_no_file_is_refused_by_every_entry(tmp_path: Path) -> None:
    for path in (str(tmp_path / ("x" * 300)), str(tmp_path / "a\0b"), ""):
        with pytest.raises(InvalidRequest):
            open_source(path)
        with pytest.raises(InvalidRequest):
            ingest.schema_of(path)
        with pytest.raises(InvalidRequest):
            read_config(path)


EDGES = (
    "nodes:\n  n: {count: 9}\nedges:\n  n:e:n: {files: FILES, src: s, dst: d, aggregate: count}\n"
)


@pytest.mark.parametrize(
    "files",
    [
        "['e-*.csv', e-1.csv]",
        "[e-1.csv, 'e-*.csv']",
        "[e-1.csv, e-1.csv, e-2.csv]",
        "[e-1.csv, ./e-1.csv, e-2.csv]",
        "['e-*.csv', link.csv]",
        "['e-*.csv', '*/e-*.csv']",
    ],
)
def test_a_file_that_several_patterns_match_is_read_once(tmp_path: Path, files: str) -> None:
    (tmp_path / "folder").symlink_to(tmp_path)
    (tmp_path / "link.csv").symlink_to(tmp_path / "e-2.csv")
    data = {"e-1.csv": "s,d\n0,1\n", "e-2.csv": "s,d\n1,2\n"}
    chunks = [
        c for c in schema_folder.edges(tmp_path, EDGES.replace("FILES", files), data) if len(c)
    ]
    assert [(c.src.tolist(), c.weights.tolist()) for c in chunks if c.weights is not None] == [
        ([0, 1], [1, 1])
    ]


def test_arrays_are_repeated_only_if_all_columns_are(tmp_path: Path) -> None:
    np.save(tmp_path / "e-1.npy", np.array([[0, 1]]))
    np.save(tmp_path / "e-2.npy", np.array([[1, 2]]))
    np.save(tmp_path / "w.npy", np.array([0.5]))
    schema = """
nodes: {n: {count: 9}}
edges:
  n:e:n:
    format: numpy
    files: {e: ['e-*.npy', e-1.npy], w: [w.npy, w.npy, w.npy]}
    src: e[0]
    dst: e[1]
    weight: w
"""
    assert [c.src.tolist() for c in schema_folder.edges(tmp_path, schema)] == [[0], [1]]


def test_pglbox_reads_patterns_and_refuses_types_twice(tmp_path: Path) -> None:
    path = pglbox_files.write(tmp_path, etype2files="u2u:u2?.txt", meta_path="u2u")
    (tmp_path / "data/u2x.txt").write_text("1\t3\n")
    source = open_source(path)
    assert sum(len(chunk) for chunk in source.edge_chunks()) == 2 * (len(pglbox_files.KNOWS) + 1)
    path = pglbox_files.write(tmp_path, etype2files="u2u:u2u.txt,u2to2u:u2x.txt", meta_path="u2u")
    with pytest.raises(InvalidRequest, match="'u2to2u': expected each edge type once"):
        open_source(path)
    path = pglbox_files.write(tmp_path, sage_mode=True, samples=[2], sample_num_list=[3])
    with pytest.raises(InvalidRequest, match="expected sample_num_list or samples, not both"):
        read_config(path)


def test_rejects_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    from asterism.formats.chunks import BadRow
    from asterism.ingest.bulk_load import RejectsFile

    row = BadRow(file="a\udcff.csv", row=1, column="x", value="y", reason="z")
    with pytest.raises(InvalidRequest, match=r"rejects=.*nowhere.*: expected a file that can be"):
        RejectsFile(tmp_path / "nowhere/r.csv").record([row])
    rejects = RejectsFile(tmp_path / "r.csv")
    rejects.record([row])
    rejects.close()
    assert "a\\udcff.csv" in (tmp_path / "r.csv").read_text()
