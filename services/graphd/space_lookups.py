"""Spaces of loads, jobs and pins: requested from metad once, because they never change."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from asterism_access.guard import GuardedCall
from asterism_proto.methods import CATALOG
from asterism_proto.transport import Transport
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb

_MAX_IDS = 4096
"""Ids of one kind that are remembered."""


class SpaceLookups:
    """Lookups of the space of a load, job or pin, for the checks of roles.

    Parameters
    ----------
    metad : Transport
        Carries calls to metad with the rights of this daemon.
    """

    def __init__(self, metad: Transport) -> None:
        self._metad = metad
        self._loads: dict[int, str] = {}
        self._jobs: dict[int, str] = {}
        self._pins: dict[int, str] = {}

    def clear(self) -> None:
        """Forget all ids, as when metad has another catalog."""
        for known in (self._loads, self._jobs, self._pins):
            known.clear()

    def space_of_load(self, load_id: int, call: GuardedCall) -> str:
        """Return the space of a load; NotFound if there is none."""

        def find() -> str:
            request = metad_pb.LoadRequest(load_id=load_id)
            reply = self._metad.call(CATALOG["get_load"], request, call.remaining())
            return cast(metad_pb.Load, reply).space

        return _remembered(self._loads, load_id, find)

    def space_of_job(self, job_id: int, call: GuardedCall) -> str:
        """Return the space of a job; NotFound if there is none."""

        def find() -> str:
            request = metad_pb.JobRequest(job_id=job_id)
            reply = self._metad.call(CATALOG["get_job"], request, call.remaining())
            return cast(common_pb.Job, reply).space

        return _remembered(self._jobs, job_id, find)

    def space_of_pin(self, pin_id: int, call: GuardedCall) -> str:
        """Return the space of a pin; empty if there is none."""

        def find() -> str:
            request = metad_pb.ListPinsRequest()
            reply = self._metad.call(CATALOG["list_pins"], request, call.remaining())
            pins = cast(metad_pb.PinList, reply).pins
            return next((pin.space for pin in pins if pin.pin_id == pin_id), "")

        return _remembered(self._pins, pin_id, find)


def _remembered(known: dict[int, str], number: int, find: Callable[[], str]) -> str:
    space = known.get(number) or find()
    if space:
        if len(known) >= _MAX_IDS:
            known.clear()
        known[number] = space
    return space
