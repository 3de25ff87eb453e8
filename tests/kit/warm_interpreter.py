"""Interpreter of another environment that imports a framework once and forks its programs.

An import of DGL or PyG takes seconds of CPU time. A forked program runs as ``__main__`` with the
arguments, the environment and the module search path that an executed one would have; only the
imports are done already. The processes that it starts of the same interpreter are forked too.

``python -P warm_interpreter.py FOLDER MODULE...`` is the interpreter, with a socket as stdin. It
runs in the environments of the frameworks and therefore uses the standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import inspect
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_MAX_MESSAGE = 1 << 20
_MAX_FD = 1 << 16
_FIRST_FD = 3
"""Lowest file descriptor that a program does not have."""
_PR_SET_PDEATHSIG = 1


class WarmInterpreter:
    """An interpreter with modules imported, which ends with the block.

    Parameters
    ----------
    python : Path
        Interpreter of the environment.
    modules : sequence of str
        Modules to import before any program runs.
    scripts : Path
        Folder in which modules are found that the environment does not have.
    environment : mapping
        Variables of the imports, in addition to this process's.
    """

    def __init__(
        self,
        python: Path,
        modules: Sequence[str],
        *,
        scripts: Path,
        environment: Mapping[str, str],
    ) -> None:
        self.python = python
        self._command = [str(python), "-P", __file__, str(scripts), *modules]
        self._environment = {**os.environ, **environment}  # noqa: TID251 - the child inherits it
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    def __enter__(self) -> Self:
        self._socket, child_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (self._socket, child_end):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MAX_MESSAGE)
        with child_end:
            self._process = subprocess.Popen(
                self._command, stdin=child_end, env=self._environment, start_new_session=True
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None and self._socket is not None:
            self._process.kill()
            self._process.wait()
            self._socket.close()

    def run(
        self, *arguments: object, environment: Mapping[str, str], timeout_s: float
    ) -> subprocess.CompletedProcess[str]:
        """Run a script with arguments and return its status and output, stderr included.

        Raises
        ------
        subprocess.TimeoutExpired
            If it has not ended in time; it is killed.
        RuntimeError
            If the interpreter has ended.
        """
        assert self._socket is not None, "outside of the block"
        command = [str(argument) for argument in arguments]
        request = {
            "arguments": command,
            "environment": {**os.environ, **environment},  # noqa: TID251 - as above
            "folder": os.getcwd(),
        }
        with tempfile.TemporaryFile() as output:
            with contextlib.suppress(OSError):  # it has ended, which `_receive` reports
                socket.send_fds(self._socket, [json.dumps(request).encode()], [output.fileno()])
            pid = int(self._receive())
            self._socket.settimeout(timeout_s)
            try:
                status = int(self._receive())
            except TimeoutError:
                os.killpg(pid, signal.SIGKILL)
                self._socket.settimeout(None)
                self._receive()
                raise subprocess.TimeoutExpired(command, timeout_s) from None
            finally:
                self._socket.settimeout(None)
            output.seek(0)
            text = output.read().decode(errors="replace")
        return subprocess.CompletedProcess(command, status, text)

    def _receive(self) -> bytes:
        assert self._socket is not None
        data = b""
        with contextlib.suppress(ConnectionError):
            data = self._socket.recv(64)
        if not data:
            raise RuntimeError(f"{' '.join(self._command)} has ended")
        return data


class _ForkingPopen(subprocess.Popen[Any]):
    """A `Popen` that forks this process to run a script with this interpreter.

    Other commands are executed. Handlers of `atexit` do not run in a forked script.
    """

    def _execute_child(self, args: Any, *more: Any) -> None:
        command = list(args) if isinstance(args, (list, tuple)) else [args]
        if command[:2] != [sys.executable, "-u"]:
            super()._execute_child(args, *more)  # type: ignore[misc]
            return
        # The parameters are those of the private method of CPython.
        given = inspect.signature(super()._execute_child).bind(args, *more).arguments  # type: ignore[misc]
        self.pid = os.fork()
        if self.pid:
            self._child_created = True
            pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
            self._close_pipe_fds(*(given[end] for end in pipes))  # type: ignore[attr-defined]
            return
        status = 1
        try:
            if given["start_new_session"]:
                os.setsid()
            for target, source in enumerate(("p2cread", "c2pwrite", "errwrite")):
                if given[source] >= 0:
                    os.dup2(given[source], target)
            os.closerange(_FIRST_FD, _MAX_FD)
            if given["cwd"] is not None:
                os.chdir(given["cwd"])
            if given["env"] is not None:
                _replace_environment(given["env"])
            run_script([os.fspath(argument) for argument in command[2:]])
            status = 0
        except SystemExit as error:
            status = _status_of(error)
        except BaseException:
            traceback.print_exc()
        finally:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(BaseException):
                    stream.flush()
            os._exit(status)


def _status_of(error: SystemExit) -> int:
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    print(error.code, file=sys.stderr)
    return 1


def _replace_environment(environment: Mapping[str, str]) -> None:
    os.environ.clear()  # noqa: TID251 - it is that of the program
    os.environ.update(environment)  # noqa: TID251


def run_script(arguments: list[str]) -> None:
    """Run a script as ``__main__``; the first argument is its path."""
    sys.argv = arguments
    sys.path[0] = str(Path(arguments[0]).resolve().parent)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()  # random numbers of its own; `random` has them already
    runpy.run_path(arguments[0], run_name="__main__")


def serve() -> dict[str, Any]:
    """Fork a process per request on stdin, one after the other, until stdin is closed.

    Returns
    -------
    dict
        The request, in the forked process.
    """
    requests = socket.socket(fileno=os.dup(0))
    parent = os.getpid()
    while True:
        data, fds, _, _ = socket.recv_fds(requests, _MAX_MESSAGE, 1)
        if not data:
            sys.exit()
        (output,) = fds
        pid = os.fork()
        if pid == 0:
            os.setsid()
            _end_with(parent)
            requests.send(str(os.getpid()).encode())  # the pid now names a group, too
            null = os.open(os.devnull, os.O_RDONLY)
            for target, source in enumerate((null, output, output)):
                os.dup2(source, target)
            requests.detach()
            os.closerange(_FIRST_FD, _MAX_FD)
            request: dict[str, Any] = json.loads(data)
            return request
        os.close(output)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        requests.send(str(status).encode())


def _end_with(parent: int) -> None:
    """Have the kernel kill this process when its parent has ended."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _searched(environment: Mapping[str, str]) -> list[str]:
    """Return the folders of an environment's module search path."""
    return list(filter(None, environment.get("PYTHONPATH", "").split(os.pathsep)))


def main(scripts: str, *modules: str) -> None:
    """Import the modules, and run the requested programs."""
    sys.path.insert(0, scripts)
    for module in modules:
        importlib.import_module(module)
    threads = os.listdir("/proc/self/task")
    if len(threads) != 1:
        raise RuntimeError(f"{len(threads)} threads run: a forked process would lack all but one")
    gc.freeze()  # a collection in a forked process then copies none of these objects
    searched = _searched(os.environ)  # noqa: TID251 - that of the imports
    request = serve()
    os.chdir(request["folder"])
    _replace_environment(request["environment"])
    # The first entry becomes the folder of the script.
    sys.path[: 1 + len(searched)] = ["", *_searched(request["environment"])]
    subprocess.Popen = _ForkingPopen  # type: ignore[misc]
    run_script(request["arguments"])


if __name__ == "__main__":
    main(*sys.argv[1:])
