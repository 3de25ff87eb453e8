"""Compilation of all kernels into the cache of this machine, by several processes.

The cache is shared by all processes of a machine: each kernel is compiled by one of them, and the
others load it. So these processes never repeat each other's work, nor that of the service.
``python -m asterism_standalone.kernel_compiler`` compiles all kernels; it needs no client.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import storaged
from asterism_graphkit.compile import cache
from asterism_graphkit.compile.jit import INTERPRETED
from asterism_proto.errors import Unavailable

logger = logging.getLogger(__name__)

MAX_WORKERS = 8
"""Largest number of processes. Each needs about 300 MiB of memory."""
_BACKGROUND_NICENESS = 5
"""Niceness of compilation beside other work.

A larger one would let kernels that the other work waits for make no progress on a busy machine.
"""
_COMPLETE, _LOCK = "kernels.complete", "kernels.lock"
_KERNEL_PACKAGES = ("kernels", "build", "store", "version_tasks")
"""Packages of storaged with kernels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileProgress:
    """Progress of a compilation."""

    steps_done: int
    steps_total: int
    kernels: int
    """Number of kernels that were missing and are compiled now."""
    current: tuple[str, ...]
    """Kernels that are being compiled."""


def is_cache_complete() -> bool:
    """Return True if no kernel has to be compiled on this machine."""
    if INTERPRETED:
        return True
    try:
        return (cache.cache_folder() / _COMPLETE).read_text() == _cache_key()
    except OSError:
        return False


def _cache_key() -> str:
    folder = Path(storaged.__path__[0])
    return cache.cache_key([folder / name for name in _KERNEL_PACKAGES])


class KernelCompiler:
    """Compilation of all kernels, in processes of its own. Use it in a ``with`` block.

    Parameters
    ----------
    workers : int, optional
        Number of processes. Default: one for each core, at most `MAX_WORKERS`.
    background : bool
        Leave the cores to other work, and do nothing if another process of this machine compiles
        all kernels already. Default False.
    """

    def __init__(self, workers: int = 0, *, background: bool = False) -> None:
        # Imported here, for builds have many modules: a complete cache needs no compiler.
        from asterism_standalone import compile_worker

        self._module, self._steps_total = compile_worker.__name__, len(compile_worker.STEPS)
        cores = min(len(os.sched_getaffinity(0)), MAX_WORKERS)
        self._workers = min(workers or cores, self._steps_total)
        self._background = background
        self._waiting = deque(compile_worker.STEPS)
        self._lock = threading.Lock()
        self._steps_done = 0
        self._compiled: dict[int, int] = {}
        """Number of kernels that each worker compiled."""
        self._current: dict[int, str] = {}
        self._processes: list[subprocess.Popen[str]] = []
        self._threads: list[threading.Thread] = []
        self._lock_fd = -1
        self._fault = ""
        self._stopped = False

    def __enter__(self) -> KernelCompiler:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the processes."""
        if self._background and not self._take_lock():
            self._waiting.clear()
            return
        self._threads = [
            threading.Thread(target=self._run, args=(i,), name="kernels", daemon=True)
            for i in range(self._workers)
        ]
        for thread in self._threads:
            thread.start()

    def wait(self, on_progress: Callable[[CompileProgress], None], interval_s: float = 0.2) -> None:
        """Wait for the end, and report progress all the time.

        Raises
        ------
        Unavailable
            If a process fails.
        """
        for thread in self._threads:
            while thread.is_alive():
                thread.join(interval_s)
                on_progress(self.progress())
        if self._fault:
            raise Unavailable(self._fault)

    def progress(self) -> CompileProgress:
        """Return the current progress."""
        with self._lock:
            return CompileProgress(
                steps_done=self._steps_done,
                steps_total=self._steps_total,
                kernels=sum(self._compiled.values()),
                current=tuple(kernel for kernel in self._current.values() if kernel),
            )

    def stop(self) -> None:
        """End the processes. What they have compiled stays."""
        with self._lock:
            self._stopped = True
            self._waiting.clear()
            for process in self._processes:
                process.kill()
        for thread in self._threads:
            thread.join()
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1

    def _take_lock(self) -> bool:
        """Return True if no other process of this machine compiles in the background."""
        folder = cache.cache_folder()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock_fd = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # also if the cache is not writable
            return False
        return True

    def _run(self, worker: int) -> None:
        """Give steps to one process until none are left."""
        with tempfile.TemporaryFile("w+") as errors:
            with self._lock:
                if self._stopped:
                    return
                process = subprocess.Popen(
                    [sys.executable, "-m", self._module, str(os.getpid())],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                )
                self._processes.append(process)
            if self._background:
                os.setpriority(os.PRIO_PROCESS, process.pid, _BACKGROUND_NICENESS)
            try:
                while (step := self._next_step()) and self._compile(worker, process, step):
                    pass
            finally:
                assert process.stdin is not None
                assert process.stdout is not None
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.close()
                process.stdout.close()
                status = process.wait()
            errors.seek(0)
            if status and not self._stopped:
                last_line = (errors.read().strip().splitlines() or [f"exit status {status}"])[-1]
                self._fault = f"kernels cannot be compiled: {last_line}"
                logger.warning("kernel_compilation_failed", extra={"reason": last_line})

    def _next_step(self) -> str:
        with self._lock:
            return self._waiting.popleft() if self._waiting else ""

    def _compile(self, worker: int, process: subprocess.Popen[str], step: str) -> bool:
        """Return True once the process has compiled a step, or False if it has ended."""
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(f"{step}\n")
            process.stdin.flush()
        except BrokenPipeError:
            return False
        for text in process.stdout:
            line = json.loads(text)
            with self._lock:
                if "done" not in line:
                    self._current[worker] = line["kernel"]
                    self._compiled[worker] = line["compiled"]
                    continue
                self._steps_done += 1
                if self._steps_done == self._steps_total:
                    _mark_complete()
                return True
        return False


def _mark_complete() -> None:
    folder = cache.cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        temporary = folder / f"{_COMPLETE}.{os.getpid()}"
        temporary.write_text(_cache_key())
        temporary.replace(folder / _COMPLETE)
    except OSError:  # the cache is not writable
        logger.warning("kernel_cache_not_writable", extra={"folder": str(folder)})


if __name__ == "__main__":
    with KernelCompiler() as compiler:
        compiler.wait(lambda _: None)
        print(compiler.progress())
