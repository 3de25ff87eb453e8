"""Tests of adopting a catalog: it waits for the reports of storageds."""

from __future__ import annotations

import pytest

from asterism.cli.metad import check_reports
from asterism_proto.errors import NotReady
from asterism_proto.v1 import metad_pb2 as metad_pb


def state(**reported: bool) -> metad_pb.CatalogState:
    """Return a catalog's state with storageds that are ahead of it, and a graphd."""
    followers = [
        metad_pb.Follower(uuid=uuid, role=metad_pb.STORAGED, inventory_reported=has_reported)
        for uuid, has_reported in reported.items()
    ]
    return metad_pb.CatalogState(
        followers_ahead=[*followers, metad_pb.Follower(uuid="g", role=metad_pb.GRAPHD)]
    )


def test_adoption_needs_the_report_of_every_storaged_ahead() -> None:
    check_reports(state(a=True, b=True), [], without_offline=False)
    with pytest.raises(NotReady, match=r"^storageds=b, c: expected reports of what they have"):
        check_reports(state(a=True, c=False, b=False), [], without_offline=True)


def test_adoption_without_an_offline_storaged_needs_an_option() -> None:
    with pytest.raises(
        NotReady, match=r"storageds=s1:9779: .*they are offline; .*--without-offline"
    ):
        check_reports(state(a=True), ["s1:9779"], without_offline=False)
    check_reports(state(a=True), ["s1:9779"], without_offline=True)
