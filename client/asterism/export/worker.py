"""A worker process of an export: reads tasks from its input, a JSON line each, and answers each
with a line.

`asterism.export.executors.ProcessExecutor` starts it. It ends when its input does, in the middle of
a task too: whoever started it is gone then."""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from typing import Any

from asterism.export.executors import task_reply


def main() -> None:
    """Answer until the input ends."""
    tasks: queue.SimpleQueue[tuple[str, str, int]] = queue.SimpleQueue()
    threading.Thread(target=_read_tasks, args=(tasks,), daemon=True).start()
    # What a library prints must not be taken for an answer.
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        reply: Any = task_reply(*tasks.get())
        output.write(json.dumps(reply).encode() + b"\n")
        output.flush()


def _read_tasks(tasks: queue.SimpleQueue[tuple[str, str, int]]) -> None:
    for line in sys.stdin.buffer:
        scratch, step, part = json.loads(line)
        tasks.put((str(scratch), str(step), int(part)))
    os._exit(0)
