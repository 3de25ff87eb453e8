"""Benchmark of feature reads of many nodes.

Reads are embedded, from one storaged directly, through graphd, and from all storageds by a client.

    python -m tests.benchmarks.features                               # 100,000 of 1M rows of 128
        float32, three storageds
    python -m tests.benchmarks.features --folder /var/tmp/serving     # the folder of
        tests.benchmarks.serving does as well
    python -m tests.benchmarks.features --rows 20000 --nodes 1000 --edges 1000 --rounds 5    # small

GB are of 10^9 bytes of features. It asserts nothing.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from tests.benchmarks.serving import (
    SPACE,
    WIDTH,
    Processes,
    Sizes,
    graphs,
    parse_arguments,
    time_calls,
)

from asterism.graph import Graph
from asterism_daemonkit.rpc.grpc_client import RemoteTransport
from asterism_daemonkit.rpc.tcp_client import TcpTransport
from asterism_graphkit.random.partition_choice import part_of
from asterism_proto.framing import Frame
from asterism_proto.methods import STORE
from asterism_proto.v1 import storaged_pb2 as storaged_pb

REQUESTED_ROWS = 100_000


def direct_reader(graph: Graph, rows: int) -> tuple[TcpTransport, Callable[[int], object]]:
    """Return a connection to the storaged of partition 0, and a function that reads its rows.

    It reads as many rows as a read of all storageds.
    """
    client = graph.client
    graph.node_features(
        np.arange(len(client.hosts())), ["x"]
    )  # the reply implies that the version is open
    space, version = client.describe(SPACE), client.manifest(SPACE)
    uuid = space.hosts[0][0]
    address = next(host.address for host in client.hosts() if host.uuid == uuid)
    ids = np.arange(rows, dtype=np.int64)
    hosts = np.array([hosts[0] == uuid for hosts in space.hosts])
    part_ids = np.random.default_rng(1).choice(
        ids[hosts[part_of(ids, len(hosts), space.schema.placement)]], (8, REQUESTED_ROWS)
    )
    transport = TcpTransport(address, RemoteTransport(address))
    version_ref = storaged_pb.VersionRef(
        space_id=space.space_id, version=version.version, digest=version.digest
    )
    head = storaged_pb.ReadNodeFeaturesRequest(
        version_ref=version_ref, type_id=space.schema.node_type_id("row"), names=["x"]
    )
    return transport, lambda i: transport.call(
        STORE["read_node_features"], Frame(head, {"ids": part_ids[i % 8]}), 60.0
    )


def main() -> None:
    """Print the table."""
    args = parse_arguments(__doc__, ("embedded", "direct", "graphd", "storageds"))
    sizes = Sizes(args.nodes, args.edges, args.parts, args.rows)
    ids = np.random.default_rng(0).integers(0, args.rows, (8, 4 * REQUESTED_ROWS))
    with (
        tempfile.TemporaryDirectory() as temporary,
        graphs(sizes, args.folder or Path(temporary), args.storageds) as (
            embedded,
            remote,
            cluster,
        ),
    ):
        print(
            f"of {args.rows:,} rows of {WIDTH} float32, {args.storageds} storageds; load "
            f"{os.getloadavg()[0]:.1f}"
        )

        def show(
            name: str,
            call: Callable[[int], object],
            processes: Processes,
            count: int,
            flight: int = 1,
        ) -> None:
            timing = time_calls(call, args.rounds, processes, flight)
            size = count * WIDTH * 4
            total_rate, call_rate = (
                size * args.rounds / timing.seconds / 1e9,
                size / np.median(timing.ms) / 1e6,
            )
            print(
                (
                    f"  {name:<44} {total_rate:6.2f} GB/s on the whole, {call_rate:6.2f} a call  "
                    f"{timing}"
                ),
                flush=True,
            )

        def read_rows(graph: Graph, count: int) -> Callable[[int], object]:
            return lambda i: graph.node_features(ids[i % 8, :count], ["x"])

        if "embedded" in args.only and embedded is not None:
            show(
                f"{REQUESTED_ROWS:,} embedded",
                read_rows(embedded, REQUESTED_ROWS),
                Processes.of(None),
                REQUESTED_ROWS,
            )
        if "direct" in args.only:
            transport, call = direct_reader(remote, args.rows)
            show(f"{REQUESTED_ROWS:,} of one storaged", call, Processes.of(cluster), REQUESTED_ROWS)
            transport.close()
        if "graphd" in args.only:
            for count in (1000, 10_000, REQUESTED_ROWS):
                show(
                    f"{count:,} through graphd",
                    read_rows(remote, count),
                    Processes.of(cluster),
                    count,
                )
            show(
                f"{REQUESTED_ROWS:,} through graphd, 2 in flight",
                read_rows(remote, REQUESTED_ROWS),
                Processes.of(cluster),
                REQUESTED_ROWS,
                2,
            )
        if "storageds" in args.only:
            direct_graph = cluster.client(timeout_s=600, direct=True).graph(SPACE)
            for count in (1000, 10_000, REQUESTED_ROWS):
                show(
                    f"{count:,} of storageds, by the client",
                    read_rows(direct_graph, count),
                    Processes.of(cluster),
                    count,
                )


if __name__ == "__main__":
    main()
