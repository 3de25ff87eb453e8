"""Loaders take turns at training one model, and what each step waited and took is told as lines of
JSON.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

WARMUP_STEPS = 2
"""Steps of a turn that do not count: threads and workers begin in them."""


def take_turns(
    loaders: Mapping[str, Callable[[], Iterable[Any]]],
    step: Callable[[Any], None],
    steps: int,
    rounds: int,
) -> None:
    """Train on some batches of each loader, ``rounds`` times, and tell."""
    reports: dict[str, dict[str, Any]] = {
        name: {"name": name, "wait_s": [], "step_s": []} for name in loaders
    }
    for _ in range(rounds):
        for name, make_loader in loaders.items():
            batches = iter(make_loader())
            for step_index in range(WARMUP_STEPS + steps):
                started = time.perf_counter()
                batch = next(batches)
                received = time.perf_counter()
                step(batch)
                if step_index >= WARMUP_STEPS:
                    reports[name]["wait_s"].append(received - started)
                    reports[name]["step_s"].append(time.perf_counter() - received)
            del batches  # its threads and workers end here
    for report in reports.values():
        print(json.dumps(report), flush=True)


def trained(model: Any, loss_of: Callable[[Any], Any]) -> Callable[[Any], None]:
    """A step of training."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)

    def step(batch: Any) -> None:
        optimizer.zero_grad()
        loss_of(batch).backward()
        optimizer.step()

    return step
