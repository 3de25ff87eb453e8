"""Exports of graphs larger than the export's memory limit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.kit.control_group import memory_group
from tests.kit.waiting import HANG_S

MIB = 1 << 20
LIMIT_MIB = 256
"""Limit on the whole process: 64 MiB of arrays, plus Python, NumPy and the kernels."""

PROGRAM = """
import json, sys
from pathlib import Path
from tests.kit.large_graph import LargeGraph
from asterism import export
graph = LargeGraph(nodes={nodes}, edges={edges}, sparse={sparse})
report = export.dgl(graph, Path(sys.argv[1]), parts=4, memory_limit_mib=64, workers=1)
print(json.dumps([report.nodes, report.edges]))
"""


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_export_stays_within_its_memory_limit(tmp_path: Path, sparse: bool) -> None:
    """Ids, owners and labels take at least 20 bytes per node, a hub's edges 24 bytes each.

    Together they exceed the limit. The kernel enforces the limit, page cache included: an export
    that needs more is killed. The test therefore measures no peak that could vary.
    """
    nodes, edges = 3_000_000, 10_000_000
    program = PROGRAM.format(nodes=nodes, edges=edges, sparse=sparse)
    try:
        with memory_group(LIMIT_MIB * MIB) as prefix:
            command = [*prefix, sys.executable, "-c", program, str(tmp_path / "out")]
            completed = subprocess.run(
                command, capture_output=True, text=True, timeout=HANG_S, check=False
            )
    except OSError as error:
        pytest.skip(f"this machine lets no memory group be made: {error}")
    assert completed.returncode == 0, f"{completed.returncode}: {completed.stderr[-2000:]}"
    assert json.loads(completed.stdout) == [nodes, edges]
    assert (
        sum(path.stat().st_size for path in (tmp_path / "out").rglob("*") if path.is_file())
        > 1.5 * LIMIT_MIB * MIB
    )
