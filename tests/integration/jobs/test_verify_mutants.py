"""The self-test rejects every planted fault that changes a sampling probability.

It runs through real processes and gRPC, and accepts the unmodified sampler.

Faults that cannot be observed from outside are not planted. These are rows and coins of 32 bits,
which change probabilities by less than 2^-20 here (the distribution tests enumerate the words where
they show). Faults of sampling without replacement and correlated random streams leave every
probability unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S
from tests.mutants.catalogue.draws import MUTANTS, NAMED, UNAUDITED

import asterism

DRAWS = 8000
TABLES = {"turned": "1 / (weight + 0.1)"}
QUICK = ("alias and probability swapped", "stale totals", "an id before its threshold")
SLOW = (
    "zero weight picked, by tables",
    "the light half dropped",
    "unpaired columns lead to outcome 0",
    "floor, and the rest to parts alike",
    "answers grouped by part",
    "first neighbor never picked",
    "one stream for every position",
    "a union's types alike",
    "ids of rows beside columns",
)
REFUSED = ("float32 sums of rows",)
"""Faults that make a build fail even with its audit switched off."""


def faulty_cluster(folder: Path, *names: str) -> LocalCluster:
    """Return a cluster of one storaged and one graphd with these faults.

    With several graphds, graphd itself would notice stale totals.
    """
    return LocalCluster(1, 1, folder=folder, mutants=names)


def fill(client: asterism.Client, *, tables: Mapping[str, str] | None = None) -> None:
    """Create a graph with skewed partitions, skewed weights and some weights of 0.

    One node type and one edge type have weight tables.
    """
    with_tables = {"weighted": True, "tables": tables or {}}
    schema = {
        "parts": 3,
        "direction": "both",
        "nodes": {"n": with_tables, "m": {}, "thin": {"weighted": True}},
        "edges": {"n:w:m": with_tables, "n:u:m": {"weighted": True}},
    }
    client.create_space("planted", schema)
    graph, rng = client.graph("planted"), np.random.default_rng(4)
    ids = np.arange(60)
    weights = np.exp(rng.normal(size=60)) * np.array([0.02, 0.1, 1.0])[ids % 3]
    weights[5::9] = 0
    graph.upsert_nodes(ids, "n", weights=weights)
    graph.upsert_nodes(np.arange(40), "m")
    graph.upsert_nodes(ids * 1_000_003, "thin", weights=weights)
    for relation, count in (("w", 300), ("u", 120)):
        src = rng.integers(0, 60, count)
        weights = np.exp(2 * rng.normal(size=count)) * np.array([0.05, 0.3, 1.0])[src % 3]
        weights[::11] = 0
        graph.upsert_edges(src, rng.integers(0, 40, count), relation, weights=weights)
    graph.build(timeout_s=HANG_S)


@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]
)
def test_fault_that_changes_probabilities_is_found(name: str, tmp_path: Path) -> None:
    with faulty_cluster(tmp_path, UNAUDITED.name, name) as cluster:
        client = cluster.client()
        fill(client)
        report = client.verify("planted", draws=DRAWS, seed=0)
    assert not report.passed
    assert report.failures


def test_faults_of_further_weights_are_found_and_attributed(tmp_path: Path) -> None:
    """The faults are in different tables, so each fails subjects of its own."""
    with faulty_cluster(tmp_path, *(mutant.name for mutant in NAMED)) as cluster:
        client = cluster.client()
        fill(client, tables=TABLES)
        report = client.verify("planted", draws=DRAWS, seed=0)
    own_weights = [f for f in report.findings if not f.subject.endswith("by 'turned'")]
    # A report on these weights alone has the same draws and fewer tests to correct for.
    p_values = [finding.p for finding in own_weights if finding.freedom or not finding.p]
    assert min(p_values) * len(p_values) > report.alpha, own_weights
    assert all(check.passed for check in report.checks)
    assert not report.passed
    failing_subjects = {finding.subject for finding in report.findings if not finding.passed}
    assert all(subject.endswith("by 'turned'") for subject in failing_subjects)
    assert {subject.split()[0] for subject in failing_subjects} == {
        mutant.name.split()[0] for mutant in NAMED
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_a_fault_that_no_build_survives_publishes_nothing(name: str, tmp_path: Path) -> None:
    with faulty_cluster(tmp_path, UNAUDITED.name, name) as cluster:
        client = cluster.client()
        with pytest.raises(asterism.NotReady, match="short of"):
            fill(client)
        assert client.versions("planted") == []


@pytest.mark.slow
def test_unmodified_sampler_is_accepted(tmp_path: Path) -> None:
    with faulty_cluster(tmp_path, UNAUDITED.name) as cluster:
        client = cluster.client()
        fill(client)
        for seed in range(3):
            report = client.verify("planted", draws=DRAWS, seed=seed)
            assert report.passed, report.failures


def test_every_sampling_mutant_is_covered_or_undetectable() -> None:
    undetectable = {
        "reservoir off by one",  # without replacement
        "Floyd off by one",
        "zero weight picked, in whole rows",
        "zero weight picked, in a race",
        "starting over after too many rejections",
        "rejected draws taken with replacement",
        "a race by -log(u) * w",
        "float32 prefix sums over a union",  # by 2^-24 of a node's sum
        "rows from 32 bits, globally",  # by rows / 2^32
        "rows from 32 bits, in neighborhoods",
        "coins of 32 bits",
        "the same stream on every worker",  # correlated draws, each with the right distribution
        "streams of neighboring seeds lag",
        "streams of neighboring positions lag",
        "two draws from one word",
        "neighbors by their place on a host",
        # where graphd distinguishes the draws of several hosts; here is only one
        "parts in proportion, in random order",
        "sums that lose small weights",  # by 2^-24
        "the rest alike after too many rejections",  # without replacement
        "a union's types race by the same words",
    }
    assert {*QUICK, *SLOW, *REFUSED, *undetectable} == {mutant.name for mutant in MUTANTS}
    assert not {*QUICK, *SLOW, *REFUSED} & undetectable
