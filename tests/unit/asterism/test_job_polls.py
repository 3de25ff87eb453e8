"""Tests of the pauses between two polls of a job."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from asterism.catalog_client import CatalogClient


class Client:
    """A client with a job that ends at a time; sleeping advances its clock."""

    def __init__(self, end_s: float) -> None:
        self.start_s = time.monotonic()
        self.now_s = self.start_s
        self.pauses_s: list[float] = []
        self.session: Any = SimpleNamespace(waiter=self, note_version=lambda *_: None)
        self._end_s = self.now_s + end_s

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.pauses_s.append(seconds)
        self.now_s += seconds

    def job(self, job_id: int) -> Any:
        return SimpleNamespace(ended=self.now_s >= self._end_s, version=0, space="shop")


@pytest.mark.parametrize("end_s", [0.01, 0.3, 1.0, 60.0])
def test_the_end_of_a_job_is_noticed_soon(monkeypatch: pytest.MonkeyPatch, end_s: float) -> None:
    client: Any = Client(end_s)
    monkeypatch.setattr("asterism.catalog_client.time", client)
    CatalogClient.wait(client, 1, timeout_s=3600.0)
    assert client.now_s - client.start_s <= max(1.06 * end_s, 0.02) + 0.02
    assert max(client.pauses_s) <= 0.5, "progress is shown twice a second"
