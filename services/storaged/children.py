"""The children of a storaged: what each kind of order has one do, and what all of them have in common.

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

from asterism_proto.addresses import Address, AllowedAddresses, parse_address
from asterism_proto.durable import make_folder
from asterism_proto.errors import BY_REASON, AsterismError, NotFound
from asterism_proto.fingerprints import LoadFingerprint
from storaged.build.progress import Progress
from storaged.folders import Folders
from storaged.orders import REMAKE, Order
from storaged.store.disk import memory_refusal, refusal

TASK = "task.json"
_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15


def build_task(
    order: Order, folders: Folders, memory_limit_mib: int, sources: Sequence[int], fingerprints: Sequence[LoadFingerprint]
) -> tuple[str, Path]:
    """The module and the task file of a build, which reads a checkpoint that is there and links from what jobs ``sources`` built."""
    output = (folders.remade if order.kind == REMAKE else folders.build)(order.space_id, order.job_id)
    task = {
        "space_id": order.space_id,
        "job_id": order.job_id,
        "attempt": order.attempt,
        "schema": order.schema.to_dict(),
        "parts": order.parts,
        "cut": order.cut,
        "loads": order.loads,
        "commits": order.commits,
        "indexes": [asdict(index) for index in order.indexes],
        "checkpoint": str(folders.checkpoint(order.space_id, order.job_id).absolute()),
        "output": str(output.absolute()),
        "memory_limit_mib": memory_limit_mib,
        "fingerprints": [load.to_dict() for load in fingerprints],
        "sources": [str(folders.build(order.space_id, job).absolute()) for job in sources],
    }
    return "storaged.build", _written(output, task)


def reread_task(order: Order, folders: Folders, host: str, addresses: AllowedAddresses, remote_timeout_s: float) -> tuple[str, Path]:
    """The module and the task file of an audit or an export; NotFound where the version is not served any more.

    InvalidRequest where an export's address is not allowed.
    """
    sealed = order.sealed
    if sealed is None:
        raise NotFound(f"version {order.version} of space {order.space} is not served any more")
    output, address = export_folder(order, folders), ""
    if order.kind == "export-tables":
        target = parse_address(output, field="to") if "to" in order.options else Address(protocol="file", path=output)
        address = str(addresses.admit("to", target).resolved())
    task = {
        "kind": order.kind,
        "space": order.space,
        "space_id": order.space_id,
        "job_id": order.job_id,
        "host": host,
        "schema": order.schema.to_dict(),
        "parts": order.parts,
        "version": order.version,
        "cut": sealed.cut,
        "digest": sealed.digest,
        "images": {part: sealed.images[part] for part in order.parts if part in sealed.images},
        "totals": [asdict(total) for total in sealed.totals if total.part in order.parts],
        "build": str(folders.build(order.space_id, sealed.job_id).absolute()),
        "output": output,
        "address": address,
        "remote_timeout_s": remote_timeout_s,
        "options": dict(order.options),
    }
    return "storaged.reread", _written(folders.checkpoint(order.space_id, order.job_id), task)


def export_folder(order: Order, folders: Folders) -> str:
    """Where an export goes: a folder of its own, here or below the address that was asked for."""
    name = f"{order.space}-v{order.version}-job{order.job_id}"
    address = order.options.get("to")
    return str((folders.exports / name).absolute()) if address is None else f"{address}/{name}"


def _written(folder: Path, task: Mapping[str, Any]) -> Path:
    make_folder(folder)
    path = folder / TASK
    path.write_text(json.dumps(task))
    return path


def end_with(parent: int) -> None:
    """Have the kernel kill this process when its parent is gone, even where it is stopped; end at once where it is gone already."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def set_process_name(name: str) -> None:
    """Set the name of this process that `ps -o comm` and `top` show: 15 characters at most."""
    ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode(), 0, 0, 0)


def main(arguments: list[str], work: Callable[[Path, Progress], dict[str, Any]], *, permanent: tuple[type[AsterismError], ...] = ()) -> int:
    """Run one task with its progress on stdout; the last line says how it ended, and whether another attempt would end alike."""
    if len(arguments) > 1:
        end_with(int(arguments[1]))
    progress = Progress(sys.stdout)
    try:
        with progress:
            result = work(Path(arguments[0]), progress)
    except AsterismError as error:
        name = next(known.__name__ for known in type(error).__mro__ if known in BY_REASON.values() or known is AsterismError)
        progress.say({"failed": f"{name}: {error.message}", "permanent": isinstance(error, permanent)})
        return 1
    except OSError as error:
        progress.say({"failed": f"Unavailable: {refusal(error, Path(arguments[0]).parent).message}"})
        return 1
    except MemoryError as error:
        progress.say({"failed": f"Unavailable: {memory_refusal(error).message}"})
        return 1
    except Exception as error:
        # The process's last word, whatever it was: storaged reads this line, not a traceback.
        progress.say({"failed": f"{type(error).__name__}: {error}"})
        return 1
    progress.say({"finished": result})
    return 0
