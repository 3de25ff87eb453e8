"""A cluster of real processes: one metad, some storageds and graphds.

They use reserved ports and their own folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import asterism
from tests.kit.faults import Faults
from tests.kit.ports import ReservedPort
from tests.kit.proxy import CuttableProxy
from tests.kit.relay import FaultyRelay
from tests.kit.waiting import HANG_S, wait_until
from tests.kit.zygote import ZYGOTE, ForkedProcess
from tests.mutants import planting

_POLL_INTERVAL_S = 0.05
STOP_S = HANG_S / 5
"""Seconds after SIGTERM until a daemon is killed."""
_DUMP_S = 10.0
"""Seconds for which a daemon that does not end may write the stacks of its threads."""
LOG_TAIL = 60
FAST_HEARTBEATS = ("--heartbeat-interval-s", "0.2")
"""Options for short heartbeat intervals, which a short lease needs."""
_USUAL_HEARTBEATS = ("--heartbeat-interval-s", "0.5")
"""Options for the default lease; each heartbeat takes 3 ms of a core, in both daemons together."""


def _online_addresses(client: asterism.Client) -> set[str]:
    """Return the addresses of the daemons that metad considers online.

    The set is empty while no graphd has connected to a metad that was just started.
    """
    try:
        return {host.address for host in client.hosts() if host.online}
    except asterism.Unavailable:
        return set()


class Daemon:
    """One process, its ports and its log."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str] | None = None,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self.name = name
        self._context = context
        # The child inherits this environment.
        self.environment = {**os.environ, **(environment or {})}  # noqa: TID251
        """Environment of the process."""
        # Reserved until `release`, so that a restarted daemon keeps its addresses.
        self._ports = ReservedPort(), ReservedPort()
        self.port, self.http_port = (port.number for port in self._ports)
        self.log = folder / f"{name}.log"
        self._report = folder / f"{name}.ports.json"
        listen = [
            "--listen",
            self.address,
            "--http-listen",
            self.http_address,
            "--ports-file",
            str(self._report),
        ]
        self._command = [sys.executable, "-m", *command, *listen]
        self.process: subprocess.Popen[bytes] | ForkedProcess | None = None
        self.cold = False
        """Execute the daemon instead of forking it.

        Needed for measurements that include the start of the interpreter, above all of memory.
        """
        self.prefix: Sequence[str] = ()
        """Arguments before the command line, from the next start on."""

    @property
    def address(self) -> str:
        """host:port of the gRPC endpoint."""
        return f"127.0.0.1:{self.port}"

    @property
    def http_address(self) -> str:
        """host:port of the HTTP endpoint."""
        return f"127.0.0.1:{self.http_port}"

    @property
    def pid(self) -> int:
        """Process id of the running daemon."""
        assert self.process is not None, f"{self.name} was not started"
        return self.process.pid

    def start(self) -> None:
        """Start the daemon; it appends to its log."""
        self._report.unlink(missing_ok=True)
        with self.log.open("ab") as log:
            # In its own session, so that child processes end with it.
            if not self.cold and not self.prefix and ZYGOTE.can_fork(self.environment):
                self.process = ZYGOTE.fork(
                    self._command[2:], environment=self.environment, output=log.fileno()
                )
            else:
                self.process = subprocess.Popen(
                    [*self.prefix, *self._command],
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    env=self.environment,
                )

    def is_ready(self) -> bool:
        """Return whether the daemon reports that it is ready."""
        if not self._report.exists():  # not listening yet
            return False
        try:
            with self.open_url("/readyz", timeout_s=2) as reply:
                return bool(reply.status == 200)
        except (OSError, urllib.error.HTTPError):
            return False

    def open_url(self, path: str, *, data: bytes | None = None, timeout_s: float = HANG_S) -> Any:
        """Return the daemon's reply to an HTTP request, with TLS if the daemon has it.

        With ``data``, which is JSON, the request is a POST."""
        scheme = "http" if self._context is None else "https"
        return urllib.request.urlopen(
            urllib.request.Request(
                f"{scheme}://{self.http_address}{path}",
                data=data,
                headers={} if data is None else {"content-type": "application/json"},
            ),
            timeout=timeout_s,
            context=self._context,
        )

    def exit_status(self) -> int | None:
        """Return the exit status once the daemon has ended."""
        return self.process.poll() if self.process is not None else 0

    def kill(self) -> None:
        """Send SIGKILL to the daemon and its child processes."""
        self._signal(signal.SIGKILL)
        if self.process is not None:
            self.process.wait(STOP_S)

    def terminate(self) -> None:
        """Send SIGTERM if the daemon runs."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()

    def stop(self) -> int:
        """Send SIGTERM and return the exit status, as `wait_exit` does."""
        self.terminate()
        return self.wait_exit()

    def wait_exit(self) -> int:
        """Wait for the end and return the exit status.

        Raises
        ------
        RuntimeError
            If the daemon does not end in time. It is killed; the error has the end of its log, with
            the stacks of its threads.
        """
        if self.process is None:
            return 0
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired as error:
            self.process.send_signal(signal.SIGABRT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(_DUMP_S)
            self.kill()
            raise RuntimeError(
                f"{self.name} did not end within {STOP_S:.0f} s:\n{self.tail(10 * LOG_TAIL)}"
            ) from error
        self.kill()
        return self.process.returncode

    def tail(self, count: int = LOG_TAIL) -> str:
        """Return the last lines of the log."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join([f"--- {self.name} (exit {self.exit_status()})", *lines[-count:]])

    def release(self) -> None:
        """Release the reserved ports."""
        for port in self._ports:
            port.close()

    def _signal(self, signal_number: signal.Signals) -> None:
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal_number)


class LocalCluster:
    """A cluster of real processes that ends with the block.

    Parameters
    ----------
    storageds, graphds : int
        Number of each.
    folder : Path, optional
        Folder for data and logs; default: a temporary one.
    flags : mapping
        Additional flags by role: ``{"storaged": ["--memory-limit-mib", "64"]}``.
    environment : mapping
        Variables of every process, in addition to this process's.
    proxies : bool
        Connect each storaged to metad through a proxy that a test can interrupt:
        ``proxies["storaged-0"]``.
    relay : bool
        Connect storageds to metad through a `FaultyRelay`: ``relay.is_faulty``.
    faults : bool
        Let a test inject faults into a daemon: ``faults["storaged-0"].set(...)``.
    data : mapping
        Data folders, by daemon, that are not under ``folder``.
    allowed : sequence of str, optional
        Addresses that jobs may name; None: the folder's siblings, which are the other temporary
        folders of the test run, or the cluster's own temporary folder.
    fast : bool
        Use short heartbeat intervals, and shorter ones if ``flags`` of metad have ``--lease-s``;
        False: use the daemons' default.
    cold : bool
        Execute daemons instead of forking them from the zygote, for tests that measure memory.
    tls : bool
        Use mutual TLS on every port, with certificates of the cluster's own `authority`.
    mutants : collection of str, or mapping
        Names of mutants of `tests.mutants.catalogue` to plant in the daemons that import their
        modules, or in those of the given roles: ``{"storaged": ["stale totals"]}``. Their child
        processes have them too. Kernels are interpreted if a mutant needs that.

    Raises
    ------
    LookupError
        If a mutant is unknown, or no longer fits the sources.
    ValueError
        If no daemon of the roles imports a mutant's module, or together with ``faults``, because
        an interpreter has only one startup module.
    """

    def __init__(
        self,
        storageds: int = 3,
        graphds: int = 1,
        *,
        folder: Path | None = None,
        flags: Mapping[str, Sequence[str]] | None = None,
        environment: Mapping[str, str] | None = None,
        proxies: bool = False,
        relay: bool = False,
        faults: bool = False,
        data: Mapping[str, Path] | None = None,
        allowed: Sequence[str] | None = None,
        fast: bool = True,
        cold: bool = False,
        tls: bool = False,
        mutants: Collection[str] | Mapping[str, Collection[str]] = (),
    ) -> None:
        if faults and mutants:
            raise ValueError("faults and mutants: expected one of them; start two clusters")
        self._environments = self._environments_by_role(environment or {}, mutants)
        self._temporary = (
            tempfile.TemporaryDirectory(prefix="asterism-cluster-") if folder is None else None
        )
        self.folder = folder or Path(self._temporary.name if self._temporary else "")
        self._extra_flags = flags or {}
        self._context: ssl.SSLContext | None = None
        self._tls_flags: Sequence[str] = ()
        self.tls: asterism.TlsOptions | None = None
        """TLS of clients; None without TLS."""
        if tls:
            self._create_certificates()
        if allowed is None:
            allowed = [f"file://{self.folder if folder is None else folder.absolute().parent}"]
        self._allowed = ("--allowed-addresses", ",".join(allowed))
        self._clients: list[asterism.Client] = []
        self.daemons: dict[str, Daemon] = {}
        self._folders: dict[str, Path] = {}
        usual = (
            FAST_HEARTBEATS
            if "--lease-s" in self._extra_flags.get("metad", ())
            else _USUAL_HEARTBEATS
        )
        heartbeat_flags = usual if fast else ()
        metad = self._add("metad", "metad", (data or {}).get("metad", self.folder / "metad"))
        self.proxies: dict[str, CuttableProxy] = {}
        self.relay = FaultyRelay(metad.address) if relay else None
        self.faults: dict[str, Faults] = {}
        for i in range(storageds):
            name = f"storaged-{i}"
            address = self.relay.address if self.relay is not None else metad.address
            if proxies:
                self.proxies[name] = CuttableProxy(metad.address)
                address = self.proxies[name].address
            self._add(
                name,
                "storaged",
                (data or {}).get(name, self.folder / name),
                "--metad",
                address,
                *heartbeat_flags,
            )
        for i in range(graphds):
            self._add(f"graphd-{i}", "graphd", None, "--metad", metad.address, *heartbeat_flags)
        for name, daemon in self.daemons.items() if faults else ():
            self.faults[name] = Faults(self.folder / f"{name}.faults.json")
            daemon.environment = self.faults[name].add_to_environment(daemon.environment)
        for daemon in self.daemons.values():
            daemon.cold = cold

    def __enter__(self) -> Self:
        try:
            for daemon in self.daemons.values():
                daemon.start()
            self.wait_ready()
        except BaseException as error:
            error.add_note(self.logs())
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            error.add_note(self.logs())
        self.close()

    def __getitem__(self, name: str) -> Daemon:
        return self.daemons[name]

    @property
    def addresses(self) -> str:
        """Addresses of all graphds, in the format of `asterism.connect`."""
        return ",".join(
            daemon.address for name, daemon in self.daemons.items() if name.startswith("graphd")
        )

    def client(self, *, timeout_s: float = HANG_S, direct: bool = False) -> asterism.Client:
        """Return a client of all graphds; closed with the cluster.

        With ``direct``, the client also calls the storageds.
        """
        client = asterism.connect(
            self.addresses, timeout_s=timeout_s, direct=direct, tls=self.tls or False
        )
        self._clients.append(client)
        return client

    def kill(self, name: str) -> None:
        """Send SIGKILL to a daemon."""
        self.daemons[name].kill()

    def restart(self, name: str) -> None:
        """Restart a daemon on its folder and ports, and wait until it is ready."""
        self.daemons[name].start()
        self.wait_ready()

    def folder_of(self, name: str) -> Path:
        """Return the data folder of a daemon."""
        return self._folders[name]

    def wait_ready(self) -> None:
        """Wait until all running daemons are ready and all storageds have reported to metad."""
        pending = [daemon for daemon in self.daemons.values() if daemon.exit_status() is None]

        def all_ready() -> bool:
            for daemon in pending:
                if daemon.exit_status() is not None:
                    raise RuntimeError(
                        f"{daemon.name} ended with {daemon.exit_status()} before it was ready"
                    )
            pending[:] = [daemon for daemon in pending if not daemon.is_ready()]
            return not pending

        wait_until(
            all_ready,
            lambda: f"{', '.join(daemon.name for daemon in pending)} are ready",
            poll_interval_s=_POLL_INTERVAL_S,
        )
        storageds = {
            daemon.address
            for name, daemon in self.daemons.items()
            if name.startswith("storaged") and daemon.exit_status() is None
        }
        with asterism.connect(self.addresses, tls=self.tls or False, timeout_s=HANG_S) as client:
            wait_until(
                lambda: storageds <= _online_addresses(client),
                f"metad has heard all of {sorted(storageds)}",
                poll_interval_s=_POLL_INTERVAL_S,
            )

    def get(self, name: str, path: str) -> Any:
        """Return the JSON reply of a daemon over HTTP."""
        with self.daemons[name].open_url(path) as reply:
            return json.load(reply)

    def all_ready(self) -> bool:
        """Return whether every daemon reports that it is ready."""
        return all(daemon.is_ready() for daemon in self.daemons.values())

    def missing(self, name: str) -> str:
        """Return what a daemon reports as missing before it can serve; empty if it is ready."""
        try:
            with self.daemons[name].open_url("/readyz"):
                return ""
        except urllib.error.HTTPError as error:
            with error:
                return error.read().decode()

    def logs(self) -> str:
        """Return the end of every log."""
        return "\n".join(daemon.tail() for daemon in self.daemons.values())

    def close(self) -> None:
        """Stop all daemons, those of one role together.

        graphds stop first and metad last, so that no daemon logs errors about the others.
        """
        for client in self._clients:
            client.close()
        for role in ("graphd", "storaged", "metad"):
            daemons = [daemon for name, daemon in self.daemons.items() if name.startswith(role)]
            for daemon in daemons:
                daemon.terminate()
            for daemon in daemons:
                daemon.wait_exit()
                daemon.release()
        for proxy in self.proxies.values():
            proxy.close()
        if self.relay is not None:
            self.relay.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    def _add(self, name: str, role: str, data: Path | None, *arguments: str) -> Daemon:
        own_arguments = ["--data", str(data)] if data is not None else []
        own_arguments += self._allowed if role in ("metad", "storaged") else []
        if data is not None:
            self._folders[name] = data
        self.daemons[name] = Daemon(
            name,
            [role, *own_arguments, *self._tls_flags, *arguments, *self._extra_flags.get(role, ())],
            self.folder,
            self._environments[role],
            self._context,
        )
        return self.daemons[name]

    def _create_certificates(self) -> None:
        # The environments of other frameworks lack the library that makes certificates.
        from tests.kit.certificates import Authority

        self.authority = Authority(self.folder / "certificates")
        files, client = self.authority.issue("daemon"), self.authority.issue("client")
        ca = str(self.authority.file)
        self._tls_flags = [
            *("--tls-cert", str(files.cert), "--tls-key", str(files.key)),
            *("--tls-ca", ca, "--tls-client-auth", "required"),
        ]
        self.tls = asterism.TlsOptions(ca=ca, cert=str(client.cert), key=str(client.key))
        self._context = self.context()

    def context(self) -> ssl.SSLContext:
        """Return a context of a client that the daemons accept."""
        assert self.tls is not None, "a cluster without TLS"
        context = ssl.create_default_context(cafile=self.tls.ca)
        context.load_cert_chain(self.tls.cert, self.tls.key)
        return context

    @staticmethod
    def _environments_by_role(
        environment: Mapping[str, str], mutants: Collection[str] | Mapping[str, Collection[str]]
    ) -> dict[str, dict[str, str]]:
        names = planting.names_by_role(mutants)
        # The child inherits this environment.
        inherited = {**os.environ, **environment}  # noqa: TID251
        return {
            role: {
                **environment,
                **(planting.environment_of(names[role], inherited) if role in names else {}),
            }
            for role in ("metad", "storaged", "graphd")
        }
