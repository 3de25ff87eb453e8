"""Check of forks during use of a client: each child samples the same as its parent."""

from __future__ import annotations

import subprocess
import sys

from tests.kit.waiting import HANG_S

_PROGRAM = """
import os, sys, threading, time
import numpy as np
import asterism

direct, pause = sys.argv[3] == "direct", float(sys.argv[4])
client = asterism.connect(sys.argv[1], direct=direct, timeout_s=600)
graph = client.graph("cases")
expected = graph.sample_edges(50, seed=8).edge_ids
over = threading.Event()


def work():
    while not over.is_set():
        assert len(graph.sample_nodes(20, seed=1)) == 20


threads = [threading.Thread(target=work) for _ in range(int(sys.argv[2]))]
for thread in threads:
    thread.start()
children = []
for _ in range(6):
    pid = os.fork()
    if pid == 0:
        before = client.traffic.direct
        same = np.array_equal(graph.sample_edges(50, seed=8).edge_ids, expected)
        os._exit(0 if same and (client.traffic.direct > before) is direct else 1)
    children.append(pid)
    time.sleep(pause)
ends = [os.waitpid(pid, 0)[1] for pid in children]
over.set()
for thread in threads:
    thread.join()
assert ends == [0] * 6, ends
assert np.array_equal(graph.sample_edges(50, seed=8).edge_ids, expected)
"""


def assert_forks_draw_correctly(
    addresses: str, threads: int, *, direct: bool = False, pause_s: float = 0.02
) -> None:
    """Fork six times while threads call, and check the results on the graph ``cases``.

    ``threads`` threads call concurrently; the forks are ``pause_s`` seconds apart.

    Raises
    ------
    subprocess.CalledProcessError, subprocess.TimeoutExpired
    """
    arguments = [addresses, str(threads), "direct" if direct else "", str(pause_s)]
    subprocess.run([sys.executable, "-c", _PROGRAM, *arguments], check=True, timeout=HANG_S)
