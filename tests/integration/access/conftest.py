"""A cluster with access control, which all tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.kit.access import AccessCluster


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccessCluster]:
    cluster = AccessCluster(tmp_path_factory.mktemp("access"))
    yield cluster
    cluster.stop()
