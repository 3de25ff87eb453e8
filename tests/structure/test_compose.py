"""Tests of the compose files: what containers start with, created in turn or in parallel."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.kit.waiting import HANG_S

from asterism_access.credentials.certificate_authority import FILES
from asterism_access.credentials.cluster_key import ClusterKey
from asterism_daemonkit import readiness_probe
from asterism_daemonkit.exposure import INSECURE_VARIABLE
from asterism_daemonkit.settings import DaemonSettings
from asterism_daemonkit.tls import DaemonTls
from asterism_proto.errors import InvalidRequest
from graphd.settings import GraphdSettings
from metad.settings import MetadSettings
from storaged.settings import StoragedSettings

SECURE = "docker-compose.secure.yml"
SETTINGS: dict[str, type[DaemonSettings]] = {
    "metad": MetadSettings,
    "storaged": StoragedSettings,
    "graphd": GraphdSettings,
}


def services(root: Path, file: str = "docker-compose.yml") -> dict[str, dict[str, Any]]:
    definitions: dict[str, dict[str, Any]] = yaml.safe_load((root / file).read_text())["services"]
    return definitions


def read_settings(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> DaemonSettings:
    """Return the settings of a daemon in an environment."""
    (daemon,) = {name.split("_")[1].lower() for name in environment if "_HTTP_LISTEN" in name}
    with monkeypatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value))
        return SETTINGS[daemon].read([])


def mounts(service: dict[str, Any], volume: str) -> list[str]:
    return [mount for mount in service.get("volumes", []) if mount.split(":")[0] == volume]


def filling_services(definitions: dict[str, dict[str, Any]], volume: str) -> list[str]:
    """Return the services with a container that fills an empty volume from its image."""
    return [
        name
        for name, service in definitions.items()
        if any(
            "nocopy" not in mount.rpartition(":")[2].split(",") for mount in mounts(service, volume)
        )
    ]


def volume_problems(definitions: dict[str, dict[str, Any]]) -> list[str]:
    """Return the volumes that two containers, created at the same time, would both fill.

    The engine then refuses one of them.
    """
    volumes = {
        mount.split(":")[0]
        for service in definitions.values()
        for mount in service.get("volumes", [])
    }
    problems = []
    for volume in sorted(volumes):
        holders, fillers = (
            {name for name, service in definitions.items() if mounts(service, volume)},
            filling_services(definitions, volume),
        )
        if len(fillers) != 1:
            problems.append(f"{volume} is copied into by {fillers}")
        elif early_services := sorted(
            name
            for name in holders - set(fillers)
            if fillers[0] not in definitions[name].get("depends_on", [])
        ):
            problems.append(f"{early_services} may come before {fillers[0]}, which fills {volume}")
    return problems


def test_one_container_fills_each_shared_volume(root: Path) -> None:
    definitions = services(root)
    assert len([name for name in definitions if mounts(definitions[name], "kernels")]) == len(
        definitions
    )
    assert volume_problems(definitions) == []


@pytest.mark.parametrize("change", ["all copy", "no service waits"])
def test_volume_that_several_services_fill_is_reported(root: Path, change: str) -> None:
    definitions = services(root)
    for service in definitions.values():
        if change == "all copy":
            service["volumes"] = [mount.removesuffix(":nocopy") for mount in service["volumes"]]
        else:
            service.pop("depends_on", None)
    (problem,) = volume_problems(definitions)
    assert "kernels" in problem


def test_ports_are_published_on_loopback_by_default(root: Path) -> None:
    published = [port for service in services(root).values() for port in service.get("ports", [])]
    assert published
    assert [port for port in published if ":-127.0.0.1:" not in port] == []


def test_insecure_daemons_are_permitted_explicitly(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for definition in services(root).values():
        environment = definition["environment"]
        assert "0.0.0.0:" in str(read_settings(environment, monkeypatch).insecure_addresses())
        refused = {name: environment[name] for name in environment if name != INSECURE_VARIABLE}
        with pytest.raises(InvalidRequest, match="or permit it with --insecure"):
            read_settings(refused, monkeypatch)


def test_the_second_file_protects_every_daemon(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, secure = services(root), services(root, SECURE)
    keys = secure.pop("keys")
    assert set(secure) == set(plain)
    for name, definition in secure.items():
        environment = plain[name]["environment"] | definition["environment"]
        settings = read_settings(environment, monkeypatch)
        assert settings.insecure_addresses() == []
        assert not settings.insecure
        files = (settings.tls_cert, settings.tls_key, settings.tls_ca, settings.cluster_key_file)
        assert {str(Path(file).parent) for file in files} == {"/etc/asterism"}
        assert {Path(file).name for file in files} <= {*FILES, "cluster.key"}
        assert definition["depends_on"]["keys"]["condition"] == "service_completed_successfully"
        assert f"--host {name} " in keys["command"][-1]
    assert filling_services({"keys": keys, **secure}, "keys") == ["keys"]


def test_the_second_file_creates_keys_once(root: Path, tmp_path: Path) -> None:
    *shell, script = services(root, SECURE)["keys"]["command"]
    command = f"alias asterism='{sys.executable} -m asterism.cli'\n" + script.replace(
        "/var/lib/asterism", str(tmp_path)
    )
    contents = []
    for _ in range(2):
        subprocess.run([*shell, command], check=True, timeout=HANG_S)
        contents.append({file.name: file.read_bytes() for file in tmp_path.iterdir()})
    assert contents[0] == contents[1]
    DaemonTls(
        cert=str(tmp_path / "daemon.pem"),
        key=str(tmp_path / "daemon.key"),
        ca=str(tmp_path / "ca.pem"),
        client_auth=True,
    )
    ClusterKey(str(tmp_path / "cluster.key"))


def test_health_checks_need_no_credential(root: Path) -> None:
    for name, service in services(root).items():
        module = ["CMD", "python", "-m", readiness_probe.__name__]
        assert service["healthcheck"]["test"] == [*module, name.split("-")[0]]
    assert not any("healthcheck" in service for service in services(root, SECURE).values())


@pytest.mark.parametrize("name", ["metad", "storaged-0", "graphd-0"])
def test_containers_write_to_volumes_and_memory_only(root: Path, name: str) -> None:
    service = services(root)[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert [entry.split(":")[0] for entry in service["tmpfs"]] == ["/tmp"]
    assert mounts(service, "kernels")


def test_the_image_has_a_user_and_a_base_that_can_be_pinned(root: Path) -> None:
    lines = (root / "Dockerfile").read_text().splitlines()
    bases = [line.split()[1] for line in lines if line.startswith("FROM")]
    assert set(bases) == {"${BASE}", "base", "scratch"}
    assert "USER asterism" in lines
    arguments = services(root)["metad"]["build"]["args"]
    assert arguments["BASE"].startswith("${BASE:-python:3.11-slim-bookworm")
