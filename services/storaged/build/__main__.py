"""``python -m storaged.build TASK.json [PARENT]``: builds every part of the task, one JSON line of progress after another.

With the pid of its parent it ends when that one does, however that ends: nothing builds that nobody watches.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import sys
from pathlib import Path

from asterism_proto.errors import AsterismError, Corrupt
from storaged.build.marks import forget_marks
from storaged.build.part import build_part, expected_rows, finished_before
from storaged.build.progress import Progress
from storaged.build.task import MIB, RESULT, PartResult, Task, finished
from storaged.store.graph import GraphStore
from storaged.store.image_writer import write_durably
from storaged.store.tables import STAT, TableStore

_PR_SET_PDEATHSIG = 1


def build(task: Task, progress: Progress) -> list[PartResult]:
    """Build what is not built yet; the same results whatever was."""
    task.output.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(task.output / "scratch", ignore_errors=True)
    store = GraphStore.open(task.checkpoint, task.schema, read_only=True, memory_bytes=task.memory_limit_mib * MIB)
    tables = _tables(task)
    try:
        known = {part: finished_before(task, part) for part in task.parts}
        for part in (part for part in task.parts if known[part] is None):
            progress.expect(expected_rows(task, part, store))
        results = [known[part] or build_part(task, part, store, tables, progress) for part in task.parts]
    finally:
        tables.close()
        store.close()
    write_durably(task.output / RESULT, json.dumps(finished(results)).encode())
    return results


def _tables(task: Task) -> TableStore:
    """The stat database; where it is damaged, a new one, and every part is built anew."""
    try:
        return TableStore.open(task.output, task.memory_limit_mib * MIB)
    except Corrupt:
        forget_marks(task.output)
        shutil.rmtree(task.output / STAT)
        return TableStore.open(task.output, task.memory_limit_mib * MIB)


def end_with(parent: int) -> None:
    """Have the kernel kill this process when its parent is gone, even where it is stopped; end at once where it is gone already."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def main(arguments: list[str]) -> int:
    """Run one task; the last line says how it ended."""
    if len(arguments) > 1:
        end_with(int(arguments[1]))
    progress = Progress(sys.stdout)
    try:
        with progress:
            results = build(Task.read(Path(arguments[0])), progress)
    except AsterismError as error:
        progress.say({"failed": f"{type(error).__name__}: {error.message}"})
        return 1
    except Exception as error:
        # The process's last word, whatever it was: storaged reads this line, not a traceback.
        progress.say({"failed": f"{type(error).__name__}: {error}"})
        return 1
    progress.say({"finished": finished(results)})
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
