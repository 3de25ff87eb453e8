"""Process that compiles groups of kernels into the cache.

``python -m asterism_standalone.compile_worker PARENT`` reads names of `STEPS` from standard input,
one on a line. It writes a JSON line whenever a kernel is missing, and one at the end of each step.
It ends with its parent, or when its input does.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping

from asterism_graphkit.compile.activity import ACTIVITY
from asterism_io.fast_exit import skip_last_collections
from graphd import kernel_warmup as graphd_warmup
from storaged import kernel_warmup as storaged_warmup
from storaged.build import kernel_warmup as build_warmup
from storaged.tasks.task_process import die_with_parent, set_process_name


def _sampling_step(name: str) -> Callable[[], None]:
    return lambda: storaged_warmup.compile_step(name)


STEPS: Mapping[str, Callable[[], None]] = {
    "builds": build_warmup.compile_kernels,
    **graphd_warmup.STEPS,
    **{name: _sampling_step(name) for name in storaged_warmup.STEPS},
}
"""Groups of kernels, in the order in which a new graph needs them. Together they are all."""


def _write(line: Mapping[str, object]) -> None:
    print(json.dumps(line), flush=True)


def main(arguments: list[str]) -> int:
    """Compile the groups of kernels that standard input names; return the exit status."""
    if arguments:
        die_with_parent(int(arguments[0]))
    set_process_name("kernels")
    ACTIVITY.listeners.append(
        lambda: _write({"kernel": ACTIVITY.current, "compiled": ACTIVITY.compiled})
    )
    for line in sys.stdin:
        STEPS[line.strip()]()
        _write({"done": line.strip()})
    return 0


if __name__ == "__main__":
    skip_last_collections()
    raise SystemExit(main(sys.argv[1:]))
