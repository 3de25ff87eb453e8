"""Quotas on pins and on jobs in flight, by principal and space, and on the size of spaces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from asterism_access.principals import Principal
from asterism_proto.errors import QuotaExceeded
from metad.catalog.access import AccessRecords
from metad.catalog.pins import Pins
from metad.model.access import EVERY_PRINCIPAL
from metad.model.catalog import Space
from metad.model.ids import SpaceId
from metad.model.jobs import Job


def charged_name(principal: Principal) -> str:
    """Return the name that quotas count a caller's pins and jobs under; empty for trusted ones."""
    return "" if principal.is_trusted else principal.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotas:
    """Quotas of the access limits that metad itself enforces.

    Those on pins and jobs apply to each principal, in one space and in all spaces together. Callers
    without access control, and daemons, have none. Those on the size of spaces apply to every
    caller, because data has no owner.

    Parameters
    ----------
    access : AccessRecords
        Limits.
    pins : Pins
    jobs : callable
        Returns all jobs.
    stored_bytes : callable
        Returns the disk usage of each space on all storageds, in bytes.
    """

    access: AccessRecords
    pins: Pins
    jobs: Callable[[], Iterable[Job]]
    stored_bytes: Callable[[], Mapping[SpaceId, int]]

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

    def check_stored_bytes(self, space: Space | None) -> None:
        """Raise QuotaExceeded if a space, or all spaces together, must not grow.

        Parameters
        ----------
        space : Space or None
            None: a space that does not exist yet.
        """
        total = self.access.total_limits(EVERY_PRINCIPAL)
        own = None if space is None else self.access.limits_in(EVERY_PRINCIPAL, space.space_id)
        allowed_here = 0 if own is None else own.stored_bytes
        allowed_in_total = 0 if total is None else total.stored_bytes
        if not allowed_here and not allowed_in_total:
            return
        used = self.stored_bytes()
        if space is not None and allowed_here and (here := used.get(space.space_id, 0)):
            _check_bytes(here, allowed_here, f"space {space.name!r}")
        if allowed_in_total:
            _check_bytes(sum(used.values()), allowed_in_total, "all spaces together")

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


def _check_bytes(used: int, allowed: int, place: str) -> None:
    if used >= allowed:
        raise QuotaExceeded(
            f"stored_bytes={used}: expected less than {allowed}, the limit of {place}; free disk "
            "space with a compact job, release pins of old versions, drop spaces that are no "
            "longer used, or ask a cluster administrator for a higher limit"
        )
