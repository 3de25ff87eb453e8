"""Child processes of a storaged: their task files and their common entry point.

`storaged.tasks.fork_server` forks the children; the ``__main__`` of each runs `main`.
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

from asterism_io.durable_files import make_folder
from asterism_io.remote_folder_addresses import Address, AllowedAddresses, parse_address
from asterism_model.load_fingerprints import LoadFingerprint
from asterism_proto.errors import BY_REASON, AsterismError, NotFound
from storaged.build.progress import ProgressReporter
from storaged.paths import DataPaths
from storaged.store.os_errors import disk_error, memory_error
from storaged.tasks.task_assignments import REPAIR, TaskAssignment

TASK_FILE = "task.json"
_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15


def build_task(
    assignment: TaskAssignment,
    paths: DataPaths,
    memory_limit_mib: int,
    sources: Sequence[int],
    fingerprints: Sequence[LoadFingerprint],
) -> tuple[str, Path]:
    """Write the task file of a build.

    The build reads the job's checkpoint, which must exist, and links unchanged files from the
    output of the jobs ``sources``.

    Returns
    -------
    module : str
        Package to run.
    task : Path
        The task file.
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
        "watermark": assignment.watermark,
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
    s3_ca: str = "",
) -> tuple[str, Path]:
    """Write the task file of an audit or an export.

    Returns
    -------
    module : str
        Package to run.
    task : Path
        The task file.

    Raises
    ------
    NotFound
        The version is no longer served.
    InvalidRequest
        The address of an export is not allowed.
    """
    published = assignment.published
    if published is None:
        raise NotFound(
            f"version {assignment.version} of space {assignment.space} is no longer served"
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
        "watermark": published.watermark,
        "digest": published.digest,
        "images": {
            part: published.images[part] for part in assignment.parts if part in published.images
        },
        "totals": [t.to_dict() for t in published.totals if t.part in assignment.parts],
        "build": str(paths.build(assignment.space_id, published.job_id).absolute()),
        "output": output,
        "address": address,
        "remote_timeout_s": remote_timeout_s,
        "s3_ca": s3_ca,
        "options": dict(assignment.options),
    }
    return "storaged.version_tasks", _write_task(
        paths.checkpoint(assignment.space_id, assignment.job_id), task
    )


def export_folder(assignment: TaskAssignment, paths: DataPaths) -> str:
    """Return the target folder of an export, local or below the requested address."""
    name = f"{assignment.space}-v{assignment.version}-job{assignment.job_id}"
    address = assignment.options.get("to")
    return str((paths.exports / name).absolute()) if address is None else f"{address}/{name}"


def _write_task(folder: Path, task: Mapping[str, Any]) -> Path:
    make_folder(folder)
    path = folder / TASK_FILE
    path.write_text(json.dumps(task))
    return path


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent dies, even if it is stopped.

    If the parent is gone already, kill the process at once.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def set_process_name(name: str) -> None:
    """Set the name that `ps -o comm` and `top` show for this process, at most 15 characters."""
    ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode(), 0, 0, 0)


def main(
    arguments: list[str],
    run: Callable[[Path, ProgressReporter], dict[str, Any]],
    *,
    permanent: tuple[type[AsterismError], ...] = (),
) -> int:
    """Run one task, report its progress on stdout, and return the exit status.

    The last line of the output is ``finished`` with the result, or ``failed`` with the cause and
    whether another attempt would fail the same way. Errors of the classes ``permanent`` would.
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
        # Must be the last line, whatever the error: storaged reads it and no traceback.
        progress.write_line({"failed": f"{type(error).__name__}: {error}"})
        return 1
    progress.write_line({"finished": result})
    return 0
