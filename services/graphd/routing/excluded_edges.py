"""Edges that a request excludes, for each host that holds a node at one of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.random.partition_choice import part_of
from asterism_model.excluded_edges import ExcludedEdges
from graphd.routing.routes import SpaceRoute

FOLLOWING_METHODS = frozenset(
    {
        "draw_neighbors",
        "expand",
        "has_edge",
        "push_pagerank",
        "read_degrees",
        "read_induced_edges",
        "read_neighbors",
        "sample_k_hop",
        "update_importance",
        "walk",
    }
)
"""Methods of storageds that follow edges."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RoutedExclusions:
    """Excluded edges of one request.

    A host gets the edges with an end in its partitions, whatever the direction: a walk may search
    both ends.
    """

    space: SpaceRoute
    excluded: ExcludedEdges
    _by_host: dict[int, dict[str, NDArray[Any]]] = field(default_factory=dict)

    def sections(self, host: int) -> dict[str, NDArray[Any]]:
        """Return the sections of a request to a host; none if it holds no node at these edges."""
        known = self._by_host.get(host)
        if known is not None:
            return known
        selected = self.excluded
        if len(self.space.hosts) > 1:
            schema = self.space.schema
            owned = np.zeros(len(selected), np.bool_)
            for ends in (selected.src, selected.dst):
                parts = part_of(ends, schema.parts, schema.placement)
                owned |= (ends >= 0) & (self.space.host_of_part[parts] == host)
            selected = selected.take(owned)
        self._by_host[host] = selected.sections() if len(selected) else {}
        return self._by_host[host]
