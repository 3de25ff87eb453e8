from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.kit.waiting import HANG_S

from asterism_daemonkit.daemon_identity import FILE_NAME, open_folder
from asterism_proto.errors import Conflict, Corrupt


def test_a_folder_keeps_its_uuid_and_counts_its_starts(tmp_path: Path) -> None:
    first = open_folder(tmp_path / "new" / "folder", "storaged")
    first.release()
    second = open_folder(tmp_path / "new" / "folder", "storaged")
    second.release()
    assert first.uuid == second.uuid
    assert (first.incarnation, second.incarnation) == (1, 2)


def test_second_process_on_a_folder_is_refused(tmp_path: Path) -> None:
    identity = open_folder(tmp_path, "metad")
    script = (
        "import sys, pathlib; from asterism_daemonkit.daemon_identity import open_folder; "
        "open_folder(pathlib.Path(sys.argv[1]), 'metad')"
    )
    completed = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    identity.release()
    assert "Conflict" in completed.stderr
    assert str(tmp_path) in completed.stderr
    reopened = open_folder(tmp_path, "metad")
    assert reopened.incarnation == identity.incarnation + 1
    reopened.release()


def test_a_folder_of_another_role_is_refused(tmp_path: Path) -> None:
    open_folder(tmp_path, "metad").release()
    with pytest.raises(Conflict, match="belongs to a metad, not to a storaged"):
        open_folder(tmp_path, "storaged")
    open_folder(tmp_path, "metad").release()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"uuid": "x"}'])
def test_a_torn_identity_is_corrupt_and_the_folder_stays_free(
    tmp_path: Path, content: bytes
) -> None:
    open_folder(tmp_path, "metad").release()
    original = (tmp_path / FILE_NAME).read_bytes()
    (tmp_path / FILE_NAME).write_bytes(content)
    with pytest.raises(Corrupt, match=FILE_NAME):
        open_folder(tmp_path, "metad")
    (tmp_path / FILE_NAME).write_bytes(original)
    open_folder(tmp_path, "metad").release()


@pytest.mark.parametrize(
    ("role", "remedy"),
    [
        ("storaged", '"role": "storaged"}'),
        ("metad", "remove the file"),
        ("graphd", "restore it from a backup"),
    ],
)
def test_a_torn_identity_is_named_with_its_remedy(tmp_path: Path, role: str, remedy: str) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"{")
    with pytest.raises(Corrupt) as excinfo:
        open_folder(tmp_path, role)
    assert excinfo.value.message.startswith(f"{tmp_path / FILE_NAME}: cannot be read (")
    assert remedy in excinfo.value.message


def test_copied_folder_keeps_its_incarnation_until_accepted(tmp_path: Path) -> None:
    original = open_folder(tmp_path / "original", "storaged", fenced=True)
    shutil.copytree(tmp_path / "original", tmp_path / "copy")
    for _ in range(2):
        copy = open_folder(tmp_path / "copy", "storaged", fenced=True)
        assert (copy.uuid, copy.incarnation, copy.is_copy) == (
            original.uuid,
            original.incarnation,
            True,
        )
        copy.release()
    copy.confirm()
    accepted = open_folder(tmp_path / "copy", "storaged", fenced=True)
    assert (accepted.incarnation, accepted.is_copy) == (original.incarnation + 1, False)
    accepted.release()
    original.release()
    reopened = open_folder(tmp_path / "original", "storaged", fenced=True)
    assert (reopened.incarnation, reopened.is_copy) == (original.incarnation + 1, False)
    reopened.release()


def test_moved_folder_is_not_a_copy(tmp_path: Path) -> None:
    first = open_folder(tmp_path / "old", "storaged", fenced=True)
    first.release()
    (tmp_path / "old").rename(tmp_path / "new")
    second = open_folder(tmp_path / "new", "storaged", fenced=True)
    second.release()
    assert (second.incarnation, second.is_copy) == (2, False)


def test_identity_without_a_location_is_not_a_copy(tmp_path: Path) -> None:
    """Earlier releases wrote such identities; so may a manual edit."""
    (tmp_path / FILE_NAME).write_text('{"uuid": "x", "incarnation": 4, "role": "storaged"}')
    first = open_folder(tmp_path, "storaged", fenced=True)
    first.release()
    assert (first.incarnation, first.is_copy) == (5, False)
