"""Tests of the destinations of exports: folders and addresses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit.hosted_graph import graph_on_hosts
from tests.kit.images import Edges, Nodes, version_of

from asterism import Graph, export
from asterism.export.lifecycle import ExportTarget
from asterism_model.schema import EdgeType, NodeType, Schema
from asterism_proto.errors import InvalidRequest


def graph() -> Graph:
    edge_types = (EdgeType(src_type="n", relation="e", dst_type="n"),)
    schema = Schema(node_types=(NodeType(name="n"),), edge_types=edge_types, parts=1)
    edges = Edges(src=np.arange(3), dst=np.arange(3))
    return graph_on_hosts(version_of(schema, {"n": Nodes(ids=np.arange(3))}, {"n:e:n": edges}))


@pytest.mark.parametrize("out", ["", "file://", "a\0b", b"out", None, 7])
def test_an_out_that_names_no_place_is_refused(
    out: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidRequest, match=r"^out=.*: expected a folder or an address; '\.' is"):
        ExportTarget.parse(out)  # type: ignore[arg-type]
    if isinstance(out, str):
        writers: list[Callable[..., Any]] = [export.chunks, export.dgl, export.assignment]
        for write in writers:
            with pytest.raises(InvalidRequest, match=r"^out='.*': expected a folder"):
                write(graph(), out, **({} if write is export.chunks else {"parts": 2}))
    assert list(tmp_path.iterdir()) == []


def test_an_out_is_a_folder_or_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/folk/ann")
    places: list[str | Path] = [
        "x",
        "./x",
        ".",
        "file:///x/y",
        "~",
        "~/x",
        "x/~",
        "file://~",
        Path("~/x"),
    ]
    assert [str(ExportTarget.parse(out).path) for out in places] == [
        "x",
        "x",
        ".",
        "/x/y",
        "/folk/ann",
        "/folk/ann/x",
        "x/~",
        "~",
        "/folk/ann/x",
    ]
    assert ExportTarget.parse("s3://bucket/x/") == ExportTarget(path=None, address="s3://bucket/x")
