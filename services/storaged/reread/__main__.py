"""``python -m storaged.reread TASK.json``: reads a version as the task says, one JSON line of progress after another."""

from __future__ import annotations

import sys
from pathlib import Path

from asterism_proto.errors import AsterismError, Corrupt, InvalidRequest, NotFound
from storaged.build.progress import Progress
from storaged.reread.audit import audit
from storaged.reread.export import export
from storaged.reread.task import Result, Task

PERMANENT = (Corrupt, InvalidRequest, NotFound)
"""What another attempt would meet again."""


def reread(task: Task, progress: Progress) -> Result:
    """Do what the task says."""
    return audit(task, progress) if task.kind == "audit" else export(task, progress)


def main(arguments: list[str]) -> int:
    """Run one task; the last line says how it ended."""
    progress = Progress(sys.stdout)
    try:
        with progress:
            result = reread(Task.read(Path(arguments[0])), progress)
    except AsterismError as error:
        progress.say({"failed": f"{type(error).__name__}: {error.message}", "permanent": isinstance(error, PERMANENT)})
        return 1
    except Exception as error:
        # The process's last word, whatever it was: storaged reads this line, not a traceback.
        progress.say({"failed": f"{type(error).__name__}: {error}"})
        return 1
    progress.say({"finished": result})
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
