"""What graphs, schemas, jobs and samples show of themselves: types and counts, in text and in HTML in which nothing that was said is code."""

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
from tests.kit.requests import door, never
from tests.kit.waiting import HANG_S, QUICK_S

import asterism
import asterism.aio
from asterism.catalog import Job, Task
from asterism.records import GraphLabels, NodeBatch
from asterism_proto import words

ATTACK = """<script>alert("x")</script><img src=x onerror='y'>&"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cases.built_in(tmp_path_factory.mktemp("shown"))


@pytest.fixture
def graph(folder: Path) -> Iterator[asterism.Graph]:
    with asterism.open(folder, space="cases", mode="r") as graph:
        yield graph


class Read(HTMLParser):
    """The elements of a page, their attributes and its text."""

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


def html(value: Any) -> Read:
    return Read(value._repr_html_())


def test_a_graph_shows_its_types_counts_and_features(graph: asterism.Graph) -> None:
    first, nodes, edges = repr(graph).splitlines()
    assert first == "Graph('cases', version=1)"
    assert nodes == "  nodes: person 400 (age int16, name bytes); paper 90 (vec float32[3], words ragged)"
    assert "person:writes:paper 2,500 (when int64, tags ragged)" in edges
    shown = html(graph)
    assert {"person", "400", "2,500", "aged = log1p(age) * min(weight, 1)"} <= set(shown.text.splitlines())
    assert shown.elements <= {"table", "caption", "b", "thead", "tbody", "tr", "th", "td"}


def test_a_graph_shows_itself_within_a_moment_where_nobody_answers() -> None:
    with door(never) as silent, asterism.connect(silent.address, timeout_s=HANG_S) as client:
        client.session.learn(asterism.records.SpaceInfo(name="g", space_id=1, schema=schema(), version=1, created_ms=0, hosts=()))
        begun = time.monotonic()
        assert repr(client.graph("g")) == "Graph('g')\n  nodes: user\n  edges: none"
        assert time.monotonic() - begun < QUICK_S
        assert repr(client) == f"Client('{silent.address}', timeout_s={HANG_S:g})"


def schema() -> asterism.Schema:
    return asterism.Schema.from_dict({"nodes": {"user": {}}})


def test_a_graph_on_an_event_loop_shows_what_it_knows_and_asks_nobody(folder: Path) -> None:
    async def run() -> None:
        async with asterism.aio.open(folder, space="cases", mode="r") as graph:
            assert repr(graph).startswith("AsyncGraph('cases')\n  nodes: person (age")
            await graph.manifest()
            assert "person 400" in repr(graph)
            assert "400" in html(graph).text

    asyncio.run(run())


def hostile_job() -> Job:
    task = Task(
        task_id=1, host=ATTACK, parts=(0, 1), attempt=1, state="FAILED", phase=ATTACK, rows_done=5, rows_total=10, rows_per_s=0.0, eta_s=0.0,
        retry_at_ms=0, causes=(ATTACK,), started_ms=0, finished_ms=0, result=None,
    )  # fmt: skip
    return Job(
        job_id=7, space=ATTACK, kind=ATTACK, options={}, target_version=0, state="FAILED", ending="", cut=0, version=0, cause=ATTACK, submitted_ms=0,
        started_ms=0, finished_ms=0, rows_done=5, rows_total=10, rows_per_s=0.0, eta_s=0.0, tasks=(task,),
    )  # fmt: skip


def hostile_schema(monkeypatch: pytest.MonkeyPatch) -> asterism.Schema:
    monkeypatch.setattr(words, "NAME", re.compile(".*", re.DOTALL))  # no service takes such names; a notebook must not trust that
    return asterism.Schema.from_dict({"nodes": {ATTACK: {"features": {ATTACK: "float32"}}}})


def test_what_somebody_else_wrote_is_text_and_no_code(monkeypatch: pytest.MonkeyPatch) -> None:
    types = hostile_schema(monkeypatch)
    info = asterism.records.SpaceInfo(name=ATTACK, space_id=1, schema=types, version=1, created_ms=0, hosts=())
    batch = NodeBatch(part=0, ids=np.arange(20), weights=np.ones(20, np.float32), features={ATTACK: np.zeros((20, 3))}, version=1)
    labels = GraphLabels(labels=(ATTACK.encode(),), seed=1, version=1)
    shown = [html(value) for value in (types, info, hostile_job(), batch, labels)]
    for page in shown:
        assert page.elements <= {"table", "caption", "b", "thead", "tbody", "tr", "th", "td"}
        assert page.attributes <= {"style"}
        assert "alert(" in page.text


def test_batches_show_dtype_shape_and_how_they_begin() -> None:
    ids = np.arange(1000)
    shown = html(NodeBatch(part=0, ids=ids, weights=np.ones(1000, np.float32), features={"x": np.zeros((1000, 3))}, version=1)).text.splitlines()
    assert "int64[1000]" in shown
    assert "0, 1, 2, 3, 4, 5, 6, 7, ..." in shown
    assert "features['x']" in shown


def test_nothing_is_shown_with_ipythons_help() -> None:
    program = "import sys, asterism; asterism.Schema.from_dict({'nodes': {'a': {}}})._repr_html_(); print('IPython' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=HANG_S).stdout.strip() == "False"
