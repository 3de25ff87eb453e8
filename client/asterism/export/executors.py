"""Who does the tasks of an export: this process, processes of this machine, or a Dask cluster."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from asterism.export.part_tasks import run_task
from asterism_proto.errors import AsterismError, InvalidRequest, Unavailable, from_status

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
            f"import sys; sys.path[:] = {sys.path!r}; from asterism.export.worker import "
            "main; main()"
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
                f"'asterism[dask]' ({error})"
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
