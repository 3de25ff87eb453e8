"""Calls wait for a version that was published a moment ago.

A daemon may not have received it, or may not have loaded it, when the call arrives.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit.waiting import HANG_S

import asterism
from graphd.routing.routing_table import RoutingTable
from storaged import version_loader

GRACE_S = 0.5


def test_newly_published_version_is_awaited_until_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    update_allowed, graphd_waits, load_allowed = (
        threading.Event(),
        threading.Event(),
        threading.Event(),
    )
    update_allowed.set()
    load_allowed.set()
    apply, wait_for, open_part = (
        RoutingTable.apply_reply,
        RoutingTable.wait_for,
        version_loader.open_part,
    )

    def delayed_apply(self: RoutingTable, reply: Any) -> Any:
        update_allowed.wait()
        return apply(self, reply)

    def observed_wait(self: RoutingTable, wanted: Any, timeout_s: float) -> bool:
        graphd_waits.set()
        return wait_for(self, wanted, timeout_s)

    def delayed_open(*args: Any, **kwargs: Any) -> Any:
        load_allowed.wait()
        return open_part(*args, **kwargs)

    monkeypatch.setattr(RoutingTable, "apply_reply", delayed_apply)
    monkeypatch.setattr(RoutingTable, "wait_for", observed_wait)
    monkeypatch.setattr(version_loader, "open_part", delayed_open)
    with asterism.open(tmp_path) as client:
        client.create_space("late", {"nodes": {"n": {}}, "edges": {"n:to:n": {}}})
        graph = client.graph("late")
        graph.upsert_nodes(np.arange(3), "n")
        graph.build()
        assert graph.sample_nodes(1, "n").version == 1
        graph.upsert_nodes(np.arange(9), "n")
        update_allowed.clear()
        load_allowed.clear()
        try:
            assert graph.build().version == 2  # from metad; neither graphd nor storaged has it
            graphd_waits.clear()
            counts: list[int] = []
            reader = threading.Thread(
                target=lambda: counts.append(
                    sum(len(batch.ids) for batch in graph.at(2).scan_nodes("n"))
                )
            )
            reader.start()
            assert graphd_waits.wait(HANG_S), "graphd waits for the news"
            update_allowed.set()
            reader.join(GRACE_S)
            assert reader.is_alive(), "storaged reads its files"
            load_allowed.set()
            reader.join(HANG_S)
        finally:
            update_allowed.set()
            load_allowed.set()
        assert counts == [9]
