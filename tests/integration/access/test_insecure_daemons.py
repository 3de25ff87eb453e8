"""Daemons on addresses that other hosts reach, without TLS and access control."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from asterism_daemonkit.rpc.transports import LocalTransport
from asterism_proto.errors import InvalidRequest
from graphd.app import Graphd
from graphd.settings import GraphdSettings
from metad.app import Metad
from metad.settings import MetadSettings
from storaged.app import Storaged
from storaged.settings import StoragedSettings


def _metad(**settings: Any) -> Metad:
    return Metad(MetadSettings(**settings))


def _storaged(**settings: Any) -> Storaged:
    return Storaged(StoragedSettings(**settings), LocalTransport({}), compile_ahead=False)


def _graphd(**settings: Any) -> Graphd:
    metad = LocalTransport({})
    return Graphd(GraphdSettings(**settings), metad, lambda *_: metad, compile_ahead=False)


@pytest.mark.parametrize(
    ("create", "addresses"),
    [
        (_metad, ["0.0.0.0:0"]),
        (_storaged, ["0.0.0.0:0", "0.0.0.0:0"]),  # the binary endpoint too
        (_graphd, ["0.0.0.0:0"]),
    ],
    ids=["metad", "storaged", "graphd"],
)
def test_ports_open_if_permitted_and_the_status_says_so(
    create: Callable[..., Metad | Storaged | Graphd],
    addresses: list[str],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    listen = {"data": tmp_path / "data", "listen": "0.0.0.0:0", "http_listen": "127.0.0.1:0"}
    refused = create(**listen)
    try:
        with pytest.raises(InvalidRequest, match=r"^listen='0\.0\.0\.0:0': expected an address"):
            refused.open_ports()
    finally:
        refused.stop()
    daemon = create(**listen, insecure=True)
    try:
        assert daemon.status()["insecure"] == []
        daemon.open_ports()
        assert daemon.status()["insecure"] == addresses
        (event,) = (r for r in caplog.records if r.getMessage() == "ports_insecure")
        assert event.levelno == logging.WARNING
    finally:
        daemon.stop()
