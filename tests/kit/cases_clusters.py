"""Clusters that start with the graph of `tests.kit.cases`, built once per process."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path

from tests.kit import cases
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import wait_until


@cache
def _built_folder(storageds: int) -> Path:
    """Build the graph on a number of storageds and return the folder with their data.

    The folder, which also has the data of metad, is removed with this process.
    """
    folder = tempfile.TemporaryDirectory(prefix="asterism-cases-")
    atexit.register(folder.cleanup)
    with LocalCluster(storageds, 1, folder=Path(folder.name)) as cluster:
        cases.load(cluster.client(), "cases")
        cluster["graphd-0"].stop()
        hosts = partial(cluster.get, "metad", "/api/v1/hosts")
        wait_until(
            lambda: not any(host["online"] for host in hosts() if host["role"] == "graphd"),
            "metad knows that the graphd is gone",
        )
    return Path(folder.name)


@contextmanager
def cases_cluster(storageds: int, graphds: int = 1, *, fast: bool = True) -> Iterator[LocalCluster]:
    """Start a cluster with the graph in the space ``cases``, at version 1, on all graphds.

    It serves tests that only read the graph. `test_cluster_equality` tests that builds are equal on
    any number of hosts. With ``fast=False``, which saves CPU time, lost daemons are noticed late.
    """
    with tempfile.TemporaryDirectory(prefix="asterism-cluster-") as name:
        for data in ("metad", *(f"storaged-{i}" for i in range(storageds))):
            shutil.copytree(_built_folder(storageds) / data, Path(name) / data)
        with LocalCluster(storageds, graphds, folder=Path(name), fast=fast) as cluster:
            yield cluster
