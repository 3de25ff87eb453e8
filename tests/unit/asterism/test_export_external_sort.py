"""Tests of the external sort against a sort in memory: hubs, ties, and keys far apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from asterism.export.export_schema import ExportPlan
from asterism.export.external_sort import sorted_positions
from asterism.export.run_state import ExportRun
from asterism.export.scratch_files import Spool

GENERATOR = np.random.default_rng(4)
ROWS = 12_000
KEYS = {
    "a hub": np.full(ROWS, 7),
    "two hubs": np.where(np.arange(ROWS) % 3 == 0, 7, 1 << 19),
    "far apart": GENERATOR.integers(7, 1 << 20, ROWS),
    "few": np.array([9, 7, 9, 8]),
}


@pytest.mark.parametrize("name", KEYS)
def test_positions_are_in_stable_order_of_the_keys(tmp_path: Path, name: str) -> None:
    keys = KEYS[name]
    run = ExportRun(
        plan=ExportPlan(nodes=(), edges=(), warnings=()),
        version=1,
        parts=1,
        trainers=1,
        hops=1,
        formats=(),
        out=tmp_path,
        scratch=tmp_path,
        memory_limit_mib=1,
    )
    spool = Spool(path=tmp_path / "keys", dtype=np.dtype(np.int64), piece_bytes=1 << 14)
    spool.append(keys)
    positions = sorted_positions(run, spool, 7, int(keys.max()) + 1)
    np.testing.assert_array_equal(positions, np.argsort(keys, kind="stable"))
    assert [path.name for path in tmp_path.iterdir()] == ["keys"]
