"""``python -m storaged.version_tasks TASK.json [PARENT]``: reads a version as the task says, one
JSON line of progress after another.

With the pid of its parent it ends when that one does, however that ends.
"""

from __future__ import annotations

import sys
from pathlib import Path

from asterism_proto.errors import Corrupt, InvalidRequest, NotFound
from storaged import subprocesses
from storaged.build.progress import ProgressReporter
from storaged.version_tasks.audit import audit
from storaged.version_tasks.table_export import export
from storaged.version_tasks.task_records import ResultLine, VersionTask


def run_task(path: Path, progress: ProgressReporter) -> ResultLine:
    """Do what the task in a file says."""
    task = VersionTask.read(path)
    return audit(task, progress) if task.kind == "audit" else export(task, progress)


def main(arguments: list[str]) -> int:
    """Carry out the task in a file; return the exit status."""
    return subprocesses.main(arguments, run_task, permanent=(Corrupt, InvalidRequest, NotFound))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
