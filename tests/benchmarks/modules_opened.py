"""List of the modules that a warm `sample_neighbors` runs through, from client to kernel.

    python -m tests.benchmarks.modules_opened [--storageds 2] [--call NAME]

A metad, storageds and a graphd run in this process and talk over their own ports, as separate
daemons do. A module counts if one of its functions runs in every one of several equal calls, so
that heartbeats and other threads do not count. Kernels run interpreted: the kernel that is called
counts, what it calls does not.

Marked modules are on the way: their functions are on the call stack where a request is put on a
connection, in the client and in graphd, or where a kernel is called. The others serve these."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from inspect import getsource
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
from tests.kit import bodies

import asterism
from asterism import Client, Graph
from asterism_daemonkit.rpc.grpc_client import RemoteTransport
from asterism_daemonkit.rpc.tcp_client import TcpTransport
from graphd.app import Graphd
from graphd.settings import GraphdSettings
from metad.app import Metad
from metad.settings import MetadSettings
from storaged.app import Storaged
from storaged.settings import StoragedSettings

CALLS: dict[str, Callable[[Graph], Any]] = {
    "sample_neighbors": lambda graph: graph.sample_neighbors(np.arange(100), "buys", 10, seed=1),
    "sample_nodes": lambda graph: graph.sample_nodes(1000, "item", seed=1),
    "sample_fanout": lambda graph: graph.sample_fanout(np.arange(100), ["buys"], [10], seed=1),
    "random_walk": lambda graph: graph.random_walk(np.arange(100), ["follows"] * 4, seed=1),
}
PACKAGES = (
    "asterism",
    "asterism_proto",
    "asterism_model",
    "asterism_io",
    "asterism_daemonkit",
    "asterism_graphkit",
    "graphd",
    "storaged",
    "metad",
)
KERNELS = ("asterism_graphkit", "storaged.kernels")
SENDERS = ("asterism.transport.grpc", "asterism_daemonkit.rpc.tcp_client")
REPETITIONS = 20
ANY_PORT = "127.0.0.1:0"
READY_S = 120.0


class ModuleRecorder:
    """Records the project's functions that run in threads started after it."""

    def __init__(self) -> None:
        self.is_recording = False
        self._functions: set[tuple[str, CodeType]] = set()
        self.on_the_way: set[str] = set()
        """Modules on the call stacks of senders and kernels."""
        threading.setprofile(self._record)
        sys.setprofile(self._record)

    def functions_of(self, call: Callable[[], Any]) -> set[tuple[str, CodeType]]:
        """Return (module, code) of the functions that run while ``call`` does."""
        self._functions = set()
        self.is_recording = True
        try:
            call()
        finally:
            self.is_recording = False
        return self._functions

    def _record(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not self.is_recording:
            return
        module = frame.f_globals.get("__name__", "")
        if module.partition(".")[0] in PACKAGES and not self._is_inside_kernel(module, frame):
            self._functions.add((module, frame.f_code))
            if module in SENDERS or module.startswith("storaged.kernels"):
                self.on_the_way |= set(_stack_modules(frame))

    @staticmethod
    def _is_inside_kernel(module: str, frame: FrameType) -> bool:
        """Return whether a kernel, or numeric code next to it, called this kernel function."""
        if not module.startswith(KERNELS):
            return False
        caller = frame.f_back
        while caller is not None:
            name = caller.f_globals.get("__name__", "")
            if name.partition(".")[0] in PACKAGES:
                return bool(name.startswith(KERNELS))
            caller = caller.f_back
        return False


def _stack_modules(frame: FrameType) -> Iterator[str]:
    """Yield the modules of this project on a call stack."""
    caller: FrameType | None = frame
    while caller is not None:
        module = caller.f_globals.get("__name__", "")
        if module.partition(".")[0] in PACKAGES:
            yield module
        caller = caller.f_back


@contextmanager
def cluster(folder: Path, storageds: int) -> Iterator[Client]:
    """Return a client of daemons in this process that communicate over their ports."""
    metad = Metad(MetadSettings(data=folder / "metad", listen=ANY_PORT, http_listen=ANY_PORT))
    metad.start()
    metad.open_ports()
    to_metad = RemoteTransport(f"127.0.0.1:{metad.grpc_port}")
    hosts = [
        Storaged(
            StoragedSettings(
                data=folder / f"storaged-{index}",
                listen=ANY_PORT,
                http_listen=ANY_PORT,
                stream_listen=ANY_PORT,
            ),
            to_metad,
        )
        for index in range(storageds)
    ]
    graphd = Graphd(
        GraphdSettings(listen=ANY_PORT, http_listen=ANY_PORT),
        to_metad,
        lambda address, tally: TcpTransport(address, RemoteTransport(address, tally), tally),
    )
    try:
        for host in hosts:
            host.open_ports()
            host.start()
        graphd.start()
        graphd.open_ports()
        deadline = time.monotonic() + READY_S
        while missing := [
            *metad.ready(),
            *(problem for host in hosts for problem in host.ready()),
            *graphd.ready(),
        ]:
            if time.monotonic() > deadline:
                raise TimeoutError(f"not ready after {READY_S} s: {missing}")
            time.sleep(0.05)
        with asterism.connect(f"127.0.0.1:{graphd.grpc_port}", timeout_s=READY_S) as client:
            yield client
    finally:
        graphd.stop()
        for host in hosts:
            host.stop()
        metad.stop()


def modules_of(recorder: ModuleRecorder, call: Callable[[], Any]) -> dict[str, int]:
    """Return the modules that every one of several equal calls runs, with function counts."""
    call()
    common = recorder.functions_of(call)
    for _ in range(REPETITIONS - 1):
        common &= recorder.functions_of(call)
    counts: dict[str, int] = {}
    for module, _ in common:
        counts[module] = counts.get(module, 0) + 1
    return counts


def print_modules(name: str, modules: dict[str, int], on_the_way: set[str]) -> None:
    """Print each module with its lines and functions, and the numbers of modules."""
    print(f"{name}: {len(on_the_way & set(modules))} modules on the way, {len(modules)} in all")
    for module, functions in sorted(modules.items()):
        lines = getsource(import_module(module)).count("\n")
        mark = "*" if module in on_the_way else " "
        print(f"{mark} {module:52} {functions:4} functions run, {lines:4} lines")


def main() -> None:
    """Measure in a process in which kernels run as plain Python."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--storageds", type=int, default=2)
    parser.add_argument("--call", choices=CALLS, default="sample_neighbors")
    parser.add_argument("--interpreted", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if not args.interpreted:
        environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}  # noqa: TID251
        command = [sys.executable, "-m", "tests.benchmarks.modules_opened", *sys.argv[1:]]
        sys.exit(subprocess.call([*command, "--interpreted"], env=environment))
    recorder = ModuleRecorder()
    with (
        tempfile.TemporaryDirectory() as folder,
        cluster(Path(folder), args.storageds) as client,
    ):
        bodies.assert_build_published(client, "shop")
        graph = client.graph("shop")
        modules = modules_of(recorder, lambda: CALLS[args.call](graph))
        print_modules(args.call, modules, recorder.on_the_way)


if __name__ == "__main__":
    main()
