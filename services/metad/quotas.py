"""Quotas on pins and on jobs in flight, by principal and space."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from asterism_access.principals import Principal
from asterism_proto.errors import QuotaExceeded
from metad.catalog.access import AccessRecords
from metad.catalog.pins import Pins
from metad.model.ids import SpaceId
from metad.model.jobs import Job


def charged_name(principal: Principal) -> str:
    """Return the name that quotas count a caller's pins and jobs under; empty for trusted ones."""
    return "" if principal.is_trusted else principal.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotas:
    """Quotas of the access limits that metad itself enforces.

    They apply to each principal, in one space and in all spaces together. Callers without access
    control, and daemons, have none.

    Parameters
    ----------
    access : AccessRecords
        Limits.
    pins : Pins
    jobs : callable
        Returns all jobs.
    """

    access: AccessRecords
    pins: Pins
    jobs: Callable[[], Iterable[Job]]

    def check_pins(
        self, principal: Principal, space_id: SpaceId, space: str, *, now_ms: int
    ) -> None:
        """Raise QuotaExceeded if a principal has its maximum number of pins."""
        held_in = [
            pin.space_id
            for pin in self.pins.all()
            if pin.principal == charged_name(principal) and pin.expires_ms > now_ms
        ]
        self._check("pins", principal, space_id, space, held_in, "release a pin or wait until one")

    def check_jobs(self, principal: Principal, space_id: SpaceId, space: str) -> None:
        """Raise QuotaExceeded if a principal has its maximum number of jobs in flight."""
        held_in = [
            job.space_id
            for job in self.jobs()
            if job.principal == charged_name(principal) and not job.state.is_final
        ]
        self._check("jobs", principal, space_id, space, held_in, "stop a job or wait until one")

    def _check(
        self,
        name: str,
        principal: Principal,
        space_id: SpaceId,
        space: str,
        held_in: list[SpaceId],
        remedy: str,
    ) -> None:
        """Compare the number of held objects with the limits.

        Parameters
        ----------
        name : str
            Field of `AccessLimits`.
        principal : Principal
        space_id : SpaceId
        space : str
        held_in : list of SpaceId
            Space of each object that the principal holds.
        remedy : str
        """
        if principal.is_trusted:
            return
        for limits, used, place in (
            (
                self.access.limits_in(principal.name, space_id),
                held_in.count(space_id),
                f"space {space!r}",
            ),
            (self.access.total_limits(principal.name), len(held_in), "all spaces together"),
        ):
            limit: int = getattr(limits, name) if limits is not None else 0
            if limit and used >= limit:
                raise QuotaExceeded(
                    f"{name}={used}: expected fewer than {limit}, the limit of {principal.name!r} "
                    f"in {place}; {remedy} ends, or ask a cluster administrator for a higher limit"
                )
