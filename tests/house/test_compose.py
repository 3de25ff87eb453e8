"""The compose file comes up however its containers are made: in turn, or side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml


def services(root: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load((root / "docker-compose.yml").read_text())["services"]
    return found


def mounts(service: dict[str, Any], volume: str) -> list[str]:
    return [mount for mount in service.get("volumes", []) if mount.split(":")[0] == volume]


def copying(found: dict[str, dict[str, Any]], volume: str) -> list[str]:
    """Services whose container fills the volume with what the image has there, should it be empty."""
    return [name for name, service in found.items() if any("nocopy" not in mount.split(":")[2:] for mount in mounts(service, volume))]


def faults(found: dict[str, dict[str, Any]]) -> list[str]:
    """Volumes that two containers, made at one time, would both copy the image's files into: the engine then refuses one of them."""
    named = {mount.split(":")[0] for service in found.values() for mount in service.get("volumes", [])}
    wrong = []
    for volume in sorted(named):
        holders, first = {name for name, service in found.items() if mounts(service, volume)}, copying(found, volume)
        if len(first) != 1:
            wrong.append(f"{volume} is copied into by {first}")
        elif late := sorted(name for name in holders - set(first) if first[0] not in found[name].get("depends_on", [])):
            wrong.append(f"{late} may come before {first[0]}, which fills {volume}")
    return wrong


def test_one_container_fills_what_several_share(root: Path) -> None:
    found = services(root)
    assert len([name for name in found if mounts(found[name], "kernels")]) == len(found)
    assert faults(found) == []


@pytest.mark.parametrize("change", ["all copy", "nobody waits"])
def test_a_volume_that_several_fill_is_found(root: Path, change: str) -> None:
    found = services(root)
    for service in found.values():
        if change == "all copy":
            service["volumes"] = [mount.removesuffix(":nocopy") for mount in service["volumes"]]
        else:
            service.pop("depends_on", None)
    (fault,) = faults(found)
    assert "kernels" in fault
