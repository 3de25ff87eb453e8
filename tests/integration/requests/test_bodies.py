"""Run the shared cluster test bodies without Docker.

They run on local processes, on the ports of one process, and embedded.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.kit import bodies
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S

import asterism
from asterism import Client
from asterism_standalone.app import Standalone


@pytest.fixture(scope="module", params=["processes", "ports of one process", "embedded"])
def client(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("bodies")
    if request.param == "processes":
        with (
            LocalCluster(storageds=3, graphds=2, folder=folder) as cluster,
            cluster.client() as connected,
        ):
            bodies.assert_build_published(connected, "shop")
            yield connected
    elif request.param == "embedded":
        with asterism.open(folder) as opened:
            bodies.assert_build_published(opened, "shop")
            yield opened
    else:
        service = Standalone(folder)
        service.start()
        endpoints = service.open_ports(listen="127.0.0.1:0", http_listen="127.0.0.1:0")
        with asterism.connect(endpoints.address, timeout_s=HANG_S) as connected:
            bodies.assert_build_published(connected, "shop")
            yield connected
        service.stop()


def test_draws_follow_the_weights(client: Client) -> None:
    bodies.assert_draws_follow_weights(client.graph("shop"))


def test_reads_give_what_was_loaded(client: Client) -> None:
    bodies.assert_reads_match_input(client.graph("shop"))


def test_wrong_requests_are_refused_with_the_value(client: Client) -> None:
    bodies.assert_bad_requests_rejected(client, "shop")


def test_the_same_requests_give_the_same_bytes(client: Client) -> None:
    assert bodies.result_bytes(client.graph("shop")) == bodies.result_bytes(
        client.graph("shop"), version=1
    )
