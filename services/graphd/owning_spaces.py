"""Ids of the spaces of loads, jobs and pins: requested from metad once, as they never change."""

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
SpaceWait = Callable[[str, int, GuardedCall], None]
"""Function of the name and the id of a space, and of the call that needs it."""


class SpaceLookups:
    """Lookups of the space id of a load, job or pin, for the checks of roles.

    Parameters
    ----------
    metad : Transport
        Carries calls to metad with the rights of this daemon.
    wait_for_space : callable
        Waits until this daemon knows a space that exists, if it does not know it yet.
    """

    def __init__(self, metad: Transport, wait_for_space: SpaceWait) -> None:
        self._metad, self._wait_for_space = metad, wait_for_space
        self._loads: dict[int, int] = {}
        self._jobs: dict[int, int] = {}
        self._pins: dict[int, int] = {}

    def clear(self) -> None:
        """Forget all ids, as when metad has another catalog."""
        for known in (self._loads, self._jobs, self._pins):
            known.clear()

    def space_of_load(self, load_id: int, call: GuardedCall) -> int:
        """Return the space id of a load; NotFound if there is none."""

        def find() -> metad_pb.Load:
            request = metad_pb.LoadRequest(load_id=load_id)
            reply = self._metad.call(CATALOG["get_load"], request, call.remaining())
            return cast(metad_pb.Load, reply)

        return self._remembered(self._loads, load_id, find, call)

    def space_of_job(self, job_id: int, call: GuardedCall) -> int:
        """Return the space id of a job; NotFound if there is none."""

        def find() -> common_pb.Job:
            request = metad_pb.JobRequest(job_id=job_id)
            reply = self._metad.call(CATALOG["get_job"], request, call.remaining())
            return cast(common_pb.Job, reply)

        return self._remembered(self._jobs, job_id, find, call)

    def space_of_pin(self, pin_id: int, call: GuardedCall) -> int:
        """Return the space id of a pin; 0 if there is none."""

        def find() -> metad_pb.Pin | None:
            request = metad_pb.ListPinsRequest()
            reply = self._metad.call(CATALOG["list_pins"], request, call.remaining())
            pins = cast(metad_pb.PinList, reply).pins
            return next((pin for pin in pins if pin.pin_id == pin_id), None)

        return self._remembered(self._pins, pin_id, find, call)

    def _remembered(
        self,
        known: dict[int, int],
        number: int,
        find: Callable[[], metad_pb.Load | common_pb.Job | metad_pb.Pin | None],
        call: GuardedCall,
    ) -> int:
        if number in known:
            return known[number]
        found = find()
        if found is None:
            return 0
        if len(known) >= _MAX_IDS:
            known.clear()
        known[number] = found.space_id
        self._wait_for_space(found.space, found.space_id, call)
        return found.space_id
