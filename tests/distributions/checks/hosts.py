"""A version on any number of hosts: graphd's logic and storaged's handlers, no network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from tests.kit.images import restrict_to_parts

from asterism_daemonkit.rpc.call_context import CallContext
from asterism_model.excluded_edges import ExcludedEdges
from asterism_proto.framing import Frame
from asterism_proto.methods import STORE
from graphd.operators.request_context import RequestContext, Sections, Types
from graphd.routing import routes, totals
from graphd.routing.excluded_edges import RoutedExclusions
from storaged import sampling as draw
from storaged.api.service import StoreService


class _SingleVersion:
    """The local spaces of a storaged with one version."""

    def __init__(self, version: draw.LocalVersion) -> None:
        self._version = version

    def version(self, space_id: int, version: int, digest: str) -> draw.LocalVersion:
        return self._version


class _DirectDispatcher:
    """Dispatches requests directly to the handlers of several storageds."""

    def __init__(self, versions: Sequence[draw.LocalVersion]) -> None:
        # The only part that sampling uses.
        self._handlers = [
            StoreService(_SingleVersion(version)).handlers  # type: ignore[arg-type]
            for version in versions
        ]

    def dispatch(
        self, name: str, space: routes.SpaceRoute, requests: Iterable[tuple[int, Frame]], call: Any
    ) -> list[Frame]:
        path = STORE[name].path
        return [self._handlers[host][path](request, call) for host, request in requests]


def request_context(
    version: draw.LocalVersion, hosts: int = 1, excluded: ExcludedEdges | None = None
) -> RequestContext:
    """Return the request context of a version on ``hosts`` hosts, with excluded edges if given."""
    parts = version.schema.parts
    space = routes.SpaceRoute(
        space_id=1,
        name="s",
        schema=version.schema,
        hosts=tuple(f"host {i}" for i in range(hosts)),
        host_of_part=(np.arange(parts) % hosts).astype(np.int32),
    )
    host_views = [
        version
        if hosts == 1
        else restrict_to_parts(version, [part for part in range(parts) if part % hosts == host])
        for host in range(hosts)
    ]
    published = routes.ServedVersion(
        version=1, digest="d", totals=totals.VersionTotals(parts=parts, part_totals=version.totals)
    )
    fanout: Any = _DirectDispatcher(host_views)
    context = RequestContext(
        space=space, version=published, dispatcher=fanout, call=CallContext.with_timeout(3600)
    )
    if excluded is None:
        return context
    return replace(context, exclusions=RoutedExclusions(space=space, excluded=excluded))


def edge_ends(sections: Sections, edge_type: int) -> tuple[Types, Types]:
    """Return the positions of both ends of edges among a reply's nodes.

    A reply has ends by row and column, or by counts per node.
    """
    if f"rows.{edge_type}" in sections:
        return sections[f"rows.{edge_type}"], sections[f"cols.{edge_type}"]
    counts = sections[f"counts.{edge_type}"]
    return np.repeat(np.arange(len(counts), dtype=np.int32), counts), sections[f"ends.{edge_type}"]
