"""A cluster of containers from `docker-compose.yml`, with `LocalCluster`'s interface."""

from __future__ import annotations

import contextlib
import fcntl
import json
import subprocess
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import asterism
from tests.kit import reaper
from tests.kit.waiting import HANG_S, wait_until

STORAGEDS = ("storaged-0", "storaged-1", "storaged-2")
GRAPHDS = ("graphd-0", "graphd-1")
BUILD_S, UP_S = 3600, 900


PUBLISHED = {
    "METAD_HTTP_PORT": ("metad", 19559),
    "GRAPHD_0_PORT": ("graphd-0", 9669),
    "GRAPHD_0_HTTP_PORT": ("graphd-0", 19669),
    "GRAPHD_1_PORT": ("graphd-1", 9669),
    "GRAPHD_1_HTTP_PORT": ("graphd-1", 19669),
}
"""Variables of the compose file for host ports, by (service, port in its container)."""


@contextlib.contextmanager
def sole_build(root: Path) -> Iterator[None]:
    """Let one process at a time build the image of a checkout: others then reuse its layers.

    The engine has no layers to reuse for builds that run at the same time: each would install the
    packages and compile the kernels.
    """
    with (root / "Dockerfile").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class ComposeCluster:
    """The compose file's cluster on its own ports; removed with its volumes after the block.

    Parameters
    ----------
    root : Path
        The checkout.
    command : list of str
        Command of compose: ``["docker", "compose"]`` or ``["docker-compose"]``.
    folder : Path
        Folder of its environment file.
    """

    def __init__(self, root: Path, command: list[str], folder: Path) -> None:
        self.ports: dict[str, int] = {}
        """Host ports, which the engine picks, by variable of the compose file."""
        environment = folder / "ports.env"
        environment.write_text("".join(f"{name}=0\n" for name in PUBLISHED))
        self.root = root
        self._command = [
            *command,
            "-f",
            str(root / "docker-compose.yml"),
            "-p",
            f"asterism-test-{uuid.uuid4().hex[:12]}",
            "--env-file",
            str(environment),
        ]
        self._cleanup = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with sole_build(self.root):
            self.compose("build", "--quiet", timeout_s=BUILD_S)
        # Containers are children of the engine, not of this process.
        self._cleanup.enter_context(
            reaper.start().on_end(*self._command, "down", "-v", "--timeout", "1")
        )
        try:
            self.compose("up", "-d", timeout_s=UP_S)
            self.ports = {name: self._port(*published) for name, published in PUBLISHED.items()}
            self.wait_ready()
        except BaseException as error:
            error.add_note(self.logs())
            self.down()
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
        self.down()

    def compose(self, *arguments: str, timeout_s: float = 600) -> str:
        """Run a compose command and return its output; errors include its stderr."""
        done = subprocess.run(
            [*self._command, *arguments],
            cwd=self.root,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(
                f"compose {' '.join(arguments)}: exit code "
                f"{done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
            )
        return done.stdout

    def logs(self) -> str:
        """Return the end of the logs of all containers."""
        return self.compose("logs", "--no-color", "--tail", "40")

    def down(self) -> None:
        """Remove containers and volumes."""
        self.compose("down", "-v", "--timeout", "10")
        self._cleanup.close()

    def _port(self, service: str, port: int) -> int:
        """Return the host port that is mapped to a port of a service."""
        return int(self.compose("port", service, str(port)).strip().rpartition(":")[2])

    def wait_ready(self) -> None:
        """Wait until every endpoint reports that it is ready, and every storaged is online."""
        pending = {
            "metad": self.metad_url(),
            **{name: self.graphd_url(i) for i, name in enumerate(GRAPHDS)},
        }

        def all_ready() -> bool:
            for name, url in list(pending.items()):
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(f"{url}/readyz", timeout=2).close()
                    del pending[name]
            return not pending

        wait_until(
            all_ready,
            lambda: f"{', '.join(pending)} are ready\n{self.compose('ps')}",
            poll_interval_s=0.2,
        )
        with self.client() as client:
            wait_until(
                lambda: (
                    sum(host.online for host in client.hosts() if host.role == "STORAGED")
                    >= len(STORAGEDS)
                ),
                lambda: f"every storaged is online: {client.hosts()}",
                poll_interval_s=0.2,
            )

    def client(self) -> asterism.Client:
        """Return a client of both graphds."""
        return asterism.connect(
            f"127.0.0.1:{self.ports['GRAPHD_0_PORT']},127.0.0.1:{self.ports['GRAPHD_1_PORT']}",
            timeout_s=HANG_S,
        )

    def metad_url(self) -> str:
        """Address of metad's HTTP endpoint."""
        return f"http://127.0.0.1:{self.ports['METAD_HTTP_PORT']}"

    def graphd_url(self, index: int) -> str:
        """Return the address of a graphd's HTTP endpoint."""
        return f"http://127.0.0.1:{self.ports[f'GRAPHD_{index}_HTTP_PORT']}"

    def ask(self, url: str, body: object = None, *, method: str | None = None) -> tuple[int, Any]:
        """Return the status and the JSON of an HTTP reply, for any status."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            url, data, {"Content-Type": "application/json"}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=HANG_S) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as response:
            with response:
                return response.code, json.load(response)
