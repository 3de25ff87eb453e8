"""Benchmark of fair turns: latency of a small principal beside a greedy one, over real gRPC.

    python -m tests.benchmarks.turns                             # 10 ms of processor time a call
    python -m tests.benchmarks.turns --work-ms 2 --calls 2000
    python -m tests.benchmarks.turns --workers 2                 # as many calls at a time as cores

Servers and clients are processes of their own. The small principal has one thread. It is measured
alone, beside a principal with one thread, beside a greedy one with 32, and beside 32 threads that
share its own turns; at a server that bounds the calls that compute by the cores, and at one that
does not. They take turns over several rounds. A percentile on a busy machine shows the machine, so
compare only figures of one run. It asserts nothing."""

from __future__ import annotations

import argparse
import hashlib
import itertools
import multiprocessing
import os
import threading
import time
from multiprocessing.connection import Connection

import grpc

from asterism_daemonkit.rpc.call_context import CallContext
from asterism_daemonkit.rpc.grpc_server import GrpcServer
from asterism_io.control_groups import available_cores
from asterism_proto.errors import CALLER_KEY
from asterism_proto.methods import CATALOG
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb

METHOD = CATALOG["describe_space"]
TIMEOUT_S = 120.0
SCENES = {
    "alone": None,
    "beside one thread": ("other", 1),
    "beside 32 threads": ("greedy", 32),
    "32 threads in its own turns": ("small", 32),
}
REQUEST = metad_pb.SpaceRequest(space="s").SerializeToString()


def hash_rounds(work_ms: float) -> int:
    """Return the rounds of PBKDF2 that take some milliseconds of processor time."""
    rounds = 20_000
    started_at = time.thread_time()
    hashlib.pbkdf2_hmac("sha256", b"x", b"y", rounds)
    return max(int(rounds * work_ms / 1e3 / (time.thread_time() - started_at)), 1)


def serve(pipe: Connection, workers: int, cores: int, rounds: int) -> None:
    """Serve a method of fixed work, outside the interpreter's lock, until the pipe is closed."""

    def handler(request: metad_pb.SpaceRequest, call: CallContext) -> common_pb.Space:
        hashlib.pbkdf2_hmac("sha256", b"x", b"y", rounds)
        return common_pb.Space()

    server = GrpcServer(
        address="127.0.0.1:0",
        services={METHOD.service: ({METHOD.python_name: METHOD}, {METHOD.path: handler})},
        workers=workers,
        cores=cores,
    )
    pipe.send(server.start())
    pipe.recv()
    server.stop(0)


def call_in_a_loop(port: int, name: str, threads: int, pipe: Connection) -> None:
    """Call from several threads until the pipe has a message, and send the number of calls."""
    done, counts = threading.Event(), [0] * threads
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = channel.unary_unary(METHOD.path)

        def loop(thread: int) -> None:
            while not done.is_set():
                stub(REQUEST, timeout=TIMEOUT_S, metadata=((CALLER_KEY, name),))
                counts[thread] += 1

        workers = [threading.Thread(target=loop, args=(i,)) for i in range(threads)]
        for worker in workers:
            worker.start()
        pipe.send("started")
        pipe.recv()
        done.set()
        for worker in workers:
            worker.join()
    pipe.send(sum(counts))


def measure(port: int, calls: int, other: tuple[str, int] | None) -> tuple[list[float], float]:
    """Return latencies of the small principal in ms, and the other's calls per second."""
    context = multiprocessing.get_context("spawn")
    if other is not None:
        pipe, end = context.Pipe()
        process = context.Process(target=call_in_a_loop, args=(port, *other, end))
        process.start()
        pipe.recv()
        time.sleep(0.2)  # until its threads have calls in the queue
    latencies = []
    started_at = time.monotonic()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = channel.unary_unary(METHOD.path)
        for _ in range(calls):
            sent_at = time.monotonic()
            stub(REQUEST, timeout=TIMEOUT_S, metadata=((CALLER_KEY, "small"),))
            latencies.append(1e3 * (time.monotonic() - sent_at))
    seconds = time.monotonic() - started_at
    rate = 0.0
    if other is not None:
        pipe.send("stop")
        rate = pipe.recv() / seconds
        process.join()
    return latencies, rate


def percentile(latencies: list[float], share: float) -> float:
    """Return a percentile of some latencies."""
    return sorted(latencies)[int(share * len(latencies))]


def main() -> None:
    """Measure, and print a line for each scene."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--work-ms", type=float, default=10.0)
    parser.add_argument("--calls", type=int, default=400, help="of the small principal, per scene")
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    rounds = hash_rounds(options.work_ms)  # the same for both servers
    servers: dict[str, tuple[int, Connection]] = {}
    processes = []
    for kind, cores in (("bounded", available_cores()), ("unbounded", 0)):
        pipe, end = context.Pipe()
        server = context.Process(target=serve, args=(end, options.workers, cores, rounds))
        server.start()
        servers[kind] = pipe.recv(), pipe
        processes.append(server)
        measure(servers[kind][0], 20, None)
    cases = list(itertools.product(servers, SCENES))
    latencies: dict[tuple[str, str], list[float]] = {case: [] for case in cases}
    rates: dict[tuple[str, str], list[float]] = {case: [] for case in cases}
    for _ in range(options.rounds):
        for scene, other in SCENES.items():
            for kind, (port, _pipe) in servers.items():
                found, rate = measure(port, options.calls // options.rounds, other)
                latencies[kind, scene] += found
                rates[kind, scene].append(rate)
    for (_port, pipe), server in zip(servers.values(), processes, strict=True):
        pipe.send("stop")
        server.join()
    print(
        f"{options.workers} threads on {available_cores()} cores, load {os.getloadavg()[0]:.1f}, "
        f"{options.work_ms:g} ms of processor time a call, {options.calls} calls"
    )
    print(
        f"{'small principal':40} {'p50 ms':>9} {'p90 ms':>9} {'p99 ms':>9} {'p99 ratio':>10}  "
        "other's calls/s"
    )
    for (kind, scene), found in latencies.items():
        p50, p90, p99 = (percentile(found, share) for share in (0.5, 0.9, 0.99))
        base = percentile(latencies[kind, "beside one thread"], 0.99)
        print(
            f"{kind + ': ' + scene:40} {p50:9.1f} {p90:9.1f} {p99:9.1f} {p99 / base:10.2f}  "
            f"{sum(rates[kind, scene]) / len(rates[kind, scene]):.0f}"
        )


if __name__ == "__main__":
    main()
