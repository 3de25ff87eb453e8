"""Job addresses on real daemons: only allowed ones are opened.

A silent endpoint does not block the queue.
"""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S

import asterism
from asterism import Client, InvalidRequest
from asterism_model.backup_manifest import MANIFEST_FILE, BackupManifest

LIMIT_S = HANG_S
BUCKET = "s3://silent"


class SilentServer:
    """Server that accepts connections and never answers."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.connections: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self.connections.append(self._socket.accept()[0])

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(HANG_S)
        for connection in self.connections:
            connection.close()


@pytest.fixture(scope="module")
def silent_server() -> Iterator[SilentServer]:
    server = SilentServer()
    yield server
    server.close()


@pytest.fixture(scope="module")
def cluster(
    silent_server: SilentServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalCluster]:
    folder = tmp_path_factory.mktemp("cluster")
    environment = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{silent_server.port}",
        "AWS_ACCESS_KEY_ID": "AKIATESTTESTTESTTEST",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    flags = {"metad": ["--max-attempts", "1"], "storaged": ["--remote-timeout-s", "2"]}
    allowed = [
        f"file://{folder}/allowed",
        f"file://{folder}/storaged-0",
        BUCKET,
        f"sftp://127.0.0.1:{silent_server.port}",
    ]
    with LocalCluster(
        1, 1, folder=folder, environment=environment, flags=flags, allowed=allowed
    ) as running:
        client = running.client()
        client.create_space("small", {"nodes": {"n": {"weighted": True}}, "parts": 2})
        graph = client.graph("small")
        graph.upsert_nodes(np.arange(100), "n", weights=np.arange(100) + 1)
        graph.build(timeout_s=LIMIT_S)
        yield running


@pytest.fixture
def client(cluster: LocalCluster) -> Client:
    return cluster.client()


@pytest.mark.parametrize(
    ("kind", "key"), [("backup", "to"), ("export-tables", "to"), ("restore", "from")]
)
def test_no_job_opens_an_address_that_is_not_allowed(
    cluster: LocalCluster, client: Client, tmp_path: Path, kind: str, key: str
) -> None:
    target = tmp_path / "target"
    more = {"sha256": "0" * 64} if kind == "restore" else {}
    before = len(client.jobs(limit=100))
    for address in (
        f"file://{target}",
        f"file:///{cluster.folder}/allowed/../x",
        f"memory://{target}",
        f"simplecache::file://{target}",
        "ftp://h/x",
    ):
        with pytest.raises(InvalidRequest, match=rf"^{key}=.*expected"):
            client.submit_job("small", kind, options={key: address, **more})
    (cluster.folder / "allowed").mkdir(exist_ok=True)
    link = cluster.folder / f"allowed/{kind}"
    link.symlink_to(tmp_path)
    with pytest.raises(InvalidRequest, match="allowed_addresses of metad"):
        client.submit_job("small", kind, options={key: f"file://{link}/target", **more})
    assert len(client.jobs(limit=100)) == before
    assert not target.exists()


def test_a_refused_restore_leaves_no_space(
    cluster: LocalCluster, client: Client, tmp_path: Path
) -> None:
    allowed = cluster.folder / "allowed/kept"
    client.backup("small", allowed, timeout_s=LIMIT_S)
    allowed.rename(tmp_path / "moved")
    with pytest.raises(InvalidRequest, match=r"^from="):
        client.restore(tmp_path / "moved", "copy", timeout_s=LIMIT_S)
    assert "copy" not in {space.name for space in client.spaces()}
    (tmp_path / "moved").rename(allowed)
    assert client.restore(allowed, "copy", timeout_s=LIMIT_S).version == 1
    client.drop_space("copy")


def test_a_storaged_checks_for_itself(cluster: LocalCluster, client: Client) -> None:
    # metad does not know where a storaged keeps its data.
    inside = cluster.folder / "allowed/inside"
    inside.parent.mkdir(exist_ok=True)
    job = client.submit_job("small", "export-tables", options={"to": f"file://{inside}"})
    assert client.wait(job.job_id, timeout_s=LIMIT_S).state == "FINISHED"
    data = cluster.folder_of("storaged-0")
    for kind in ("backup", "export-tables"):
        job = client.submit_job("small", kind, options={"to": f"file://{data}/spaces"})
        job = client.wait(job.job_id, timeout_s=LIMIT_S)
        assert (job.state, "outside of the data folder of this storaged" in job.cause) == (
            "FAILED",
            True,
        ), job
        assert sorted(path.name for path in (data / "spaces").iterdir()) == ["1"]


def test_a_hostile_backup_is_refused(cluster: LocalCluster, client: Client, tmp_path: Path) -> None:
    folder = cluster.folder / "allowed/hostile"
    client.backup("small", folder, timeout_s=LIMIT_S)
    content = (folder / MANIFEST_FILE).read_bytes()
    name = next(
        file.path
        for file in BackupManifest.from_bytes(content).files
        if file.path.endswith("/blocks.bin")
    )
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    for evil in ("../secret", str(secret), "parts/p00000/image/../../x", "parts\\..\\x"):
        (folder / MANIFEST_FILE).write_bytes(
            content.replace(json.dumps(name).encode(), json.dumps(evil).encode())
        )
        with pytest.raises(asterism.Corrupt, match="below the folder"):
            client.restore(folder, "hostile", timeout_s=LIMIT_S)
    (folder / MANIFEST_FILE).write_bytes(content)
    (folder / name).rename(folder / "aside")
    (folder / name).symlink_to(secret)
    with pytest.raises(asterism.Corrupt, match="symbolic link"):
        client.restore(folder, "hostile", timeout_s=LIMIT_S)
    (folder / name).unlink()
    (folder / "aside").rename(folder / name)
    assert client.restore(folder, "hostile", timeout_s=LIMIT_S).version == 1
    client.drop_space("hostile")


@pytest.mark.parametrize("address", [f"{BUCKET}/x", "sftp"])
@pytest.mark.parametrize("kind", ["backup", "export-tables"])
def test_a_silent_endpoint_does_not_block_the_queue(
    silent_server: SilentServer, client: Client, kind: str, address: str
) -> None:
    target = f"sftp://me@127.0.0.1:{silent_server.port}/x" if address == "sftp" else address
    before = len(silent_server.connections)
    job = client.submit_job("small", kind, options={"to": target})
    following = client.submit_job("small", "compact")
    job = client.wait(job.job_id, timeout_s=LIMIT_S)
    assert (job.state, len(silent_server.connections) > before) == ("FAILED", True), job
    assert target.replace("me@", "***@") in job.cause, job.cause
    assert client.wait(following.job_id, timeout_s=LIMIT_S).state == "FINISHED"


# A server in one process.


def serve(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "asterism.cli", "--json", "serve", str(folder), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def test_served_folder_opens_only_allowed_addresses(tmp_path: Path) -> None:
    process = serve(
        tmp_path / "folder",
        "--listen",
        "0.0.0.0:0",
        "--insecure",
        "--http-listen",
        "127.0.0.1:0",
        "--allow-address",
        f"file://{tmp_path}/allowed",
    )
    try:
        assert process.stdout is not None
        endpoints = json.loads(process.stdout.readline())
        port, http_port = (
            endpoints[name].rpartition(":")[2] for name in ("address", "http_address")
        )
        with asterism.connect(f"127.0.0.1:{port}", timeout_s=HANG_S) as client:
            client.create_space("n", {"nodes": {"n": {}}, "parts": 1})
            graph = client.graph("n")
            graph.upsert_nodes([1], "n")
            graph.build(timeout_s=LIMIT_S)
            assert client.backup("n", tmp_path / "allowed/kept", timeout_s=LIMIT_S).version == 1
            with pytest.raises(InvalidRequest, match=r"^to="):
                client.backup("n", tmp_path / "kept", timeout_s=LIMIT_S)
        body = {"space": "n", "kind": "backup", "options": {"to": f"file://{tmp_path}/kept"}}
        request = urllib.request.Request(
            f"http://127.0.0.1:{http_port}/api/v1/jobs",
            json.dumps(body).encode(),
            {"content-type": "application/json"},
        )
        with pytest.raises(urllib.error.HTTPError, match="400") as raised:
            urllib.request.urlopen(request, timeout=HANG_S)
        raised.value.close()
        assert not (tmp_path / "kept").exists()
    finally:
        process.terminate()
        process.wait(HANG_S)
        if process.stdout is not None:
            process.stdout.close()
