"""Tests of the versions that requests name, filtered by their row filters."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from asterism_daemonkit.rpc.call_context import CallContext
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.v1 import common_pb2
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from storaged.api.version_resolution import RequestVersions


class _TwoPartitions(RequestVersions):
    """Versions of a space with two partitions and two node types; requests are valid."""

    def unfiltered(self, request: Any) -> Any:
        return SimpleNamespace(schema=SimpleNamespace(parts=2, node_types=("user", "item")))


@pytest.mark.parametrize("surplus", ["counts", "positives", "weights"])
def test_surplus_totals_of_a_filter_are_refused(surplus: str) -> None:
    request = Frame(storaged_pb.DrawNodesRequest())
    where = request.head.version_ref.where
    where.expression, where.element = "id > 1", common_pb2.NODE
    where.types[:] = [0, 1]
    for name in ("counts", "positives", "weights"):
        getattr(where, name)[:] = [1] * (5 if name == surplus else 4)
    source: Any = None  # is not called
    versions = _TwoPartitions(source)
    with pytest.raises(InvalidRequest, match=rf"where\.{surplus}: expected 4 values.*found 5"):
        versions.filtered(request, CallContext.with_timeout(60))
