"""The self-test through commands, clients and HTTP: it accepts a correct graph.

It is reproducible and keeps to its bounds.
"""

from __future__ import annotations

import json
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kit import cases, zygote
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S

import asterism
from asterism import Client
from asterism.cli.exit_codes import ExitCode
from asterism_standalone.app import Standalone

ROWS = cases.PEOPLE + cases.PAPERS + cases.WRITES + 2 * cases.CITES
ROWS_WITH_TABLES = cases.PEOPLE + cases.PAPERS + cases.WRITES + cases.CITES
SEED = 4


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(2, 1) as running:
        cases.load(running.client(), "cases")
        running.client().create_space("bare", {"nodes": {"n": {}}})
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the graph of the cluster, which samples alike."""
    return cases.copy_built_graph(tmp_path_factory.mktemp("verify") / "graphs")


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[Client]:
    """Return a client without daemons: a self-test makes a thousand calls."""
    with asterism.open(folder, mode="r") as reader:
        yield reader


def post(address: str, body: dict[str, Any]) -> tuple[int, Any]:
    request = urllib.request.Request(
        f"http://{address}/verify", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=HANG_S) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@pytest.mark.parametrize("seed", range(5))
def test_correct_graph_passes_for_any_seed(client: Client, seed: int) -> None:
    report = client.verify("cases", draws=40_000, seed=seed)
    assert report.passed, report.failures
    assert report.scanned == ROWS + ROWS_WITH_TABLES


def test_cluster_and_folder_verify_alike(cluster: LocalCluster, client: Client) -> None:
    on_cluster = cluster.client().verify("cases", draws=40_000, seed=SEED)
    assert on_cluster.passed, on_cluster.failures
    assert on_cluster.scanned == ROWS + ROWS_WITH_TABLES
    in_folder = client.verify("cases", draws=40_000, seed=SEED)
    assert (on_cluster.findings, on_cluster.checks) == (in_folder.findings, in_folder.checks)


def test_every_kind_of_sampling_is_verified(client: Client) -> None:
    report = client.verify("cases", draws=5000, seed=1)
    subjects = {(finding.subject, finding.test) for finding in report.findings}
    type_subjects = [f"nodes {name}" for name in ("person", "paper")]
    type_subjects += [
        f"edges {name}" for name in ("person:writes:paper", "paper:cites:paper", "paper:by:person")
    ]
    for mode in ("by weight", "uniformly"):
        assert {
            (f"{subject} {mode}", test)
            for subject in type_subjects
            for test in ("parts", "rows", "weights", "order")
        } <= subjects
        assert {
            (f"{subject} of all types {mode}", "shares") for subject in ("nodes", "edges")
        } <= subjects
        neighbors = [
            "along person:writes:paper",
            "along paper:cites:paper",
            "along paper:by:person",
            "along paper:cites:paper and paper:by:person",
        ]
        neighbors += [
            "against person:writes:paper",
            "against person:writes:paper and paper:cites:paper",
        ]
        assert {(f"neighbors {subject} {mode}", "neighbors") for subject in neighbors} <= subjects
    assert {
        (f"{subject} of all types by weight", "singles") for subject in ("nodes", "edges")
    } <= subjects
    assert len(report.checks) == (5 + 4) * (3 * cases.PARTS + 1)
    fewer, more = (
        [
            f.detectable
            for f in verification.findings
            if f.detectable is not None and f.test == "parts"
        ]
        for verification in (report, client.verify("cases", draws=20_000, seed=1))
    )
    assert max(more) == pytest.approx(max(fewer) / 2, rel=0.1)  # four times the draws


def test_weight_tables_are_verified_all_or_as_named(client: Client) -> None:
    report = client.verify("cases", draws=20_000, seed=1)
    assert report.passed, report.failures
    subjects = {(finding.subject, finding.test) for finding in report.findings}
    type_subjects = [
        "nodes person by 'aged'",
        "nodes paper by 'aged'",
        "edges person:writes:paper by 'recent'",
        "edges paper:cites:paper by 'recent'",
    ]
    assert {
        (what, test) for what in type_subjects for test in ("parts", "rows", "weights", "order")
    } <= subjects
    union_subjects = {
        ("nodes of all types by 'aged'", "shares"),
        ("edges of all types by 'recent'", "singles"),
    }
    neighbor_subjects = [
        "along person:writes:paper",
        "against paper:cites:paper",
        "against person:writes:paper and paper:cites:paper",
    ]
    assert (
        union_subjects
        | {(f"neighbors {what} by 'recent'", "neighbors") for what in neighbor_subjects}
        <= subjects
    )
    assert not any("by:person" in subject for subject, _ in subjects if "'recent'" in subject)
    selected = client.verify("cases", weights="recent", draws=20_000, seed=1)
    assert {f.subject for f in selected.findings} == {
        subject for subject, _ in subjects if "'recent'" in subject
    }
    assert (selected.passed, selected.scanned) == (True, cases.WRITES + cases.CITES), (
        selected.failures
    )
    own_weights = client.verify("cases", weights=["weight"], draws=5000, seed=1)
    assert not any("'" in f.subject for f in own_weights.findings)
    with pytest.raises(asterism.NotFound, match=r"'old'.*'aged', 'recent'"):
        client.verify("cases", weights=["aged", "old"], draws=5000)


def test_a_run_is_repeated_by_its_seed(client: Client) -> None:
    first = client.verify("cases", draws=2000)
    repeated = client.verify("cases", draws=2000, seed=first.seed, version=first.version)
    assert repeated.findings == first.findings
    assert client.verify("cases", draws=2000, seed=first.seed ^ 1).findings != first.findings


def test_command_reports_findings_and_exit_code(
    cluster: LocalCluster, client: Client, folder: Path
) -> None:
    def run(option: str, place: object, *arguments: str) -> subprocess.CompletedProcess[str]:
        return zygote.run("asterism.cli", option, place, "verify", *arguments)

    on_cluster, in_folder = ("--address", cluster.addresses), ("--path", folder)
    json_output = run(
        *in_folder, "cases", "--draws", "20000", "--seed", "3", "--alpha", "1e-6", "--json"
    )
    assert json_output.returncode == ExitCode.DONE, json_output.stderr
    document = json.loads(json_output.stdout)
    assert (document["passed"], document["failures"], document["report"]["alpha"]) == (
        True,
        [],
        1e-6,
    )
    by_client = client.verify("cases", draws=20_000, seed=3, alpha=1e-6)
    assert [f["p"] for f in document["report"]["findings"]] == [f.p for f in by_client.findings]
    text_output = run(*on_cluster, "cases", "--draws", "5000", "--seed", "3", "--weight", "recent")
    assert (
        text_output.returncode,
        "draws follow their weights" in " ".join(text_output.stdout.split()),
    ) == (ExitCode.DONE, True)
    # With an alpha of nearly 1, some test is always rejected.
    odd = ("--draws", "2000", "--seed", "8", "--weight", "recent", "--alpha", "0.999999")
    failing = run(*in_folder, "cases", *odd, "--json")
    assert failing.returncode == ExitCode.FAILED
    assert json.loads(failing.stdout)["failures"]
    selected = run(
        *in_folder,
        "cases",
        "--draws",
        "5000",
        "--seed",
        "3",
        "--weight",
        "aged",
        "--weight",
        "weight",
        "--json",
    )
    assert selected.returncode == ExitCode.DONE, selected.stderr
    subjects = {finding["subject"] for finding in json.loads(selected.stdout)["report"]["findings"]}
    assert {
        "nodes person by 'aged'",
        "nodes person by weight",
        "edges paper:by:person uniformly",
    } <= subjects
    assert not any("'recent'" in subject for subject in subjects)
    for arguments, code in (
        (("nope",), ExitCode.NOT_FOUND),
        (("cases", "--weight", "old"), ExitCode.NOT_FOUND),
        (("cases", "--alpha", "2"), ExitCode.USAGE),
        (("cases", "--graph-version", "99"), ExitCode.NOT_FOUND),
    ):
        assert run(*on_cluster, *arguments).returncode == code
    timed_out = run(*on_cluster, "cases", "--draws", "50000000", "--total-timeout", "0.5")
    assert timed_out.returncode == ExitCode.TIMEOUT


def test_graphd_runs_one_verification_at_a_time_over_http(
    cluster: LocalCluster, client: Client
) -> None:
    address = cluster["graphd-0"].http_address
    verified = {"space": "cases", "draws": 20_000, "seed": SEED, "weights": ["aged"]}
    by_client = client.verify("cases", draws=20_000, seed=SEED, weights="aged")
    replies: list[tuple[int, Any]] = []
    threads = [
        threading.Thread(target=lambda: replies.append(post(address, verified))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    statuses = [status for status, _ in replies]
    assert statuses.count(200) >= 1
    assert set(statuses) <= {200, 429}
    assert 429 in statuses
    for status, verdict in replies:
        if status == 200:
            assert (verdict["passed"], verdict["failures"]) == (True, [])
            assert [f["p"] for f in verdict["report"]["findings"]] == [
                f.p for f in by_client.findings
            ]
            assert {
                finding["subject"].partition("by ")[2] for finding in verdict["report"]["findings"]
            } == {"'aged'"}
    for body, expected in (
        ({"space": "nope"}, (404, "NotFound")),
        ({"space": "cases", "version": 99}, (404, "NotFound")),
        ({"space": "cases", "weights": ["old"]}, (404, "NotFound")),
        ({"space": "cases", "draws": 10**9}, (422, "InvalidRequest")),
        ({"space": "cases", "sedes": 1}, (422, "InvalidRequest")),
        ({"space": "cases", "draws": 1_000_000, "timeout_s": 0.3}, (504, "Deadline")),
    ):
        status, problem = post(address, body)
        assert (status, problem["error"]) == expected, body
    assert post(address, {"space": "bare"})[0] in (404, 409)
    with urllib.request.urlopen(f"http://{address}/openapi.json", timeout=HANG_S) as reply:
        route = json.load(reply)["paths"]["/verify"]["post"]
    assert {"200", "404", "409", "422", "429", "503", "504"} <= set(route["responses"])


def test_served_folder_and_reader_verify_alike(tmp_path: Path) -> None:
    service = Standalone(cases.copy_built_graph(tmp_path / "served"))
    service.start()
    try:
        endpoints = service.open_ports(listen="127.0.0.1:0", http_listen="127.0.0.1:0")
        status, verdict = post(endpoints.http_address, {"space": "cases", "draws": 5000, "seed": 8})
        assert (status, verdict["passed"]) == (200, True), verdict
        with asterism.open(tmp_path / "served", mode="r") as reader:
            report = reader.verify("cases", draws=5000, seed=8)
        assert report.passed
        assert [f.p for f in report.findings] == [f["p"] for f in verdict["report"]["findings"]]
    finally:
        service.stop()
