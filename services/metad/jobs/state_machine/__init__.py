"""The job scheduler as a pure function: ``handle(state, event) -> (state, commands)``.

Storage, clocks and locks do not belong here: `metad.jobs.driver` writes the commands of an
event. An event alters facts. Then `scheduling` moves every job as far as the facts allow, so the
order of events cannot leave a job waiting. Jobs go QUEUE -> RUNNING -> FINISHED | FAILED |
STOPPED. A space has at most one RUNNING job, and its jobs run in the order of their commit
watermarks. Only a recovery leads back from an end, and never from FINISHED."""

from __future__ import annotations

from metad.jobs.state_machine.host_events import on_host_lost, on_host_seen, on_tasks_reported
from metad.jobs.state_machine.requests import on_space_dropped, recover, stop, submit
from metad.jobs.state_machine.scheduling import advance_jobs, tick
from metad.jobs.state_machine.transition import Transition, assigned_tasks, find_job
from metad.model import jobs
from metad.model.jobs import Command, Event, MachineState

__all__ = ["assigned_tasks", "find_job", "handle"]


def handle(state: MachineState, event: Event) -> tuple[MachineState, list[Command]]:
    """Return the state after ``event`` and the commands to carry out.

    A refused request raises and changes nothing."""
    transition = Transition(state, event.now_ms)
    match event:
        case jobs.SubmitJob():
            submit(transition, event)
        case jobs.StopJob():
            stop(transition, event.job_id)
        case jobs.RecoverJob():
            recover(transition, event.job_id, event.principal)
        case jobs.SpaceDropped():
            on_space_dropped(transition, event.space_id)
        case jobs.HostSeen():
            on_host_seen(transition, event)
        case jobs.HostLost():
            on_host_lost(transition, event.host)
        case jobs.TasksReported():
            on_tasks_reported(transition, event)
        case jobs.Tick():
            tick(transition)
    advance_jobs(transition)
    return transition.finish()
