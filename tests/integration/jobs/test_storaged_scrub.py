"""Images damaged while served: the scrub finds and withdraws them.

They are verified completely before they are served again.
"""

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

from asterism_model.schema import NodeType, Schema
from asterism_proto.errors import Stale
from storaged.local_spaces import DesiredSpace, DesiredVersion, LocalSpaces
from storaged.maintenance.scrub import Scrubber
from storaged.paths import DataPaths
from storaged.store.image_writer import ImageWriter
from storaged.version_loader import VersionLoader

SCHEMA = Schema(node_types=(NodeType(name="item", weighted=True),), parts=1)
ROWS = 300_000


def write_image(folder: Path) -> str:
    """Write an image of some mebibytes, with offsets in one of its files; return its digest."""
    table = {"size": ROWS, "total": float(ROWS)}
    nodes = {"rows": ROWS, "count": ROWS, "dense": True, "table": table, "columns": []}
    image = ImageWriter(folder)
    image.create("n0.weights", np.float32, (ROWS,))[:] = 1
    image.create("n0.table.row_of", np.uint32, (ROWS,))[:] = np.arange(ROWS)
    return image.finish({"part": 0, "parts": 1, "mod": True, "nodes": [nodes], "edges": []})


def desired_space(digest: str, version: int = 3, job_id: int = 7) -> DesiredSpace:
    desired = DesiredVersion(
        version=version, job_id=job_id, digest="d", totals={}, named_totals={}, images={0: digest}
    )
    return DesiredSpace(space_id=1, name="shop", schema=SCHEMA, parts=(0,), versions=(desired,))


class Host:
    """The components of a storaged that load and check images."""

    def __init__(self, folder: Path, *, verify_bytes: int, interval_s: float = 0.05) -> None:
        self.paths = DataPaths(folder)
        self.local_spaces = LocalSpaces(self.paths)
        self.loader = VersionLoader(
            self.local_spaces,
            self.paths,
            verify=False,
            verify_bytes=verify_bytes,
            retry_s=0.05,
            on_change=lambda: None,
            on_verified=lambda space, want: self.scrubber.note_verified(space, want),
        )
        self.scrubber = Scrubber(
            self.local_spaces,
            self.paths,
            interval_s=interval_s,
            mib_per_s=1e4,
            on_damage=self.loader.reload,
        )

    @property
    def image(self) -> Path:
        return self.paths.build(1, 7) / "parts" / "p00000"


@contextmanager
def running_host(
    folder: Path, *, verify_bytes: int, interval_s: float = 0.05
) -> Iterator[tuple[Host, str]]:
    host = Host(folder, verify_bytes=verify_bytes, interval_s=interval_s)
    digest = write_image(host.image)
    host.loader.start()
    try:
        yield host, digest
    finally:
        host.scrubber.stop()
        host.loader.stop()
        host.local_spaces.close()


@pytest.mark.parametrize("name", ["n0.weights.bin", "manifest.json"])
def test_altered_image_is_withdrawn_until_restored(tmp_path: Path, name: str) -> None:
    with running_host(tmp_path, verify_bytes=1 << 30) as (host, digest):
        host.local_spaces.apply([desired_space(digest)])
        host.loader.wake()
        wait_until(lambda: host.local_spaces.versions() == [(1, 3)], "the version is served")
        host.scrubber.start()
        flip(host.image / name, 8)
        wait_until(
            lambda: (
                f"image file {host.image / name}: " in "".join(host.local_spaces.unserved_reasons())
            ),
            "the damage is reported",
        )
        assert "build the version again" in "".join(host.local_spaces.unserved_reasons())
        assert host.local_spaces.versions() == []
        with pytest.raises(Stale, match="image"):
            host.local_spaces.version(1, 3, "d")
        assert host.local_spaces.served_jobs(1) == []  # so that no build links its files
        assert host.scrubber.versions_damaged == 1
        flip(host.image / name, 8)
        wait_until(lambda: host.local_spaces.versions() == [(1, 3)], "the version is served")
        assert host.local_spaces.unserved_reasons() == []


def test_an_image_of_another_version_is_refused(tmp_path: Path) -> None:
    with running_host(tmp_path, verify_bytes=1 << 30) as (host, digest):
        host.local_spaces.apply([desired_space("0" * 64)])
        host.loader.wake()
        wait_until(
            lambda: f"its digest is {digest}" in "".join(host.local_spaces.unserved_reasons()),
            "the damage is reported",
        )
        assert host.local_spaces.versions() == []


def test_small_version_is_fully_verified_before_serving(tmp_path: Path) -> None:
    with running_host(tmp_path, verify_bytes=1 << 30) as (host, digest):
        flip(host.image / "n0.weights.bin", 8)
        host.local_spaces.apply([desired_space(digest)])
        host.loader.wake()
        wait_until(
            lambda: "n0.weights.bin: mebibyte 0" in "".join(host.local_spaces.unserved_reasons()),
            "the damage is reported",
        )
        assert host.local_spaces.versions() == []


def test_large_version_verifies_offsets_first_rest_soon(tmp_path: Path) -> None:
    with running_host(tmp_path, verify_bytes=1, interval_s=3600) as (host, digest):
        flip(host.image / "n0.table.row_of.bin", 8)
        host.local_spaces.apply([desired_space(digest)])
        host.loader.wake()
        wait_until(
            lambda: (
                "n0.table.row_of.bin: mebibyte 0" in "".join(host.local_spaces.unserved_reasons())
            ),
            "the damage is reported",
        )
        flip(host.image / "n0.table.row_of.bin", 8)
        flip(host.image / "n0.weights.bin", 8)
        wait_until(lambda: host.local_spaces.versions() == [(1, 3)], "the version is served")
        host.scrubber.start()  # an image never checked is due, whatever the interval
        wait_until(
            lambda: "n0.weights.bin: mebibyte 0" in "".join(host.local_spaces.unserved_reasons()),
            "the damage is reported",
        )
        assert host.local_spaces.versions() == []


def test_version_verified_on_load_is_not_due_for_scrub(tmp_path: Path) -> None:
    with running_host(tmp_path, verify_bytes=1 << 30, interval_s=3600) as (host, digest):
        host.local_spaces.apply([desired_space(digest)])
        host.loader.wake()
        wait_until(lambda: host.local_spaces.versions() == [(1, 3)], "the version is served")
        assert host.scrubber.check_next() is False
        assert host.scrubber.bytes_read == 0


def test_scrub_ends_when_its_version_is_dropped(tmp_path: Path) -> None:
    with running_host(tmp_path, verify_bytes=0, interval_s=3600) as (host, digest):
        host.local_spaces.apply([desired_space(digest)])
        host.loader.wake()
        wait_until(lambda: host.local_spaces.versions() == [(1, 3)], "the version is served")
        host.scrubber._mib_per_s = 1e-6  # slow enough to take years
        check = threading.Thread(target=host.scrubber.check_next)
        check.start()
        wait_until(lambda: host.scrubber.bytes_read > 0, "the scrub reads")
        host.local_spaces.apply([replace(desired_space(digest), versions=())])
        host.scrubber.stop()
        check.join(HANG_S)
        assert not check.is_alive()
        assert host.scrubber.versions_damaged == 0
