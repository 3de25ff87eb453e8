"""Tests that the compose file starts, with containers created in turn or in parallel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml


def services(root: Path) -> dict[str, dict[str, Any]]:
    definitions: dict[str, dict[str, Any]] = yaml.safe_load(
        (root / "docker-compose.yml").read_text()
    )["services"]
    return definitions


def mounts(service: dict[str, Any], volume: str) -> list[str]:
    return [mount for mount in service.get("volumes", []) if mount.split(":")[0] == volume]


def filling_services(definitions: dict[str, dict[str, Any]], volume: str) -> list[str]:
    """Return the services with a container that fills an empty volume from its image."""
    return [
        name
        for name, service in definitions.items()
        if any("nocopy" not in mount.split(":")[2:] for mount in mounts(service, volume))
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
