"""The job scheduler as a pure function: ``handle(state, event) -> (state, commands)``; a quiet room.

Called by `metad.jobs.driver`, which writes the commands of one event in one batch and only then takes the new state on.
An event alters facts; then `settling` moves every job of the spaces it touched as far as the facts allow, so that no
order of events leaves a job behind. Jobs go QUEUE -> RUNNING -> FINISHED | FAILED | STOPPED, at most one RUNNING in a
space, in the order of their cuts; only a recovery leads back from an end (and never from FINISHED).
"""

from __future__ import annotations

from metad.jobs import model
from metad.jobs.machine.attempts import on_host_lost, on_host_seen, on_tasks_reported
from metad.jobs.machine.requests import recover, on_space_dropped, stop, submit
from metad.jobs.machine.settling import advance_jobs, tick
from metad.jobs.machine.turn import Transition, find_job, assigned_tasks
from metad.jobs.model import Command, Event, MachineState

__all__ = ["find_job", "handle", "assigned_tasks"]


def handle(state: MachineState, event: Event) -> tuple[MachineState, list[Command]]:
    """The state after ``event``, and what is to be done; raises, and changes nothing, where a request is refused."""
    transition = Transition(state, event.now_ms)
    match event:
        case model.SubmitJob():
            submit(transition, event)
        case model.StopJob():
            stop(transition, event.job_id)
        case model.RecoverJob():
            recover(transition, event.job_id)
        case model.SpaceDropped():
            on_space_dropped(transition, event.space_id)
        case model.HostSeen():
            on_host_seen(transition, event)
        case model.HostLost():
            on_host_lost(transition, event.host)
        case model.TasksReported():
            on_tasks_reported(transition, event)
        case model.Tick():
            tick(transition)
    advance_jobs(transition)
    return transition.finish()
