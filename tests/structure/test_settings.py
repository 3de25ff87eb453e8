"""Tests that every setting is on the settings page with its default and description."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from asterism_daemonkit.setting_descriptions import describe_settings
from asterism_daemonkit.settings import DaemonSettings
from graphd.settings import GraphdSettings
from metad.settings import MetadSettings
from storaged.settings import StoragedSettings

DAEMONS: dict[str, type[DaemonSettings]] = {
    "metad": MetadSettings,
    "storaged": StoragedSettings,
    "graphd": GraphdSettings,
}
UNITS = {"_s": "econds", "_mib": "MiB"}


def page(root: Path) -> str:
    return (root / "docs/settings.md").read_text()


def format_default(value: object) -> str:
    return (
        str(value).lower()
        if isinstance(value, bool)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )


def row(name: str, cls: type[DaemonSettings]) -> str:
    describe_settings(cls)
    field = cls.model_fields[name]
    default = format_default(field.default)
    return (
        f"| `{name}` | {f'`{default}`' if default else 'none'} | "
        f"{' '.join((field.description or '').split())} |"
    )


def shared_settings() -> list[str]:
    """Return the settings of every daemon; those that it shares with one process come last."""
    names = list(DaemonSettings.model_fields)
    return sorted(names, key=lambda name: name not in DaemonSettings.__annotations__)


def own_settings(daemon: str) -> list[str]:
    """Return the settings of one daemon only, or with a default that differs from the others."""
    cls, base = DAEMONS[daemon], DaemonSettings.model_fields
    return [
        name
        for name, field in cls.model_fields.items()
        if name not in base or field.default != base[name].default
    ]


def table(names: list[str], cls: type[DaemonSettings]) -> str:
    return "\n".join(
        [
            "| setting | default | what it says |",
            "| --- | --- | --- |",
            *(row(name, cls) for name in names),
        ]
    )


def expected_tables() -> dict[str, str]:
    """Return the expected tables of the page."""
    return {
        "every daemon": table(shared_settings(), DaemonSettings),
        **{d: table(own_settings(d), cls) for d, cls in DAEMONS.items()},
    }


@pytest.mark.parametrize("section", ["every daemon", *DAEMONS])
def test_the_page_lists_the_actual_defaults(root: Path, section: str) -> None:
    assert f"### {section}\n\n{expected_tables()[section]}\n" in page(root)


@pytest.mark.parametrize(("daemon", "cls"), DAEMONS.items())
def test_settings_are_read_from_the_daemons_own_variables(
    daemon: str, cls: type[DaemonSettings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"ASTERISM_{daemon.upper()}_HEARTBEAT_INTERVAL_S", "0.25")
    assert cls.read([]).heartbeat_interval_s == 0.25
    assert cls.read(["--heartbeat-interval-s", "0.5"]).heartbeat_interval_s == 0.5, (
        "a flag outranks the environment"
    )


@pytest.mark.parametrize("cls", DAEMONS.values())
def test_settings_do_not_change_once_they_are_read(cls: type[DaemonSettings]) -> None:
    assert cls.model_config.get("frozen") is True
    assert cls.model_config.get("extra") == "forbid"


@pytest.mark.parametrize("cls", DAEMONS.values())
def test_settings_of_time_and_memory_name_their_unit(cls: type[DaemonSettings]) -> None:
    suspects = [
        n
        for n in cls.model_fields
        if re.search(
            r"interval|timeout|wait|grace|backoff|lease|tick|memory|cache"
            r"|(?<!rows_)(?<!steps_)limit$",
            n,
        )
    ]
    assert [name for name in suspects if not name.endswith(tuple(UNITS))] == []
