"""Zygote: a process with imports and kernels loaded that forks daemons.

It starts a cluster in a fraction of the time. A forked daemon runs the same ``__main__`` with the
same arguments, environment, files and session as an executed one; only the imports are done
already. Processes that measure memory, or depend on environment variables at the start of the
interpreter, are executed instead (`Daemon.cold`).
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import fcntl
import gc
import importlib
import importlib.util
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tests.kit.faults import POINTS
from tests.kit.waiting import HANG_S
from tests.mutants import planting

if TYPE_CHECKING:
    from storaged.tasks.fork_server import ForkServer

ROOT = Path(__file__).resolve().parents[2]
_MAX_MESSAGE = 1 << 20
_MAX_FD = 64
"""Lowest file descriptor that the zygote does not have."""
PASSED_FD = 3
_STARTUP_PREFIXES = (
    "PYTHON",
    "NUMBA",
    "GRPC",
    "LD_",
    "OMP_",
    "OPENBLAS",
    "MKL",
    "ASTERISM_KERNEL",
    "ASTERISM_CACHE",
)
PRELOADED = (
    "metad.__main__",
    "storaged.__main__",
    "graphd.__main__",
    "storaged.build.__main__",
    "storaged.version_tasks.__main__",
    "asterism_standalone.app",
    # Daemons import these when they open their ports, as do libraries those below.
    *("asterism_daemonkit.http.server", "asterism_daemonkit.http.application"),
    "asterism_daemonkit.http.turns",
    *("asterism_daemonkit.http.job_routes", "metad.http.routes"),
    *("graphd.http.sampling", "graphd.http.self_test", "graphd.http.statements"),
    "graphd.pages.service",
    "graphd.pages.sign_in",
    *("anyio._backends._asyncio", "encodings.idna", "grpc._channel", "grpc._server"),
    *("pydantic.v1", "uvicorn.lifespan.off", "uvicorn.loops.asyncio", "uvicorn.loops.auto"),
    *("uvicorn.protocols.http.auto", "uvicorn.protocols.websockets.auto"),
)
_KERNEL_PACKAGES = ("asterism_graphkit", "graphd", "storaged")
_COMMAND = "asterism.cli.app"
"""Module of the command line, which is an extra and not installed everywhere."""


def startup_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of an environment that take effect at start or at an import.

    Those for faults and mutants are left out, because the zygote applies them in the processes that
    it forks.
    """
    path = [
        folder
        for folder in environment.get("PYTHONPATH", "").split(os.pathsep)
        if folder and folder not in (str(POINTS), str(planting.STARTUP_FOLDER))
    ]
    variables = {
        name: value
        for name, value in environment.items()
        if name.startswith(_STARTUP_PREFIXES) and name != "PYTHONPATH"
    }
    return variables | {"PYTHONPATH": os.pathsep.join(path)}


class ForkedProcess:
    """A process that the zygote forked, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, args: Sequence[str], pid: int, exit_socket: socket.socket) -> None:
        self.args, self.pid = args, pid
        self.returncode: int | None = None
        self._ends = exit_socket
        self._ended = select.poll()
        self._ended.register(exit_socket, select.POLLIN)
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        """Return the exit status, negative for a signal, or None while it runs."""
        with self._lock:
            if self.returncode is None and self._ended.poll(0):
                self._receive_status()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit status."""
        end = None if timeout is None else time.monotonic() + timeout
        while self.poll() is None:
            if end is not None and time.monotonic() > end:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            self._ended.poll(50)  # milliseconds; another thread may collect the status meanwhile
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, signal_number: int) -> None:
        """Send a signal if the process still runs."""
        if self.poll() is None:
            os.kill(self.pid, signal_number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def _receive_status(self) -> None:
        data = self._ends.recv(64)
        self.returncode = (
            int(data) if data else -int(signal.SIGKILL)
        )  # the zygote has ended, and its children with it
        self._ended.unregister(self._ends)
        self._ends.close()


class Zygote:
    """The zygote of this process; it starts on first use and ends with this process."""

    def __init__(self) -> None:
        self._startup_environment: dict[str, str] = {}
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._pid = 0
        self._is_shared = False

    def share(self) -> None:
        """Start the zygote and let forks of this process use it.

        Only one of them may use it at a time, because they share one connection.
        """
        with self._lock:
            self._ensure_started()
            self._is_shared = True

    def preload(self, *modules: str) -> None:
        """Import more modules, for the processes that are forked from now on."""
        with self._lock:
            self._ensure_started()
            assert self._socket is not None
            own_end, other_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with own_end:
                with other_end:
                    request = json.dumps({"modules": modules}).encode()
                    socket.send_fds(self._socket, [request], [other_end.fileno()])
                if not own_end.recv(64):
                    raise RuntimeError(f"the zygote has ended while it imported {modules}")

    @property
    def is_running(self) -> bool:
        """True if the zygote was started and serves this process."""
        return self._socket is not None and (self._pid == os.getpid() or self._is_shared)

    def can_fork(self, environment: Mapping[str, str]) -> bool:
        """Return whether a process with this environment may be forked.

        Variables that take effect at interpreter start must equal those of the zygote.
        """
        with self._lock:
            self._ensure_started()
            return startup_variables(environment) == self._startup_environment

    def fork(
        self,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        output: int,
        errors: int | None = None,
        passed: int | None = None,
    ) -> ForkedProcess:
        """Run ``python -m arguments...`` in its own session.

        ``output`` is its stdout, and also its stderr unless ``errors`` is given. ``passed`` is one
        more file descriptor; it has the number `PASSED_FD` there.
        """
        with self._lock:
            self._ensure_started()
            assert self._socket is not None
            parent_end, child_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            request = json.dumps(
                {
                    "arguments": list(arguments),
                    "environment": dict(environment),
                    "folder": os.getcwd(),
                }
            ).encode()
            with child_end:
                fds = [output, output if errors is None else errors, child_end.fileno()]
                socket.send_fds(self._socket, [request], fds if passed is None else [*fds, passed])
            pid = int(parent_end.recv(64) or b"0")  # sent once the child leads its session
            if not pid:
                raise RuntimeError("the zygote has ended")
            return ForkedProcess(arguments, pid, parent_end)

    def _ensure_started(self) -> None:
        if not self.is_running:
            self._start()

    def _start(self) -> None:
        parent_end, child_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (parent_end, child_end):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MAX_MESSAGE)
        with child_end:
            # The child inherits this environment.
            self._startup_environment = startup_variables(os.environ)  # noqa: TID251
            subprocess.Popen(
                [sys.executable, "-m", "tests.kit.zygote"],
                stdin=child_end,
                cwd=ROOT,
                start_new_session=True,
            ).returncode = 0  # never waited for
        self._socket, self._pid, self._is_shared = parent_end, os.getpid(), False
        atexit.register(parent_end.close)


def preload() -> None:
    """Import what daemons import, and load their kernels."""
    spec = importlib.util.spec_from_file_location("faultpoints", POINTS / "sitecustomize.py")
    assert spec is not None
    assert spec.loader is not None
    sys.modules["faultpoints"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["faultpoints"])  # before the modules that it patches

    for name in PRELOADED:
        importlib.import_module(name)
    with contextlib.suppress(ModuleNotFoundError):
        importlib.import_module(_COMMAND)
    from graphd.kernel_warmup import compile_kernels as warm_graphd
    from graphd.query import euler_parser
    from graphd.query.ngql_parser import build_parser
    from storaged.kernel_warmup import compile_kernels as warm_storaged

    warm_storaged()
    warm_graphd()
    load_cached_kernels()
    build_parser()
    euler_parser.build_parser()


def load_cached_kernels(packages: Collection[str] = _KERNEL_PACKAGES) -> None:
    """Load the compiled kernels in the caches of all imported modules of packages.

    The kernels of builds are among them. Every build task would otherwise load some twenty. They
    cannot be run here, because a build starts threads of RocksDB.
    """
    from asterism_graphkit.compile.jit import CompiledFiles

    for module in [
        module for name, module in sys.modules.items() if name.partition(".")[0] in packages
    ]:
        for value in vars(module).values():
            cache = getattr(value, "_cache", None)
            if isinstance(getattr(cache, "_cache_file", None), CompiledFiles):
                _load_cached(value, cache)


def _load_cached(kernel: Any, cache: Any) -> None:
    """Load a kernel for all types of arguments that its cache has compiled code for."""
    if kernel.targetoptions.get("no_cpython_wrapper"):  # its code is part of its callers
        return
    codegen = kernel.targetctx.codegen()
    for key in cache._cache_file._load_index():
        signature = key[0]
        if key == cache._index_key(signature, codegen) and signature not in kernel.overloads:
            kernel.compile(signature)


def _run(
    request: Mapping[str, object], output: int, errors: int, exit_fd: int, passed: Sequence[int]
) -> None:
    """Become the requested process; never returns."""
    status: object = 1
    try:
        os.setsid()
        os.write(exit_fd, str(os.getpid()).encode())
        os.chdir(str(request["folder"]))
        null = os.open(os.devnull, os.O_RDONLY)
        for target, source in ((0, null), (1, output), (2, errors)):
            os.dup2(source, target)
        faulthandler.enable()
        kept = [fcntl.fcntl(fd, fcntl.F_DUPFD, _MAX_FD) for fd in passed]
        os.closerange(PASSED_FD, _MAX_FD)
        for fd in kept:
            os.dup2(fd, PASSED_FD)
            os.close(fd)
        os.environ.clear()  # noqa: TID251 - it is that of the process that was asked for
        os.environ.update(request["environment"])  # type: ignore[call-overload]  # noqa: TID251
        arguments = request["arguments"]
        assert isinstance(arguments, list)
        planting.plant_from_environment()
        sys.argv = ["-m", *arguments[1:]]
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        warnings.filterwarnings("ignore", message=".*found in sys.modules", module="runpy")
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as error:
        status = error.code
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(0 if status is None else status if isinstance(status, int) else 1)


def serve() -> None:
    """Fork the processes requested on stdin, and report their exits, until stdin is closed."""
    preload()
    _require_one_thread()
    gc.freeze()  # a collection in a forked process then copies none of these objects
    requests = socket.socket(fileno=os.dup(0))
    wake_read, wake_write = os.pipe()
    for fd in (wake_read, wake_write):
        os.set_blocking(fd, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_write)
    running: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([requests, wake_read], [], [])
        if wake_read in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(wake_read, 1 << 12)
            _reap(running)
        if requests in ready:
            data, fds, _, _ = socket.recv_fds(requests, _MAX_MESSAGE, 4)
            if not data:
                return
            request = json.loads(data)
            if "modules" in request:
                for name in request["modules"]:
                    importlib.import_module(name)
                _require_one_thread()
                os.write(fds[0], b"1")
                os.close(fds[0])
                continue
            output, errors, exit_fd, *passed = fds
            pid = os.fork()
            if pid == 0:
                for child_socket in running.values():
                    child_socket.close()
                requests.close()
                _run(request, output, errors, exit_fd, passed)
            for fd in (output, errors, *passed):
                os.close(fd)
            running[pid] = socket.socket(fileno=exit_fd)


def _require_one_thread() -> None:
    if threading.active_count() != 1:  # threads of BLAS and allocators restart after a fork
        raise RuntimeError(
            f"{threading.enumerate()} run: a process that was forked from here would lack "
            "all but one"
        )


def _reap(running: dict[int, socket.socket]) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        with running.pop(pid) as exit_socket, contextlib.suppress(OSError):
            exit_socket.send(str(os.waitstatus_to_exitcode(status)).encode())


ZYGOTE = Zygote()


def start_fork_server(
    executed: Callable[[ForkServer], None],
) -> Callable[[ForkServer], None]:
    """Return a replacement of `ForkServer._execute` that forks the server from a running zygote.

    ``executed`` is the original, which serves where there is none.
    """
    from storaged.tasks import fork_server

    def start(server: ForkServer) -> None:
        environment = dict(os.environ)  # noqa: TID251 - a child inherits it
        if not (ZYGOTE.is_running and ZYGOTE.can_fork(environment)):
            executed(server)
            return
        requests, server_socket = fork_server._socket_pair()
        with server_socket, open(os.devnull, "wb") as null:
            arguments = (fork_server.__name__, str(PASSED_FD), str(os.getpid()))
            server._process = ZYGOTE.fork(  # type: ignore[assignment]
                arguments,
                environment=environment,
                output=null.fileno(),
                errors=2,
                passed=server_socket.fileno(),
            )
        server._requests = requests

    return start


def start(
    *arguments: object,
    output: IO[Any],
    errors: IO[Any] | None = None,
    added_environment: Mapping[str, str] | None = None,
) -> ForkedProcess | subprocess.Popen[bytes]:
    """Fork ``python -m arguments...``; its stderr is its stdout unless ``errors`` is given."""
    texts = [str(argument) for argument in arguments]
    environment = {**os.environ, **(added_environment or {})}  # noqa: TID251 - a child inherits it
    errors = output if errors is None else errors
    if ZYGOTE.can_fork(environment):
        return ZYGOTE.fork(
            texts, environment=environment, output=output.fileno(), errors=errors.fileno()
        )
    command = [sys.executable, "-m", *texts]
    return subprocess.Popen(
        command, stdout=output, stderr=errors, start_new_session=True, env=environment
    )


def run(
    *arguments: object, added_environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Fork ``python -m arguments...``, wait for its end and return its stdout and stderr."""
    texts = [str(argument) for argument in arguments]
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        status = start(
            *texts, output=output, errors=errors, added_environment=added_environment
        ).wait(HANG_S)
        output.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(texts, status, output.read(), errors.read())


if __name__ == "__main__":
    serve()
