"""Loaders take turns at training one model, and what each step waited and took is told as lines of JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

FIRST = 2
"""Steps of a turn that do not count: threads and workers begin in them."""


def take_turns(loaders: Mapping[str, Callable[[], Iterable[Any]]], step: Callable[[Any], None], steps: int, rounds: int) -> None:
    """Train on some batches of each loader, ``rounds`` times, and tell."""
    told: dict[str, dict[str, Any]] = {name: {"name": name, "wait_s": [], "step_s": []} for name in loaders}
    for _ in range(rounds):
        for name, made in loaders.items():
            batches = iter(made())
            for number in range(FIRST + steps):
                begun = time.perf_counter()
                batch = next(batches)
                got = time.perf_counter()
                step(batch)
                if number >= FIRST:
                    told[name]["wait_s"].append(got - begun)
                    told[name]["step_s"].append(time.perf_counter() - got)
            del batches  # its threads and workers end here
    for one in told.values():
        print(json.dumps(one), flush=True)


def trained(model: Any, loss_of: Callable[[Any], Any]) -> Callable[[Any], None]:
    """A step of training."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)

    def step(batch: Any) -> None:
        optimizer.zero_grad()
        loss_of(batch).backward()
        optimizer.step()

    return step
