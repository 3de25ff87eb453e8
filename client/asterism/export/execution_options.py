"""How an export is carried out: the words that all kinds of exports have in common. None of them
changes what is written.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypedDict

from asterism.export.context import DEFAULT_MEMORY_MIB, MIN_MEMORY_MIB
from asterism.export.executors import (
    DaskExecutor,
    Executor,
    InProcessExecutor,
    LazyExecutor,
    ProcessExecutor,
)
from asterism.export.graph_source import ProgressCallback
from asterism_proto.errors import InvalidRequest

MAX_WORKERS = 1024
_SINGLE_PROCESS_ROWS = 1 << 24
"""Below so many nodes and edges, starting processes takes as much processor time as they would
save.
"""


class Execution(TypedDict, total=False):
    """Where the work is done, and what becomes of an export that was cut off."""

    overwrite: bool
    """Replace a folder that is not empty, once the new one stands; begin an unfinished one anew."""
    resume: bool
    """Go on with an export to the same place that was cut off, or begin; an export that fails is
    kept, to go on with.
    """
    memory_limit_mib: int
    """What the arrays of each process may take, above what its libraries do (some 150 MiB). METIS
    and given assignments apart.
    """
    workers: int | None
    """Processes on this machine; None: as many as there are cores, or none beside this one where
    there is little to do.
    """
    dask: str | None
    """The scheduler of a Dask cluster whose workers do it instead, as ``"tcp://host:8786"``."""
    scratch: str | Path | None
    """A folder for what is not finished, that all workers see under this name. None: beside
    ``out``, or this machine's for temporary files.
    """
    progress: ProgressCallback | None
    """Called with (phase, rows done, total or None)."""


def memory_limit(execution: Execution) -> int:
    """The limit that is asked for, checked."""
    limit = execution.get("memory_limit_mib", DEFAULT_MEMORY_MIB)
    if limit < MIN_MEMORY_MIB:
        raise InvalidRequest(f"memory_limit_mib {limit}: expected at least {MIN_MEMORY_MIB}")
    return limit


def check_execution(execution: Execution) -> None:
    """Refuse what does not fit, before anything is begun."""
    memory_limit(execution)
    workers = execution.get("workers")
    if workers is not None and not 1 <= workers <= MAX_WORKERS:
        raise InvalidRequest(f"workers {workers}: expected 1 to {MAX_WORKERS}")
    if workers is not None and execution.get("dask") is not None:
        raise InvalidRequest(
            "workers and dask: expected one of them; a Dask cluster has workers of its own"
        )


def make_executor(execution: Execution, parts: int, rows: int) -> LazyExecutor:
    """Who does the tasks of so many parts, over so many nodes and edges."""
    address, workers = execution.get("dask"), execution.get("workers")

    def make() -> Executor:
        if address is not None:
            return DaskExecutor(address)
        count = (
            workers
            if workers is not None
            else 1
            if rows < _SINGLE_PROCESS_ROWS
            else len(os.sched_getaffinity(0))
        )
        count = min(count, parts)
        return InProcessExecutor() if count == 1 else ProcessExecutor(count)

    return LazyExecutor(make)
