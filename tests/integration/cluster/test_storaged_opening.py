"""Loading an image may take long without delaying a storaged's other work.

Heartbeats, readiness, tasks and stops do not wait for it. Failed loads are retried.
"""

from __future__ import annotations

import os
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from tests.kit.waiting import HANG_S, wait_until

from asterism_model.schema import NodeType, Schema
from asterism_proto.errors import Stale
from storaged.local_spaces import DesiredSpace, DesiredVersion, LocalSpaces
from storaged.paths import DataPaths
from storaged.store.image_writer import ImageWriter
from storaged.version_loader import VersionLoader

SPACE = DesiredSpace(
    space_id=1,
    name="shop",
    schema=Schema(node_types=(NodeType(name="item"),), parts=1),
    parts=(0,),
    versions=(
        DesiredVersion(
            version=3, job_id=7, digest="d", totals={}, named_totals={}, images={0: "e"}
        ),
    ),
)


def write_image(folder: Path) -> str:
    """Write an image without rows and return its digest."""
    empty = {
        "rows": 0,
        "count": 0,
        "dense": False,
        "table": {"size": 0, "total": 0.0},
        "columns": [],
    }
    return ImageWriter(folder).finish(
        {"part": 0, "parts": 1, "mod": True, "nodes": [empty], "edges": []}
    )


def test_host_stays_ready_while_loading_a_new_version(tmp_path: Path) -> None:
    local_spaces = LocalSpaces(DataPaths(tmp_path))
    (desired,) = SPACE.versions
    try:
        local_spaces.apply([SPACE])
        assert (
            local_spaces.unready()
            == local_spaces.unserved_reasons()
            == ["version 3 of space shop is not served: it waits to be loaded"]
        )
        newer = replace(SPACE, versions=(desired, replace(desired, version=4)))
        local_spaces.apply([newer])
        assert local_spaces.unready() == local_spaces.unserved_reasons()[:1], (
            "version 3 is still to be opened"
        )
        assert len(local_spaces.unserved_reasons()) == 2
        local_spaces.note_fault(SPACE.space_id, newer.versions[1], "it is damaged")
        assert local_spaces.unready() == local_spaces.unserved_reasons(), "version 4 is damaged"
    finally:
        local_spaces.close()
    restarted = LocalSpaces(DataPaths(tmp_path))
    try:
        restarted.apply([newer])
        assert restarted.unready() == restarted.unserved_reasons(), (
            "after a restart all versions are opened before it is ready"
        )
        assert len(restarted.unserved_reasons()) == 2
    finally:
        restarted.close()


def test_space_that_is_not_open_yet_says_when_to_retry(tmp_path: Path) -> None:
    local_spaces = LocalSpaces(DataPaths(tmp_path))
    try:
        with pytest.raises(
            Stale, match=r"space 1 has no partition here.*has spaces \[\]"
        ) as raised:
            local_spaces.store(SPACE.space_id)
        assert 0 < raised.value.retry_after_s < 1
        local_spaces.apply([SPACE])
        assert local_spaces.space(SPACE.space_id) is SPACE
    finally:
        local_spaces.close()


def test_space_that_cannot_be_opened_states_the_reason(tmp_path: Path) -> None:
    paths = DataPaths(tmp_path)
    paths.graph(SPACE.space_id).parent.mkdir(parents=True)
    paths.graph(SPACE.space_id).write_text("not a folder")
    local_spaces = LocalSpaces(paths)
    try:
        local_spaces.apply([SPACE])
        with pytest.raises(Stale, match="space shop cannot be opened") as raised:
            local_spaces.store(SPACE.space_id)
        assert raised.value.retry_after_s == 0, "waiting would not help"
    finally:
        local_spaces.close()


def test_slow_image_does_not_block_other_updates(tmp_path: Path) -> None:
    paths = DataPaths(tmp_path)
    part = paths.build(1, 7) / "parts" / "p00000"
    part.mkdir(parents=True)
    # Simulate a slow disk: reading a pipe blocks until its writer has written.
    os.mkfifo(part / "manifest.json")
    local_spaces, changed = LocalSpaces(paths), threading.Event()
    loader = VersionLoader(local_spaces, paths, verify=True, retry_s=60, on_change=changed.set)
    loader.start()
    try:
        local_spaces.apply([SPACE])
        loader.wake()
        # Returns when the reader has opened the pipe
        writer = os.open(part / "manifest.json", os.O_WRONLY)
        assert local_spaces.versions() == []
        assert local_spaces.unserved_reasons() == [
            "version 3 of space shop is not served: part 0 is being loaded"
        ]
        other = replace(SPACE, space_id=2, name="other", versions=())
        local_spaces.apply([SPACE, other])  # another reply of metad, with new desired state
        assert local_spaces.space(2).name == "other"
        assert not changed.is_set()
        os.write(writer, b"{}")
        os.close(writer)
        assert changed.wait(HANG_S)
        assert (
            f"image file {part / 'manifest.json'}: damaged (KeyError: 'format'); build the "
            "version again"
        ) in local_spaces.unserved_reasons()[0]
    finally:
        loader.stop()
        local_spaces.close()


def test_version_dropped_while_loading_is_not_served(tmp_path: Path) -> None:
    paths = DataPaths(tmp_path)
    part = paths.build(1, 7) / "parts" / "p00000"
    part.mkdir(parents=True)
    os.mkfifo(part / "manifest.json")
    local_spaces, changed = LocalSpaces(paths), threading.Event()
    loader = VersionLoader(local_spaces, paths, verify=True, retry_s=60, on_change=changed.set)
    loader.start()
    try:
        local_spaces.apply([SPACE])
        loader.wake()
        writer = os.open(part / "manifest.json", os.O_WRONLY)
        local_spaces.apply([replace(SPACE, versions=())])
        os.write(writer, b"{}")
        os.close(writer)
        assert changed.wait(HANG_S)
        assert (local_spaces.versions(), local_spaces.unserved_reasons()) == ([], [])
    finally:
        loader.stop()
        local_spaces.close()


def test_failed_version_load_is_retried_on_its_own(tmp_path: Path) -> None:
    paths, source_image = DataPaths(tmp_path / "data"), tmp_path / "made"
    digest = write_image(source_image)
    local_spaces = LocalSpaces(paths)
    loader = VersionLoader(local_spaces, paths, verify=True, retry_s=0.1, on_change=lambda: None)
    loader.start()
    try:
        desired = replace(SPACE.versions[0], images={0: digest})
        local_spaces.apply([replace(SPACE, versions=(desired,))])
        loader.wake()
        wait_until(
            lambda: "did not finish" in "".join(local_spaces.unserved_reasons()),
            "the unfinished image is reported",
        )
        shutil.copytree(
            source_image, paths.build(1, 7) / "parts" / "p00000"
        )  # an operator has restored the file system
        wait_until(lambda: local_spaces.versions() == [(1, 3)], "the version is open")
        assert local_spaces.unserved_reasons() == []
    finally:
        loader.stop()
        local_spaces.close()


def test_transient_load_failure_is_retried_soon(tmp_path: Path) -> None:
    paths, source_image = DataPaths(tmp_path / "data"), tmp_path / "made"
    digest = write_image(source_image)
    part = paths.build(1, 7) / "parts" / "p00000"
    (part / "manifest.json").mkdir(
        parents=True
    )  # a failed read does not prove that the image is damaged
    local_spaces = LocalSpaces(paths)
    loader = VersionLoader(local_spaces, paths, verify=True, retry_s=60, on_change=lambda: None)
    loader.start()
    try:
        desired = replace(SPACE.versions[0], images={0: digest})
        local_spaces.apply([replace(SPACE, versions=(desired,))])
        loader.wake()
        wait_until(
            lambda: "Is a directory" in "".join(local_spaces.unserved_reasons()),
            "the unreadable image is reported",
        )
        shutil.rmtree(part)
        shutil.copytree(source_image, part)
        wait_until(lambda: local_spaces.versions() == [(1, 3)], "the version is open")
        assert local_spaces.unserved_reasons() == []
    finally:
        loader.stop()
        local_spaces.close()


def test_unexpected_load_errors_are_reported(tmp_path: Path) -> None:
    paths = DataPaths(tmp_path / "data")
    digest = write_image(paths.build(1, 7) / "parts" / "p00000")
    local_spaces = LocalSpaces(paths)
    loader = VersionLoader(local_spaces, paths, verify=True, retry_s=60, on_change=lambda: None)
    loader.start()
    try:
        # An internal error.
        broken = replace(SPACE.versions[0], images=None)  # type: ignore[arg-type]
        local_spaces.apply([replace(SPACE, versions=(broken,))])
        loader.wake()
        wait_until(
            lambda: (
                "it cannot be opened: AttributeError" in "".join(local_spaces.unserved_reasons())
            ),
            "the failure is reported",
        )
        local_spaces.apply([replace(SPACE, versions=(replace(broken, images={0: digest}),))])
        wait_until(lambda: local_spaces.versions() == [(1, 3)], "the version is open")
        assert local_spaces.unserved_reasons() == []
    finally:
        loader.stop()
        local_spaces.close()
