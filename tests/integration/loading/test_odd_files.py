"""Tests of odd files through the command: a message that names the cause, and no traceback."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.kit import schema_folder

import asterism
from asterism import InvalidRequest, ingest
from asterism.cli.app import run
from asterism.cli.exit_codes import ExitCode
from asterism_proto.v1 import metad_pb2 as metad_pb

NAMED = "nodes:\n  n: {files: n.csv, id: id, features: {f: float32}}\n"
REFUSED = {
    "overflow": (NAMED, b"id,f\n1,1e39\n", "n.csv, row 2, column 'f', value '1e39'"),
    "pattern": (NAMED.replace("n.csv", "'**.csv'"), b"id,f\n1,2\n", "between slashes"),
    "header": (NAMED, b"id,a\rf\n1,2\n", "CR within the header"),
    "quote": (NAMED, b'id,"f\n1,2\n', "a quote is left open in the header"),
    "utf-16": (NAMED, "\ufeffid,f\n1,2\n".encode("utf-16-le"), "found UTF-16"),
    "repeated": (f"{NAMED}  n: {{count: 3}}\n", b"id,f\n1,2\n", "'n' is there twice"),
    "word": (NAMED.replace("id: id", "id: true"), b"id,f\n1,2\n", "put it in quotes"),
    "fill": (NAMED.replace("float32", "{dtype: int8, fill: 300}"), b"id,f\n1,2\n", "fill=300"),
    "digits": (NAMED, b"id,f\n1_000,2\n", "an id is an integer"),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_command_refuses_a_file_without_a_traceback(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
) -> None:
    schema, content, said = REFUSED[name]
    path = schema_folder.write(tmp_path, schema, {"n.csv": content})
    code = run(["load", "odd", str(path), "--create", "--path", str(tmp_path / "service")])
    shown = " ".join(capsys.readouterr().err.split())
    assert code == ExitCode.USAGE
    assert said in shown
    assert "Traceback" not in shown


def test_odd_rows_are_left_out_and_listed(tmp_path: Path) -> None:
    edges = "edges:\n  n:e:n: {files: e.csv, src: s, dst: d, weight: w, aggregate: sum}\n"
    files = {
        "n.csv": "\ufeffid,f\r1,0.5\r2,1e39\r3,inf\r",
        "e.csv": "s,d,w\n1,3,3e38\n1,3,3e38\n3,1,2\n3,1,3\n",
    }
    path = schema_folder.write(tmp_path, NAMED + edges, files)
    with asterism.open(tmp_path / "service") as client:
        report = ingest.load(
            client,
            "odd",
            path,
            schema=ingest.schema_of(path),
            on_bad_rows="skip",
            rejects=tmp_path / "r.csv",
        )
        assert (report.nodes, report.edges, report.rejected) == (2, 1, 2)
        record = client.session.catalog("get_load", metad_pb.LoadRequest(load_id=report.load_id))
        assert record.rejected == 2
        listed = (tmp_path / "r.csv").read_text().splitlines()[1:]
        assert [line.split(",")[:3] for line in listed] == [
            ["n.csv", "3", "f"],
            ["e.csv (aggregated)", "0", "w"],
        ]
        graph = client.graph("odd")
        for values in ([1e39], np.array([1e39]), [1 << 200]):
            with pytest.raises(
                InvalidRequest, match=r"'f' with value .* in row 0: expected a numb"
            ):
                graph.upsert_nodes([7], "n", features={"f": values})
        graph.build()
        found = graph.node_features([1, 3], ["f"], "n")["f"]
        assert np.asarray(found).tolist() == [0.5, np.inf]
        (batch,) = graph.scan_edges("e", [])
        assert (batch.src.tolist(), batch.weights.tolist()) == ([3], [5.0])
