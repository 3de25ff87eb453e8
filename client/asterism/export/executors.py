"""Tasks of an export, and executors that run them: in process, in subprocesses, on Dask.

A task is one step of one partition that does not read the graph. It reads what earlier steps left
in the scratch folder, on any machine that sees the folder, and records its result in the journal. A
task may run twice, even concurrently: it does not change its input, its output is renamed into
place once complete, and the bytes are the same each time.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypedDict

import numpy as np

from asterism.export.edges import PartitionedEdges, write_edges
from asterism.export.global_ids import GlobalIdRanges
from asterism.export.graph_source import ProgressCallback
from asterism.export.halo_parts import write_graph
from asterism.export.nodes import node_ranges, write_features
from asterism.export.run_state import DEFAULT_MEMORY_MIB, MIN_MEMORY_MIB, ExportRun
from asterism_proto.errors import AsterismError, InvalidRequest, NotFound, Unavailable, from_status

MAX_WORKERS = 1024
_SINGLE_PROCESS_ROWS = 1 << 24
"""Number of nodes and edges below which starting processes costs more than it saves."""


class Execution(TypedDict, total=False):
    """Options common to all exports: workers, memory, and handling of interrupted exports."""

    overwrite: bool
    """Replace a folder that is not empty, once the new export is complete.
    An unfinished export is restarted. Default False."""
    resume: bool
    """Continue an interrupted export to the same target, or begin one.
    If the export fails, its working folder is kept for resuming. Default False."""
    memory_limit_mib: int
    """Memory for arrays in each process, in MiB.
    Default 1024. About 150 MiB for libraries come on top. METIS and given assignments are not
    limited."""
    workers: int | None
    """Number of processes on this machine.
    None uses one per core, or only this process if there is little work."""
    dask: str | None
    """Scheduler of a Dask cluster that runs the tasks instead, such as ``"tcp://host:8786"``."""
    scratch: str | Path | None
    """Folder for unfinished work, visible to all workers under this name.
    None uses a folder next to ``out``, or this machine's folder for temporary files."""
    progress: ProgressCallback | None
    """Callback that receives (phase, rows done, total rows or None)."""


def memory_limit(execution: Execution) -> int:
    """Return the validated memory limit in MiB."""
    limit = execution.get("memory_limit_mib", DEFAULT_MEMORY_MIB)
    if limit < MIN_MEMORY_MIB:
        raise InvalidRequest(f"memory_limit_mib={limit}: expected at least {MIN_MEMORY_MIB}")
    return limit


def check_execution(execution: Execution) -> None:
    """Raise InvalidRequest for invalid options, before any work is done."""
    memory_limit(execution)
    workers = execution.get("workers")
    if workers is not None and not 1 <= workers <= MAX_WORKERS:
        raise InvalidRequest(f"workers={workers}: expected 1 to {MAX_WORKERS}")
    if workers is not None and execution.get("dask") is not None:
        raise InvalidRequest(
            "workers and dask: expected one of them, because a Dask cluster has its own workers"
        )


def make_executor(execution: Execution, parts: int, rows: int) -> LazyExecutor:
    """Return the executor for the tasks of an export.

    ``parts`` bounds the number of processes. ``rows`` is the number of nodes and edges.
    """
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


StepFacts = dict[str, Any]


def load_ranges(run: ExportRun) -> tuple[GlobalIdRanges, PartitionedEdges]:
    """Load the global id ranges of nodes and edges from the results of earlier steps."""
    edges = np.array(
        [run.step_result(f"edges-{kind.type_id}")["edges"] for kind in run.plan.edges], np.int64
    ).T
    return node_ranges(run), PartitionedEdges(run=run, ranges=GlobalIdRanges.from_counts(edges))


def _write_part(
    run: ExportRun, nodes: GlobalIdRanges, edges: PartitionedEdges, part: int
) -> StepFacts:
    """Write the features and sort the edges that were distributed to the partition."""
    write_features(run, nodes, part)
    return write_edges(run, edges, nodes, part)


_TASKS: Mapping[str, Callable[[ExportRun, GlobalIdRanges, PartitionedEdges, int], StepFacts]] = {
    "part": _write_part,
    "graph": write_graph,
}
"""Functions of the steps.
`graph` needs `part` of all partitions, because both partitions of a cut edge store it."""


def run_task(scratch: str, step: str, part: int) -> StepFacts:
    """Run one step of one partition, unless it is done, and return its result.

    Parameters
    ----------
    scratch : str
        Scratch folder of the export.
    step : {"part", "graph"}
        Step to run.
    part : int
        Number of the partition.

    Raises
    ------
    NotFound
        This machine does not see the scratch folder.
    """
    folder = Path(scratch)
    if not (folder / "run.json").is_file():
        raise NotFound(
            f"scratch={folder}: expected a folder that all workers share, this worker cannot read "
            "it; pass another one"
        )
    run = ExportRun.load(folder)
    nodes, edges = load_ranges(run)
    return run.run_step(f"{step}-{part}", partial(_TASKS[step], run, nodes, edges, part))


StepResult = tuple[int, Mapping[str, Any]]
"""Number of a partition, and the result of its task."""


class Executor(Protocol):
    """Port that runs one step of many partitions.

    A task is identified by its step and partition; everything else is in the scratch folder.
    """

    def run(self, scratch: Path, step: str, parts: Sequence[int]) -> Iterator[StepResult]:
        """Run the step of each partition, in any order, and yield results as they complete.

        The first failure ends the iteration.

        Parameters
        ----------
        scratch : Path
            Scratch folder of the export, visible to all workers.
        step : str
            Name of the step.
        parts : sequence of int
            Partitions to process.

        Yields
        ------
        StepResult
        """

    def close(self) -> None:
        """Release the workers."""


class ClosingExecutor:
    """Context manager methods of an executor, which call `close` on exit."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the workers. The default does nothing."""


class InProcessExecutor(ClosingExecutor):
    """Executor that runs partitions one by one in this process."""

    def run(self, scratch: Path, step: str, parts: Sequence[int]) -> Iterator[StepResult]:
        """Run the step in this process; see `Executor.run`."""
        for part in parts:
            yield part, run_task(str(scratch), step, part)


class ProcessExecutor(ClosingExecutor):
    """Executor on processes of this machine.

    Each process is a fresh interpreter that reads its tasks line by line. The processes end with
    this one, however it ends, because their input is closed.

    Parameters
    ----------
    count : int
        Number of processes.
    """

    def __init__(self, count: int) -> None:
        self._idle_workers: queue.SimpleQueue[_WorkerProcess] = queue.SimpleQueue()
        self._workers = [_WorkerProcess() for _ in range(count)]
        for worker in self._workers:
            self._idle_workers.put(worker)

    def run(self, scratch: Path, step: str, parts: Sequence[int]) -> Iterator[StepResult]:
        """Run the step on the worker processes; see `Executor.run`."""

        def run_part(part: int) -> StepResult:
            worker = self._idle_workers.get()
            try:
                return part, worker.run_task(scratch, step, part)
            finally:
                self._idle_workers.put(worker)

        pool = ThreadPoolExecutor(len(self._workers), thread_name_prefix="export")
        try:
            for future in as_completed([pool.submit(run_part, part) for part in parts]):
                yield future.result()
        except BaseException:
            self.close()
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def close(self) -> None:
        """End the processes."""
        for worker in self._workers:
            worker.kill()


class _WorkerProcess:
    """Worker process, which runs one task at a time."""

    def __init__(self) -> None:
        # The worker gets this process's module path, so that it finds the same modules.
        program = (
            f"import sys; sys.path[:] = {sys.path!r}; from asterism.export.executors import "
            "run_worker; run_worker()"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def run_task(self, scratch: Path, step: str, part: int) -> Mapping[str, Any]:
        """Run a task in the process and return its result."""
        streams = self._process.stdin, self._process.stdout
        try:
            assert streams[0] is not None
            assert streams[1] is not None
            streams[0].write(json.dumps([str(scratch), step, part]).encode() + b"\n")
            streams[0].flush()
            line = streams[1].readline()
        except (OSError, ValueError):
            line = b""
        if not line:
            status = self._process.wait()
            hint = (
                "; did its machine run out of memory? lower memory_limit_mib or workers"
                if status == -9
                else ""
            )
            raise Unavailable(
                f"worker of {step} of part {part} ended with status {status}"
                f"{hint}; continue with resume=True"
            )
        reply: dict[str, Any] = json.loads(line)
        if "code" in reply:
            raise from_status(reply["code"], f"{step} of part {part}: {reply['message']}")
        return reply

    def kill(self) -> None:
        """Kill the process if it still runs. Its unfinished output has no final name yet."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):  # nothing reads the unflushed data any more
                    stream.close()


class DaskExecutor(ClosingExecutor):
    """Executor on the workers of a Dask cluster; needs `distributed` (the extra ``dask``).

    Parameters
    ----------
    address : str
        Scheduler, such as ``"tcp://host:8786"``.
    """

    def __init__(self, address: str) -> None:
        try:
            import distributed
        except ImportError as error:
            raise InvalidRequest(
                f"dask={address!r} needs a package that is not installed: pip install "
                f"'asterism-graph[dask]' ({error})"
            ) from error
        self._as_completed: Callable[..., Any] = distributed.as_completed
        try:
            client: Any = distributed.Client
            self._client = client(address, timeout=10, set_as_default=False)
        except (OSError, ValueError) as error:
            raise Unavailable(
                f"dask={address!r}: expected a Dask scheduler that replies ({error})"
            ) from error

    def run(self, scratch: Path, step: str, parts: Sequence[int]) -> Iterator[StepResult]:
        """Run the step on the cluster; see `Executor.run`."""
        futures = {
            self._client.submit(task_reply, str(scratch), step, part, pure=False): part
            for part in parts
        }
        try:
            for future in self._as_completed(list(futures), loop=self._client.loop):
                try:
                    reply = future.result()
                except Exception as error:  # any failure of the cluster
                    raise Unavailable(
                        f"{step} of part {futures[future]} was lost by the Dask cluster: "
                        f"{error!r}; continue with resume=True"
                    ) from error
                if "code" in reply:
                    raise from_status(
                        reply["code"], f"{step} of part {futures[future]}: {reply['message']}"
                    )
                yield futures[future], reply
        finally:
            self._client.cancel(list(futures), force=True)

    def close(self) -> None:
        """Disconnect from the cluster."""
        self._client.close()


def task_reply(scratch: str, step: str, part: int) -> Mapping[str, Any]:
    """Run a task and return its result or its error, in JSON types."""
    try:
        return run_task(scratch, step, part)
    except AsterismError as error:
        return {"code": error.code, "message": error.message}
    except Exception as error:
        return {"code": "INTERNAL", "message": f"{type(error).__name__}: {error}"}


class LazyExecutor(ClosingExecutor):
    """Executor that is created on first use, so that a finished export starts no workers."""

    def __init__(self, make: Callable[[], Executor]) -> None:
        self._make = make
        self._executor: Executor | None = None

    def run(self, scratch: Path, step: str, parts: Sequence[int]) -> Iterator[StepResult]:
        """Run the step on the executor; see `Executor.run`."""
        if self._executor is None:
            self._executor = self._make()
        yield from self._executor.run(scratch, step, parts)

    def close(self) -> None:
        """Release the workers, if any."""
        if self._executor is not None:
            self._executor.close()


def run_worker() -> None:
    """Run tasks from standard input and reply on standard output, both as JSON lines.

    `ProcessExecutor` runs this in a new interpreter. The process exits when its input is closed,
    even during a task, because the process that started it has then ended.
    """
    tasks: queue.SimpleQueue[tuple[str, str, int]] = queue.SimpleQueue()
    threading.Thread(target=_read_tasks, args=(tasks,), daemon=True).start()
    # Output of libraries must not be mistaken for a reply.
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
