"""Opening an image may take long: what a beat reports, and what readiness says, do not wait for it."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from asterism_proto.schema import NodeType, Schema
from storaged.folders import Folders
from storaged.holdings import Holdings, Wanted, WantedSpace

SPACE = WantedSpace(
    space_id=1,
    name="shop",
    schema=Schema(node_types=(NodeType(name="item"),), parts=1),
    parts=(0,),
    versions=(Wanted(version=3, job_id=7, digest="d", totals={}, images={0: "e"}),),
)


def test_a_beat_does_not_wait_for_an_image_that_is_slow_to_open(tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    part = folders.build(1, 7) / "parts" / "p00000"
    part.mkdir(parents=True)
    # A disk that takes its time: whoever reads a pipe waits for its writer.
    os.mkfifo(part / "manifest.json")
    holdings = Holdings(folders, verify=True)
    opening = threading.Thread(target=holdings.apply, args=([SPACE],))
    opening.start()
    try:
        writer = os.open(part / "manifest.json", os.O_WRONLY)  # returns once it is being read
        began = time.monotonic()
        assert holdings.versions() == []
        assert holdings.missing() == ["version 3 of space shop is not served: it is being opened"]
        assert time.monotonic() - began < 1.0
        assert opening.is_alive()
        os.write(writer, b"{}")
        os.close(writer)
        opening.join(10)
        assert "its manifest is torn" in holdings.missing()[0]
    finally:
        opening.join(10)
        holdings.close()
