"""Tests of the text and HTML that records show at a prompt and in a notebook."""

from __future__ import annotations

import re

import numpy as np

from asterism.records.catalog import Job, SpaceInfo, Task
from asterism.records.query_result import QueryResult
from asterism.records.samples import NodeSample
from asterism.records.versions import VersionInfo
from asterism_model.partition_stats import PartitionStats
from asterism_model.schema import Schema

SCHEMA = Schema.from_dict(
    {
        "parts": 4,
        "nodes": {
            f"type{i}": {"features": {"vec": {"dtype": "float32", "shape": [16]}}} for i in range(9)
        },
        "edges": {"type0:to:type1": {"weighted": True}},
    }
)


def job(*, cause: str = "", tasks: int = 8) -> Job:
    return Job(
        job_id=2277,
        space="papers",
        kind="build",
        options={"share": "true"},
        target_version=0,
        state="RUNNING",
        ending="",
        watermark=3,
        version=1204,
        cause=cause,
        submitted_ms=1,
        started_ms=2,
        finished_ms=0,
        rows_done=5_000,
        rows_total=9_000,
        rows_per_s=1.0,
        eta_s=4.0,
        tasks=tuple(task(number) for number in range(tasks)),
    )


def task(number: int) -> Task:
    return Task(
        task_id=3000 + number,
        host="2d71d3fe72d147a3aae1e4f8080f7f9d",
        parts=tuple(range(64)),
        attempt=1,
        state="RUNNING",
        phase="sort",
        rows_done=1_000,
        rows_total=2_000,
        rows_per_s=1.0,
        eta_s=2.0,
        retry_at_ms=0,
        causes=("a long error " * 20,),
        started_ms=0,
        finished_ms=0,
        result=None,
    )


def space() -> SpaceInfo:
    return SpaceInfo(
        name="papers",
        space_id=1,
        schema=SCHEMA,
        version=3,
        created_ms=0,
        hosts=(("2d71d3fe72d147a3aae1e4f8080f7f9d",),) * 4,
    )


def test_a_job_is_shown_on_a_short_line() -> None:
    assert repr(job()) == (
        "Job(job_id=2277, space='papers', kind='build', state='RUNNING', 5,000 of 9,000 rows, "
        "8 tasks, version=1204)"
    )
    failed = repr(job(cause="storaged is offline; " * 50, tasks=1))
    assert ", 1 task, " in failed
    assert "cause='storaged is offline; " in failed
    assert len(failed) < 300
    assert len(repr(task(1))) < 200


def test_a_space_is_shown_on_a_short_line() -> None:
    assert repr(space()) == (
        "SpaceInfo(name='papers', space_id=1, version=3, 4 partitions on 1 host, "
        "node_types=['type0', 'type1', 'type2', 'type3', 'type4', and 4 more], "
        "edge_types=['type0:to:type1'])"
    )


def test_a_version_is_shown_without_its_totals() -> None:
    totals = tuple(
        PartitionStats(part=part, element="NODE", type_id=0, count=9, positive=9, weight=9.0)
        for part in range(500)
    )
    info = VersionInfo(
        space_id=1, version=2, watermark=3, job_id=4, created_ms=5, digest="ab" * 32, totals=totals
    )
    assert "500 totals, 0 named, 0 indexes" in repr(info)
    assert len(repr(info)) < 250


def test_a_sample_is_shown_without_its_whole_token() -> None:
    sample = NodeSample(
        nodes=np.arange(3),
        types=np.zeros(3, np.int32),
        seed=123456,
        version=2277,
        token="CgxzYW1wbGVfbm9kZXMSGg" * 40,
    )
    assert repr(sample) == (
        "NodeSample(nodes=int64[3], types=int32[3], probabilities=None, seed=123456, "
        "version=2277, token='CgxzYW1wbGVfbm9k'...)"
    )
    html = sample._repr_html_()
    assert "2277" in html
    assert max(map(len, re.findall(r">([^<]*)<", html))) < 60


def test_ids_in_notebook_tables_have_no_separators() -> None:
    result = QueryResult(
        columns=("id", "price"),
        types=("int64", "float64"),
        values={"id": np.array([2277, 1234567]), "price": np.array([1234.5, 2.0])},
        length=2,
        kind="vertices",
        space="shop",
        version=1,
    )
    html = result._repr_html_()
    assert {"2277", "1234567", "1234.5"} <= set(re.findall(r">([^<]*)<", html))
    job_cells = set(re.findall(r">([^<]*)<", job()._repr_html_()))
    assert {"1204", "3000", "1,000 of 2,000"} <= job_cells
    assert repr(result).startswith("QueryResult(2 rows, id int64, price float64")


def test_notebook_tables_say_yes_or_no() -> None:
    cells = re.findall(r">([^<]*)<", SCHEMA._repr_html_())
    assert "yes" in cells
    assert "no" in cells
    assert not {"True", "False"} & set(cells)
