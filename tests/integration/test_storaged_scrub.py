"""Images that are altered while they are served: found by the scrub, withdrawn, checked whole before they return."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.kit.storage_faults import flip
from tests.kit.waiting import HANG_S, wait_until

from asterism_proto.errors import Stale
from asterism_proto.schema import NodeType, Schema
from storaged.folders import Folders
from storaged.holdings import Holdings, Wanted, WantedSpace
from storaged.opening import Opener
from storaged.scrub import Scrubber
from storaged.store.image_writer import ImageWriter

SCHEMA = Schema(node_types=(NodeType(name="item", weighted=True),), parts=1)
ROWS = 300_000


def image_in(folder: Path) -> str:
    """The digest of an image of some mebibytes; one of its files holds offsets."""
    table = {"size": ROWS, "total": float(ROWS)}
    nodes = {"rows": ROWS, "count": ROWS, "dense": True, "table": table, "columns": []}
    image = ImageWriter(folder)
    image.create("n0.weights", np.float32, (ROWS,))[:] = 1
    image.create("n0.table.row_of", np.uint32, (ROWS,))[:] = np.arange(ROWS)
    return image.finish({"part": 0, "parts": 1, "mod": True, "nodes": [nodes], "edges": []})


def space(digest: str, version: int = 3, job_id: int = 7) -> WantedSpace:
    want = Wanted(version=version, job_id=job_id, digest="d", totals={}, named={}, images={0: digest})
    return WantedSpace(space_id=1, name="shop", schema=SCHEMA, parts=(0,), versions=(want,))


class Host:
    """The parts of a storaged that open and check images."""

    def __init__(self, folder: Path, *, verify_bytes: int, interval_s: float = 0.05) -> None:
        self.folders = Folders(folder)
        self.holdings = Holdings(self.folders)
        self.opener = Opener(
            self.holdings,
            self.folders,
            verify=False,
            verify_bytes=verify_bytes,
            retry_s=0.05,
            changed=lambda: None,
            verified=lambda space, want: self.scrubber.verified(space, want),
        )
        self.scrubber = Scrubber(self.holdings, self.folders, interval_s=interval_s, mib_per_s=1e4, damaged=self.opener.reopen)

    @property
    def image(self) -> Path:
        return self.folders.build(1, 7) / "parts" / "p00000"


@contextmanager
def opened(folder: Path, *, verify_bytes: int, interval_s: float = 0.05) -> Iterator[tuple[Host, str]]:
    host = Host(folder, verify_bytes=verify_bytes, interval_s=interval_s)
    digest = image_in(host.image)
    host.opener.start()
    try:
        yield host, digest
    finally:
        host.scrubber.stop()
        host.opener.stop()
        host.holdings.close()


@pytest.mark.parametrize("name", ["n0.weights.bin", "manifest.json"])
def test_a_served_image_that_is_altered_is_withdrawn_until_it_is_whole(tmp_path: Path, name: str) -> None:
    with opened(tmp_path, verify_bytes=1 << 30) as (host, digest):
        host.holdings.apply([space(digest)])
        host.opener.wake()
        wait_until(lambda: host.holdings.versions() == [(1, 3)], "the version is served")
        host.scrubber.start()
        flip(host.image / name, 8)
        wait_until(lambda: f"image file {host.image / name}: " in "".join(host.holdings.missing()), "the damage is reported")
        assert "build the version again" in "".join(host.holdings.missing())
        assert host.holdings.versions() == []
        with pytest.raises(Stale, match="image"):
            host.holdings.version(1, 3, "d")
        assert host.holdings.served(1) == []  # no build links its files
        assert host.scrubber.versions_damaged == 1
        flip(host.image / name, 8)
        wait_until(lambda: host.holdings.versions() == [(1, 3)], "the version is served")
        assert host.holdings.missing() == []


def test_an_image_of_another_version_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path, verify_bytes=1 << 30) as (host, digest):
        host.holdings.apply([space("0" * 64)])
        host.opener.wake()
        wait_until(lambda: f"its digest is {digest}" in "".join(host.holdings.missing()), "the damage is reported")
        assert host.holdings.versions() == []


def test_a_small_version_is_checked_whole_before_it_is_served(tmp_path: Path) -> None:
    with opened(tmp_path, verify_bytes=1 << 30) as (host, digest):
        flip(host.image / "n0.weights.bin", 8)
        host.holdings.apply([space(digest)])
        host.opener.wake()
        wait_until(lambda: "n0.weights.bin: mebibyte 0" in "".join(host.holdings.missing()), "the damage is reported")
        assert host.holdings.versions() == []


def test_of_a_large_version_offsets_are_checked_first_and_the_rest_soon(tmp_path: Path) -> None:
    with opened(tmp_path, verify_bytes=1, interval_s=3600) as (host, digest):
        flip(host.image / "n0.table.row_of.bin", 8)
        host.holdings.apply([space(digest)])
        host.opener.wake()
        wait_until(lambda: "n0.table.row_of.bin: mebibyte 0" in "".join(host.holdings.missing()), "the damage is reported")
        flip(host.image / "n0.table.row_of.bin", 8)
        flip(host.image / "n0.weights.bin", 8)
        wait_until(lambda: host.holdings.versions() == [(1, 3)], "the version is served")
        host.scrubber.start()  # the interval does not matter to what was never checked
        wait_until(lambda: "n0.weights.bin: mebibyte 0" in "".join(host.holdings.missing()), "the damage is reported")
        assert host.holdings.versions() == []


def test_a_version_that_was_checked_as_it_was_opened_is_not_due(tmp_path: Path) -> None:
    with opened(tmp_path, verify_bytes=1 << 30, interval_s=3600) as (host, digest):
        host.holdings.apply([space(digest)])
        host.opener.wake()
        wait_until(lambda: host.holdings.versions() == [(1, 3)], "the version is served")
        assert host.scrubber.check_next() is False
        assert host.scrubber.bytes_read == 0


def test_a_check_ends_where_its_version_is_dropped(tmp_path: Path) -> None:
    with opened(tmp_path, verify_bytes=0, interval_s=3600) as (host, digest):
        host.holdings.apply([space(digest)])
        host.opener.wake()
        wait_until(lambda: host.holdings.versions() == [(1, 3)], "the version is served")
        host.scrubber._mib_per_s = 1e-6  # it would take years
        check = threading.Thread(target=host.scrubber.check_next)
        check.start()
        wait_until(lambda: host.scrubber.bytes_read > 0, "the scrub reads")
        host.holdings.apply([replace(space(digest), versions=())])
        host.scrubber.stop()
        check.join(HANG_S)
        assert not check.is_alive()
        assert host.scrubber.versions_damaged == 0
