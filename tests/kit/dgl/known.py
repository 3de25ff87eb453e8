"""Known content of the served graph, and requests that it refuses."""

from __future__ import annotations

from collections.abc import Callable

import asterism
from asterism_proto.errors import InvalidRequest, NotFound


def refused(call: Callable[[], object], expected_text: str) -> None:
    message = ""
    try:
        call()
    except (InvalidRequest, NotFound) as error:
        message = error.message
    assert expected_text in message, message or f"not refused: {expected_text}"


def edges(graph: asterism.Graph, etype: str) -> dict[int, tuple[int, int]]:
    edges_by_id: dict[int, tuple[int, int]] = {}
    for batch in graph.scan_edges(etype):
        edges_by_id.update(
            zip(
                batch.edge_ids.tolist(),
                zip(batch.src.tolist(), batch.dst.tolist(), strict=True),
                strict=True,
            )
        )
    return edges_by_id
