"""Tests that manifests with invalid names, numbers and paths are refused when read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from asterism_io.remote_storage import RemoteFolder, StoredFile
from asterism_model.backup_manifest import BackupManifest, PartManifest
from asterism_proto.errors import AsterismError, Corrupt

INVALID_NAMES = [
    "",
    "/etc/passwd",
    "..",
    "../x",
    "parts/../../x",
    "parts/p00001/image/..",
    "parts//x",
    "parts/./x",
    "parts/x/",
    "parts\\..\\x",
    "..\\x",
    "parts/a\x00b",
    "parts/a\nb",
    "parts/" + "a" * 600,
]
FILE = StoredFile(path="parts/p00001/image/x", bytes=4, sha256="ab")


def record(**changes: Any) -> bytes:
    fields = {"space": "s", "version": 3, "digest": "d", "cut": 7, "parts": 2, "created_ms": 1}
    files = [{"path": FILE.path, "bytes": FILE.bytes, "sha256": FILE.sha256}]
    return json.dumps({"format": 1, **fields, "files": files, **changes}).encode()


def part(**changes: Any) -> bytes:
    files = [{"path": FILE.path, "bytes": FILE.bytes, "sha256": FILE.sha256}]
    return json.dumps({"part": 1, "cut": 7, "image": "i", "files": files, **changes}).encode()


@pytest.mark.parametrize(
    ("read", "content"), [(BackupManifest.from_bytes, record), (PartManifest.from_bytes, part)]
)
def test_a_foreign_record_is_bounded(
    read: Callable[[bytes], Any], content: Callable[..., bytes]
) -> None:
    assert read(content()).files == (FILE,)
    entry = {"path": FILE.path, "bytes": 4, "sha256": "ab"}
    numbers: list[Any] = [-1, 1 << 63, 1 << 5000, 1.5, "1", True, None, [], float("inf")]
    changes: list[dict[str, Any]] = [{"cut": number} for number in numbers]
    changes += [{"files": [{**entry, "bytes": number}]} for number in [*numbers, 1 << 51]]
    changes += [{"files": [{**entry, "path": name}]} for name in [*INVALID_NAMES, 1, None]]
    changes += [{"files": [{**entry, "sha256": text}]} for text in (1, None, "a" * 2000)]
    changes += [{"files": files} for files in (None, {}, "x", [1], [None], [entry, entry], [{}])]
    changes += [{name: number} for number in (-1, 1 << 20, "1") for name in ("part", "parts")]
    changes += [{"image": 1, "digest": 1}, {"image": "a" * 2000, "space": "a" * 2000}]
    for change in changes:
        if set(change) & set(json.loads(content())):
            with pytest.raises(Corrupt):
                read(content(**change))
    for raw in (b"", b"[" * 100_000, b"{", b"\xff\xfe", b"null", b'{"files": ' + b"[" * 100_000):
        with pytest.raises(Corrupt):
            read(raw)


def test_part_lists_only_files_of_its_own_folder() -> None:
    for path in ("catalog.pb", "parts/p00002/image/x", "parts/p000011/x"):
        with pytest.raises(Corrupt, match=r"not in parts/p00001"):
            PartManifest.from_bytes(part(files=[{"path": path, "bytes": 4, "sha256": "ab"}]))


def test_confined_remote_folder_opens_no_outside_file(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root / "parts", outside):
        folder.mkdir(parents=True)
    for path in (outside / "secret", root / "parts/real"):
        path.write_bytes(b"four")
    (root / "linked").symlink_to(outside)
    (root / "parts/link").symlink_to(outside / "secret")
    (root / "parts/dangling").symlink_to(outside / "new")
    (root / "parts/new.making").symlink_to(outside / "secret")
    os.mkfifo(root / "parts/pipe")
    remote_folder = RemoteFolder(f"file://{root}", confined=True)
    assert remote_folder.read("parts/real") == b"four"
    for name in (*INVALID_NAMES, "linked/secret", "parts/link", "parts/pipe", "parts"):
        for operation in (
            remote_folder.read,
            remote_folder.size,
            lambda name: list(
                remote_folder.read_pieces(StoredFile(path=name, bytes=4, sha256="ab"))
            ),
        ):
            with pytest.raises(Corrupt):
                operation(name)
    for name in (*INVALID_NAMES, "linked/new", "parts/dangling", "parts/link"):
        with pytest.raises(Corrupt):
            remote_folder.put(name, b"evil")
    with pytest.raises(AsterismError):
        remote_folder.put("parts/new", b"evil")
    assert sorted(path.name for path in outside.iterdir()) == ["secret"]
    assert (outside / "secret").read_bytes() == b"four"
    for name in (*INVALID_NAMES, "linked/secret", "parts/link"):
        with pytest.raises(Corrupt):
            remote_folder.remove(name)
    assert (outside / "secret").exists()


def test_file_is_read_no_further_than_its_recorded_size(tmp_path: Path) -> None:
    (tmp_path / "long").write_bytes(bytes(5 << 20))
    remote_folder = RemoteFolder(f"file://{tmp_path}", confined=True)
    pieces = remote_folder.read_pieces(StoredFile(path="long", bytes=10, sha256="ab"))
    assert len(next(pieces)) == 1 << 20
    with pytest.raises(Corrupt, match="expected the 10 bytes"):
        next(pieces)
    with pytest.raises(Corrupt, match="expected at most 100"):
        remote_folder.read("long", limit=100)
    with pytest.raises(Corrupt, match="the record says"):
        remote_folder.read_file(StoredFile(path="long", bytes=1 << 40, sha256="ab"))
