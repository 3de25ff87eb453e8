"""What a build links, what it makes, and that nothing which happens to an earlier build happens to a later one."""

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
from tests.kit.building import Built, Op, built

from asterism_proto.schema import EdgeType, Feature, NodeType, Schema
from storaged.build.marks import Mark
from storaged.store import graph
from storaged.store.engine import RocksEngine
from storaged.store.image import open_part
from storaged.store.keys import TABLES
from storaged.store.tables import FAMILIES, RUNS, STAT

SCHEMA = Schema(
    node_types=(NodeType(name="a", weighted=True, features=(Feature(name="x"),)), NodeType(name="b")),
    edge_types=(
        EdgeType(src_type="a", relation="r", dst_type="b", weighted=True, features=(Feature(name="y"),)),
        EdgeType(src_type="b", relation="s", dst_type="b"),
    ),
    parts=2,
    direction="both",
)
UNITS = {f"n{t}{rest}" for t in (0, 1) for rest in ("", ".table")} | {"n0.features"}
UNITS |= {f"e{t}.{rest}" for t in (0, 1) for rest in ("out", "in", "table")} | {"e0.features"}
NODES = 3000
ALL = np.arange(NODES)
RNG = np.random.default_rng(7)


def edges(type_id: int, first: int, count: int, **more: np.ndarray) -> Op:
    arrays = {"src": RNG.integers(0, NODES, count), "dst": RNG.integers(0, NODES, count), "eid": np.arange(first, first + count), **more}
    return Op(kind=graph.OUT_EDGES, type_id=type_id, arrays=arrays)


BASE = [
    Op(kind=graph.NODES, type_id=0, arrays={"ids": ALL, "weight": RNG.random(NODES, np.float32), "f:x": ALL.astype(np.float32)}),
    Op(kind=graph.NODES, type_id=1, arrays={"ids": ALL}),
    edges(0, 0, 5000, weight=RNG.random(5000, np.float32), **{"f:y": np.arange(5000, dtype=np.float32)}),
    edges(1, 0, 5000),
]
EVEN = ALL[::2]
"""Nodes of part 0."""


def made_anew(made: Built, part: int) -> set[str]:
    mark = Mark.read(made.output, part)
    assert mark is not None
    assert mark.units.keys() == UNITS
    return {name for name, record in mark.units.items() if not record["linked"]}


def tables_of(output: Path) -> list[tuple[bytes, bytes]]:
    engine = RocksEngine(output / STAT, FAMILIES)
    found = list(engine.scan(TABLES, b"", None))
    engine.close()
    return found


def bytes_of(output: Path) -> dict[str, bytes]:
    return {str(file.relative_to(output)): file.read_bytes() for file in (output / "parts").rglob("*") if file.is_file()}


@pytest.mark.parametrize(
    ("change", "of_part_0", "of_part_1"),
    [
        pytest.param(list, set(), set(), id="nothing"),
        pytest.param(lambda: [edges(1, 5000, 40)], {"e1.out", "e1.in", "e1.table"}, {"e1.out", "e1.in", "e1.table"}, id="edges of one type"),
        pytest.param(
            lambda: [Op(kind=graph.NODES, type_id=0, arrays={"ids": EVEN[:30], "weight": np.full(30, 2, np.float32)})],
            {"n0", "n0.table"},
            set(),
            id="weights of nodes of one part",
        ),
        pytest.param(
            lambda: [Op(kind=graph.NODES, type_id=0, arrays={"ids": EVEN[:30], "f:x": np.full(30, 2, np.float32)})],
            {"n0", "n0.features"},  # that the rows are the same is known once they are made
            set(),
            id="features of nodes of one part",
        ),
        pytest.param(
            lambda: [Op(kind=graph.NODES, type_id=1, arrays={"ids": NODES + np.arange(0, 8, 2)})],
            {"n1", "n1.table", "e0.in", "e1.out", "e1.in", "e1.table"},
            set(),
            id="new nodes of one part",
        ),
        pytest.param(
            lambda: [Op(kind=graph.NODES, type_id=0, arrays={"ids": NODES + np.arange(0, 8, 2)})],
            {"n0", "n0.table", "n0.features", "e0.out", "e0.table"},  # columns have a row more, though nobody wrote features
            set(),
            id="new nodes of one part, without features",
        ),
        pytest.param(
            lambda: [Op(kind=graph.NODE_DELETES, type_id=0, arrays={"ids": EVEN[:3]})],
            {"n0", "n0.table", "n0.features", "e0.out", "e0.in", "e0.table"},
            {"e0.out", "e0.in", "e0.table"},
            id="deletes of nodes of one part",
        ),
        pytest.param(
            lambda: [Op(kind=graph.OUT_EDGE_DELETES, type_id=0, arrays={n: BASE[2].arrays[n][:40] for n in ("src", "dst", "eid")})],
            {"e0.out", "e0.in", "e0.table"},
            {"e0.out", "e0.in", "e0.table"},
            id="deletes of edges",
        ),
    ],
)
def test_a_build_makes_what_a_change_reaches_and_links_the_rest(
    tmp_path: Path, change: Callable[[], list[Op]], of_part_0: set[str], of_part_1: set[str]
) -> None:
    loads = [BASE, change()]
    earlier = built(tmp_path, SCHEMA, loads, name="earlier", upto=1)
    whole = built(tmp_path, SCHEMA, loads, name="whole")
    made = built(tmp_path, SCHEMA, loads, name="made", sources=[earlier])
    assert made.digests == whole.digests
    assert [made_anew(made, 0), made_anew(made, 1)] == [of_part_0, of_part_1]
    for result, anew in zip(made.results, (of_part_0, of_part_1), strict=True):
        assert (result.units.linked, result.units.built) == (len(UNITS - anew), len(anew))
        assert (result.units.bytes_built > 0) == bool(anew)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Built, Built]:
    """A build, and one from nothing of a load more; both are only read."""
    folder = tmp_path_factory.mktemp("pair")
    loads = [BASE, [edges(1, 5000, 40)]]
    return folder, built(folder, SCHEMA, loads, name="earlier", upto=1), built(folder, SCHEMA, loads, name="whole")


@pytest.fixture
def earlier(pair: tuple[Path, Built, Built], tmp_path: Path) -> Built:
    """A copy of the earlier build, to be damaged."""
    shutil.copytree(pair[1].output, tmp_path / "earlier")
    return Built(output=tmp_path / "earlier", results=pair[1].results, images=pair[1].images)


@pytest.fixture
def again(pair: tuple[Path, Built, Built]) -> Iterator[Callable[..., Built]]:
    """Builds over sources, in an empty folder."""

    def run(*sources: Built) -> Built:
        shutil.rmtree(pair[0] / "made", ignore_errors=True)
        return built(pair[0], SCHEMA, [BASE, []], name="made", upto=2, sources=sources)

    yield run
    shutil.rmtree(pair[0] / "made", ignore_errors=True)


def test_versions_share_the_bytes_of_what_is_linked_and_none_is_lost_with_the_other(
    pair: tuple[Path, Built, Built], earlier: Built, again: Callable[..., Built]
) -> None:
    made, whole = again(earlier), pair[2]
    shared = [name for name in bytes_of(made.output) if (earlier.output / name).exists() and (made.output / name).samefile(earlier.output / name)]
    assert {name.split("/")[-1] for name in shared} >= {"n0.weights.bin", "n0.c0.values.bin", "e0.out.nbr.bin", "e0.c0.values.bin"}
    assert not any("/e1." in name for name in shared)
    runs = {run.name for run in (made.output / RUNS / "p00000").iterdir() if run.samefile(earlier.output / RUNS / "p00000" / run.name)}
    assert runs == {"n0.weight.sst", "n1.weight.sst", "e0.weight.sst"}
    assert (made.output / RUNS / "p00000" / "n0.weight.sst").stat().st_nlink == 3  # its own, in its database, and the earlier one's
    before = tables_of(earlier.output)
    assert made.results[0].units.bytes_linked == sum(
        (made.output / name).stat().st_size for name in shared if "p00000" in name and name.endswith(".bin")
    ) + sum((made.output / RUNS / "p00000" / run).stat().st_size for run in runs)
    shutil.rmtree(earlier.output)
    assert tables_of(made.output) == tables_of(whole.output)
    assert [open_part(made.output / f"parts/p{part:05d}", verify=True).digest for part in (0, 1)] == whole.digests
    assert len(before) == len(tables_of(made.output))


def test_the_newer_build_goes_and_leaves_the_older_one_whole(earlier: Built, again: Callable[..., Built]) -> None:
    images, tables = bytes_of(earlier.output), tables_of(earlier.output)
    shutil.rmtree(again(earlier).output)
    assert bytes_of(earlier.output) == images
    assert tables_of(earlier.output) == tables
    assert [open_part(earlier.output / f"parts/p{part:05d}", verify=True).digest for part in (0, 1)] == earlier.digests


@pytest.mark.parametrize(
    ("damage", "lost"),
    [
        (lambda output: shutil.rmtree(output), UNITS),
        (lambda output: (output / "parts/p00000/manifest.json").unlink(), UNITS),
        (lambda output: (output / "done/p00000.json").write_text("{"), UNITS),
        (lambda output: swap(output / "done/p00000.json", '"linked": false', '"linked": true '), UNITS),
        (lambda output: swap(output / "parts/p00000/manifest.json", '"dense":true', '"dense":null'), UNITS),
        (lambda output: (output / "parts/p00000/n0.weights.bin").unlink(), {"n0"}),
        (lambda output: os.truncate(output / "parts/p00000/e0.out.hot.bin", 8), {"e0.out"}),
        (lambda output: (output / "runs/p00000/n0.weight.sst").unlink(), {"n0.table"}),
        (lambda output: os.truncate(output / "runs/p00000/e0.weight.sst", 100), {"e0.table"}),
        (lambda output: swap(output / "runs/p00000/n1.weight.sst", None, None), {"n1.table"}),
    ],
    ids=["gone", "no manifest", "torn mark", "altered mark", "altered manifest", "file gone", "file cut", "table gone", "table cut", "no table"],
)
def test_what_can_not_be_linked_is_made(
    pair: tuple[Path, Built, Built], earlier: Built, again: Callable[..., Built], damage: Callable[[Path], object], lost: set[str]
) -> None:
    damage(earlier.output)
    made, whole = again(earlier), pair[2]
    assert made.digests == whole.digests
    assert made_anew(made, 0) == lost | {"e1.out", "e1.in", "e1.table"}
    assert tables_of(made.output) == tables_of(whole.output)


def swap(path: Path, old: str | None, new: str | None) -> None:
    """Alter a file under its name alone: another that shares it keeps its own."""
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content.replace(old.encode(), new.encode()) if old is not None and new is not None else bytes(len(content)))


def test_the_first_source_that_has_a_unit_gives_it(pair: tuple[Path, Built, Built], earlier: Built, again: Callable[..., Built]) -> None:
    made = again(earlier, pair[2])
    assert made_anew(made, 0) == set()
    assert (made.output / "parts/p00000/n0.weights.bin").samefile(earlier.output / "parts/p00000/n0.weights.bin")
    assert (made.output / "parts/p00000/e1.out.nbr.bin").samefile(pair[2].output / "parts/p00000/e1.out.nbr.bin")


def test_a_linked_array_can_not_be_written(earlier: Built, tmp_path: Path) -> None:
    from storaged.store.image_writer import ImageWriter

    manifest = json.loads((earlier.output / "parts/p00000/manifest.json").read_text())
    image = ImageWriter(tmp_path / "image")
    image.link(earlier.output / "parts/p00000", "n0.weights", manifest["files"]["n0.weights"])
    with pytest.raises(ValueError, match="read-only"):
        image.map("n0.weights")[0] = 9
    with pytest.raises(FileExistsError):
        image.create("n0.weights", np.float32, (4,))
    with pytest.raises(FileExistsError):
        image.append_to("n0.weights", np.float32)
    assert open_part(earlier.output / "parts/p00000", verify=True).digest == earlier.digests[0]


@pytest.mark.parametrize("links", [1, 4, 9, 15, 22, 30, 41])
def test_a_build_that_is_killed_while_it_links_comes_to_the_same_bytes_and_harms_no_source(
    pair: tuple[Path, Built, Built], earlier: Built, links: int, tmp_path: Path
) -> None:
    folder, _, whole = pair
    images, tables = bytes_of(earlier.output), tables_of(earlier.output)
    task = {"space_id": 1, "schema": SCHEMA.to_dict(), "parts": [0, 1], "cut": 2, "loads": [1, 2], "checkpoint": str(folder / "checkpoint")}
    (tmp_path / "task.json").write_text(json.dumps({**task, "output": str(tmp_path / "out"), "sources": [str(earlier.output)], "checkpoint_rows": 1}))
    assert zygote.run("tests.kit.killed_linking", str(tmp_path / "task.json"), str(links)).returncode == -signal.SIGKILL
    done = zygote.run("storaged.build", str(tmp_path / "task.json"))
    done.check_returncode()
    finished = json.loads(done.stdout.splitlines()[-1])["finished"]
    assert [image["digest"] for image in finished["images"]] == whole.digests
    assert [units["built"] for units in finished["made"]["units"]] == [3, 3]
    assert tables_of(tmp_path / "out") == tables_of(whole.output)
    assert bytes_of(earlier.output) == images
    assert tables_of(earlier.output) == tables
