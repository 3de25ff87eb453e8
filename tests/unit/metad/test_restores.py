"""Tests of restores: spaces of a backup that wait for their data."""

from __future__ import annotations

import pytest
from tests.kit.metad import InProcessMetad

from asterism_proto.errors import Conflict
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb


def test_a_restore_continues_with_the_same_version_only() -> None:
    metad = InProcessMetad()
    metad.heartbeat("s1")
    metad.create()
    records: list[metad_pb.SpaceRecord] = []
    for _ in range(2):
        metad.load()
        metad.submit()
        metad.build("s1")
        records.append(metad.ask("export_space", metad_pb.ExportSpaceRequest(space="graph")))

    def restore(record: metad_pb.SpaceRecord) -> common_pb.Space:
        space: common_pb.Space = metad.ask(
            "import_space", metad_pb.ImportSpaceRequest(name="copy", record=record)
        )
        return space

    first, second = records
    assert restore(first).space_id == restore(first).space_id
    with pytest.raises(Conflict, match="space 'copy' exists already"):
        restore(second)
