"""Text and HTML representations of graphs, schemas, jobs and samples.

Types and counts are shown, and names are escaped in HTML.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit import cases
from tests.kit.requests import answer_never, stub_graphd
from tests.kit.waiting import HANG_S, QUICK_S

import asterism
import asterism.aio
from asterism.records.catalog import Job, Task
from asterism.records.samples import GraphLabels, NodeBatch
from asterism_model import validation

ATTACK = """<script>alert("x")</script><img src=x onerror='y'>&"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cases.copy_built_graph(tmp_path_factory.mktemp("shown"))


@pytest.fixture
def graph(folder: Path) -> Iterator[asterism.Graph]:
    with asterism.open(folder, space="cases", mode="r") as graph:
        yield graph


class ParsedHtml(HTMLParser):
    """Elements, attribute names and text of an HTML document."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += f"{data}\n"


def parse_html(value: Any) -> ParsedHtml:
    return ParsedHtml(value._repr_html_())


def test_a_graph_shows_its_types_counts_and_features(graph: asterism.Graph) -> None:
    first, nodes, edges = repr(graph).splitlines()
    assert first == "Graph('cases', version=1)"
    assert (
        nodes
        == "  nodes: person 400 (age int16, name bytes); paper 90 (vec float32[3], words ragged)"
    )
    assert "person:writes:paper 2,500 (when int64, tags ragged)" in edges
    page = parse_html(graph)
    assert {"person", "400", "2,500", "aged = log1p(age) * min(weight, 1)"} <= set(
        page.text.splitlines()
    )
    assert page.elements <= {"table", "caption", "b", "thead", "tbody", "tr", "th", "td"}


def test_repr_is_quick_when_server_does_not_answer() -> None:
    with (
        stub_graphd(answer_never) as silent_server,
        asterism.connect(silent_server.address, timeout_s=HANG_S) as client,
    ):
        client.session.store_space(
            asterism.records.samples.SpaceInfo(
                name="g", space_id=1, schema=schema(), version=1, created_ms=0, hosts=()
            )
        )
        started = time.monotonic()
        assert repr(client.graph("g")) == "Graph('g')\n  nodes: user\n  edges: none"
        assert time.monotonic() - started < QUICK_S
        assert repr(client) == f"Client('{silent_server.address}', timeout_s={HANG_S:g})"


def schema() -> asterism.Schema:
    return asterism.Schema.from_dict({"nodes": {"user": {}}})


def test_async_graph_repr_makes_no_requests(folder: Path) -> None:
    async def run() -> None:
        async with asterism.aio.open(folder, space="cases", mode="r") as graph:
            assert repr(graph).startswith("AsyncGraph('cases')\n  nodes: person (age")
            await graph.manifest()
            assert "person 400" in repr(graph)
            assert "400" in parse_html(graph).text

    asyncio.run(run())


def hostile_job() -> Job:
    task = Task(
        task_id=1,
        host=ATTACK,
        parts=(0, 1),
        attempt=1,
        state="FAILED",
        phase=ATTACK,
        rows_done=5,
        rows_total=10,
        rows_per_s=0.0,
        eta_s=0.0,
        retry_at_ms=0,
        causes=(ATTACK,),
        started_ms=0,
        finished_ms=0,
        result=None,
    )
    return Job(
        job_id=7,
        space=ATTACK,
        kind=ATTACK,
        options={},
        target_version=0,
        state="FAILED",
        ending="",
        watermark=0,
        version=0,
        cause=ATTACK,
        submitted_ms=0,
        started_ms=0,
        finished_ms=0,
        rows_done=5,
        rows_total=10,
        rows_per_s=0.0,
        eta_s=0.0,
        tasks=(task,),
    )


def hostile_schema(monkeypatch: pytest.MonkeyPatch) -> asterism.Schema:
    monkeypatch.setattr(
        validation, "NAME_PATTERN", re.compile(".*", re.DOTALL)
    )  # no service accepts such names, but a notebook must not rely on that
    return asterism.Schema.from_dict({"nodes": {ATTACK: {"features": {ATTACK: "float32"}}}})


def test_untrusted_text_is_escaped_in_html(monkeypatch: pytest.MonkeyPatch) -> None:
    types = hostile_schema(monkeypatch)
    info = asterism.records.samples.SpaceInfo(
        name=ATTACK, space_id=1, schema=types, version=1, created_ms=0, hosts=()
    )
    batch = NodeBatch(
        part=0,
        ids=np.arange(20),
        weights=np.ones(20, np.float32),
        features={ATTACK: np.zeros((20, 3))},
        version=1,
    )
    labels = GraphLabels(labels=(ATTACK.encode(),), seed=1, version=1)
    pages = [parse_html(value) for value in (types, info, hostile_job(), batch, labels)]
    for page in pages:
        assert page.elements <= {"table", "caption", "b", "thead", "tbody", "tr", "th", "td"}
        assert page.attributes <= {"style"}
        assert "alert(" in page.text


def test_batches_show_dtype_shape_and_first_values() -> None:
    ids = np.arange(1000)
    lines = parse_html(
        NodeBatch(
            part=0,
            ids=ids,
            weights=np.ones(1000, np.float32),
            features={"x": np.zeros((1000, 3))},
            version=1,
        )
    ).text.splitlines()
    assert "int64[1000]" in lines
    assert "0, 1, 2, 3, 4, 5, 6, 7, ..." in lines
    assert "features['x']" in lines


def test_html_output_does_not_import_ipython() -> None:
    program = (
        "import sys, asterism; asterism.Schema.from_dict({'nodes': {'a': "
        "{}}})._repr_html_(); print('IPython' in sys.modules)"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            timeout=HANG_S,
        ).stdout.strip()
        == "False"
    )
