"""Overview and hosts in Chromium, with simulated heartbeats.

The overview says the same as the command `asterism status`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import httpx
import pytest
from playwright.sync_api import expect
from tests.kit.browser import MonitoredPage
from tests.kit.metad import InProcessMetad

from asterism.cli.status import readiness_problems
from asterism.graph import Client
from asterism_model.schema import NodeType, Schema
from asterism_proto.v1 import metad_pb2 as metad_pb
from graphd.app import Graphd
from graphd.settings import GraphdSettings

pytestmark = pytest.mark.browser

GIB = 1 << 30
HOSTS = ("s0", "s1", "s2")
PARTITIONS = 8


class SimulatedCluster:
    """A metad in memory, three storageds on one disk, and the pages of a graphd."""

    def __init__(self) -> None:
        self.metad = InProcessMetad(now_ms=int(time.time() * 1000), lease_s=6)
        self.send_heartbeats(*HOSTS)
        self.metad.create("shop", Schema(node_types=(NodeType(name="item"),), parts=PARTITIONS))
        transport = self.metad._transport
        self.graphd = Graphd(
            GraphdSettings(listen="127.0.0.1:0", http_listen="127.0.0.1:0", stop_grace_s=1),
            transport,
            lambda *_: transport,  # type: ignore[arg-type, return-value]
        )
        # It compiles no kernels and receives no change feed: pages query metad.
        self.graphd.ready = list  # type: ignore[method-assign, assignment]
        self.graphd.open_ports()
        self.address = f"http://127.0.0.1:{self.graphd.http_port}"

    def send_heartbeats(self, *uuids: str, free_gib: int = 45, memory_gib: int = 3) -> None:
        for uuid in uuids:
            self.metad.heartbeat(
                uuid,
                free_bytes=free_gib * GIB,
                held_bytes=2 * GIB,
                resources=metad_pb.HostResources(
                    disk_id="disk",
                    disk_total_bytes=60 * GIB,
                    cpu_cores=0.25,
                    cpu_count=4,
                    memory_bytes=memory_gib * GIB,
                    memory_total_bytes=16 * GIB,
                    started_ms=int(time.time() * 1000) - 200_000,
                    spaces=[metad_pb.SpaceUsage(space_id=1, bytes=GIB)],
                ),
            )

    def set_online(self, *uuids: str) -> None:
        """Let some storageds send heartbeats after the leases of all have expired."""
        self.metad.advance_clock(10)
        self.send_heartbeats(*uuids)

    def close(self) -> None:
        self.graphd.stop()


@pytest.fixture
def cluster() -> Iterator[SimulatedCluster]:
    cluster = SimulatedCluster()
    yield cluster
    cluster.close()


def test_the_overview_says_what_the_status_command_says(
    cluster: SimulatedCluster, page_of: Callable[..., MonitoredPage]
) -> None:
    watch = page_of(cluster.address)
    page = watch.open("/ui")
    health = page.locator("#health")
    expect(health).to_have_class("health green")
    expect(health).to_contain_text("Ready: 3 storageds")
    cluster.set_online("s0", "s2")
    expect(health).to_have_class("health red")
    with Client(cluster.metad._transport, timeout_s=60) as client:  # type: ignore[arg-type]
        problems = readiness_problems(list(client.hosts()), list(client.spaces()))
    assert problems[0] == "storaged s1:9779 is offline"
    assert problems[1].startswith("space shop: ")
    assert problems[1].endswith("of 8 partitions have no host online")
    expect(health.locator("p")).to_have_text(f"Not ready: {'; '.join(problems)}")
    held = [
        part
        for part, hosts in enumerate(
            cluster.metad.ask("describe_space", metad_pb.SpaceRequest(space="shop")).parts
        )
        if "s1" in hosts.hosts
    ]
    expect(health.locator("li")).to_have_text(
        f"Partitions without a host online in shop: {', '.join(map(str, held))}"
    )
    assert watch.findings() == []
    health.get_by_role("link", name="shop").click()
    expect(page.locator("h1")).to_contain_text("shop")


def test_a_shared_disk_and_the_use_of_a_space_are_shown_once(
    cluster: SimulatedCluster, page_of: Callable[..., MonitoredPage]
) -> None:
    watch = page_of(cluster.address)
    page = watch.open("/ui")
    assert watch.rows("disks") == [
        ["s0:9779, s1:9779, s2:9779", "6 GiB", "45 GiB", "60 GiB", "25 %"]
    ]
    assert watch.rows("largest") == [["shop", "3 GiB", "–", "–", str(PARTITIONS), "none yet"]]
    # Nothing happens here: there are no tables of jobs, and no number of calls.
    expect(page.locator("#running, #failed")).to_have_count(0)
    assert page.locator("svg.spark").count() == 2


@pytest.mark.parametrize("width", [1280, 400])
def test_capacity_is_amber_above_85_percent(
    cluster: SimulatedCluster, page_of: Callable[..., MonitoredPage], width: int
) -> None:
    watch = page_of(cluster.address, width=width)
    page = watch.open("/ui")
    assert watch.rows("memory") == [
        [f"{uuid}:9779\nstoraged", "3 GiB", "16 GiB", "18.7 %"] for uuid in HOSTS
    ]
    expect(page.locator(".usage")).to_have_count(4)
    expect(page.locator(".usage.full")).to_have_count(0)
    cluster.send_heartbeats("s0", "s2", free_gib=8)
    cluster.send_heartbeats("s1", free_gib=8, memory_gib=14)
    expect(page.locator("#memory .usage.full")).to_have_text("87.5 % 87.5 %nearly full")
    expect(page.locator("#memory tbody tr").first).to_contain_text("s1:9779")
    expect(page.locator("#disks .usage.full")).to_contain_text("86.6 %")
    amber = page.locator("#health").evaluate(
        "element => getComputedStyle(element).getPropertyValue('--warn')"
    )
    bar = page.locator("#disks progress")
    assert bar.evaluate("bar => getComputedStyle(bar).accentColor") == page.evaluate(
        """color => {
            const probe = document.body.appendChild(document.createElement("i"));
            probe.style.color = color;
            const shown = getComputedStyle(probe).color;
            probe.remove();
            return shown;
        }""",
        amber,
    )
    expect(page.locator("#health")).to_have_class("health green")  # amber above 90 %
    cluster.send_heartbeats(*HOSTS, free_gib=5)
    expect(page.locator("#health")).to_have_class("health amber")
    assert watch.findings() == []


@pytest.mark.parametrize("width", [1280, 400])
def test_hosts_show_processor_memory_disk_and_start(
    cluster: SimulatedCluster, page_of: Callable[..., MonitoredPage], width: int
) -> None:
    cluster.metad.heartbeat("g0", role=metad_pb.GRAPHD)  # a graphd of an earlier release
    watch = page_of(cluster.address, width=width)
    page = watch.open("/ui/hosts")
    rows = {row[0].split("\n")[0]: row for row in watch.rows("hosts")}
    name, state, cpu, memory, spaces, data, free, heartbeat, started = rows["s1:9779"]
    assert name.split("\n")[1] == "storaged · log"
    assert state == "online"
    assert cpu.split() == ["0.25", "of", "4"]
    assert memory.split("\n") == ["3 GiB", "of 16 GiB"]
    assert spaces.startswith("shop ")
    assert data == "2 GiB"
    assert free.split("\n") == ["45 GiB", "of 60 GiB"]
    assert heartbeat.endswith(" ago")
    assert started == "3 min ago"
    assert rows["g0:9779"][2:7] == ["–"] * 5
    assert rows["g0:9779"][8] == "–"
    region = page.locator(".scroll").first
    hidden_width = region.evaluate("region => region.scrollWidth - region.clientWidth")
    assert width < 1280 or hidden_width <= 0, "all columns are visible on a laptop"
    assert watch.findings() == []


def test_the_log_of_metad_is_read_through_graphd(cluster: SimulatedCluster) -> None:
    with httpx.Client(base_url=cluster.address, timeout=60) as http:
        reply = http.get("/ui/api/logs", params={"daemon": "metad"})
        assert reply.status_code == 200
        assert [daemon["label"] for daemon in reply.json()["daemons"]] == [
            "this graphd",
            "metad",
            *(f"storaged {uuid}:9779" for uuid in HOSTS),
        ]
        refused = http.get("/ui/api/logs", params={"daemon": "elsewhere"})
        assert refused.status_code == 404
        assert "daemon='elsewhere'" in refused.json()["message"]
