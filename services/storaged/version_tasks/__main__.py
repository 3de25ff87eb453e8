"""Entry point: ``python -m storaged.version_tasks TASK.json [PARENT]``.

Reads a version as the task file says, and writes progress as JSON lines. With the pid of its
parent, the process ends when its parent does, however that ends.
"""

from __future__ import annotations

import sys
from pathlib import Path

from asterism_proto.errors import Corrupt, InvalidRequest, NotFound
from storaged.build.progress import ProgressReporter
from storaged.tasks import task_process
from storaged.version_tasks.alias_table_export import export
from storaged.version_tasks.audit import audit
from storaged.version_tasks.version_task import ResultLine, VersionTask


def run_task(path: Path, progress: ProgressReporter) -> ResultLine:
    """Run the task described by a file."""
    task = VersionTask.read(path)
    return audit(task, progress) if task.kind == "audit" else export(task, progress)


def main(arguments: list[str]) -> int:
    """Run the task described by a file; return the exit status."""
    return task_process.main(arguments, run_task, permanent=(Corrupt, InvalidRequest, NotFound))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
