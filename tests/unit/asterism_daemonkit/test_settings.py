from __future__ import annotations

import pytest

from asterism_daemonkit.settings import DaemonSettings, split_address
from asterism_proto.errors import InvalidRequest


def test_flags_override_defaults() -> None:
    settings = DaemonSettings.read(
        ["--listen", "0.0.0.0:3", "--log-json", "--heartbeat-interval-s", "0.5"]
    )
    assert (settings.listen, settings.log_json, settings.heartbeat_interval_s) == (
        "0.0.0.0:3",
        True,
        0.5,
    )


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--listen", "nowhere"], "nowhere"),
        (
            ["--heartbeat-interval-s", "0"],
            "^heartbeat_interval_s='0': expected a value greater than 0.05$",
        ),
        (["--grpc-workers", "many"], "^grpc_workers='many': expected a valid integer, unable to"),
    ],
)
def test_a_wrong_setting_is_named_with_its_value(flags: list[str], named: str) -> None:
    with pytest.raises(InvalidRequest, match=named):
        DaemonSettings.read(flags)


@pytest.mark.parametrize("address", ["", "host", ":1", "host:", "host:x", "host:65536", "host:-1"])
def test_an_address_is_a_host_and_a_port(address: str) -> None:
    with pytest.raises(InvalidRequest, match="expected host:port"):
        split_address(address)


def test_reachable_address_is_the_advertised_or_a_local_one() -> None:
    assert DaemonSettings(listen="0.0.0.0:0").advertised_address(7) == "127.0.0.1:7"
    assert DaemonSettings(listen="10.0.0.1:0").advertised_address(7) == "10.0.0.1:7"
    assert DaemonSettings(listen="0.0.0.0:0", advertise="me:9").advertised_address(7) == "me:9"
