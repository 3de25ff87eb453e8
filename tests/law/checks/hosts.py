"""A version on as many hosts as one likes: graphd's rooms and storaged's handlers, without a wire between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from tests.kit.images import hosted

from asterism_proto.arrays import Frame
from daemonkit.calls import Call
from graphd import route, sample, totals
from storaged import draw
from storaged.api import StoreApi


class _Held:
    """A storaged's holdings of one version."""

    def __init__(self, version: draw.Version) -> None:
        self._version = version

    def version(self, space_id: int, version: int, digest: str) -> draw.Version:
        return self._version


class _Straight:
    """Hands requests to the handlers of as many storageds as there are."""

    def __init__(self, versions: Sequence[draw.Version]) -> None:
        self._apis: list[Any] = [StoreApi(_Held(version)) for version in versions]  # type: ignore[arg-type]  # all that draws ask of them

    def ask(self, name: str, space: route.Space, requests: Iterable[tuple[int, Frame]], call: Any) -> list[Frame]:
        return [getattr(self._apis[host], name)(request, call) for host, request in requests]


def sampling_of(version: draw.Version, hosts: int = 1) -> sample.Sampling:
    """A version's surroundings on so many hosts."""
    parts = version.schema.parts
    measured = {key: totals.Total(count=share.count, positive=share.positive, weight=share.weight) for key, share in version.totals.items()}
    space = route.Space(
        space_id=1,
        name="s",
        schema=version.schema,
        hosts=tuple(f"host {i}" for i in range(hosts)),
        host_of_part=(np.arange(parts) % hosts).astype(np.int32),
    )
    held = [version if hosts == 1 else hosted(version, [part for part in range(parts) if part % hosts == host]) for host in range(hosts)]
    published = route.Version(version=1, digest="d", totals=totals.Totals(parts=parts, by_share=measured))
    fanout: Any = _Straight(held)
    return sample.Sampling(space=space, version=published, fanout=fanout, call=Call.within(3600))


def ends_of(found: sample.Sections, edge_type: int) -> tuple[sample.Types, sample.Types]:
    """The numbers that edges out of some nodes begin at, and lead to, in whichever way a reply tells them."""
    if f"rows.{edge_type}" in found:
        return found[f"rows.{edge_type}"], found[f"cols.{edge_type}"]
    counts = found[f"counts.{edge_type}"]
    return np.repeat(np.arange(len(counts), dtype=np.int32), counts), found[f"ends.{edge_type}"]
