"""Tests of direct clients without a service."""

from __future__ import annotations

import pytest

from asterism.transport.direct import DirectTransport
from asterism_graphkit.compile.activity import ACTIVITY
from asterism_standalone.compile_report import REPORT


def test_direct_clients_report_compiled_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call on a machine takes long; a line says why, as with an embedded folder."""
    monkeypatch.setattr(ACTIVITY, "listeners", [])
    DirectTransport("localhost:1").close()
    assert ACTIVITY.listeners == [REPORT.note_activity]
