"""Acknowledged data is durable.

Recorded system calls show that each file and its directory entry are synced before the reply.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from tests.kit.cluster import LocalCluster
from tests.kit.syscalls import Durability, Syscalls
from tests.kit.waiting import HANG_S

WAIT_S = HANG_S
SCHEMA = {
    "parts": 2,
    "direction": "both",
    "nodes": {"n": {"weighted": True, "features": {"x": {"dtype": "float32", "shape": [16]}}}},
    "edges": {"n:to:n": {"weighted": True}},
}
NODES, EDGES = 2_000, 6_000
IGNORED_FILES = (
    "LOG",
    "LOG.old.",
    "LOCK",
    "OPTIONS-",
    "IDENTITY",
    "rocksdict-config.json",
    "task.json",
    "CLEAN",
)
"""Prefixes of file names that no acknowledged data depends on."""


def assert_durable(calls: Syscalls, root: Path, files: Iterable[Path], at_ns: int) -> None:
    """Assert that all of the files and their directory entries were synced by that time."""
    durability = Durability(calls.events(), root)
    checked = [file for file in files if file.is_file() and not file.name.startswith(IGNORED_FILES)]
    assert checked
    gaps = sorted({gap for file in checked for gap in durability.losses(file, at_ns)})
    assert not gaps, "\n".join(gaps)


def now() -> int:
    return time.monotonic_ns()


def test_acknowledged_data_is_synced_with_all_its_names(tmp_path: Path) -> None:
    root = tmp_path / "data"
    root.mkdir()
    calls = Syscalls(root, tmp_path)
    # Syncs are slow here, so that a reply that does not wait for a sync arrives before it ends.
    calls.control("wait 40 sync")
    with (
        LocalCluster(storageds=1, folder=root, environment=calls.environment) as cluster,
        cluster.client(timeout_s=WAIT_S) as client,
    ):
        catalog = cluster.folder_of("metad") / "catalog"
        storaged_folder = cluster.folder_of("storaged-0")
        client.create_space("g", SCHEMA)
        assert_durable(
            calls, root, [*catalog.iterdir(), cluster.folder_of("metad") / "identity.json"], now()
        )
        graph = client.graph("g")
        space = storaged_folder / "spaces" / str(client.describe("g").space_id)
        rng = np.random.default_rng(3)
        load = client.begin_load("g")
        load.write_nodes(
            0,
            "n",
            np.arange(NODES),
            weights=rng.random(NODES),
            features={"x": rng.random((NODES, 16), np.float32)},
        )
        assert_durable(
            calls,
            root,
            [
                *(space / "graph").iterdir(),
                storaged_folder / "identity.json",
                storaged_folder / "cluster",
            ],
            now(),
        )
        load.write_edges(
            1,
            "to",
            rng.integers(0, NODES, EDGES),
            rng.integers(0, NODES, EDGES),
            weights=rng.random(EDGES),
            ends_known=True,
        )
        assert_durable(calls, root, (space / "graph").iterdir(), now())
        load.commit()
        assert_durable(calls, root, catalog.iterdir(), now())
        graph.upsert_nodes([1], "n", weights=[3.0])
        assert_durable(calls, root, [*(space / "graph").iterdir(), *catalog.iterdir()], now())

        calls.control("wait 2 sync")
        job = graph.build(timeout_s=WAIT_S)
        published_at = now()
        build = space / "builds" / str(job.job_id)
        build_files = [file for file in build.rglob("*") if "scratch" not in file.parts]
        assert {"parts", "runs", "done", "stat", "result.json"} <= {
            file.relative_to(build).parts[0] for file in build_files
        }
        assert_durable(
            calls,
            root,
            [*build_files, *catalog.iterdir(), *(space / "graph").iterdir()],
            published_at,
        )
        assert_synced_before_manifest(calls, root, build)

        exported = client.wait(client.submit_job("g", "export-tables").job_id, timeout_s=WAIT_S)
        assert exported.state == "FINISHED"
        assert_durable(calls, root, (storaged_folder / "exports").rglob("*"), now())

        chunks, backup = root / "exported" / "chunks", root / "kept"
        exported_at, kept_at, restored_at = run_commands(
            cluster,
            calls,
            ["export", "chunks", "--space", "g", "--out", str(chunks)],
            ["backup", "g", f"file://{backup}"],
            ["restore", f"file://{backup}", "--name", "h"],
        )
        assert_durable(calls, root, chunks.rglob("*"), exported_at)
        assert (backup / "backup.json").exists()
        assert_durable(calls, root, backup.rglob("*"), kept_at)
        restored = storaged_folder / "spaces" / str(client.describe("h").space_id)
        assert_durable(calls, root, [*restored.rglob("*"), *catalog.iterdir()], restored_at)


def assert_synced_before_manifest(calls: Syscalls, root: Path, build: Path) -> None:
    """Assert that a manifest got its final name after the files that it names were durable."""
    manifests = list(build.glob("parts/*/manifest.json"))
    assert len(manifests) == SCHEMA["parts"]
    for manifest in manifests:
        [named] = [
            event
            for event in calls.events()
            if event.call == "rename" and event.other == str(manifest)
        ]
        durability = Durability(calls.events(), root)
        for file in manifest.parent.glob("*.bin"):
            assert durability.losses(file, named.begin_ns) == []
        assert any(
            e.call == "sync" and e.path == named.path and e.end_ns <= named.begin_ns
            for e in calls.events()
        )


COMMANDS = """
import json, sys, time
from asterism.cli.app import run

ended = []
for arguments in json.loads(sys.argv[2]):
    if status := run(["--address", sys.argv[1], *arguments]):
        sys.exit(status)
    ended.append(time.monotonic_ns())
print(json.dumps(ended))
"""
"""Program that runs commands one after another, and prints when each has ended."""


def run_commands(
    cluster: LocalCluster, calls: Syscalls, *commands: Sequence[str]
) -> tuple[int, ...]:
    """Run commands with their system calls recorded too; return when each has ended."""
    command = [sys.executable, "-c", COMMANDS, cluster.addresses, json.dumps(commands)]
    # The child inherits this environment, with additions.
    environment = {**os.environ, **calls.environment}  # noqa: TID251
    completed = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=WAIT_S, check=False
    )
    assert completed.returncode == 0, completed.stderr
    return tuple(json.loads(completed.stdout.splitlines()[-1]))
