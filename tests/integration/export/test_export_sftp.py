"""Sending partitions to machines by SFTP: each gets its own, complete and verified."""

from __future__ import annotations

import hashlib
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.integration.export.test_export_resumed import graph, manifest
from tests.kit.sftp import PASSWORD, SftpServer
from tests.kit.waiting import HANG_S

from asterism import export
from asterism_io import remote_storage
from asterism_proto.errors import Corrupt, Unavailable


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Yield the address of a machine and the local folder that acts as its disk."""
    (root := tmp_path / "disk").mkdir()
    with SftpServer(root) as server:
        yield f"sftp://me:{PASSWORD}@127.0.0.1:{server.port}", root
        from fsspec.implementations.sftp import SFTPFileSystem

        for filesystem in SFTPFileSystem._cache.values():
            filesystem.client.close()
        SFTPFileSystem.clear_instance_cache()


def dispatch_target(tmp_path: Path, machine: str) -> tuple[str, Path]:
    """Return an address template and the file that lists its machines."""
    (tmp_path / "ip_config.txt").write_text("127.0.0.1\n")
    return machine.replace("127.0.0.1", "{host}") + "/data/shop", tmp_path / "ip_config.txt"


def test_sftp_machine_gets_its_parts_and_they_verify(
    tmp_path: Path, machine: tuple[str, Path]
) -> None:
    address, machines = dispatch_target(tmp_path, machine[0])
    report = export.dgl(graph(), address, parts=2, ip_config=machines, scratch=tmp_path / "scratch")
    assert PASSWORD not in str(report)
    export.dgl(graph(), tmp_path / "here", parts=2)
    remote_root = machine[1] / "data/shop"
    for path, entry in manifest(tmp_path / "here")["files"].items():
        if path.startswith("part"):
            assert hashlib.sha256((remote_root / path).read_bytes()).hexdigest() == entry["sha256"]
    assert json.loads((remote_root / "manifest.json").read_text())["dispatched"] == [0, 1]
    verification = export.verify(address, ip_config=machines)
    assert (verification.problems, verification.verified) == ((), (0, 1))
    assert not export.dispatch(tmp_path / "here", address, ip_config=machines).places[0].copied
    (remote_root / "part1/graph.dgl").write_bytes(b"torn")
    assert any(
        "part1/graph.dgl" in problem
        for problem in export.verify(address, ip_config=machines).problems
    )


def test_interrupted_sftp_upload_is_hidden_and_can_resume(
    tmp_path: Path, machine: tuple[str, Path]
) -> None:
    address, machines = dispatch_target(tmp_path, machine[0])
    export.dgl(graph(), tmp_path / "here", parts=2)
    damaged = tmp_path / "here/part1/graph.dgl"
    content = damaged.read_bytes()
    damaged.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(Exception, match=r"part1/graph\.dgl"):
        export.dispatch(tmp_path / "here", address, ip_config=machines)
    remote_root = machine[1] / "data/shop"
    assert not (remote_root / "part1/graph.dgl").exists()
    assert not (remote_root / "manifest.json").exists()
    damaged.write_bytes(content)
    export.dispatch(tmp_path / "here", address, ip_config=machines)
    assert export.verify(address, ip_config=machines).ok
    assert not list(remote_root.rglob("*.making"))


def test_sftp_connection_errors_hide_the_password(
    tmp_path: Path, machine: tuple[str, Path]
) -> None:
    export.dgl(graph(), tmp_path / "here", parts=2)
    for address in (machine[0].replace(PASSWORD, "wrongword"), f"sftp://me:{PASSWORD}@127.0.0.1:1"):
        with pytest.raises(Unavailable) as refused:
            export.dispatch(tmp_path / "here", address + "/data/{part}")
        assert "wrongword" not in str(refused.value)
        assert PASSWORD not in str(refused.value)


@pytest.mark.parametrize(
    "accepts", [True, False], ids=["that accepts and is silent", "that does not even accept"]
)
def test_connecting_to_a_silent_machine_times_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, accepts: bool
) -> None:
    monkeypatch.setattr(remote_storage, "_CONNECT_TIMEOUT_S", 0.5)
    with ExitStack() as stack, socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(16 if accepts else 0)
        if not accepts:  # a full accept queue drops new connections, as a firewall does
            for _ in range(4):
                connecting = stack.enter_context(socket.socket())
                connecting.setblocking(False)
                connecting.connect_ex(silent.getsockname())
        with pytest.raises(Unavailable, match="cannot be reached"):
            remote_storage.RemoteFolder(
                f"sftp://me:{PASSWORD}@127.0.0.1:{silent.getsockname()[1]}/data"
            )


def test_machine_that_stalls_in_mid_file_times_out(
    machine: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = remote_storage.RemoteFolder(machine[0] + "/data", timeout_s=0.5)
    file = folder.put("one", b"1" * 100)
    assert folder.read("one") == b"1" * 100
    release = threading.Event()
    monkeypatch.setattr("tests.kit.sftp._Files.open", lambda *_: release.wait(HANG_S))
    with pytest.raises(Unavailable, match="data/one: "):
        folder.read_file(file)
    release.set()


def test_damage_errors_name_the_kind_of_data(tmp_path: Path) -> None:
    for kind in ("backup", "export"):
        folder = remote_storage.RemoteFolder(f"file://{tmp_path}", content_name=kind)
        file = folder.put("one", b"whole")
        (tmp_path / "one").write_bytes(b"other")
        with pytest.raises(
            Corrupt,
            match=(
                "one: expected the 5 bytes that were written, found 5 bytes that differ; the "
                f"{kind} is damaged"
            ),
        ):
            folder.read_file(file)
        (tmp_path / "one").unlink()
        with pytest.raises(Corrupt, match=f"one: missing; the {kind} is damaged"):
            folder.read_file(file)
