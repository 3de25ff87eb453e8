"""Clients with keys in a cluster with access control: direct ones, workers, the command."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
from typing import Any

import pytest
from tests.kit.access import AccessCluster
from tests.kit.waiting import HANG_S, wait_until

import asterism
import asterism.aio
from asterism import Graph
from asterism.cli.app import run
from asterism.cli.exit_codes import ExitCode
from asterism_access.roles import EVERY_SPACE, Role
from asterism_proto.errors import Forbidden, Unauthenticated


def sample(graph: Graph) -> list[int]:
    nodes: list[int] = graph.sample_nodes(4, "n", seed=3).nodes.tolist()
    return nodes


def wait_until_direct(graph: Graph) -> None:
    """Wait until a storaged has served a call of this client."""
    wait_until(
        lambda: bool(sample(graph)) and graph.client.traffic.direct > 0, "storageds are called"
    )


def test_a_direct_client_reads_its_spaces_with_tickets(cluster: AccessCluster) -> None:
    key = cluster.create_key("dora", shop=Role.READER)
    with (
        asterism.connect(cluster.address, api_key=key, timeout_s=HANG_S) as via_graphd,
        asterism.connect(cluster.address, api_key=key, direct=True, timeout_s=HANG_S) as direct,
    ):
        graph = direct.graph("shop")
        wait_until_direct(graph)
        assert sample(graph) == sample(via_graphd.graph("shop"))
        with pytest.raises(Forbidden, match="space='bank': not found, or 'dora' has no role"):
            sample(Graph(direct.session, "bank", direct))


def test_a_direct_client_replaces_a_refused_ticket(cluster: AccessCluster) -> None:
    key = cluster.create_key("rosa", shop=Role.READER)
    with asterism.connect(cluster.address, api_key=key, direct=True, timeout_s=HANG_S) as client:
        graph = client.graph("shop")
        wait_until_direct(graph)
        transport: Any = client.session.transport
        in_process = transport._process_local()
        in_process._ticket = "tk_x_y"
        in_process._hosts.close()
        before = client.traffic
        assert sample(graph)
        assert client.traffic.direct == before.direct + 1
        assert in_process._ticket != "tk_x_y"


def test_a_new_role_is_used_before_the_ticket_is_renewed(cluster: AccessCluster) -> None:
    key = cluster.create_key("nina", shop=Role.READER)
    with asterism.connect(cluster.address, api_key=key, direct=True, timeout_s=HANG_S) as client:
        wait_until_direct(client.graph("shop"))
        cluster.create_key("nina", bank=Role.READER)
        assert len(sample(client.graph("bank"))) == 4


def _sample_in_worker(graph: Graph, direct: bool) -> None:
    if direct:
        wait_until_direct(graph)
    os._exit(0 if len(sample(graph)) == 4 else 1)


@pytest.mark.parametrize("direct", [False, True])
def test_spawned_workers_have_the_key(direct: bool, cluster: AccessCluster) -> None:
    key = cluster.create_key("walt", shop=Role.READER)
    with asterism.connect(cluster.address, api_key=key, direct=direct, timeout_s=HANG_S) as client:
        worker: Any = multiprocessing.get_context("spawn").Process(
            target=_sample_in_worker, args=(client.graph("shop"), direct)
        )
        worker.start()
        worker.join(HANG_S)
    assert worker.exitcode == 0


def test_asynchronous_clients_have_the_key(cluster: AccessCluster) -> None:
    key = cluster.create_key("asta", shop=Role.READER)

    async def read(api_key: str | None) -> list[str]:
        async with asterism.aio.connect(cluster.address, api_key=api_key) as client:
            return [space.name for space in await client.spaces()]

    assert asyncio.run(read(key)) == ["shop"]
    with pytest.raises(Unauthenticated):
        asyncio.run(read(None))


def test_statements_need_the_roles_of_the_calls_that_they_make(cluster: AccessCluster) -> None:
    reader = cluster.create_key("rick", shop=Role.READER)
    admin = cluster.create_key("adam", shop=Role.ADMIN)
    with asterism.connect(cluster.address, api_key=reader, timeout_s=HANG_S) as client:
        assert len(client.query("USE shop; SAMPLE 3 VERTICES ON n YIELD id")) == 3
        for statement in ("GRANT ROLE reader ON shop TO eve", "SHOW API KEYS"):
            with pytest.raises(Forbidden):
                client.query(statement)
        assert client.query("SHOW ROLES").rows() == [("rick", "shop", "reader")]
    with asterism.connect(cluster.address, api_key=admin, timeout_s=HANG_S) as client:
        client.query("GRANT ROLE reader ON shop TO eve")
        assert ("eve", "shop", "reader") in client.query("SHOW ROLES ON shop").rows()
        with pytest.raises(Forbidden):
            client.query("GRANT ROLE reader ON bank TO eve")


def test_the_command_leads_from_the_cluster_key_to_a_sample(
    cluster: AccessCluster,
    tmp_path: Any,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ASTERISM_API_KEY", raising=False)
    monkeypatch.delenv("ASTERISM_API_KEY_FILE", raising=False)

    def asterism_command(*words: str, key: str = "") -> str:
        options = ["--api-key-file", str(tmp_path / key)] if key else []
        assert run(["--address", cluster.address, *options, *words]) == ExitCode.DONE
        return capsys.readouterr().out

    def save(name: str, secret: str) -> None:
        (tmp_path / name).write_text(secret)

    key_file = cluster.key._path
    save("root", asterism_command("access", "bootstrap", "--cluster-key-file", key_file, "--quiet"))
    asterism_command("access", "grant", "ops", EVERY_SPACE, "admin", key="root")
    save("ops", asterism_command("access", "create-key", "ops", "--quiet", key="root"))
    asterism_command("access", "grant", "zoe", "shop", "reader", key="ops")
    save("zoe", asterism_command("access", "create-key", "zoe", "--quiet", key="ops"))
    assert "shop" in asterism_command("space", "list", key="zoe")
    asterism_command("sample", "nodes", "shop", "-n", "3", key="zoe")
    assert run(["--address", cluster.address, "space", "list"]) == ExitCode.FORBIDDEN
    err = capsys.readouterr().err
    assert err.count("\n") == 1


def test_limits_and_keys_are_managed_by_administrators(cluster: AccessCluster) -> None:
    with asterism.connect(cluster.address, api_key=cluster.root(), timeout_s=HANG_S) as client:
        limits = client.set_access_limits("olga", "shop", jobs=1)
        assert client.access_limits("olga") == [limits]
        key = client.create_api_key("olga", expires_s=600)
        client.grant("olga", "shop", "reader")
        with asterism.connect(cluster.address, api_key=key.secret, timeout_s=HANG_S) as olga:
            assert [space.name for space in olga.spaces()] == ["shop"]
            with pytest.raises(Forbidden):
                olga.create_api_key("olga")
            client.revoke_api_key(key.key_id)
            with pytest.raises(Unauthenticated):
                olga.spaces()
