"""News travels: a version that was published a moment ago is waited for, wherever it has not been heard of, or is not open, yet."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit.waiting import HANG_S

import asterism
from graphd.news import News
from storaged import opening

GRACE_S = 0.5


def test_a_version_that_graphd_hears_of_when_it_is_asked_for_is_waited_for_until_it_is_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard, asking, readable = threading.Event(), threading.Event(), threading.Event()
    heard.set()
    readable.set()
    apply, wait_for, open_part = News.apply, News.wait_for, opening.open_part

    def hear(self: News, reply: Any) -> Any:
        heard.wait()
        return apply(self, reply)

    def wait(self: News, wanted: Any, timeout_s: float) -> bool:
        asking.set()
        return wait_for(self, wanted, timeout_s)

    def read(*args: Any, **how: Any) -> Any:
        readable.wait()
        return open_part(*args, **how)

    monkeypatch.setattr(News, "apply", hear)
    monkeypatch.setattr(News, "wait_for", wait)
    monkeypatch.setattr(opening, "open_part", read)
    with asterism.open(tmp_path) as client:
        client.create_space("late", {"nodes": {"n": {}}, "edges": {"n:to:n": {}}})
        graph = client.graph("late")
        graph.upsert_nodes(np.arange(3), "n")
        graph.build()
        assert graph.sample_nodes(1, "n").version == 1
        graph.upsert_nodes(np.arange(9), "n")
        heard.clear()
        readable.clear()
        try:
            assert graph.build().version == 2  # metad's word: neither graphd nor storaged has it
            asking.clear()
            seen: list[int] = []
            asker = threading.Thread(target=lambda: seen.append(sum(len(batch.ids) for batch in graph.at(2).scan_nodes("n"))))
            asker.start()
            assert asking.wait(HANG_S), "graphd waits for the news"
            heard.set()
            asker.join(GRACE_S)
            assert asker.is_alive(), "storaged reads its files"
            readable.set()
            asker.join(HANG_S)
        finally:
            heard.set()
            readable.set()
        assert seen == [9]
