"""Export that is killed at every boundary between files.

``python -m tests.kit.killed_export FOLDER``. A boundary is the moment before a file or folder is
created, renamed or removed, and the one after the last such change. A child of this process exports
and sends itself SIGKILL at the first boundary; another child resumes that export. This repeats with
the next boundary until a child finishes. Prints JSON: the number of boundaries, the digests of the
manifests after kills, the digest of the uninterrupted export, and leftovers in the folder.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from asterism import export
from asterism_model.schema import Schema
from tests.kit.flat_graph import generate

SCHEMA = Schema.from_dict(
    {
        "parts": 2,
        "nodes": {"user": {"features": {"x": {"shape": [2]}}}, "item": {"weighted": True}},
        "edges": {
            "user:buys:item": {"weighted": True},
            "user:knows:user": {"features": {"t": "int16"}},
        },
    }
)


class KillSwitch:
    """Counts the calls that change files, and kills the process before one of them."""

    def __init__(self, kill_at: int) -> None:
        self.moment, self.seen = kill_at, 0

    def guard(self, owner: Any, name: str) -> None:
        method: Callable[..., Any] = getattr(owner, name)

        def guarded(path: Path, *args: Any, **kwargs: Any) -> Any:
            if path.exists() == (name != "mkdir"):
                if self.seen == self.moment:
                    os.kill(os.getpid(), signal.SIGKILL)
                self.seen += 1
            return method(path, *args, **kwargs)

        setattr(owner, name, guarded)


GRAPH = generate(
    SCHEMA,
    nodes={"user": 40, "item": 15},
    edges={"user:buys:item": 120, "user:knows:user": 90},
    seed=3,
    sparse=True,
)


def write(out: Path) -> None:
    export.dgl(GRAPH, out, parts=2, seed=5, halo_hops=2, resume=True, workers=1)


def export_in_child(out: Path, *, kill_at: int | None) -> int:
    """Export in a child process and return its exit status, negative for a signal."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        if kill_at is not None:
            killer = KillSwitch(kill_at)
            for name in ("rename", "unlink", "rmdir", "mkdir"):
                killer.guard(Path, name)
        write(out)
        os._exit(0)
    except BaseException as error:
        print(f"moment {kill_at}: {error!r}", file=sys.stderr)
        os._exit(1)


def main(folder: Path) -> None:
    write(folder / "first")  # compiles the kernels before the children need them
    shutil.rmtree(folder / "first")
    gc.freeze()  # a collection in a child then copies none of these objects
    out = folder / "out"
    digests, leftovers, kill_at = [], set(), 0
    while True:
        exit_code = export_in_child(out, kill_at=kill_at)
        if exit_code and (exit_code != -signal.SIGKILL or export_in_child(out, kill_at=None) != 0):
            raise SystemExit(
                f"moment {kill_at}: the export ended with {exit_code}, or did not go on"
            )
        digests.append(hashlib.sha256((out / "manifest.json").read_bytes()).hexdigest())
        leftovers |= {path.name for path in folder.iterdir()} - {"out"}
        if exit_code == 0:
            break
        kill_at += 1
        shutil.rmtree(out)
    print(
        json.dumps(
            {
                "moments": kill_at,
                "killed": sorted(set(digests[:-1])),
                "lived": digests[-1],
                "leftovers": sorted(leftovers),
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
