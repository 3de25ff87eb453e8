"""The target of attacks: daemons with access control in a process of its own.

``python -m tests.kit.hostile.target FOLDER`` runs metad, storaged and graphd until its standard
input ends. It prints addresses and credentials as one line of JSON.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psutil

from asterism_access.roles import Role
from asterism_proto.framing import Frame
from asterism_proto.methods import ACCESS, CATALOG, GRAPH
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from tests.kit.access import AccessCluster, KeyedTransport
from tests.kit.waiting import HANG_S, wait_until

_CREDENTIALS_S = 24 * 3600
"""Life of the credentials in seconds: longer than any attack takes, also on a busy machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Ports and credentials of the target."""

    grpc: Mapping[str, str]
    """host:port by daemon."""
    http: Mapping[str, str]
    binary: str
    handshake_key: int
    reader: str
    """API key of a reader of the space ``shop``."""
    ticket: str
    """Client ticket of the reader, for the storaged."""
    root: str
    """Ticket of an administrator of the cluster."""
    space_ids: Mapping[str, int]
    digest: str
    """Digest of version 1 of ``shop``."""


class Target:
    """A running target.

    Parameters
    ----------
    process : Popen
    addresses : Addresses
    log : Path
    """

    def __init__(self, process: subprocess.Popen[str], addresses: Addresses, log: Path) -> None:
        self.process, self.addresses, self.log = process, addresses, log

    @property
    def resident_bytes(self) -> int:
        """Resident memory of the process in bytes."""
        return int(psutil.Process(self.process.pid).memory_info().rss)

    @property
    def busy_s(self) -> float:
        """Processor time that the process has used, in seconds."""
        times = psutil.Process(self.process.pid).cpu_times()
        return float(times.user + times.system)

    @property
    def open_files(self) -> int:
        """Open file descriptors of the process."""
        return int(psutil.Process(self.process.pid).num_fds())

    def assert_serves(self) -> None:
        """Check that the process is alive and answers its reader on all daemons."""
        assert self.process.poll() is None, self.log.read_text(errors="replace")[-5000:]
        sample = Frame(graphd_pb.SampleNodesRequest(space="shop", types=[0], count=3))
        graphd = KeyedTransport(
            self.addresses.grpc["graphd"], credentials=lambda: self.addresses.reader
        )
        try:
            reply = graphd.call(GRAPH["sample_nodes"], sample, HANG_S)
            assert isinstance(reply, Frame)
            assert len(reply.arrays["ids"]) == 3
        finally:
            graphd.close()

    def state(self) -> str:
        """Return what only administrators may change: spaces, jobs, keys and grants, as text."""
        root = KeyedTransport(self.addresses.grpc["metad"], credentials=lambda: self.addresses.root)
        try:
            return "\n".join(
                str(root.call(method, request, HANG_S))
                for method, request in (
                    (CATALOG["list_spaces"], common_pb.Empty()),
                    (CATALOG["list_jobs"], metad_pb.ListJobsRequest()),
                    (ACCESS["list_api_keys"], metad_pb.ListApiKeysRequest()),
                    (ACCESS["list_grants"], metad_pb.ListGrantsRequest()),
                    (ACCESS["list_access_limits"], metad_pb.ListGrantsRequest()),
                )
            )
        finally:
            root.close()

    def crashes(self) -> list[str]:
        """Return the lines of the log about unexpected exceptions."""
        signs = ("call_crashed", "Traceback", "Exception in ASGI", "Fatal", "Segmentation")
        return [
            line
            for line in self.log.read_text(errors="replace").splitlines()
            if any(s in line for s in signs)
        ]

    def wait_settled(self, most_bytes: int) -> None:
        """Wait until the process is idle and takes at most some bytes of memory."""
        wait_until(
            lambda: self.resident_bytes <= most_bytes,
            lambda: f"{self.resident_bytes >> 20} MiB are at most {most_bytes >> 20} MiB",
            poll_interval_s=0.2,
        )


@contextmanager
def running_target(folder: Path, settings: Mapping[str, Any] | None = None) -> Iterator[Target]:
    """Run a target.

    Parameters
    ----------
    folder : Path
    settings : mapping, optional
        Settings of all daemons, beyond those of `AccessCluster`.
    """
    log = folder / "target.log"
    command = [sys.executable, "-m", "tests.kit.hostile.target", str(folder)]
    with log.open("w") as errors:
        process = subprocess.Popen(
            [*command, json.dumps(settings or {})],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    assert process.stdin is not None
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, log.read_text()[-5000:]
    try:
        yield Target(process, Addresses(**json.loads(line)), log)
    finally:
        process.stdin.close()
        process.wait(HANG_S)
        process.stdout.close()


def _addresses(cluster: AccessCluster) -> Addresses:
    reader = cluster.create_key("rita", shop=Role.READER)
    stream = cluster.storaged._stream
    assert stream is not None
    graphd = KeyedTransport(cluster.address, credentials=lambda: reader)
    routes = wait_until(
        lambda: graphd.call(GRAPH["get_routes"], Frame(graphd_pb.GetRoutesRequest()), HANG_S),
        "routes are known",
    )
    graphd.close()
    assert isinstance(routes, Frame)
    assert isinstance(routes.head, graphd_pb.GetRoutesReply)
    with cluster.connect(cluster.root()) as client:
        digest = client.manifest("shop").digest
    return Addresses(
        grpc={
            "graphd": cluster.address,
            "metad": cluster.metad_address,
            "storaged": f"127.0.0.1:{cluster.storaged.grpc_port}",
        },
        http={
            "graphd": cluster.http_url.removeprefix("http://"),
            "metad": f"127.0.0.1:{cluster.metad.http_port}",
            "storaged": f"127.0.0.1:{cluster.storaged.http_port}",
        },
        binary=f"127.0.0.1:{stream.port}",
        handshake_key=stream.key,
        reader=reader,
        ticket=cluster.key.sign(
            dataclasses.replace(
                cluster.key.verify(routes.head.ticket),
                expires_s=int(time.time()) + _CREDENTIALS_S,
            )
        ),
        root=cluster.key.root_ticket(_CREDENTIALS_S),
        space_ids={name: cluster.space_id(name) for name in ("shop", "bank")},
        digest=digest,
    )


def serve(folder: Path, settings: Mapping[str, Any], standard_input: IO[str]) -> None:
    """Run the daemons until the input ends."""
    cluster = AccessCluster(folder, settings)
    print(json.dumps(dataclasses.asdict(_addresses(cluster))), flush=True)
    standard_input.read()
    started_at = time.monotonic()
    cluster.stop()
    print(f"stopped in {time.monotonic() - started_at:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    serve(Path(sys.argv[1]), json.loads(sys.argv[2]), sys.stdin)
