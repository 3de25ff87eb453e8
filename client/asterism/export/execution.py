"""Tasks of an export, and executors that run them: in process, in subprocesses, on Dask.

A task is one step of one part that reads no graph. It takes what earlier steps left in the
scratch folder, on any machine that sees it, and records what it found in the journal. It may run
twice, even simultaneously: its input stays, and its output gets its name once it is complete, with
the same bytes each time."""

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
from asterism.export.export_run import DEFAULT_MEMORY_MIB, MIN_MEMORY_MIB, ExportRun
from asterism.export.global_ids import GlobalIdRanges
from asterism.export.graph_source import ProgressCallback
from asterism.export.halo_parts import write_graph
from asterism.export.nodes import node_ranges, write_features
from asterism_proto.errors import AsterismError, InvalidRequest, NotFound, Unavailable, from_status

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


StepFacts = dict[str, Any]


def load_ranges(run: ExportRun) -> tuple[GlobalIdRanges, PartitionedEdges]:
    """How nodes and edges are numbered, as earlier steps found."""
    edges = np.array(
        [run.step_result(f"edges-{kind.type_id}")["edges"] for kind in run.plan.edges], np.int64
    ).T
    return node_ranges(run), PartitionedEdges(run=run, ranges=GlobalIdRanges.from_counts(edges))


def _write_part(
    run: ExportRun, nodes: GlobalIdRanges, edges: PartitionedEdges, part: int
) -> StepFacts:
    """Features, and the edges sorted: needs what was dealt to the part."""
    write_features(run, nodes, part)
    return write_edges(run, edges, nodes, part)


_TASKS: Mapping[str, Callable[[ExportRun, GlobalIdRanges, PartitionedEdges, int], StepFacts]] = {
    "part": _write_part,
    "graph": write_graph,
}
"""`graph` needs `part` of all parts: an edge between two is held by both."""


def run_task(scratch: str, step: str, part: int) -> StepFacts:
    """Do one step of one part, unless it was done before; give what it found out.

    Raises
    ------
    NotFound
        Where this machine does not see the scratch folder.
    """
    folder = Path(scratch)
    if not (folder / "run.json").is_file():
        raise NotFound(
            f"{folder}: this worker does not see the scratch folder; give one with scratch= "
            "that all workers see under the same name"
        )
    run = ExportRun.load(folder)
    nodes, edges = load_ranges(run)
    return run.run_step(f"{step}-{part}", partial(_TASKS[step], run, nodes, edges, part))


StepResult = tuple[int, Mapping[str, Any]]
"""A part, and what its task found out."""


class Executor(Protocol):
    """Does one step of many parts. Tasks are named by their step and part; all else is in the
    scratch folder.
    """

    def run(self, scratch: Path, step: str, parts: Sequence[int]) -> Iterator[StepResult]:
        """Do the step of each of these parts, in any order; give each one as it is done. The first
        that fails ends it.
        """

    def close(self) -> None:
        """Let go of workers."""


class ClosingExecutor:
    """The part of an executor that is a block."""

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
        """Let go of workers; there are none."""


class InProcessExecutor(ClosingExecutor):
    """One part after the other, here."""

    def run(self, scratch: Path, step: str, parts: Sequence[int]) -> Iterator[StepResult]:
        """As `Executor.run`."""
        for part in parts:
            yield part, run_task(str(scratch), step, part)


class ProcessExecutor(ClosingExecutor):
    """Processes of this machine, each a fresh interpreter that is told its tasks line by line.

    They end with this process, however that ends: their input does.

    Parameters
    ----------
    count : int
        How many at once.
    """

    def __init__(self, count: int) -> None:
        self._idle_workers: queue.SimpleQueue[_WorkerProcess] = queue.SimpleQueue()
        self._workers = [_WorkerProcess() for _ in range(count)]
        for worker in self._workers:
            self._idle_workers.put(worker)

    def run(self, scratch: Path, step: str, parts: Sequence[int]) -> Iterator[StepResult]:
        """As `Executor.run`."""

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
    """One process."""

    def __init__(self) -> None:
        # The path is given along: a worker finds the modules that this process finds.
        program = (
            f"import sys; sys.path[:] = {sys.path!r}; from asterism.export.execution import "
            "run_worker; run_worker()"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def run_task(self, scratch: Path, step: str, part: int) -> Mapping[str, Any]:
        """Have a task done."""
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
                f"the worker that was to do {step} of part {part} ended with status {status}"
                f"{hint}; resume=True goes on"
            )
        reply: dict[str, Any] = json.loads(line)
        if "code" in reply:
            raise from_status(reply["code"], f"{step} of part {part}: {reply['message']}")
        return reply

    def kill(self) -> None:
        """Kill it, if it is there still. What it was writing has no name yet."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):  # what was to be flushed has nobody who reads it
                    stream.close()


class DaskExecutor(ClosingExecutor):
    """The workers of a Dask cluster; needs `distributed` (the extra ``dask``).

    Parameters
    ----------
    address : str
        Of its scheduler, as ``"tcp://host:8786"``.
    """

    def __init__(self, address: str) -> None:
        try:
            import distributed
        except ImportError as error:
            raise InvalidRequest(
                f"dask {address!r} needs a package that is not installed here: pip install "
                f"'asterism-graph[dask]' ({error})"
            ) from error
        self._as_completed: Callable[..., Any] = distributed.as_completed
        try:
            client: Any = distributed.Client
            self._client = client(address, timeout=10, set_as_default=False)
        except (OSError, ValueError) as error:
            raise Unavailable(f"no Dask scheduler answers at {address}: {error}") from error

    def run(self, scratch: Path, step: str, parts: Sequence[int]) -> Iterator[StepResult]:
        """As `Executor.run`."""
        futures = {
            self._client.submit(task_reply, str(scratch), step, part, pure=False): part
            for part in parts
        }
        try:
            for future in self._as_completed(list(futures), loop=self._client.loop):
                try:
                    reply = future.result()
                except Exception as error:  # whatever befell the cluster
                    raise Unavailable(
                        f"{step} of part {futures[future]} was lost by the Dask cluster: "
                        f"{error!r}; resume=True goes on"
                    ) from error
                if "code" in reply:
                    raise from_status(
                        reply["code"], f"{step} of part {futures[future]}: {reply['message']}"
                    )
                yield futures[future], reply
        finally:
            self._client.cancel(list(futures), force=True)

    def close(self) -> None:
        """Leave the cluster."""
        self._client.close()


def task_reply(scratch: str, step: str, part: int) -> Mapping[str, Any]:
    """What a task found out, or how it failed, as JSON has it."""
    try:
        return run_task(scratch, step, part)
    except AsterismError as error:
        return {"code": error.code, "message": error.message}
    except Exception as error:
        return {"code": "INTERNAL", "message": f"{type(error).__name__}: {error}"}


class LazyExecutor(ClosingExecutor):
    """An executor that is made when it is needed: where all tasks are done already, none is."""

    def __init__(self, make: Callable[[], Executor]) -> None:
        self._make = make
        self._executor: Executor | None = None

    def run(self, scratch: Path, step: str, parts: Sequence[int]) -> Iterator[StepResult]:
        """As `Executor.run`."""
        if self._executor is None:
            self._executor = self._make()
        yield from self._executor.run(scratch, step, parts)

    def close(self) -> None:
        """Let go of workers, if there are any."""
        if self._executor is not None:
            self._executor.close()


def run_worker() -> None:
    """Run tasks from standard input, a JSON line each, and answer each with a line on standard
    output.

    `ProcessExecutor` starts this in a new interpreter. The process ends when its input does, in the
    middle of a task too: the process that started it has ended then.
    """
    tasks: queue.SimpleQueue[tuple[str, str, int]] = queue.SimpleQueue()
    threading.Thread(target=_read_tasks, args=(tasks,), daemon=True).start()
    # What a library prints must not be taken for an answer.
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
