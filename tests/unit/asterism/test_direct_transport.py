"""Tests of direct clients without a service."""

from __future__ import annotations

from typing import Any

import pytest
from tests.kit.waiting import let_pass

import asterism.transport.direct as direct_transport
from asterism.transport.direct import DirectTransport
from asterism_graphkit.compile.activity import ACTIVITY
from asterism_proto.errors import Unavailable
from asterism_proto.methods import CATALOG
from asterism_proto.v1 import metad_pb2 as metad_pb
from asterism_standalone.compile_report import REPORT
from graphd.direct_client import InProcessGraphd


def test_direct_clients_report_compiled_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call on a machine takes long; a line says why, as with an embedded folder."""
    monkeypatch.setattr(ACTIVITY, "listeners", [])
    DirectTransport("localhost:1").close()
    assert ACTIVITY.listeners == [REPORT.note_activity]


def test_the_start_of_a_direct_client_does_not_count_towards_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a new machine, kernels are compiled for longer than the timeout of the first call."""

    class SlowStart(InProcessGraphd):
        def __init__(self, *arguments: Any, **keywords: Any) -> None:
            super().__init__(*arguments, **keywords)
            let_pass(1.0)

    monkeypatch.setattr(direct_transport, "_import_direct", lambda: SlowStart)
    transport = DirectTransport("localhost:1")
    with pytest.raises(Unavailable):  # the graphd was called: the deadline had not passed
        transport.call(CATALOG["describe_space"], metad_pb.SpaceRequest(space="g"), 0.5)
    transport.close()
