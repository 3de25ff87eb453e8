"""GraphSAGE on a partition that DGL serves, and on the entire graph in one process.

    train_sage.py PART_CONFIG.json INPUT.npz FOLDER SEEDS EPOCHS

INPUT.npz is the graph as `check_distributed.py` takes it, with node features x, y and split (1
train, 3 test). One real server process per part and a trainer are started; FOLDER is for their
logs. Prints JSON: the test accuracies by seed, "served" and "whole". Servers on one host share
names in /dev/shm, so each needs one of its own, and this process the right to mount (root)."""

from __future__ import annotations

import ctypes
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from dgl_shim import dgl

FANOUTS, BATCH, HIDDEN, TRAIN, TEST = [10, 10], 64, 32, 1, 3
LIMIT_S = 1500.0
_NEW_NAMESPACE, _PRIVATE = 0x20000, 0x4000 | 0x40000


class Sage(torch.nn.Module):
    def __init__(self, inputs: int, classes: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(
            [dgl.nn.SAGEConv(inputs, HIDDEN, "mean"), dgl.nn.SAGEConv(HIDDEN, classes, "mean")]
        )
        self.dropout = torch.nn.Dropout(0.5)

    def forward(self, blocks: Any, x: Any) -> Any:
        x = self.dropout(x)
        for i, (layer, block) in enumerate(zip(self.layers, blocks, strict=True)):
            x = layer(block, x)
            if i == 0:
                x = self.dropout(torch.relu(x))
        return x


def accuracy(
    loader: Callable[[Any, list[int], bool], Iterable[Any]],
    fetch: Callable[[str, Any], Any],
    nodes: int,
    seed: int,
    epochs: int,
) -> float:
    """Train a model on a loader's batches, and test it with full neighborhoods."""
    torch.manual_seed(seed)
    dgl.seed(seed)
    random.seed(seed)
    np.random.seed(seed)
    split = fetch("split", torch.arange(nodes))
    train, test = (torch.nonzero(split == split_id).reshape(-1) for split_id in (TRAIN, TEST))
    labels = fetch("y", torch.arange(nodes))
    model = Sage(fetch("x", torch.arange(1)).shape[1], int(labels.max()) + 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    batches = loader(train, FANOUTS, True)
    for _ in range(epochs):
        model.train()
        for inputs, outputs, blocks in batches:
            loss = torch.nn.functional.cross_entropy(
                model(blocks, fetch("x", inputs)), labels[outputs]
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    model.eval()
    right = 0
    with torch.no_grad():
        for inputs, outputs, blocks in loader(test, [-1, -1], False):
            right += int((model(blocks, fetch("x", inputs)).argmax(1) == labels[outputs]).sum())
    return right / len(test)


def train_on_full_graph(path: str, seeds: int, epochs: int) -> list[float]:
    arrays = np.load(path)
    (name,) = (
        key.split("/")[1]
        for key in arrays.files
        if key.startswith("edges/") and key.endswith("/src")
    )
    src, dst = (torch.from_numpy(arrays[f"edges/{name}/{end}"]) for end in ("src", "dst"))
    graph = dgl.graph((src, dst), num_nodes=int(arrays["num_nodes/_N"]))
    features = {key: torch.from_numpy(arrays[f"ndata/_N/{key}"]) for key in ("x", "y", "split")}

    def loader(nodes: Any, fanouts: list[int], shuffle: bool) -> Any:
        return dgl.dataloading.DataLoader(
            graph,
            nodes,
            dgl.dataloading.NeighborSampler(fanouts),
            batch_size=BATCH,
            shuffle=shuffle,
        )

    return [
        accuracy(loader, lambda key, ids: features[key][ids], graph.num_nodes(), seed, epochs)
        for seed in range(seeds)
    ]


def train_distributed(config: str, ip_config: str, out: str, seeds: int, epochs: int) -> None:
    dgl.distributed.initialize(ip_config)
    book, name, *_ = dgl.distributed.load_partition_book(config, 0)
    graph = dgl.distributed.DistGraph(name, gpb=book, part_config=config)

    def loader(nodes: Any, fanouts: list[int], shuffle: bool) -> Any:
        sampler = dgl.dataloading.NeighborSampler(fanouts)
        return dgl.dataloading.DistNodeDataLoader(
            graph, nodes, sampler, batch_size=BATCH, shuffle=shuffle, drop_last=False
        )

    accuracies = [
        accuracy(loader, lambda key, ids: graph.ndata[key][ids], graph.num_nodes(), seed, epochs)
        for seed in range(seeds)
    ]
    Path(f"{out}.making").write_text(json.dumps(accuracies))
    Path(f"{out}.making").rename(out)


def private_shm() -> None:
    """Mount a private /dev/shm for this process and its children."""
    libc = ctypes.CDLL(None)
    if (
        libc.unshare(_NEW_NAMESPACE)
        or libc.mount(b"none", b"/", None, ctypes.c_ulong(_PRIVATE), None)
        or libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", ctypes.c_ulong(0), None)
    ):
        raise SystemExit("no /dev/shm of its own for a server: this needs the right to mount")


def reserve_ports(count: int) -> list[socket.socket]:
    """Return sockets that are bound but do not listen.

    While they are open, only servers that set SO_REUSEADDR get their ports.
    """
    sockets = []
    for _ in range(count):
        sockets.append(socket.socket())
        sockets[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sockets[-1].bind(("127.0.0.1", 0))
    return sockets


def train_served(config: str, folder: Path, seeds: int, epochs: int) -> list[float]:
    """Run one server per partition and a trainer, and end them all."""
    parts = int(json.loads(Path(config).read_text())["num_parts"])
    ip_config, out = folder / "ip_config.txt", folder / "served.json"
    reserved = reserve_ports(parts)
    ip_config.write_text(
        "".join(f"127.0.0.1 {reserved_socket.getsockname()[1]}\n" for reserved_socket in reserved)
    )
    private_shm()
    children: dict[str, subprocess.Popen[bytes]] = {}

    def start(role: str, *arguments: object) -> None:
        settings = {
            "DGL_DIST_MODE": "distributed",
            "DGL_DIST_DEBUG": "1",
            "DGL_NUM_SERVER": "1",
            "DGL_NUM_CLIENT": "1",
            "DGL_NUM_SAMPLER": "0",
            "DGL_ROLE": "client" if role == "train" else "server",
        }
        command = [sys.executable, "-u", __file__, role, *map(str, arguments)]
        environment = {**os.environ, **settings}  # noqa: TID251 - the child inherits it
        name = f"{role}{arguments[0] if role == 'serve' else ''}"
        with (folder / f"{name}.log").open("wb") as log:
            children[name] = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, env=environment
            )

    deadline = time.monotonic() + LIMIT_S
    try:
        for part in range(parts):
            start("serve", part, ip_config, config)
        for part in range(parts):
            while (
                b"Server is waiting for connections"
                not in (folder / f"serve{part}.log").read_bytes()
            ):
                check_children(children, folder, deadline)
        start("train", config, ip_config, out, seeds, epochs)
        while not out.exists():
            check_children(children, folder, deadline)
        accuracies: list[float] = json.loads(out.read_text())
        return accuracies
    finally:
        for child in children.values():
            child.kill()
            child.wait()
        for reserved_socket in reserved:
            reserved_socket.close()


def check_children(
    children: dict[str, subprocess.Popen[bytes]], folder: Path, deadline: float
) -> None:
    """Wait briefly; raise if a child has ended or the deadline has passed."""
    time.sleep(0.05)
    ended = [name for name, child in children.items() if child.poll() is not None]
    ended = [name for name in ended if name != "train" or not (folder / "served.json").exists()]
    if ended or time.monotonic() > deadline:
        raise SystemExit(
            f"{ended} ended, or it takes too long:\n"
            + "\n".join((folder / f"{name}.log").read_text()[-2000:] for name in ended or children)
        )


def main(config: str, path: str, folder: str, seeds: str, epochs: str) -> None:
    # First of all, so that forked children start without what the training here leaves.
    served = train_served(config, Path(folder), int(seeds), int(epochs))
    whole = train_on_full_graph(path, int(seeds), int(epochs))
    print(json.dumps({"whole": whole, "served": served}))


def run_child(role: str, *arguments: str) -> None:
    """Run a child process of `train_served`; it ends with its parent."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    torch.set_num_threads(1)
    if role == "train":
        config, ip_config, out, seeds, epochs = arguments
        train_distributed(config, ip_config, out, int(seeds), int(epochs))
        os._exit(0)  # DGL's exit of a client waits for servers, which have ended
    part, ip_config, config = arguments
    if int(part):
        private_shm()
    dgl.distributed.DistGraphServer(int(part), ip_config, 1, 1, config).start()


if __name__ == "__main__":
    (run_child if sys.argv[1] in ("serve", "train") else main)(*sys.argv[1:])
