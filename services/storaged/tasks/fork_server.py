"""A server process that has imported the modules of tasks, and forks one child per task.

A forked child starts within milliseconds. An executed one would first start an interpreter and
import its modules, which takes a second or more of a core. The daemon forks its server before it
starts a thread. Where that is impossible, as in a program that opens a folder directly, the server
is executed at the first write or task.

No task outlives its daemon: the server ends when its parent does, and the kernel kills the children
with the server.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import traceback
import warnings
from pathlib import Path
from typing import IO, NoReturn

from asterism_graphkit.compile.jit import load_runtime
from storaged.tasks.task_process import die_with_parent, set_process_name

PROCESS_NAMES = {"storaged.build": "storaged.build", "storaged.version_tasks": "storaged.reader"}
"""Process name by package, at most 15 characters; ``__main__.main`` of each runs a task."""
_MAX_MESSAGE = 1 << 16
_M_ARENA_MAX, _ARENAS = -8, 2
"""Option and value for `mallopt`: two arenas.

Each of RocksDB's threads would otherwise keep an arena, outside the memory limit of a build.
"""


class TaskProcess:
    """A child process that runs one task.

    Attributes
    ----------
    pid : int
    stdout : file of str
        Output of the child; ends when the child does.
    """

    def __init__(self, pid: int, stdout: IO[str], channel: socket.socket) -> None:
        self.pid, self.stdout = pid, stdout
        self._channel = channel

    def send_signal(self, number: int) -> None:
        """Send a signal to the child.

        The server delivers it only while the child is not reaped, so it never reaches another
        process.
        """
        with contextlib.suppress(OSError):
            self._channel.send(str(int(number)).encode())

    def wait(self) -> int:
        """Wait for the child to end; return its exit status, negative for a signal."""
        with self._channel:
            status = self._channel.recv(_MAX_MESSAGE)
        # An empty message: the server is gone, and its children with it.
        return int(status) if status else -int(signal.SIGKILL)


class ForkServer:
    """The fork server of a daemon. Thread-safe.

    `fork`, `prepare` or the first task starts it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._pid = 0
        self._is_closed = False

    def fork(self) -> None:
        """Start the server as a fork of this process, which must be single-threaded.

        If the system cannot create a process now, the server is executed at the first task instead.
        """
        if threading.active_count() != 1:
            raise RuntimeError(
                f"threads are running ({threading.enumerate()}), and a fork would have only one of "
                "them"
            )
        requests, server_socket = _socket_pair()
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        try:
            self._pid = _fork()
        except OSError:
            requests.close()
            server_socket.close()
            return
        if self._pid == 0:
            requests.close()
            die_with_parent(parent)
            _serve_to_the_end(server_socket, parent)
        server_socket.close()
        self._requests = requests

    def prepare(self) -> None:
        """Start the server if none runs, without waiting for it.

        It imports its modules while a load is written. A closed server is not started again.
        """
        if self._lock.acquire(blocking=False):  # Otherwise another thread is starting it.
            try:
                if self._requests is None and not self._is_closed:
                    self._execute()
            finally:
                self._lock.release()

    def start_task(self, module: str, task: Path, stderr: IO[str]) -> TaskProcess:
        """Fork a child that runs the task described by a file.

        Raises
        ------
        OSError
            The system cannot create a process, or the server is closed.
        """
        with self._lock:
            if self._is_closed:
                raise OSError(errno.ESHUTDOWN, "the fork server is closed")
            if self._requests is None:
                self._execute()
            try:
                return self._ask(module, task, stderr)
            except ConnectionError:  # The server was killed.
                self._end()
                self._execute()
                return self._ask(module, task, stderr)

    def close(self) -> None:
        """End the server and its remaining children, for good.

        A write that is still being admitted cannot start another one.
        """
        with self._lock:
            self._is_closed = True
            self._end()

    def _ask(self, module: str, task: Path, stderr: IO[str]) -> TaskProcess:
        assert self._requests is not None
        channel, child_channel = _socket_pair()
        read, write = os.pipe()
        stdout = os.fdopen(read)
        try:
            try:
                request = json.dumps(
                    {"module": module, "task": str(task.absolute()), "folder": os.getcwd()}
                ).encode()
                socket.send_fds(
                    self._requests, [request], [write, stderr.fileno(), child_channel.fileno()]
                )
            finally:
                os.close(write)
                child_channel.close()
            reply = channel.recv(_MAX_MESSAGE)
            if not reply:
                raise ConnectionResetError("the fork server has ended")
            started = json.loads(reply)
            if "errno" in started:
                raise OSError(
                    started["errno"], f"cannot fork a task: {os.strerror(started['errno'])}"
                )
        except BaseException:
            channel.close()
            stdout.close()
            raise
        return TaskProcess(started["pid"], stdout, channel)

    def _execute(self) -> None:
        requests, server_socket = _socket_pair()
        with server_socket:
            command = [
                sys.executable,
                "-m",
                __name__,
                str(server_socket.fileno()),
                str(os.getpid()),
            ]
            null = subprocess.DEVNULL
            self._process = subprocess.Popen(
                command, stdin=null, stdout=null, pass_fds=[server_socket.fileno()]
            )
        self._requests = requests

    def _end(self) -> None:
        if self._requests is not None:
            self._requests.close()
            self._requests = None
        if self._process is not None:  # Kill it: it may still be importing.
            self._process.kill()
            self._process.wait()
            self._process = None
        if self._pid:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)
            self._pid = 0


class _Server:
    """Event loop of the server process: fork children, deliver signals, reap."""

    def __init__(self, requests: socket.socket, parent: int) -> None:
        self._requests = requests
        self._running: dict[int, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(requests, selectors.EVENT_READ)
        self._parent = -1
        # Not every Python and kernel supports pidfd_open. It is needed in addition to the socket,
        # because a fork of the parent may keep the parent's end of the socket open.
        with contextlib.suppress(AttributeError, OSError):
            self._parent = os.pidfd_open(parent)
            self._selector.register(self._parent, selectors.EVENT_READ)
        self._wake, wake_writer = os.pipe()
        for fd in (self._wake, wake_writer):
            os.set_blocking(fd, False)
        self._selector.register(self._wake, selectors.EVENT_READ)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_writer)
        # Both reach the whole process group of the daemon, which ends its tasks in order.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)

    def run(self) -> None:
        """Serve until the parent closes its end of the socket, or ends."""
        while True:
            ready = {key.fileobj for key, _ in self._selector.select()}
            if self._parent in ready:
                return
            if self._wake in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake, _MAX_MESSAGE)
                self._reap()
            for pid in [pid for pid, channel in self._running.items() if channel in ready]:
                self._signal(pid)
            if self._requests in ready and not self._fork():
                return

    def _fork(self) -> bool:
        data, fds, _, _ = socket.recv_fds(self._requests, _MAX_MESSAGE, 3)
        if not data:
            return False
        if len(fds) < 3:  # Too many open files: the parent sees its channel closed.
            for fd in fds:
                os.close(fd)
            return True
        stdout, stderr, channel_fd = fds
        channel = socket.socket(fileno=channel_fd)
        server = os.getpid()
        try:
            pid = _fork()
        except OSError as error:
            channel.send(json.dumps({"errno": error.errno}).encode())
            channel.close()
        else:
            if pid == 0:
                _become(json.loads(data), server, stdout, stderr)
            with contextlib.suppress(OSError):
                channel.send(json.dumps({"pid": pid}).encode())
            self._running[pid] = channel
            self._selector.register(channel, selectors.EVENT_READ)
        os.close(stdout)
        os.close(stderr)
        return True

    def _signal(self, pid: int) -> None:
        channel = self._running[pid]
        try:
            data = channel.recv(_MAX_MESSAGE)
        except OSError:
            data = b""
        if data:
            os.kill(pid, int(data))
        else:  # The daemon has dropped the task.
            self._selector.unregister(channel)
            os.kill(pid, signal.SIGKILL)

    def _reap(self) -> None:
        while self._running:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            with self._running.pop(pid) as channel, contextlib.suppress(OSError):
                with contextlib.suppress(KeyError):
                    self._selector.unregister(channel)
                channel.send(str(os.waitstatus_to_exitcode(status)).encode())


def _socket_pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def _fork() -> int:
    with warnings.catch_warnings():
        # The threads that the system counts belong to BLAS, which ends them before a fork.
        warnings.filterwarnings("ignore", message=".*multi-threaded", category=DeprecationWarning)
        return os.fork()


def _become(request: dict[str, str], server: int, stdout: int, stderr: int) -> NoReturn:
    """Run the requested task in this process, a new fork, and end the process."""
    status = 1
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        os.closerange(3, max(map(int, os.listdir("/proc/self/fd"))) + 1)
        os.chdir(request["folder"])
        module, task = request["module"], request["task"]
        set_process_name(PROCESS_NAMES.get(module, module))
        with contextlib.suppress(AttributeError):  # A C library without arenas.
            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)
        status = importlib.import_module(f"{module}.__main__").main([task, str(server)])
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _serve_to_the_end(requests: socket.socket, parent: int) -> NoReturn:
    """Serve in this process until the parent ends, then end the process."""
    status = 1
    try:
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        set_process_name("storaged.forks")
        server = _Server(requests, parent)
        for name in PROCESS_NAMES:
            importlib.import_module(f"{name}.__main__")
        load_runtime()
        gc.freeze()  # Garbage collection in the children leaves the shared pages alone.
        server.run()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def main(arguments: list[str]) -> NoReturn:
    """Serve a socket for a parent process.

    The arguments are the socket's file descriptor and the parent's process id.
    """
    _serve_to_the_end(socket.socket(fileno=int(arguments[0])), int(arguments[1]))


if __name__ == "__main__":
    main(sys.argv[1:])
