"""The children of a storaged: what each kind of order has one do, and what all of them have in
common.

`storaged.fork_server` forks them; their ``__main__`` runs `main`.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from asterism_io.allowed_addresses import Address, AllowedAddresses, parse_address
from asterism_io.durable_files import make_folder
from asterism_model.fingerprints import LoadFingerprint
from asterism_proto.errors import BY_REASON, AsterismError, NotFound
from storaged.build.progress import ProgressReporter
from storaged.paths import DataPaths
from storaged.store.os_errors import disk_error, memory_error
from storaged.tasks import REPAIR, TaskAssignment

TASK_FILE = "task.json"
_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15


def build_task(
    assignment: TaskAssignment,
    paths: DataPaths,
    memory_limit_mib: int,
    sources: Sequence[int],
    fingerprints: Sequence[LoadFingerprint],
) -> tuple[str, Path]:
    """The module and the task file of a build, which reads a checkpoint that is there and links
    from what jobs ``sources`` built.
    """
    output = (paths.repair_build if assignment.kind == REPAIR else paths.build)(
        assignment.space_id, assignment.job_id
    )
    task = {
        "space_id": assignment.space_id,
        "job_id": assignment.job_id,
        "attempt": assignment.attempt,
        "schema": assignment.schema.to_dict(),
        "parts": assignment.parts,
        "cut": assignment.cut,
        "loads": assignment.loads,
        "commits": assignment.commits,
        "indexes": [asdict(index) for index in assignment.indexes],
        "checkpoint": str(paths.checkpoint(assignment.space_id, assignment.job_id).absolute()),
        "output": str(output.absolute()),
        "memory_limit_mib": memory_limit_mib,
        "fingerprints": [load.to_dict() for load in fingerprints],
        "sources": [str(paths.build(assignment.space_id, job).absolute()) for job in sources],
    }
    return "storaged.build", _write_task(output, task)


def version_task(
    assignment: TaskAssignment,
    paths: DataPaths,
    host: str,
    addresses: AllowedAddresses,
    remote_timeout_s: float,
) -> tuple[str, Path]:
    """The module and the task file of an audit or an export; NotFound where the version is not
    served any more.

    InvalidRequest where an export's address is not allowed.
    """
    published = assignment.published
    if published is None:
        raise NotFound(
            f"version {assignment.version} of space {assignment.space} is not served any more"
        )
    output, address = export_folder(assignment, paths), ""
    if assignment.kind == "export-tables":
        target = (
            parse_address(output, field="to")
            if "to" in assignment.options
            else Address(protocol="file", path=output)
        )
        address = str(addresses.check_parsed("to", target).resolved())
    task = {
        "kind": assignment.kind,
        "space": assignment.space,
        "space_id": assignment.space_id,
        "job_id": assignment.job_id,
        "host": host,
        "schema": assignment.schema.to_dict(),
        "parts": assignment.parts,
        "version": assignment.version,
        "cut": published.cut,
        "digest": published.digest,
        "images": {
            part: published.images[part] for part in assignment.parts if part in published.images
        },
        "totals": [t.to_dict() for t in published.totals if t.part in assignment.parts],
        "build": str(paths.build(assignment.space_id, published.job_id).absolute()),
        "output": output,
        "address": address,
        "remote_timeout_s": remote_timeout_s,
        "options": dict(assignment.options),
    }
    return "storaged.version_tasks", _write_task(
        paths.checkpoint(assignment.space_id, assignment.job_id), task
    )


def export_folder(assignment: TaskAssignment, paths: DataPaths) -> str:
    """Where an export goes: a folder of its own, here or below the address that was asked for."""
    name = f"{assignment.space}-v{assignment.version}-job{assignment.job_id}"
    address = assignment.options.get("to")
    return str((paths.exports / name).absolute()) if address is None else f"{address}/{name}"


def _write_task(folder: Path, task: Mapping[str, Any]) -> Path:
    make_folder(folder)
    path = folder / TASK_FILE
    path.write_text(json.dumps(task))
    return path


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent is gone, even where it is stopped; end at
    once where it is gone already.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def set_process_name(name: str) -> None:
    """Set the name of this process that `ps -o comm` and `top` show: 15 characters at most."""
    ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode(), 0, 0, 0)


def main(
    arguments: list[str],
    run: Callable[[Path, ProgressReporter], dict[str, Any]],
    *,
    permanent: tuple[type[AsterismError], ...] = (),
) -> int:
    """Run one task with its progress on stdout; the last line says how it ended, and whether
    another attempt would end alike.
    """
    if len(arguments) > 1:
        die_with_parent(int(arguments[1]))
    progress = ProgressReporter(sys.stdout)
    try:
        with progress:
            result = run(Path(arguments[0]), progress)
    except AsterismError as error:
        name = next(
            error_class.__name__
            for error_class in type(error).__mro__
            if error_class in BY_REASON.values() or error_class is AsterismError
        )
        progress.write_line(
            {"failed": f"{name}: {error.message}", "permanent": isinstance(error, permanent)}
        )
        return 1
    except OSError as error:
        progress.write_line(
            {"failed": f"Unavailable: {disk_error(error, Path(arguments[0]).parent).message}"}
        )
        return 1
    except MemoryError as error:
        progress.write_line({"failed": f"Unavailable: {memory_error(error).message}"})
        return 1
    except Exception as error:
        # The process's last word, whatever it was: storaged reads this line, not a traceback.
        progress.write_line({"failed": f"{type(error).__name__}: {error}"})
        return 1
    progress.write_line({"finished": result})
    return 0
