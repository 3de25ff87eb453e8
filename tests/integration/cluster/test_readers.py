"""Readers of a folder find all published versions, even if the writer ended right after."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from tests.kit.waiting import HANG_S

import asterism
from asterism import Client, InvalidRequest
from asterism_standalone.app import Standalone
from asterism_standalone.embedded_transport import FolderTransport


def test_reader_sees_version_published_before_writer_exit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Standalone(tmp_path / "graphs")
    service.start()
    try:
        client = Client(FolderTransport(tmp_path / "graphs", service.handlers))
        client.create_space("g", {"nodes": {"n": {}}})
        load = client.begin_load("g", source="generated")
        load.write_nodes(0, "n", np.arange(5))
        load.commit()
        service._graphd._heartbeat.stop()  # graphd learns nothing more, as if it were slow
        assert client.wait(client.submit_job("g").job_id, timeout_s=HANG_S).state == "FINISHED"
    finally:
        service.stop()
    with asterism.open(tmp_path / "graphs", space="g", mode="r") as graph:
        assert graph.sample_nodes(4, seed=1).version == 1


def test_readers_refuse_requests_beyond_their_own_limits(tmp_path: Path) -> None:
    """A copy of a reader's client in another process has the same limits."""
    with asterism.open(tmp_path / "graphs") as client:
        client.create_space("g", {"nodes": {"n": {}}})
        client.graph("g").upsert_nodes(np.arange(5), "n")
        client.graph("g").build()
    with asterism.open(tmp_path / "graphs", space="g", mode="r", request_rows_limit=100) as graph:
        assert len(graph.sample_nodes(100, "n", seed=1)) == 100
        with pytest.raises(InvalidRequest, match="at most 100 rows per request"):
            graph.sample_nodes(101, "n", seed=1)
        with (
            pickle.loads(pickle.dumps(graph.client)) as copy,
            pytest.raises(InvalidRequest, match="at most 100 rows per request"),
        ):
            copy.graph("g").sample_nodes(101, "n", seed=1)
    with asterism.open(tmp_path / "graphs", space="g", mode="r") as graph:
        assert len(graph.sample_nodes(101, "n", seed=1)) == 101
