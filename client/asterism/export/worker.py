"""A worker process of an export: reads tasks from its input, a JSON line each, and answers each with a line.

`asterism.export.executors.LocalProcesses` starts it. It ends when its input does, in the middle of a task too: whoever started
it is gone then.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from typing import Any

from asterism.export.executors import answer_of


def main() -> None:
    """Answer until the input ends."""
    tasks: queue.SimpleQueue[tuple[str, str, int]] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(tasks,), daemon=True).start()
    # What a library prints must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        told: Any = answer_of(*tasks.get())
        answers.write(json.dumps(told).encode() + b"\n")
        answers.flush()


def _listen(tasks: queue.SimpleQueue[tuple[str, str, int]]) -> None:
    for line in sys.stdin.buffer:
        scratch, step, part = json.loads(line)
        tasks.put((str(scratch), str(step), int(part)))
    os._exit(0)
