"""Benchmark of idle daemons: share of a core and wakes per second; for an idle machine.

python -m tests.benchmarks.idle [--windows 3] [--seconds 20]
"""

from __future__ import annotations

import argparse

from tests.kit import bodies, wakes
from tests.kit.cluster import LocalCluster


def main() -> None:
    """Measure a cluster with one published graph and no requests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--windows", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0)
    args = parser.parse_args()
    with LocalCluster(1, 1, fast=False, cold=True) as cluster:
        with cluster.client() as client:
            bodies.assert_build_published(client, "shop")
        pids = {name: daemon.pid for name, daemon in cluster.daemons.items()}
        for _ in range(args.windows):
            shares = wakes.core_shares(pids, args.seconds)
            rates = wakes.wake_rates(pids, args.seconds)
            for name, share in shares.items():
                print(
                    f"{name:12} {100 * share:6.3f} % of a core   "
                    f"{sum(rates[name].values()):6.1f} wakes/s"
                )


if __name__ == "__main__":
    main()
