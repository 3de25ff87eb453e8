"""Heartbeats: the threads that connect a daemon to metad.

The heartbeat thread reports regularly which versions are held and which tasks run. The poll
thread waits at metad until the catalog changes and receives the complete desired state, so that a
task starts, and a version is served, as soon as metad decides it.

A third thread watches the lease. Once the lease has run out by this host's own clock, metad may
consider the daemon lost and assign its tasks elsewhere. The daemon therefore suspends them until
a heartbeat succeeds again and the desired state of that reply is applied."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from asterism_daemonkit.catalog_position import CatalogPositionStore
from asterism_daemonkit.daemon_identity import Identity
from asterism_proto.errors import AsterismError, Conflict, Stale
from asterism_proto.methods import HEARTBEATS
from asterism_proto.transport import Transport
from asterism_proto.v1 import metad_pb2 as metad_pb

logger = logging.getLogger(__name__)

HEARTBEAT_TIMEOUT_S = 5.0
POLL_SLACK_S = 5.0
"""Seconds that a poll's deadline grants beyond its maximum wait at metad."""
MAX_BACKOFF_S = 2.0
LEASE_CHECK_S = 0.5
"""Seconds between two checks of the lease while there is none."""

_NO_STATE = ("", 0)
"""Value of (term, revision) before the first desired state.

The revision alone does not identify a state: copies of a catalog reuse revisions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatPayload:
    """Contents of a heartbeat."""

    tasks: Sequence[metad_pb.TaskReport] = ()
    held_versions: Sequence[metad_pb.HeldVersion] = ()
    free_bytes: int = 0
    held_bytes: int = 0
    dropped_loads: Sequence[int] = ()
    completed_removals: Sequence[int] = ()
    """Ids of removal requests that are carried out."""
    highest_ids: metad_pb.HighestIds | None = None
    """Highest identifiers of the data in the folder."""
    resources: metad_pb.HostResources | None = None
    """Resource use, for display; None if not measured."""


class HeartbeatClient:
    """Client of metad's heartbeat service: reports a daemon and receives its desired state.

    Parameters
    ----------
    metad : Transport
        Carries calls to metad.
    role : int
        ``STORAGED`` or ``GRAPHD``.
    identity : Identity
        Identity of the daemon. A larger incarnation of the same uuid fences this one.
    address, http_address : str
        Addresses under which other hosts reach the daemon.
    on_poll : callable
        Receives the desired state each time it has changed; called from one thread.
    payload : callable
        Returns the contents of the next heartbeat; called from one thread.
    interval_s : float
        Seconds between two heartbeats.
    poll_wait_s : float
        Maximum seconds that a poll waits at metad.
    cluster : callable
        Returns the id of the cluster that this daemon holds data of; empty for none. The metad
        of
        another cluster refuses the daemon.
    followed_catalog : CatalogPositionStore, optional
        Newest catalog position that the daemon has acted on.
    on_lease : callable
        Called with True when tasks may be carried out from now on, with False when the lease has
        ended. Initially there is no lease.
    on_refused : callable
        Called after each heartbeat or poll that ends with a `Conflict`: metad refuses this
        daemon,
        or its catalog is an older one.
    """

    def __init__(
        self,
        *,
        metad: Transport,
        role: metad_pb.Role,
        identity: Identity,
        address: str,
        http_address: str,
        on_poll: Callable[[metad_pb.PollReply], None],
        payload: Callable[[], HeartbeatPayload],
        interval_s: float,
        poll_wait_s: float,
        cluster: Callable[[], str] = lambda: "",
        followed_catalog: CatalogPositionStore | None = None,
        on_lease: Callable[[bool], None] = lambda _: None,
        on_refused: Callable[[], None] = lambda: None,
    ) -> None:
        self._metad, self._role, self._identity = metad, role, identity
        self.address, self.http_address = address, http_address
        self._on_poll, self._payload = on_poll, payload
        self._interval_s, self._poll_wait_s = interval_s, poll_wait_s
        self._cluster, self._on_lease = cluster, on_lease
        self._on_refused = on_refused
        self._followed = followed_catalog or CatalogPositionStore(None)
        self.fault: AsterismError | None = None
        """Reason why metad refuses this daemon; None if it does not."""
        self._stopping = threading.Event()
        self._send_event = threading.Event()
        self._registered = threading.Event()
        self._lease_lock = threading.Lock()
        self._lease_end = 0.0
        self._has_lease = False
        self._applied = self._latest = _NO_STATE
        """Desired states: the one applied last, and the one that metad's last reply named."""
        loops = (
            ("heartbeat", self._run_heartbeats),
            ("poll", self._run_polls),
            ("lease", self._watch_lease),
        )
        self._threads = [
            threading.Thread(target=run, name=name, daemon=True) for name, run in loops
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop the threads, without waiting for a parked poll."""
        self._stopping.set()
        self._send_event.set()
        self._registered.set()
        if self._threads[0].is_alive():
            self._threads[0].join(HEARTBEAT_TIMEOUT_S)

    def send_now(self) -> None:
        """Send a heartbeat now, because there is something to report."""
        self._send_event.set()

    def lease_remaining_s(self) -> float:
        """Return the seconds until metad may consider this daemon lost, by the local clock."""
        return self._lease_end - time.monotonic()

    def has_lease(self) -> bool:
        """Return whether tasks may be carried out and reported.

        The clock is checked here, because the calling thread may have been suspended for long."""
        self._update_lease()
        return self._has_lease

    def has_desired_state(self) -> bool:
        """Return whether a desired state was applied at least once."""
        return self._applied != _NO_STATE

    def _run_heartbeats(self) -> None:
        failures = 0
        confirmed = False
        while not self._stopping.is_set():
            self._send_event.clear()
            self._update_lease()
            sent_at = time.monotonic()
            try:
                payload = self._payload()
                reply = cast(
                    metad_pb.HeartbeatReply,
                    self._metad.call(
                        HEARTBEATS["heartbeat"],
                        metad_pb.HeartbeatRequest(
                            role=self._role,
                            uuid=self._identity.uuid,
                            incarnation=self._identity.incarnation,
                            start_id=self._identity.start_id,
                            address=self.address,
                            http_address=self.http_address,
                            tasks=payload.tasks,
                            held_versions=payload.held_versions,
                            free_bytes=payload.free_bytes,
                            held_bytes=payload.held_bytes,
                            cluster=self._cluster(),
                            dropped_loads=payload.dropped_loads,
                            completed_removals=payload.completed_removals,
                            highest_ids=payload.highest_ids,
                            resources=payload.resources,
                            followed_position=self._followed.position,
                        ),
                        HEARTBEAT_TIMEOUT_S,
                    ),
                )
                # Counted from the time before sending. metad counts from the arrival, so the local
                # lease ends first.
                self._update_lease(
                    lease_end=sent_at + reply.lease_s,
                    latest=(reply.position.term, reply.revision),
                )
                self._registered.set()
                if self._identity.is_copy and not confirmed:
                    self._identity.confirm()
                    confirmed = True
                self._followed.advance(reply.position)
                self.fault = None
                failures = 0
            except Stale as error:
                logger.error("daemon_fenced", extra={"cause": error.message})
                self.fault = error
                self._stopping.set()
                self._update_lease(lease_end=0.0)
                return
            except AsterismError as error:
                failures += 1
                if isinstance(error, Conflict):
                    self.fault = error
                self._log_failure("heartbeat_failed", failures, error)
                self._handle_refusal(error)
            except Exception:
                failures += 1
                logger.exception("heartbeat_crashed")
            self._send_event.wait(self._interval_s if not failures else _backoff_s(failures))

    def _run_polls(self) -> None:
        failures = 0
        self._registered.wait()
        while not self._stopping.is_set():
            followed_position = self._followed.position
            request = metad_pb.PollRequest(
                role=self._role,
                uuid=self._identity.uuid,
                incarnation=self._identity.incarnation,
                start_id=self._identity.start_id,
                known_revision=self._applied[1],
                wait_s=self._poll_wait_s,
                cluster=self._cluster(),
                followed_position=followed_position,
            )
            try:
                reply = cast(
                    metad_pb.PollReply,
                    self._metad.call(HEARTBEATS["poll"], request, self._poll_wait_s + POLL_SLACK_S),
                )
                if self._stopping.is_set():
                    return
                state = reply.position.term, reply.revision
                if state != self._applied or self._followed.fault:
                    self._followed.check(reply, followed_position)
                    self._on_poll(reply)
                    self._applied = state
                    self._update_lease()
                failures = 0
            except AsterismError as error:
                failures += 1
                self._log_failure("poll_failed", failures, error)
                self._handle_refusal(error)
            except Exception:
                failures += 1
                logger.exception("poll_crashed")
            if failures:
                self._stopping.wait(_backoff_s(failures))

    def _handle_refusal(self, error: AsterismError) -> None:
        if isinstance(error, Conflict):
            try:
                self._on_refused()
            except AsterismError as failure:
                self._log_failure("inventory_failed", 1, failure)
            except Exception:
                logger.exception("inventory_crashed")

    def _watch_lease(self) -> None:
        while not self._stopping.is_set():
            self._update_lease()
            remaining_s = self.lease_remaining_s()
            self._stopping.wait(remaining_s if remaining_s > 0 else LEASE_CHECK_S)

    def _update_lease(
        self, *, lease_end: float | None = None, latest: tuple[str, int] | None = None
    ) -> None:
        """Update the lease by the clock, then by the result of a heartbeat, if given."""
        with self._lease_lock:
            self._apply_lease()
            if lease_end is not None:
                self._lease_end = lease_end
            if latest is not None:
                self._latest = latest
            self._apply_lease()

    def _apply_lease(self) -> None:
        expired = self.lease_remaining_s() <= 0
        if self._has_lease and expired:
            self._has_lease = False
            logger.warning("lease_expired")
            self._on_lease(False)
        # A state older than the one in metad's last reply may contain tasks that were withdrawn
        # since.
        elif not self._has_lease and not expired and self._applied == self._latest != _NO_STATE:
            self._has_lease = True
            logger.info("lease_acquired")
            self._on_lease(True)

    def _log_failure(self, event: str, failures: int, error: AsterismError) -> None:
        if not self._stopping.is_set() and failures in (1, 10, 100):
            logger.warning(event, extra={"failures": failures, "cause": error.message})


def _backoff_s(failures: int) -> float:
    return min(MAX_BACKOFF_S, 0.1 * 2.0 ** min(failures, 8)) * random.uniform(0.5, 1.0)
