"""Benchmark of draws, steps and batches in Asterism and its alternatives, side by side.

All run on one generated graph.

    make rivals-env                      # the alternatives, each in its own environment; those
                                         that cannot be installed are left out
    python -m tests.benchmarks.rivals    # R-MAT of 1M nodes and 16M edges, log-normal weights
    python -m tests.benchmarks.rivals --nodes 8000000 --edges 128000000

Every rival is a separate process, pinned to one core, with one thread; all have the same graph.
They take turns, a few calls each, so that other work on the machine affects all of them alike. A
figure is the median over all calls. The code of each rival is in `tests/benchmarks/rival`.

`--only grpc direct dgl` uses clusters of three storageds on all cores instead of the embedded
service: one is called through its graphd, and one by a client that calls storageds directly. The
task "subgraphs" has eight batches per call, four of them at a time."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from asterism.formats.rmat import rmat

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).with_name("rival")
PYTHONS = {
    "asterism": Path(sys.executable),
    "grpc": Path(sys.executable),
    "direct": Path(sys.executable),
    "numpy": Path(sys.executable),
    "dgl": ROOT / ".venv-dgl/bin/python",
    "graphbolt": ROOT / ".venv-graphbolt/bin/python",
    "pyg": ROOT / ".venv-pyg/bin/python",
    "pecanpy": ROOT / ".venv-pecanpy/bin/python",
}
CLUSTERS = ("grpc", "direct")
"""Rivals that use all cores."""
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)
BATCH_PREFIX = "subgraph"
"""Prefix of tasks in milliseconds per batch; others are in nanoseconds per draw or step."""


def write(folder: Path, args: argparse.Namespace) -> None:
    """Write the graph's files for `tests.benchmarks.rival.answering`."""
    src, dst = rmat(1, 0, 0, args.edges, sources=args.nodes, targets=args.nodes)
    generator = np.random.default_rng(1)
    sources = np.unique(src)
    columns = {
        "src": src,
        "dst": dst,
        "weights": generator.lognormal(size=args.edges).astype(np.float32),
        "node_weights": generator.lognormal(size=args.nodes).astype(np.float32),
        "starts": generator.choice(sources, args.starts),
        "seeds": generator.choice(sources, (64, args.batch)),
    }
    for name, column in columns.items():
        np.save(folder / f"{name}.npy", column)
    parameters = {
        "nodes": args.nodes,
        "draws": args.draws,
        "width": 10,
        "walkers": args.walkers,
        "length": 20,
        "fanouts": args.fanouts,
        "p": 0.5,
        "q": 2.0,
    }
    (folder / "graph.json").write_text(json.dumps(parameters))


class Rival:
    """A running program."""

    def __init__(
        self, python: Path, program: Path, folder: Path, core: int | str, *more: str
    ) -> None:
        settings = (
            {"PYTHONPATH": os.pathsep.join(sys.path)} if python == Path(sys.executable) else {}
        )
        settings |= {"DGLBACKEND": "pytorch", "HOME": str(folder)} | dict.fromkeys(
            THREAD_VARIABLES, "1"
        )
        command = [
            "env",
            *(f"{key}={value}" for key, value in settings.items()),
            "taskset",
            "-c",
            str(core),
        ]
        command += [str(python), str(program), str(folder), *more]
        self._log = (folder / f"{'_'.join([program.stem, *more])}.log").open("w+")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True
        )
        report = self._read()
        self.name: str = report["name"]
        self.tasks: list[str] = report["tasks"]

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._log.seek(0)
            raise RuntimeError(f"{self._process.args!r} ended:\n{self._log.read()[-2000:]}")
        return json.loads(line)

    def time(self, task: str, first: int, calls: int) -> tuple[list[float], int]:
        """Return the seconds of calls with these seeds, and the size of the last result."""
        assert self._process.stdin is not None
        print(first, calls, task, file=self._process.stdin, flush=True)
        report = self._read()
        return report["seconds"], report["size"]

    def close(self) -> None:
        """End the program."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._log.close()


def compare(
    rivals: list[Rival],
    tasks: list[str],
    rounds: int,
    calls: int,
    *,
    batches: tuple[str, ...] = (BATCH_PREFIX,),
) -> None:
    """Print a line per task and rival.

    Tasks with a prefix in ``batches`` are in milliseconds.
    """
    print(f"{'task':<32}{'':<34}{'median':>12}{'fastest':>12}{'of Asterism':>13}{'gives':>12}")
    for task in tasks:
        participants = [rival for rival in rivals if task in rival.tasks]
        seconds: dict[str, list[float]] = {rival.name: [] for rival in participants}
        sizes = {
            rival.name: rival.time(task, 0, 1)[1] for rival in participants
        }  # the first call compiles or fills caches
        for round_ in range(rounds):
            for rival in participants:
                times, sizes[rival.name] = rival.time(task, 1 + round_ * calls, calls)
                seconds[rival.name] += times
        reference = None
        for name, times in seconds.items():
            scale, unit = (1e3, "ms") if task.startswith(batches) else (1e9 / sizes[name], "ns")
            median, fastest = float(np.median(times)) * scale, min(times) * scale
            reference = reference or median
            print(
                (
                    f"{task:<32}{name:<34}{median:>9.2f} {unit}{fastest:>9.2f} "
                    f"{unit}{median / reference:>12.1f}x{sizes[name]:>12,}"
                ),
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=16_000_000)
    parser.add_argument("--draws", type=int, default=1_000_000, help="nodes in a call")
    parser.add_argument(
        "--starts", type=int, default=100_000, help="start nodes of a call that draws neighbors"
    )
    parser.add_argument(
        "--walkers", type=int, default=4000, help="walks in a call: some rivals take long"
    )
    parser.add_argument("--batch", type=int, default=1024, help="seeds of a subgraph")
    parser.add_argument("--fanouts", type=int, nargs="+", default=[15, 10])
    parser.add_argument("--rounds", type=int, default=3, help="turns that each rival has at a task")
    parser.add_argument("--calls", type=int, default=3, help="calls in a turn")
    parser.add_argument(
        "--only",
        nargs="*",
        default=[name for name in PYTHONS if name not in CLUSTERS],
        help="which rivals; the first one is what others are compared with",
    )
    parser.add_argument("--tasks", nargs="*", help="which tasks, by the beginning of their names")
    parser.add_argument("--core", type=int, default=os.cpu_count() - 1 if os.cpu_count() else 0)
    parser.add_argument(
        "--folder", type=Path, help="keep the graph here, and take it from here where it is already"
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "graph.json").exists():
            write(folder, args)
        rivals: list[Rival] = []
        for name in args.only:
            if not PYTHONS[name].exists():
                print(f"{name}: no environment; say `make rivals-env`")
                continue
            try:
                program, core, extra = (
                    (f"of_{name}.py", args.core, ())
                    if name not in CLUSTERS
                    else ("of_asterism.py", f"0-{(os.cpu_count() or 1) - 1}", (name,))
                )
                rivals.append(Rival(PYTHONS[name], PROGRAMS / program, folder, core, *extra))
            except RuntimeError as error:
                print(f"{name} is left out: {str(error).strip().splitlines()[-1]}")
        print(
            f"{args.nodes:,} nodes, {args.edges:,} edges; one thread each, on core "
            f"{args.core}; load {os.getloadavg()[0]:.1f}"
        )
        all_tasks = list(dict.fromkeys(task for rival in rivals for task in rival.tasks))
        tasks = [task for task in all_tasks if not args.tasks or task.startswith(tuple(args.tasks))]
        compare(rivals, tasks, args.rounds, args.calls)
        for rival in rivals:
            rival.close()


if __name__ == "__main__":
    main()
