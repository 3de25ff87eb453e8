"""Turns of loaders that train one model, with the time of each step as JSON lines.

A report has the time a step waited for its batch and the time it took.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

WARMUP_STEPS = 2
"""Uncounted first steps of a turn, in which threads and workers start."""


def take_turns(
    loaders: Mapping[str, Callable[[], Iterable[Any]]],
    step: Callable[[Any], None],
    steps: int,
    rounds: int,
) -> None:
    """Train on some batches of each loader, ``rounds`` times, and print the report."""
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
            del batches  # ends its threads and workers
    for report in reports.values():
        print(json.dumps(report), flush=True)


def trained(model: Any, loss_of: Callable[[Any], Any]) -> Callable[[Any], None]:
    """Return a training step of a model."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)

    def step(batch: Any) -> None:
        optimizer.zero_grad()
        loss_of(batch).backward()
        optimizer.step()

    return step
