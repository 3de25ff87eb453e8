"""Node names are kept on disk: loading and building many takes no more memory than few.

Names and ids are found from each other afterwards.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.kit.control_group import memory_group
from tests.kit.waiting import HANG_S

MIB = 1 << 20
NAMES, BYTES, CHUNK = 720_000, 250, 20_000
LIMIT_MIB = 768
"""Limit of the whole process, page cache included.

A process that holds all names twice, as Python strings or arrays, exceeds it.
"""
MAX_EXTRA_MIB = 40
"""Anonymous memory allowed beyond that for two fifths of the names, in MiB.

The smaller load already fills all buffers. The additional names are 103 MiB.
"""

PROGRAM = """
import json, sys
from pathlib import Path
import numpy as np
import asterism

LOADED, BYTES, CHUNK = (int(word) for word in sys.argv[2:])

def names_of(low, high):
    return [f"{i:012d}".ljust(BYTES, "x") for i in range(low, high)]

def anonymous():
    words = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(words["RssAnon"].split()[0]) // 1024

def load(client, space, count):
    client.create_space(space, {"ids": "string", "parts": 4, "nodes": {"n": {}}})
    writing = client.begin_load(space, source="names")
    most = 0
    for chunk, low in enumerate(range(0, count, CHUNK)):
        writing.write_nodes(chunk, "n", names_of(low, min(low + CHUNK, count)))
        most = max(most, anonymous())
    writing.commit()
    graph = client.graph(space)
    graph.build(timeout_s=400)
    most = max(most, anonymous())
    for low in range(0, count, CHUNK * 5):
        asked = names_of(low, min(low + CHUNK, count))
        ids = graph.node_ids(asked, "n")
        assert len(np.unique(ids)) == len(asked)
        assert graph.node_names(ids, "n").tolist() == asked
        most = max(most, anonymous())
    assert graph.node_ids(["no such name"], missing="none").tolist() == [-1]
    assert graph.manifest().count("NODE", 0) == count
    return most

with asterism.open(sys.argv[1], memory_limit_mib=32) as client:
    few = load(client, "few", LOADED * 2 // 5)
    many = load(client, "many", LOADED)
print(json.dumps([few, many]))
"""


def test_many_names_take_no_more_memory_than_few(tmp_path: Path) -> None:
    """Compare the peak RssAnon, read after each chunk, for two fifths and for all names.

    Measured with a load of 12 on two cores: 273 and 279 MiB, 6 MiB apart. The bound of 40 MiB
    allows for buffers and malloc, but not for a copy of the second load's additional names, 103
    MiB.
    """
    command = [
        sys.executable,
        "-c",
        PROGRAM,
        str(tmp_path / "graph"),
        str(NAMES),
        str(BYTES),
        str(CHUNK),
    ]
    try:
        with memory_group(LIMIT_MIB * MIB) as prefix:
            process = subprocess.run(
                [*prefix, *command], capture_output=True, text=True, timeout=HANG_S, check=False
            )
    except OSError:  # this machine allows no control group: measure the process without one
        process = subprocess.run(
            command, capture_output=True, text=True, timeout=HANG_S, check=False
        )
    assert process.returncode == 0, f"{process.returncode}: {process.stderr[-3000:]}"
    few, many = json.loads(process.stdout)
    assert many - few < MAX_EXTRA_MIB, (few, many)
    assert NAMES * 3 // 5 * BYTES > 1.7 * MAX_EXTRA_MIB * MIB
