"""Build that kills itself after LINKS hard links.

``python -m tests.kit.killed_linking TASK.json LINKS``.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from storaged.build import __main__ as build
from storaged.tasks import task_process

if __name__ == "__main__":
    left, link = int(sys.argv[2]), os.link

    def counted_link(*args: Any, **kwargs: Any) -> None:
        global left
        link(*args, **kwargs)
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    os.link = counted_link
    raise SystemExit(task_process.main(sys.argv[1:2], build.run))
