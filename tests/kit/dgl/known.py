"""What a served graph is known to hold, and what it is known to refuse."""

from __future__ import annotations

from collections.abc import Callable

import asterism
from asterism_proto.errors import InvalidRequest, NotFound


def refused(call: Callable[[], object], said: str) -> None:
    told = ""
    try:
        call()
    except (InvalidRequest, NotFound) as error:
        told = error.message
    assert said in told, told or f"not refused: {said}"


def edges(graph: asterism.Graph, etype: str) -> dict[int, tuple[int, int]]:
    found: dict[int, tuple[int, int]] = {}
    for batch in graph.scan_edges(etype):
        found.update(zip(batch.edge_ids.tolist(), zip(batch.src.tolist(), batch.dst.tolist(), strict=True), strict=True))
    return found
