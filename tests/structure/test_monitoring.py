"""Tests that the page on monitoring names the metrics and log events that daemons have."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.kit import pages
from tests.kit.waiting import HANG_S

from asterism_daemonkit.metrics import Metrics
from metad.model.hosts import DaemonRole
from metad.model.jobs import JobState

PAGE = pages.ROOT / "docs/monitoring.md"
GAUGE = re.compile(r'add_gauge\(\s*"([a-z_]+)"')
EVENT = re.compile(
    r'logger\.(?:info|warning|error|critical|exception|log)\(\s*(?:\w+,\s*)?"([a-z_]+)"'
)
FILES = re.compile(r'\bevents(?:: str)? ?= ?"([a-z_]+)"')
"""First words of the events of files that are read again."""
LABELS = {"job", "instance", "daemon", "method", "code", "way", "le"}


def sources(root: Path) -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "services/*.py", "proto/asterism_io/*.py"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_S,
    ).stdout.split()
    return [(root / name).read_text() for name in listed if (root / name).is_file()]


def metric_names(root: Path) -> set[str]:
    """Return the names of all series that daemons expose."""
    gauges = {name for text in sources(root) for name in GAUGE.findall(text)}
    gauges |= {f"{role.name.lower()}s_online" for role in DaemonRole}
    gauges |= {f"jobs_{state.name.lower()}" for state in JobState}
    metrics = Metrics("graphd")
    metrics.count_call("SampleNodes", "OK", 0.1)
    series = {sample.name for family in metrics.registry.collect() for sample in family.samples}
    return series | {f"asterism_{name}" for name in gauges}


def yaml_blocks() -> list[dict[str, Any]]:
    return [yaml.safe_load(block.code) for block in pages.blocks(PAGE) if block.kind == "yaml"]


def rules() -> list[dict[str, Any]]:
    (groups,) = (block["groups"] for block in yaml_blocks() if "groups" in block)
    return [rule for group in groups for rule in group["rules"]]


def test_every_gauge_of_a_daemon_is_on_the_page(root: Path) -> None:
    page = PAGE.read_text()
    names = {
        name.removeprefix("asterism_") for text in sources(root) for name in GAUGE.findall(text)
    }
    assert "pins" in names
    assert {name for name in names if f"`{name}`" not in page} == set()


def test_every_log_event_is_on_the_page(root: Path) -> None:
    page = PAGE.read_text()
    events = {name for text in sources(root) for name in EVENT.findall(text)}
    files = {name for text in sources(root) for name in FILES.findall(text)}
    events |= {f"{name}_{what}" for name in files for what in ("reloaded", "not_reloaded")}
    assert {"certificates_not_reloaded", "call_crashed", "version_loaded"} <= events
    missing = {name for name in events if f"`{name}`" not in page}
    assert {name for name in missing if not name.endswith("_crashed")} == set()


def test_the_ports_to_scrape_are_the_http_ports() -> None:
    (scraped,) = (block["scrape_configs"] for block in yaml_blocks() if "scrape_configs" in block)
    targets = scraped[0]["static_configs"][0]["targets"]
    assert {target.rpartition(":")[2] for target in targets} == {"19559", "19779", "19669"}


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_a_rule_reads_metrics_that_exist(rule: dict[str, Any], root: Path) -> None:
    assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"]["severity"] in {"info", "warning", "critical"}
    assert re.fullmatch(r"\d+[mhd]", rule.get("for", "1m"))
    expression = rule["expr"]
    used = set(re.findall(r"\basterism_\w+", expression))
    assert used <= metric_names(root)
    assert used or "up{" in expression
    assert expression.count("(") == expression.count(")")
    selectors = ",".join(re.findall(r"\{([^}]*)\}", expression))
    grouped = ",".join(re.findall(r"by \(([^)]*)\)", expression))
    named = {*re.findall(r"(\w+) *=", selectors), *re.findall(r"\w+", grouped)}
    shown = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
    assert named | shown <= LABELS


def test_alerts_have_names_of_their_own() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(names) == len(set(names)) >= 5


def test_terms_of_the_glossary_are_in_order(root: Path) -> None:
    tables = (root / "docs/glossary.md").read_text().split("\n## ")[1:]
    assert len(tables) == 4
    for table in tables:
        terms = [term.lower() for term in re.findall(r"^\| \*\*(.+?)\*\*", table, re.MULTILINE)]
        assert terms == sorted(set(terms))
