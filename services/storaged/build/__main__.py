"""Command ``python -m storaged.build TASK.json [PARENT]``: build all partitions of a task.

It writes progress as JSON lines. Given the pid of its parent, it exits when the parent does, for
whatever reason, so that no build runs unsupervised.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from asterism_io.durable_files import make_folder, write_durably
from asterism_model.load_fingerprints import FingerprintMismatch
from asterism_proto.errors import Conflict, Corrupt
from storaged.build.build_task import MIB, RESULT_FILE, BuildTask, PartResult, task_result
from storaged.build.completion_records import part_folder, remove_completions
from storaged.build.partition import build_part, completed_result, expected_rows
from storaged.build.progress import ProgressReporter
from storaged.store.alias_table_store import STAT_FOLDER, AliasTableStore
from storaged.store.block_store import BlockStore, InvalidContent
from storaged.store.huge_pages import reload_images
from storaged.tasks import task_process


def build(task: BuildTask, progress: ProgressReporter) -> list[PartResult]:
    """Build the partitions that are not built yet, and return the results of all.

    The results do not depend on what earlier attempts built.
    """
    make_folder(task.output)
    shutil.rmtree(task.output / "scratch", ignore_errors=True)
    store = BlockStore.open(
        task.checkpoint, task.schema, read_only=True, memory_bytes=task.memory_limit_mib * MIB
    )
    tables = _open_stat_store(task)
    try:
        for part in task.parts:
            progress.phase(f"fingerprints of part {part}")
            store.verify(part, task.fingerprints)
        completed = {part: completed_result(task, part) for part in task.parts}
        for part in (part for part in task.parts if completed[part] is None):
            progress.add_total(expected_rows(task, part, store))
        results = [
            completed[part] or build_part(task, part, store, tables, progress)
            for part in task.parts
        ]
    finally:
        tables.close()
        store.close()
        # Also after a failure: no later attempt resumes from these files, and the disk may be full.
        shutil.rmtree(task.output / "scratch", ignore_errors=True)
    write_durably(task.output / RESULT_FILE, json.dumps(task_result(results)).encode())
    reload_images([part_folder(task.output, part) for part in task.parts])
    return results


def _open_stat_store(task: BuildTask) -> AliasTableStore:
    """Open the stat database; if it is damaged, create a new one and rebuild all partitions."""
    try:
        return AliasTableStore.open(task.output, task.memory_limit_mib * MIB)
    except Corrupt:
        remove_completions(task.output)
        shutil.rmtree(task.output / STAT_FOLDER)
        return AliasTableStore.open(task.output, task.memory_limit_mib * MIB)


def run(path: Path, progress: ProgressReporter) -> dict[str, Any]:
    """Run the build task in a file and return its result."""
    return task_result(build(BuildTask.read(path), progress))


def main(arguments: list[str]) -> int:
    """Run the build task in a file; return the exit status."""
    return task_process.main(
        arguments, run, permanent=(Conflict, FingerprintMismatch, InvalidContent)
    )


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
