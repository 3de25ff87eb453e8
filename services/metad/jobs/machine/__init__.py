"""The job scheduler as a pure function: ``handle(state, event) -> (state, commands)``; a quiet room.

Called by `metad.jobs.driver`, which writes the commands of one event in one batch and only then takes the new state on.
An event alters facts; then `settling` moves every job of the spaces it touched as far as the facts allow, so that no
order of events leaves a job behind. Jobs go QUEUE -> RUNNING -> FINISHED | FAILED | STOPPED, at most one RUNNING in a
space, in the order of their cuts; only a recovery leads back from an end (and never from FINISHED).
"""

from __future__ import annotations

from metad.jobs import model
from metad.jobs.machine.attempts import host_lost, host_seen, reported
from metad.jobs.machine.requests import recover, space_dropped, stop, submit
from metad.jobs.machine.settling import settle, tick
from metad.jobs.machine.turn import Turn, find, orders
from metad.jobs.model import Command, Event, Jobs

__all__ = ["find", "handle", "orders"]


def handle(state: Jobs, event: Event) -> tuple[Jobs, list[Command]]:
    """The state after ``event``, and what is to be done; raises, and changes nothing, where a request is refused."""
    turn = Turn(state, event.now_ms)
    match event:
        case model.Submit():
            submit(turn, event)
        case model.Stop():
            stop(turn, event.job_id)
        case model.Recover():
            recover(turn, event.job_id)
        case model.SpaceDropped():
            space_dropped(turn, event.space_id)
        case model.HostSeen():
            host_seen(turn, event)
        case model.HostLost():
            host_lost(turn, event.host)
        case model.Reported():
            reported(turn, event)
        case model.Tick():
            tick(turn)
    settle(turn)
    return turn.end()
