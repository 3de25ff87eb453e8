"""Opening an image may take long: beats, readiness, orders and stops do not wait for it, and what failed is tried again."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tests.kit.waiting import HANG_S

from asterism_proto.schema import NodeType, Schema
from storaged.folders import Folders
from storaged.holdings import Holdings, Wanted, WantedSpace
from storaged.opening import Opener
from storaged.store.image_writer import ImageWriter

SPACE = WantedSpace(
    space_id=1,
    name="shop",
    schema=Schema(node_types=(NodeType(name="item"),), parts=1),
    parts=(0,),
    versions=(Wanted(version=3, job_id=7, digest="d", totals={}, named={}, images={0: "e"}),),
)


def wait_for(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + HANG_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def image_in(folder: Path) -> str:
    """The digest of an image of no rows."""
    empty = {"rows": 0, "count": 0, "dense": False, "table": {"size": 0, "total": 0.0}, "columns": []}
    return ImageWriter(folder).finish({"part": 0, "parts": 1, "mod": True, "nodes": [empty], "edges": []})


def test_a_host_stays_ready_while_it_opens_a_version_that_was_just_published(tmp_path: Path) -> None:
    holdings = Holdings(Folders(tmp_path))
    (want,) = SPACE.versions
    try:
        holdings.apply([SPACE])
        assert holdings.unready() == holdings.missing() == ["version 3 of space shop is not served: it waits to be opened"]
        newer = replace(SPACE, versions=(want, replace(want, version=4)))
        holdings.apply([newer])
        assert holdings.unready() == holdings.missing()[:1], "version 3 is still to be opened"
        assert len(holdings.missing()) == 2
        holdings.refused(SPACE.space_id, newer.versions[1], "it is damaged")
        assert holdings.unready() == holdings.missing(), "version 4 is damaged"
    finally:
        holdings.close()
    again = Holdings(Folders(tmp_path))
    try:
        again.apply([newer])
        assert again.unready() == again.missing(), "after a restart all versions are opened before it is ready"
        assert len(again.missing()) == 2
    finally:
        again.close()


def test_nobody_waits_for_an_image_that_is_slow_to_open(tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    part = folders.build(1, 7) / "parts" / "p00000"
    part.mkdir(parents=True)
    # A disk that takes its time: whoever reads a pipe waits for its writer.
    os.mkfifo(part / "manifest.json")
    holdings, changed = Holdings(folders), threading.Event()
    opener = Opener(holdings, folders, verify=True, retry_s=60, changed=changed.set)
    opener.start()
    try:
        holdings.apply([SPACE])
        opener.wake()
        writer = os.open(part / "manifest.json", os.O_WRONLY)  # returns once it is being read
        assert holdings.versions() == []
        assert holdings.missing() == ["version 3 of space shop is not served: part 0 is being opened"]
        other = replace(SPACE, space_id=2, name="other", versions=())
        holdings.apply([SPACE, other])  # a further word of metad, with its orders
        assert holdings.space(2).name == "other"
        assert not changed.is_set()
        os.write(writer, b"{}")
        os.close(writer)
        assert changed.wait(HANG_S)
        assert f"image file {part / 'manifest.json'}: damaged (KeyError: 'format'); build the version again" in holdings.missing()[0]
    finally:
        opener.stop()
        holdings.close()


def test_a_version_that_is_not_wanted_any_more_when_it_is_open_is_not_served(tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    part = folders.build(1, 7) / "parts" / "p00000"
    part.mkdir(parents=True)
    os.mkfifo(part / "manifest.json")
    holdings, changed = Holdings(folders), threading.Event()
    opener = Opener(holdings, folders, verify=True, retry_s=60, changed=changed.set)
    opener.start()
    try:
        holdings.apply([SPACE])
        opener.wake()
        writer = os.open(part / "manifest.json", os.O_WRONLY)
        holdings.apply([replace(SPACE, versions=())])
        os.write(writer, b"{}")
        os.close(writer)
        assert changed.wait(HANG_S)
        assert (holdings.versions(), holdings.missing()) == ([], [])
    finally:
        opener.stop()
        holdings.close()


def test_a_version_that_was_refused_is_tried_again_without_another_word(tmp_path: Path) -> None:
    folders, made = Folders(tmp_path / "data"), tmp_path / "made"
    digest = image_in(made)
    holdings = Holdings(folders)
    opener = Opener(holdings, folders, verify=True, retry_s=0.1, changed=lambda: None)
    opener.start()
    try:
        want = replace(SPACE.versions[0], images={0: digest})
        holdings.apply([replace(SPACE, versions=(want,))])
        opener.wake()
        wait_for(lambda: "did not finish" in "".join(holdings.missing()))
        shutil.copytree(made, folders.build(1, 7) / "parts" / "p00000")  # an operator has put the file system back
        wait_for(lambda: holdings.versions() == [(1, 3)])
        assert holdings.missing() == []
    finally:
        opener.stop()
        holdings.close()


def test_what_only_stood_in_the_way_is_tried_again_soon(tmp_path: Path) -> None:
    folders, made = Folders(tmp_path / "data"), tmp_path / "made"
    digest = image_in(made)
    part = folders.build(1, 7) / "parts" / "p00000"
    (part / "manifest.json").mkdir(parents=True)  # what the system does not read is no damage of the image
    holdings = Holdings(folders)
    opener = Opener(holdings, folders, verify=True, retry_s=60, changed=lambda: None)
    opener.start()
    try:
        want = replace(SPACE.versions[0], images={0: digest})
        holdings.apply([replace(SPACE, versions=(want,))])
        opener.wake()
        wait_for(lambda: "Is a directory" in "".join(holdings.missing()))
        shutil.rmtree(part)
        shutil.copytree(made, part)
        wait_for(lambda: holdings.versions() == [(1, 3)])
        assert holdings.missing() == []
    finally:
        opener.stop()
        holdings.close()


def test_whatever_keeps_a_version_from_opening_is_said(tmp_path: Path) -> None:
    folders = Folders(tmp_path / "data")
    digest = image_in(folders.build(1, 7) / "parts" / "p00000")
    holdings = Holdings(folders)
    opener = Opener(holdings, folders, verify=True, retry_s=60, changed=lambda: None)
    opener.start()
    try:
        broken = replace(SPACE.versions[0], images=None)  # type: ignore[arg-type]  # a fault of this program's own
        holdings.apply([replace(SPACE, versions=(broken,))])
        opener.wake()
        wait_for(lambda: "it can not be opened: AttributeError" in "".join(holdings.missing()))
        holdings.apply([replace(SPACE, versions=(replace(broken, images={0: digest}),))])
        wait_for(lambda: holdings.versions() == [(1, 3)])
        assert holdings.missing() == []
    finally:
        opener.stop()
        holdings.close()
