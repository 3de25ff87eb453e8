"""Incremental builds: which units are linked from an earlier build and which are rebuilt.

Damage to an earlier build never changes a later one.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.kit import zygote
from tests.kit.building import BuildResult, Op, run_build

from asterism_model.schema import EdgeType, Feature, NodeType, Schema
from storaged.build.completion_records import CompletedPart
from storaged.store import block_store
from storaged.store.alias_table_store import FAMILIES, RUNS_FOLDER, STAT_FOLDER
from storaged.store.engine import RocksEngine
from storaged.store.image import open_part
from storaged.store.keys import TABLES

SCHEMA = Schema(
    node_types=(
        NodeType(name="a", weighted=True, features=(Feature(name="x"),)),
        NodeType(name="b"),
    ),
    edge_types=(
        EdgeType(
            src_type="a", relation="r", dst_type="b", weighted=True, features=(Feature(name="y"),)
        ),
        EdgeType(src_type="b", relation="s", dst_type="b"),
    ),
    parts=2,
    direction="both",
)
UNITS = {f"n{t}{rest}" for t in (0, 1) for rest in ("", ".table")} | {"n0.features"}
UNITS |= {f"e{t}.{rest}" for t in (0, 1) for rest in ("out", "in", "table")} | {"e0.features"}
NODES = 3000
ALL_IDS = np.arange(NODES)
RNG = np.random.default_rng(7)


def edges(type_id: int, first: int, count: int, **more: np.ndarray) -> Op:
    arrays = {
        "src": RNG.integers(0, NODES, count),
        "dst": RNG.integers(0, NODES, count),
        "eid": np.arange(first, first + count),
        **more,
    }
    return Op(kind=block_store.OUT_EDGES, type_id=type_id, arrays=arrays)


BASE = [
    Op(
        kind=block_store.NODES,
        type_id=0,
        arrays={
            "ids": ALL_IDS,
            "weight": RNG.random(NODES, np.float32),
            "f:x": ALL_IDS.astype(np.float32),
        },
    ),
    Op(kind=block_store.NODES, type_id=1, arrays={"ids": ALL_IDS}),
    edges(
        0,
        0,
        5000,
        weight=RNG.random(5000, np.float32),
        **{"f:y": np.arange(5000, dtype=np.float32)},
    ),
    edges(1, 0, 5000),
]
EVEN_IDS = ALL_IDS[::2]
"""Ids of the nodes in partition 0."""


def rebuilt_units(build: BuildResult, part: int) -> set[str]:
    completed_part = CompletedPart.read(build.output, part)
    assert completed_part is not None
    assert completed_part.units.keys() == UNITS
    return {name for name, record in completed_part.units.items() if not record["linked"]}


def read_tables(output: Path) -> list[tuple[bytes, bytes]]:
    engine = RocksEngine(output / STAT_FOLDER, FAMILIES)
    entries = list(engine.scan(TABLES, b"", None))
    engine.close()
    return entries


def read_image_files(output: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(output)): file.read_bytes()
        for file in (output / "parts").rglob("*")
        if file.is_file()
    }


@pytest.mark.parametrize(
    ("change", "of_part_0", "of_part_1"),
    [
        pytest.param(list, set(), set(), id="nothing"),
        pytest.param(
            lambda: [edges(1, 5000, 40)],
            {"e1.out", "e1.in", "e1.table"},
            {"e1.out", "e1.in", "e1.table"},
            id="edges of one type",
        ),
        pytest.param(
            lambda: [
                Op(
                    kind=block_store.NODES,
                    type_id=0,
                    arrays={"ids": EVEN_IDS[:30], "weight": np.full(30, 2, np.float32)},
                )
            ],
            {"n0", "n0.table"},
            set(),
            id="weights of nodes of one part",
        ),
        pytest.param(
            lambda: [
                Op(
                    kind=block_store.NODES,
                    type_id=0,
                    arrays={"ids": EVEN_IDS[:30], "f:x": np.full(30, 2, np.float32)},
                )
            ],
            {"n0", "n0.features"},  # equal rows are detected only after they are built
            set(),
            id="features of nodes of one part",
        ),
        pytest.param(
            lambda: [
                Op(kind=block_store.NODES, type_id=1, arrays={"ids": NODES + np.arange(0, 8, 2)})
            ],
            {"n1", "n1.table", "e0.in", "e1.out", "e1.in", "e1.table"},
            set(),
            id="new nodes of one part",
        ),
        pytest.param(
            lambda: [
                Op(kind=block_store.NODES, type_id=0, arrays={"ids": NODES + np.arange(0, 8, 2)})
            ],
            {
                "n0",
                "n0.table",
                "n0.features",
                "e0.out",
                "e0.table",
            },  # columns get a new row although no features were written
            set(),
            id="new nodes of one part, without features",
        ),
        pytest.param(
            lambda: [Op(kind=block_store.NODE_DELETES, type_id=0, arrays={"ids": EVEN_IDS[:3]})],
            {"n0", "n0.table", "n0.features", "e0.out", "e0.in", "e0.table"},
            {"e0.out", "e0.in", "e0.table"},
            id="deletes of nodes of one part",
        ),
        pytest.param(
            lambda: [
                Op(
                    kind=block_store.OUT_EDGE_DELETES,
                    type_id=0,
                    arrays={n: BASE[2].arrays[n][:40] for n in ("src", "dst", "eid")},
                )
            ],
            {"e0.out", "e0.in", "e0.table"},
            {"e0.out", "e0.in", "e0.table"},
            id="deletes of edges",
        ),
    ],
)
def test_build_remakes_what_a_change_affects_and_links_the_rest(
    tmp_path: Path, change: Callable[[], list[Op]], of_part_0: set[str], of_part_1: set[str]
) -> None:
    loads = [BASE, change()]
    first_build = run_build(tmp_path, SCHEMA, loads, name="earlier", commit=1)
    full_build = run_build(tmp_path, SCHEMA, loads, name="whole")
    new_build = run_build(tmp_path, SCHEMA, loads, name="made", sources=[first_build])
    assert new_build.digests == full_build.digests
    assert [rebuilt_units(new_build, 0), rebuilt_units(new_build, 1)] == [of_part_0, of_part_1]
    for result, rebuilt in zip(new_build.results, (of_part_0, of_part_1), strict=True):
        assert (result.units.linked, result.units.built) == (len(UNITS - rebuilt), len(rebuilt))
        assert (result.units.bytes_built > 0) == bool(rebuilt)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, BuildResult, BuildResult]:
    """Return an earlier build and a full build with one more load; both are only read."""
    folder = tmp_path_factory.mktemp("pair")
    loads = [BASE, [edges(1, 5000, 40)]]
    return (
        folder,
        run_build(folder, SCHEMA, loads, name="earlier", commit=1),
        run_build(folder, SCHEMA, loads, name="whole"),
    )


@pytest.fixture
def earlier_build(pair: tuple[Path, BuildResult, BuildResult], tmp_path: Path) -> BuildResult:
    """Return a copy of the earlier build that a test may damage."""
    shutil.copytree(pair[1].output, tmp_path / "earlier")
    return BuildResult(output=tmp_path / "earlier", results=pair[1].results, images=pair[1].images)


@pytest.fixture
def rebuild(pair: tuple[Path, BuildResult, BuildResult]) -> Iterator[Callable[..., BuildResult]]:
    """Return a function that builds over given sources into an empty folder."""

    def run(*sources: BuildResult) -> BuildResult:
        shutil.rmtree(pair[0] / "made", ignore_errors=True)
        return run_build(pair[0], SCHEMA, [BASE, []], name="made", commit=2, sources=sources)

    yield run
    shutil.rmtree(pair[0] / "made", ignore_errors=True)


def test_linked_bytes_are_shared_and_survive_the_other_version(
    pair: tuple[Path, BuildResult, BuildResult],
    earlier_build: BuildResult,
    rebuild: Callable[..., BuildResult],
) -> None:
    new_build, full_build = rebuild(earlier_build), pair[2]
    shared = [
        name
        for name in read_image_files(new_build.output)
        if (earlier_build.output / name).exists()
        and (new_build.output / name).samefile(earlier_build.output / name)
    ]
    assert {name.split("/")[-1] for name in shared} >= {
        "n0.weights.bin",
        "n0.c0.values.bin",
        "e0.out.nbr.bin",
        "e0.c0.values.bin",
    }
    assert not any("/e1." in name for name in shared)
    runs = {
        run.name
        for run in (new_build.output / RUNS_FOLDER / "p00000").iterdir()
        if run.samefile(earlier_build.output / RUNS_FOLDER / "p00000" / run.name)
    }
    assert runs == {"n0.weight.sst", "n1.weight.sst", "e0.weight.sst"}
    assert (
        new_build.output / RUNS_FOLDER / "p00000" / "n0.weight.sst"
    ).stat().st_nlink == 3  # links: its own, its database's, the earlier build's
    tables_before = read_tables(earlier_build.output)
    assert new_build.results[0].units.bytes_linked == sum(
        (new_build.output / name).stat().st_size
        for name in shared
        if "p00000" in name and name.endswith(".bin")
    ) + sum((new_build.output / RUNS_FOLDER / "p00000" / run).stat().st_size for run in runs)
    shutil.rmtree(earlier_build.output)
    assert read_tables(new_build.output) == read_tables(full_build.output)
    assert [
        open_part(new_build.output / f"parts/p{part:05d}", verify=True).digest for part in (0, 1)
    ] == full_build.digests
    assert len(tables_before) == len(read_tables(new_build.output))


def test_deleting_the_newer_build_leaves_the_older_intact(
    earlier_build: BuildResult, rebuild: Callable[..., BuildResult]
) -> None:
    images, tables = read_image_files(earlier_build.output), read_tables(earlier_build.output)
    shutil.rmtree(rebuild(earlier_build).output)
    assert read_image_files(earlier_build.output) == images
    assert read_tables(earlier_build.output) == tables
    assert [
        open_part(earlier_build.output / f"parts/p{part:05d}", verify=True).digest
        for part in (0, 1)
    ] == earlier_build.digests


@pytest.mark.parametrize(
    ("damage", "lost"),
    [
        (lambda output: shutil.rmtree(output), UNITS),
        (lambda output: (output / "parts/p00000/manifest.json").unlink(), UNITS),
        (lambda output: (output / "done/p00000.json").write_text("{"), UNITS),
        (
            lambda output: rewrite_file(
                output / "done/p00000.json", '"linked": false', '"linked": true '
            ),
            UNITS,
        ),
        (
            lambda output: rewrite_file(
                output / "parts/p00000/manifest.json", '"dense":true', '"dense":null'
            ),
            UNITS,
        ),
        (lambda output: (output / "parts/p00000/n0.weights.bin").unlink(), {"n0"}),
        (lambda output: os.truncate(output / "parts/p00000/e0.out.hot.bin", 8), {"e0.out"}),
        (lambda output: (output / "runs/p00000/n0.weight.sst").unlink(), {"n0.table"}),
        (lambda output: os.truncate(output / "runs/p00000/e0.weight.sst", 100), {"e0.table"}),
        (
            lambda output: rewrite_file(output / "runs/p00000/n1.weight.sst", None, None),
            {"n1.table"},
        ),
    ],
    ids=[
        "gone",
        "no manifest",
        "torn mark",
        "altered mark",
        "altered manifest",
        "file gone",
        "file cut",
        "table gone",
        "table cut",
        "no table",
    ],
)
def test_units_that_cannot_be_linked_are_rebuilt(
    pair: tuple[Path, BuildResult, BuildResult],
    earlier_build: BuildResult,
    rebuild: Callable[..., BuildResult],
    damage: Callable[[Path], object],
    lost: set[str],
) -> None:
    damage(earlier_build.output)
    new_build, full_build = rebuild(earlier_build), pair[2]
    assert new_build.digests == full_build.digests
    assert rebuilt_units(new_build, 0) == lost | {"e1.out", "e1.in", "e1.table"}
    assert read_tables(new_build.output) == read_tables(full_build.output)


def rewrite_file(path: Path, old: str | None, new: str | None) -> None:
    """Rewrite a file as a new inode, so that its hard links keep their content."""
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(
        content.replace(old.encode(), new.encode())
        if old is not None and new is not None
        else bytes(len(content))
    )


def test_first_source_that_has_a_unit_provides_it(
    pair: tuple[Path, BuildResult, BuildResult],
    earlier_build: BuildResult,
    rebuild: Callable[..., BuildResult],
) -> None:
    new_build = rebuild(earlier_build, pair[2])
    assert rebuilt_units(new_build, 0) == set()
    assert (new_build.output / "parts/p00000/n0.weights.bin").samefile(
        earlier_build.output / "parts/p00000/n0.weights.bin"
    )
    assert (new_build.output / "parts/p00000/e1.out.nbr.bin").samefile(
        pair[2].output / "parts/p00000/e1.out.nbr.bin"
    )


def test_linked_array_cannot_be_written(earlier_build: BuildResult, tmp_path: Path) -> None:
    from storaged.store.image_writer import ImageWriter

    manifest = json.loads((earlier_build.output / "parts/p00000/manifest.json").read_text())
    image = ImageWriter(tmp_path / "image")
    image.link(earlier_build.output / "parts/p00000", "n0.weights", manifest["files"]["n0.weights"])
    with pytest.raises(ValueError, match="read-only"):
        image.map("n0.weights")[0] = 9
    with pytest.raises(FileExistsError):
        image.create("n0.weights", np.float32, (4,))
    with pytest.raises(FileExistsError):
        image.create_append("n0.weights", np.float32)
    assert (
        open_part(earlier_build.output / "parts/p00000", verify=True).digest
        == earlier_build.digests[0]
    )


@pytest.mark.parametrize("links", [1, 4, 9, 15, 22, 30, 41])
def test_build_killed_while_linking_resumes_to_the_same_bytes(
    pair: tuple[Path, BuildResult, BuildResult],
    earlier_build: BuildResult,
    links: int,
    tmp_path: Path,
) -> None:
    folder, _, full_build = pair
    images, tables = read_image_files(earlier_build.output), read_tables(earlier_build.output)
    task = {
        "space_id": 1,
        "schema": SCHEMA.to_dict(),
        "parts": [0, 1],
        "watermark": 2,
        "loads": [1, 2],
        "checkpoint": str(folder / "checkpoint"),
    }
    (tmp_path / "task.json").write_text(
        json.dumps(
            {
                **task,
                "output": str(tmp_path / "out"),
                "sources": [str(earlier_build.output)],
                "checkpoint_rows": 1,
            }
        )
    )
    assert (
        zygote.run("tests.kit.killed_linking", str(tmp_path / "task.json"), str(links)).returncode
        == -signal.SIGKILL
    )
    completed = zygote.run("storaged.build", str(tmp_path / "task.json"))
    completed.check_returncode()
    build_report = json.loads(completed.stdout.splitlines()[-1])["finished"]
    assert [image["digest"] for image in build_report["images"]] == full_build.digests
    assert [units["built"] for units in build_report["made"]["units"]] == [3, 3]
    assert read_tables(tmp_path / "out") == read_tables(full_build.output)
    assert read_image_files(earlier_build.output) == images
    assert read_tables(earlier_build.output) == tables
