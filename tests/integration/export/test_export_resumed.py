"""Interrupted exports resume to the same bytes.

They are killed at every boundary between files, fail, or are started again, with workers of any
kind.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kit.flat_graph import FlatGraph, generate
from tests.kit.killed_export import SCHEMA
from tests.kit.waiting import HANG_S

from asterism import export
from asterism_proto.errors import Conflict, InvalidRequest, NotFound, Unavailable

SHARED_MEMORY = Path("/dev/shm")
EDGES = {"user:buys:item": 300, "user:knows:user": 200}


def graph(seed: int = 3) -> FlatGraph:
    return generate(SCHEMA, nodes={"user": 60, "item": 25}, edges=EDGES, seed=seed, sparse=True)


def manifest(out: Path) -> dict[str, Any]:
    return dict(json.loads((out / "manifest.json").read_text()))


def failing_graph(flat: FlatGraph, etype: str) -> FlatGraph:
    """Return a graph that fails when edges of this type are read with their features."""

    class Torn(FlatGraph):
        def scan_edges(self, name: str, *arguments: Any, **options: Any) -> Iterator[Any]:
            if name == etype and arguments[0]:
                raise Unavailable("gone")
            yield from super().scan_edges(name, *arguments, **options)

    return Torn(schema=flat.schema, nodes=flat.nodes, edges=flat.edges)


class Unscannable(FlatGraph):
    """A graph that allows reading only the first node, which gives the version."""

    def scan_nodes(self, *arguments: Any, rows: int = 65536, **options: Any) -> Iterator[Any]:
        assert rows == 1, "what was read once is read again"
        return super().scan_nodes(*arguments, rows=rows, **options)

    def scan_edges(self, *arguments: Any, **options: Any) -> Iterator[Any]:
        raise AssertionError("what was read once is read again")


def test_export_killed_at_any_step_resumes_to_same_checksums(tmp_path: Path) -> None:
    """A killed process loses no file that it has written, so the folder may be in memory."""
    shared_memory = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else tmp_path
    with tempfile.TemporaryDirectory(dir=shared_memory) as folder:
        command = [sys.executable, "-m", "tests.kit.killed_export", folder]
        completed = subprocess.run(
            command, capture_output=True, text=True, timeout=HANG_S, check=False
        )
    assert completed.returncode == 0, completed.stderr[-3000:]
    outcome = json.loads(completed.stdout)
    assert outcome["moments"] > 60
    assert outcome["killed"] == [outcome["lived"]]
    assert outcome["leftovers"] == []


def test_resumed_export_does_not_repeat_finished_steps(tmp_path: Path) -> None:
    out, flat = tmp_path / "out", graph()
    with pytest.raises(Unavailable):
        export.dgl(failing_graph(flat, "user:knows:user"), out, parts=3, resume=True)
    assert not out.exists()
    scanned: list[str] = []

    class Watched(FlatGraph):
        def scan_nodes(
            self, ntype: str, *arguments: Any, rows: int = 65536, **options: Any
        ) -> Iterator[Any]:
            assert rows == 1
            return super().scan_nodes(ntype, *arguments, rows=rows, **options)

        def scan_edges(self, etype: str, *arguments: Any, **options: Any) -> Iterator[Any]:
            scanned.append(etype)
            yield from super().scan_edges(etype, *arguments, **options)

    export.dgl(
        Watched(schema=flat.schema, nodes=flat.nodes, edges=flat.edges), out, parts=3, resume=True
    )
    assert scanned == ["user:knows:user"]
    export.dgl(flat, tmp_path / "whole", parts=3)
    assert manifest(out) == manifest(tmp_path / "whole")
    assert {path.name for path in tmp_path.iterdir()} == {"out", "whole"}


def test_finished_export_is_returned_when_requested_again(tmp_path: Path) -> None:
    flat = graph()
    first = export.dgl(flat, tmp_path / "out", parts=2, resume=True)
    repeated = export.dgl(
        Unscannable(schema=flat.schema, nodes=flat.nodes, edges=flat.edges),
        tmp_path / "out",
        parts=2,
        resume=True,
    )
    assert (repeated.parts, repeated.edge_cut, repeated.config) == (
        first.parts,
        first.edge_cut,
        first.config,
    )
    with pytest.raises(Conflict, match="overwrite"):
        export.dgl(flat, tmp_path / "out", parts=3, resume=True)


def test_unfinished_export_needs_resume_or_overwrite(tmp_path: Path) -> None:
    out, flat = tmp_path / "out", graph()
    with pytest.raises(Unavailable):
        export.dgl(failing_graph(flat, "user:knows:user"), out, parts=3, resume=True)
    with pytest.raises(Conflict, match="resume=True to continue"):
        export.dgl(flat, out, parts=3)
    with pytest.raises(Conflict, match="parts 3, not 2"):
        export.dgl(flat, out, parts=2, resume=True)
    with pytest.raises(Conflict, match="seed 0, not 9"):
        export.dgl(flat, out, parts=3, seed=9, resume=True)
    export.dgl(flat, out, parts=2, overwrite=True)
    assert manifest(out)["parts"] == 2
    assert list(tmp_path.iterdir()) == [out]


def test_interrupted_export_of_other_content_is_not_resumed(tmp_path: Path) -> None:
    out, flat = tmp_path / "out", graph()
    with pytest.raises(Unavailable):
        export.dgl(failing_graph(flat, "user:knows:user"), out, parts=3, resume=True)
    state_file = tmp_path / "out.partial/state.json"
    state_file.write_text(json.dumps(json.loads(state_file.read_text()) | {"digest": "another"}))
    with pytest.raises(Conflict, match="expected the content that the interrupted export read"):
        export.dgl(flat, out, parts=3, resume=True)


def test_concurrent_export_to_one_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "out.partial"
    folder.mkdir()
    lock_fd = os.open(folder, os.O_RDONLY)
    fcntl.flock(lock_fd, fcntl.LOCK_EX)
    try:
        with pytest.raises(Conflict, match="running in another process"):
            export.dgl(graph(), tmp_path / "out", parts=2, resume=True, overwrite=True)
    finally:
        os.close(lock_fd)


def test_files_written_before_a_reboot_are_not_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, flat = tmp_path / "out", graph()
    with pytest.raises(Unavailable):
        export.dgl(failing_graph(flat, "user:knows:user"), out, parts=3, resume=True)
    (tmp_path / "boot").write_text("another")
    for spool in (tmp_path / "out.partial/scratch").glob("edge-*"):
        spool.write_bytes(b"\0" * spool.stat().st_size)  # a disk may lose data that was not synced
    monkeypatch.setattr("asterism.export.lifecycle._BOOT", tmp_path / "boot")
    export.dgl(flat, out, parts=3, resume=True)
    export.dgl(flat, tmp_path / "whole", parts=3)
    assert manifest(out) == manifest(tmp_path / "whole")


# -- workers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{"workers": 2}, {"memory_limit_mib": 64}, {"workers": 3, "memory_limit_mib": 64}],
    ids=str,
)
def test_workers_and_memory_limit_do_not_change_bytes(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    for name, executors in (("one", {"workers": 1}), ("other", options)):
        export.dgl(
            graph(), tmp_path / name, parts=4, halo_hops=2, formats=("coo", "csc"), **executors
        )
    assert manifest(tmp_path / "one") == manifest(tmp_path / "other")


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        yield cluster.scheduler_address


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_dask_cluster_writes_the_same_bytes(tmp_path: Path, scheduler: str) -> None:
    export.dgl(graph(), tmp_path / "here", parts=4)
    export.dgl(graph(), tmp_path / "there", parts=4, dask=scheduler)
    assert manifest(tmp_path / "here") == manifest(tmp_path / "there")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_missing_dask_scheduler_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(
        Unavailable, match=r"dask='tcp://127\.0\.0\.1:1': expected a Dask scheduler"
    ):
        export.dgl(graph(), tmp_path / "out", parts=2, dask="tcp://127.0.0.1:1")
    assert list(tmp_path.iterdir()) == []


def test_worker_death_fails_export_that_can_then_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from asterism.export import executors

    original = executors._WorkerProcess.run_task
    calls: list[int] = []

    def die(self: Any, scratch: Path, step: str, part: int) -> Any:
        calls.append(part)
        if len(calls) == 3:
            self._process.kill()
        return original(self, scratch, step, part)

    monkeypatch.setattr(executors._WorkerProcess, "run_task", die)
    with pytest.raises(Unavailable, match="ended with status -9"):
        export.dgl(graph(), tmp_path / "out", parts=4, workers=2, resume=True)
    monkeypatch.undo()
    export.dgl(graph(), tmp_path / "out", parts=4, workers=2, resume=True)
    export.dgl(graph(), tmp_path / "whole", parts=4, workers=1)
    assert manifest(tmp_path / "out") == manifest(tmp_path / "whole")


def test_task_reports_an_unreachable_scratch_folder(tmp_path: Path) -> None:
    from asterism.export.executors import run_task

    with pytest.raises(NotFound, match="this worker cannot read it"):
        run_task(str(tmp_path / "elsewhere"), "part", 0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"memory_limit_mib": 63}, "at least 64"),
        ({"workers": 0}, "workers=0"),
        ({"workers": 2, "dask": "tcp://x:1"}, "one of them"),
    ],
    ids=str,
)
def test_invalid_execution_options_are_refused(
    tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidRequest, match=words):
        export.dgl(graph(), tmp_path / "out", parts=2, **options)
    assert list(tmp_path.iterdir()) == []
