"""Exit of a process: how much of the interpreter is taken apart before it."""

from __future__ import annotations

import atexit
import gc


def skip_last_collections() -> None:
    """Skip the garbage collections at the end of this process, which exists for one purpose.

    They visit each object of every imported module: half a second of a core with compiled kernels.
    Objects in reference cycles are then not finalized. The process must close what it has opened.
    """
    atexit.register(gc.freeze)
