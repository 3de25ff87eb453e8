"""Edge times in builds: edges of a row in time order, with weights up to each time.

The order holds through deletes, upserts, linked units and interruptions.
"""

from __future__ import annotations

import json
import math
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit import zygote
from tests.kit.auditing import alter_value, audit_build
from tests.kit.building import BuildResult, Op, Oracle, run_build, write_loads

from asterism_graphkit.arrays.time_keys import encode_times
from asterism_graphkit.random.partition_choice import part_of
from asterism_model.elements import Element
from asterism_model.schema import Schema
from asterism_proto.errors import Corrupt
from storaged.build.completion_records import CompletedPart
from storaged.store import block_store
from storaged.store.block_store import BlockStore
from storaged.store.image import AdjacencyImage, PartImage, with_weights

SCHEMA = Schema.from_dict(
    {
        "parts": 3,
        "direction": "both",
        "nodes": {"n": {}},
        "edges": {
            "n:e:n": {
                "weighted": True,
                "features": {"y": "float32", "when": "int32"},
                "tables": {"root": "sqrt(weight)"},
                "time": "when",
            },
            "n:u:n": {
                "edges": "unique",
                "features": {"y": "float32", "at": "float64"},
                "time": "at",
            },
            "n:z:n": {"weighted": True},
        },
    }
)
NODES, EDGES, HUB = 40, 700, 12_000
TYPES = (0, 1)
RNG = np.random.default_rng(5)


def edges(type_id: int, first: int, count: int, *, timed: bool = True, hub: bool = False) -> Op:
    """Return edges with few distinct ends and times, so that ties and zero weights occur."""
    arrays: dict[str, Any] = {
        "src": RNG.integers(0, NODES, count),
        "dst": RNG.integers(0, NODES, count),
        "eid": np.arange(first, first + count),
    }
    if hub:
        arrays["src"][:] = 7
    if type_id != 1:
        arrays["weight"] = RNG.choice(np.array([0, 1e-6, 0.5, 3, 1e5], np.float32), count)
    if timed and type_id == 0:
        arrays["f:when"] = RNG.integers(-9, 9, count).astype(np.int32)
    if timed and type_id == 1:
        arrays["f:at"] = RNG.choice(np.array([-np.inf, -1.5, -0.0, 0.0, 2.5, 1e300]), count)
    return Op(kind=block_store.OUT_EDGES, type_id=type_id, arrays=arrays)


FIRST = [
    Op(kind=block_store.NODES, type_id=0, arrays={"ids": np.arange(NODES)}),
    edges(0, 0, EDGES),
    edges(1, 0, EDGES),
    edges(2, 0, 50),
]
SECOND = [
    edges(0, EDGES, 90, timed=False),
    edges(1, EDGES, 300),
    Op(
        kind=block_store.OUT_EDGE_DELETES,
        type_id=0,
        arrays={name: FIRST[1].arrays[name][:60] for name in ("src", "dst", "eid")},
    ),
    Op(kind=block_store.NODE_DELETES, type_id=0, arrays={"ids": np.array([3, 4])}),
    edges(0, EDGES + 90, HUB, hub=True),
]


def times_of(loads: list[list[Op]], type_id: int) -> dict[int, int]:
    """Return the encoded time of each edge id."""
    times: dict[int, int] = {}
    for op in (op for ops in loads for op in ops):
        if op.kind == block_store.OUT_EDGES and op.type_id == type_id:
            time_column = op.arrays.get(
                "f:when", op.arrays.get("f:at", np.zeros(len(op.arrays["eid"]), np.int64))
            )
            times |= dict(
                zip(op.arrays["eid"].tolist(), encode_times(time_column).tolist(), strict=True)
            )
    return times


def sides(image: PartImage, type_id: int) -> Iterator[tuple[bool, AdjacencyImage]]:
    edge = image.edges[type_id]
    assert edge.incoming is not None
    yield from ((False, edge.outgoing), (True, edge.incoming))


def assert_times(build: BuildResult, loads: list[list[Op]]) -> None:
    """Compare every adjacency with the living edges, one by one."""
    oracle = Oracle.from_loads(SCHEMA, loads)
    for type_id in TYPES:
        times = times_of(loads, type_id)
        for incoming in (False, True):
            living_edges = oracle.live_edges(type_id, incoming=incoming)
            owners = part_of(
                np.array([edge[incoming] for edge in living_edges]), SCHEMA.parts, SCHEMA.placement
            )
            for part, image in enumerate(build.images):
                side = dict(sides(image, type_id))[incoming]
                assert side.when.tolist() == [times[eid] for eid in side.eid.tolist()]
                assert sorted(side.eid.tolist()) == sorted(
                    edge[2]
                    for edge, owner in zip(living_edges, owners, strict=True)
                    if owner == part
                )
                for start, stop in zip(
                    side.indptr[:-1].tolist(), side.indptr[1:].tolist(), strict=True
                ):
                    assert side.order[start:stop].tolist() == sorted(
                        range(start, stop), key=lambda slot: (side.when[slot], slot)
                    )
    for image in build.images:
        for view in (image, with_weights(image, "root")):
            for _, side in sides(view, 0):
                for start, stop in zip(
                    side.indptr[:-1].tolist(), side.indptr[1:].tolist(), strict=True
                ):
                    ordered = side.weights[side.order[start:stop]].astype(np.float64)
                    expected = [
                        math.fsum(ordered[: k + 1])
                        for k in range(0, stop - start, 1 + (stop - start) // 50)
                    ]
                    np.testing.assert_allclose(
                        side.time_sums[start:stop][:: 1 + (stop - start) // 50],
                        expected,
                        rtol=2**-52,
                    )
                    assert (np.diff(side.time_sums[start:stop], prepend=0)[ordered == 0] == 0).all()
        assert not any(side.time_sums.size for _, side in sides(image, 1))
        assert not any(side.when.size or side.order.size for _, side in sides(image, 2))


@pytest.fixture(scope="module")
def timed_build(tmp_path_factory: pytest.TempPathFactory) -> BuildResult:
    return run_build(tmp_path_factory.mktemp("timed"), SCHEMA, [FIRST, SECOND])


def test_rows_are_in_time_order_after_deletes_and_upserts(timed_build: BuildResult) -> None:
    assert_times(timed_build, [FIRST, SECOND])


def test_row_larger_than_memory_is_sorted_to_the_same_bytes(timed_build: BuildResult) -> None:
    small_memory_build = run_build(
        timed_build.output.parent, SCHEMA, [FIRST, SECOND], name="less", memory_limit_mib=1
    )
    assert small_memory_build.digests == timed_build.digests
    assert (
        max(int(np.diff(image.edges[0].outgoing.indptr).max()) for image in timed_build.images)
        > 11_000
    )  # with a limit of 1 MiB fewer slots fit in memory


def test_new_time_rebuilds_an_adjacency_and_links_the_rest(tmp_path: Path) -> None:
    loads = [FIRST, [edges(2, 50, 20)], [edges(1, 2000, 5)]]
    linked_builds = [run_build(tmp_path, SCHEMA, loads, name="one", commit=1)]
    linked_builds.append(
        run_build(tmp_path, SCHEMA, loads, name="two", commit=2, sources=linked_builds)
    )
    linked_builds.append(
        run_build(tmp_path, SCHEMA, loads, name="three", sources=linked_builds[1:])
    )
    fresh_build = run_build(tmp_path, SCHEMA, loads, name="fresh")
    assert linked_builds[2].digests == fresh_build.digests
    assert_times(linked_builds[2], loads)
    for build, expected in (
        (linked_builds[1], {"e2.out", "e2.in", "e2.table"}),
        (linked_builds[2], {"e1.out", "e1.in", "e1.table", "e1.features"}),
    ):
        for part in range(SCHEMA.parts):
            completed_part = CompletedPart.read(build.output, part)
            assert completed_part is not None
            assert {
                name
                for name, record in completed_part.units.items()
                if not record["linked"] and name.startswith("e")
            } <= expected


def test_an_adjacency_of_another_time_is_not_linked(tmp_path: Path) -> None:
    plain = replace(
        SCHEMA, edge_types=(replace(SCHEMA.edge_types[0], time=""), *SCHEMA.edge_types[1:])
    )
    first = run_build(tmp_path, SCHEMA, [FIRST], name="timed")
    second = run_build(tmp_path, plain, [FIRST], name="plain", sources=[first])
    assert not any(side.when.size for image in second.images for _, side in sides(image, 0))
    assert all(side.when.size for image in second.images for _, side in sides(image, 1))


@pytest.mark.parametrize("step", ["e0.out.order", "e0.in.time_sums"])
def test_build_killed_in_a_time_step_resumes_to_the_same_bytes(tmp_path: Path, step: str) -> None:
    one_part_schema = replace(SCHEMA, parts=1)
    store = BlockStore.open(tmp_path / "graph", one_part_schema)
    write_loads(store, one_part_schema, [FIRST])
    store.checkpoint(tmp_path / "checkpoint")
    store.close()
    task = {
        "space_id": 1,
        "schema": one_part_schema.to_dict(),
        "parts": [0],
        "watermark": 1,
        "loads": [1],
        "memory_limit_mib": 64,
        "checkpoint_rows": 1,
    }
    task |= {"checkpoint": str(tmp_path / "checkpoint"), "output": str(tmp_path / "out")}
    (tmp_path / "task.json").write_text(json.dumps(task))
    command = ["tests.kit.killed_build", str(tmp_path / "task.json")]
    assert zygote.run(*command, f"0/{step}", "0").returncode == -signal.SIGKILL
    completed = zygote.run(*command, "", "-1")
    completed.check_returncode()
    reports = [json.loads(line) for line in completed.stdout.splitlines()]
    finished_steps = [line["step"] for line in reports if line.get("is") == "done"]
    assert finished_steps[0] == step
    assert step not in [line["step"] for line in reports if line.get("is") == "kept"]
    (digest,) = run_build(tmp_path, one_part_schema, [FIRST], name="whole").digests
    assert reports[-1]["finished"]["images"][0]["digest"] == digest


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("e0.out.order", "out-copy: the order of its edges at place 1 differs"),
        ("e1.in.order", "in-copy: the order of its edges at place 1 differs"),
        ("e0.in.time_sums", "in-copy: the order of its edges at place 1 has other sums"),
        ("e0.out.w0.time_sums", "out-copy: the order of its edges at place 1 has other sums"),
        ("e0.in.when", "in-copy: the order of its edges|mix_in"),
        ("e1.out.when", "out-copy: the order of its edges|mix_out"),
    ],
)
def test_the_audit_finds_wrong_orders_sums_and_times(
    tmp_path: Path, name: str, message: str
) -> None:
    new_build = run_build(tmp_path, SCHEMA, [FIRST])
    images = dict(enumerate(new_build.digests))
    audit_build(new_build, SCHEMA, images)
    file = np.fromfile(
        new_build.output / f"parts/p00001/{name}.bin",
        {"order": "u4", "sums": "f8", "when": "i8"}[name.split(".")[-1].split("_")[-1]],
    )
    value = file[0] if "order" in name else file[1] + 1
    images[1] = alter_value(new_build, name, 1, value)
    with pytest.raises(Corrupt, match=message):
        audit_build(new_build, SCHEMA, images)


def test_copies_of_an_edge_must_have_the_same_time(timed_build: BuildResult) -> None:
    """Edge times are part of the checksums that compare both copies of an edge."""
    for type_id in (0, 1, 2):
        totals = [
            t
            for result in timed_build.results
            for t in result.totals
            if (t.element, t.type_id, t.weight_name) == (Element.EDGE, type_id, "weight")
        ]
        assert sum(t.mix_out for t in totals) % 2**64 == sum(t.mix_in for t in totals) % 2**64
    plain = replace(
        SCHEMA, edge_types=tuple(replace(edge_type, time="") for edge_type in SCHEMA.edge_types)
    )
    other = run_build(timed_build.output.parent, plain, [FIRST, SECOND], name="plain")
    mixes = [
        [
            t.mix_out
            for result in some.results
            for t in result.totals
            if (t.element, t.type_id) == (Element.EDGE, 0)
        ]
        for some in (timed_build, other)
    ]
    assert mixes[0] != mixes[1]
