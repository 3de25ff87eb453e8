"""The build as a child process of storaged: output lines, files and errors for damage."""

from __future__ import annotations

import json
import shutil
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.kit.building import Op, run_build, write_loads
from tests.kit.waiting import HANG_S

from asterism_model.schema import EdgeType, Feature, NodeType, Schema
from asterism_proto.errors import Corrupt, NotFound
from storaged.store import block_store
from storaged.store.block_store import BlockStore
from storaged.store.image import open_part

SCHEMA = Schema(
    node_types=(NodeType(name="a", weighted=True, features=(Feature(name="x"),)),),
    edge_types=(EdgeType(src_type="a", relation="r", dst_type="a", weighted=True),),
    parts=2,
    direction="both",
)


def make_load(nodes: int, edges: int) -> list[Op]:
    rng = np.random.default_rng(nodes)
    ids = np.arange(nodes)
    arrays = {
        "src": rng.integers(0, nodes, edges),
        "dst": rng.integers(0, nodes, edges),
        "eid": np.arange(edges),
        "weight": rng.random(edges, np.float32),
    }
    return [
        Op(
            kind=block_store.NODES,
            type_id=0,
            arrays={
                "ids": ids,
                "weight": rng.random(nodes, np.float32),
                "f:x": ids.astype(np.float32),
            },
        ),
        Op(kind=block_store.OUT_EDGES, type_id=0, arrays=arrays),
    ]


def write_task(folder: Path, nodes: int, edges: int) -> Path:
    store = BlockStore.open(folder / "graph", SCHEMA)
    loads = write_loads(store, SCHEMA, [make_load(nodes, edges)])
    store.checkpoint(folder / "checkpoint")
    store.close()
    task = {
        "space_id": 1,
        "schema": SCHEMA.to_dict(),
        "parts": [0, 1],
        "watermark": 1,
        "loads": loads,
        "commits": [1],
        "attempt": 1,
        "job_id": 9,
    }
    task |= {
        "checkpoint": str(folder / "checkpoint"),
        "output": str(folder / "out"),
        "memory_limit_mib": 64,
    }
    (folder / "task.json").write_text(json.dumps(task))
    return folder / "task.json"


def start_process(task: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "storaged.build", str(task)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_process(task: Path) -> tuple[int, list[dict[str, object]]]:
    process = start_process(task)
    out, err = process.communicate(timeout=HANG_S)
    assert err == ""
    return process.returncode, [json.loads(line) for line in out.splitlines()]


def test_build_reports_its_progress_and_then_its_result(tmp_path: Path) -> None:
    code, lines = run_process(write_task(tmp_path, 20_000, 50_000))
    assert code == 0
    assert {frozenset(line) for line in lines[:-1]} == {
        frozenset({"phase", "rows_done", "rows_total"}),
        frozenset({"part", "step", "is", "blocks"}),
    }
    report = lines[-1]["finished"]
    assert json.loads((tmp_path / "out" / "result.json").read_text()) == report
    assert [image["part"] for image in report["images"]] == [0, 1]
    for image in report["images"]:
        assert (
            open_part(tmp_path / f"out/parts/p{image['part']:05d}", verify=True).digest
            == image["digest"]
        )
    assert sum(t["count"] for t in report["totals"] if t["element"] == 1) == 20_000
    assert sum(t["count"] for t in report["totals"] if t["element"] == 2) == 50_000
    assert not (tmp_path / "out" / "scratch").exists()


def test_progress_comes_at_least_twice_a_second(tmp_path: Path) -> None:
    process = start_process(write_task(tmp_path, 200_000, 600_000))
    assert process.stdout is not None
    gaps, last = [], time.monotonic()
    for _ in process.stdout:
        now = time.monotonic()
        gaps.append(now - last)
        last = now
    process.communicate(timeout=HANG_S)
    assert (
        statistics.median(gaps[1:] or [0.0]) < 0.75
    )  # lines are 0.4 s apart; on a loaded machine single ones may be late


def test_a_failure_is_one_line_with_its_cause(tmp_path: Path) -> None:
    task = write_task(tmp_path, 100, 100)
    shutil.rmtree(tmp_path / "checkpoint")
    code, lines = run_process(task)
    assert code == 1
    assert "checkpoint" in str(lines[-1]["failed"])


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_build_is_built_again_to_the_same_bytes(
    tmp_path: Path, how: signal.Signals
) -> None:
    task = write_task(tmp_path, 100_000, 400_000)
    process = start_process(task)
    assert process.stdout is not None
    assert process.stdout.readline(), "it has begun"
    process.send_signal(how)
    process.communicate(timeout=HANG_S)
    _, lines = run_process(task)
    shutil.rmtree(tmp_path / "out")
    _, fresh = run_process(task)
    assert lines[-1] == fresh[-1]


def test_only_unfinished_parts_are_built_again(tmp_path: Path) -> None:
    task = write_task(tmp_path, 1000, 1000)
    _, first = run_process(task)
    finished_part, unfinished_part = tmp_path / "out/parts/p00000", tmp_path / "out/parts/p00001"
    modified_ns = (finished_part / "manifest.json").stat().st_mtime_ns
    (unfinished_part / "manifest.json").unlink()
    _, second = run_process(task)
    assert second[-1] == first[-1]
    assert (finished_part / "manifest.json").stat().st_mtime_ns == modified_ns
    assert open_part(unfinished_part, verify=True).nodes[0].rows == 500


def test_another_commit_watermark_is_another_build(tmp_path: Path) -> None:
    task = write_task(tmp_path, 1000, 1000)
    run_process(task)
    other = json.loads(task.read_text()) | {"loads": [], "watermark": 0}
    task.write_text(json.dumps(other))
    _, lines = run_process(task)
    assert {total["count"] for total in lines[-1]["finished"]["totals"]} == {0}


def test_every_altered_byte_of_an_image_is_corrupt(tmp_path: Path) -> None:
    new_build = run_build(tmp_path, SCHEMA, [make_load(2000, 3000)])
    folder = new_build.output / "parts/p00000"
    for file in sorted(folder.glob("*.bin")):
        content = file.read_bytes()
        middle = len(content) // 2
        file.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
        with pytest.raises(Corrupt, match=file.name):
            open_part(folder, verify=True)
        file.write_bytes(content[:-1])
        with pytest.raises(Corrupt, match=file.name):
            open_part(folder, verify=False)
        file.unlink()
        with pytest.raises(Corrupt, match=file.name):
            open_part(folder, verify=False)
        file.write_bytes(content)
    assert open_part(folder, verify=True).digest == new_build.digests[0]


def test_a_torn_manifest_is_corrupt_and_a_missing_one_not_found(tmp_path: Path) -> None:
    new_build = run_build(tmp_path, SCHEMA, [make_load(50, 50)])
    manifest = new_build.output / "parts/p00000/manifest.json"
    content = manifest.read_bytes()
    for torn in (b"", content[: len(content) // 2], content[:-1], b"{}", b"[]"):
        manifest.write_bytes(torn)
        with pytest.raises(Corrupt, match="manifest"):
            open_part(manifest.parent, verify=False)
    manifest.unlink()
    with pytest.raises(NotFound, match="did not finish"):
        open_part(manifest.parent, verify=False)


def test_scratch_space_is_freed(tmp_path: Path) -> None:
    """Check sizes: the kept file has 36 bytes a row; scratch data would add about 14 MB."""
    n = 300_000
    weights = np.random.default_rng(1).random(n, np.float32)
    schema = Schema(node_types=(NodeType(name="a", weighted=True),), parts=1)
    new_build = run_build(
        tmp_path,
        schema,
        [[Op(kind=block_store.NODES, type_id=0, arrays={"ids": np.arange(n), "weight": weights})]],
    )
    stat = sum(
        file.stat().st_size for file in (new_build.output / "stat").rglob("*") if file.is_file()
    )
    assert 36 * n <= stat <= 36 * n * 1.05 + 200_000


def test_a_checkpoint_with_a_damaged_block_is_refused(tmp_path: Path) -> None:
    load = make_load(20_000, 30_000)
    run_build(tmp_path, SCHEMA, [load])
    largest = max((tmp_path / "checkpoint").iterdir(), key=lambda path: path.stat().st_size)
    content = bytearray(largest.read_bytes())
    content[len(content) // 2] ^= 1
    largest.unlink()  # breaks the hard link: the graph database keeps its file
    largest.write_bytes(content)
    with pytest.raises(Corrupt):
        run_build(tmp_path, SCHEMA, [load], name="again")
