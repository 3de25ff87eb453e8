"""Waiting for jobs: progress, hosts that are offline, and what continues after an interruption."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from asterism.cli.context import CommandContext
from asterism.cli.interruption import advice_on_interrupt
from asterism.cli.progress import ProgressCallback
from asterism_model.job_phases import describe_phase
from asterism_proto.errors import AsterismError, Deadline, Unavailable

if TYPE_CHECKING:
    from asterism import Client
    from asterism.records.samples import Job

_STALLED_S = 3.0
"""Seconds without progress after which the hosts of the tasks are checked, and between checks."""


class JobWatch:
    """Shows the progress of a job at each call, and the hosts that it waits for.

    Parameters
    ----------
    client : Client
        Client that lists the hosts.
    update : ProgressCallback
        Display of the progress.
    clock : callable
        Returns the time in seconds.
    """

    def __init__(
        self,
        client: Client,
        update: ProgressCallback,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._update, self._clock = client, update, clock
        self._progress: object = None
        self._checked_at = clock()
        self.waits_for = ""
        """Hosts that a stalled job waits for; empty if it makes progress."""
        self.job: Job | None = None
        """The job at the latest call."""

    def __call__(self, job: Job) -> None:
        """Show the progress of the job."""
        self.job = job
        progress = (job.rows_done, job.state, [(t.state, t.phase) for t in job.tasks])
        if progress != self._progress:
            self._progress, self._checked_at, self.waits_for = progress, self._clock(), ""
        elif self._clock() - self._checked_at >= _STALLED_S:
            self._checked_at = self._clock()
            self.waits_for = self._offline_hosts(job)
        phases = sorted(
            {describe_phase(t.phase) for t in job.tasks if t.phase and t.state == "RUNNING"}
        )
        self._update(
            f"{job.kind} {job.space}",
            job.rows_done,
            job.rows_total or None,
            phase=" ".join(phases),
            rate=0.0 if self.waits_for else job.rows_per_s,
            left_s=0.0 if self.waits_for else job.eta_s,
            note=self.waits_for,
        )

    def _offline_hosts(self, job: Job) -> str:
        """Return which hosts of unfinished tasks are offline; empty if none is."""
        unfinished = {t.host for t in job.tasks if t.state in ("QUEUE", "RUNNING")}
        try:
            offline = sorted(
                host.address
                for host in self._client.hosts()
                if not host.online and host.uuid in unfinished
            )
        except AsterismError:
            return ""  # the next poll of the job reports the cause
        return f"waits for {', '.join(offline)} (offline)" if offline else ""


@contextmanager
def job_progress(command: CommandContext, client: Client) -> Iterator[JobWatch]:
    """Yield a function that shows the progress of a job, until the block ends."""
    with command.output.progress() as update:
        yield JobWatch(client, update)


def wait_for_job(command: CommandContext, client: Client, job_id: int, timeout_s: float) -> Job:
    """Return the job once it has ended; show its progress until then.

    Raises
    ------
    Interrupted
        If the user interrupts the wait; the message says how to resume.
    Deadline, Unavailable
        If the job has not ended in time, or the service does not answer; the same holds.
    """
    deadline = time.monotonic() + timeout_s
    continues = continuation(command, job_id)
    with (
        advice_on_interrupt(lambda: f"interrupted; {continues}"),
        job_progress(command, client) as watch,
    ):
        try:
            return client.wait(job_id, timeout_s=timeout_s, on_progress=watch)
        except Deadline:
            if time.monotonic() < deadline:
                raise
            raise Deadline(
                f"--total-timeout={timeout_s:g}: job {job_id} has not ended{_state(watch)}; "
                f"{continues}"
            ) from None
        except Unavailable as error:
            raise type(error)(f"{error.message}; {continues}") from error


def continuation(command: CommandContext, job_id: int) -> str:
    """Return a sentence: the job continues, and how to wait for it or stop it."""
    when = "" if command.path is None else " when the folder is open again"
    wait = command.command_line(f"job wait {job_id}")
    stop = command.command_line(f"job stop {job_id}")
    return f"job {job_id} continues{when}: `{wait}` waits for it, `{stop}` stops it"


def _state(watch: JobWatch) -> str:
    job = watch.job
    if job is None:
        return ""
    rows = f", {job.rows_done:,} of {job.rows_total:,} rows" if job.rows_total else ""
    waits = f"; it {watch.waits_for}" if watch.waits_for else ""
    return f" (it is {job.state}{rows}{waits})"
