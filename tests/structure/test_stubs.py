"""Tests that the protobuf modules equal the output of protoc, byte for byte."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.kit.waiting import HANG_S


def test_stubs_match_the_proto_files(root: Path, tmp_path: Path) -> None:
    folder = root / "proto/asterism_proto/v1"
    protos = sorted(folder.glob("*.proto"))
    # In a separate process, because protoc registers descriptors permanently in its process.
    command = [
        sys.executable,
        "-m",
        "grpc_tools.protoc",
        f"-I{root / 'proto'}",
        f"--python_out={tmp_path}",
        f"--pyi_out={tmp_path}",
        *map(str, protos),
    ]
    subprocess.run(command, check=True, timeout=HANG_S)
    generated = {
        path.name: path.read_bytes() for path in (tmp_path / "asterism_proto/v1").iterdir()
    }
    committed = {path.name: path.read_bytes() for path in folder.glob("*_pb2.py*")}
    assert set(generated) == set(committed)
    assert len(generated) == 2 * len(protos)
    stale = [name for name in generated if generated[name] != committed[name]]
    assert not stale, f"`make stubs` was not run after a .proto changed: {stale}"


def test_every_enum_begins_with_an_unspecified_zero() -> None:
    from asterism_proto.v1 import common_pb2, graphd_pb2, metad_pb2, storaged_pb2

    enums = [
        enum
        for module in (common_pb2, graphd_pb2, metad_pb2, storaged_pb2)
        for enum in module.DESCRIPTOR.enum_types_by_name.values()
    ]
    assert enums
    assert [e.name for e in enums if not e.values_by_number[0].name.endswith("_UNSPECIFIED")] == []
