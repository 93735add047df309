"""Execute a campaign: start its jobs, judge them, and notify people."""

import json
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from random import Random
from types import FrameType

from mplab.base.errors import GateError, InputError, InterruptedRunError, LabNotReadyError, MplabError, NoBaselineError
from mplab.base.lock import is_locked, resource_lock
from mplab.campaign.directory import CampaignDirectory
from mplab.campaign.judge import Breaker, Verdict, cells_of, judge
from mplab.campaign.notify import Message, Notifier
from mplab.campaign.retention import apply_retention, plan_retention
from mplab.campaign.running import MPLAB, RunningTry, Worker, progress_of
from mplab.campaign.state import CampaignTracker
from mplab.format.campaign import CampaignState, Job, JobStatus
from mplab.format.campaignevents import (
    CampaignCut,
    CampaignEvent,
    CampaignFinished,
    CampaignInterrupted,
    CampaignStarted,
    DiskEnough,
    DiskLow,
    JobCompared,
    JobEnded,
    JobFinished,
    JobStarted,
    Notified,
    ResourceQuarantined,
    ResourceRests,
    ResourceUsed,
    Tidied,
)
from mplab.format.campaignfile import Kind
from mplab.format.events import EventLog, EventTail
from mplab.format.experiment import Ending
from mplab.run.run_directory import RunDirectory, new_run_id

CHANGED = "the experiment, a file that it extends, or its lab file has changed since the campaign began"
_POLL_S = 0.5
_BUSY_S = 10.0
"""Interval, in seconds, of checks whether another process has released the resources of a job."""


class Scheduler:
    """Scheduler of a campaign: starts jobs as soon as their resources are free, and repeats them until they are done.

    The campaign's events contain its whole state. Other processes control the scheduler by appending events:
    ``campaign_paused``, ``campaign_continued``, ``resource_released``.

    Args:
        directory: directory of the campaign; its events contain the planned jobs.
        on_state: called with the campaign's state whenever the state may have changed.
        changed: returns whether the files of a job's experiment have changed since the campaign was planned.
        program: command line of ``mplab``.
    """

    def __init__(
        self,
        directory: CampaignDirectory,
        on_state: Callable[[CampaignState], None],
        changed: Callable[[Job], bool],
        program: Sequence[str] = MPLAB,
    ) -> None:
        self._directory = directory
        self._file = directory.read_file()
        self._runs = directory.runs
        self._on_state = on_state
        self._changed = changed
        self._program = program
        rules = self._file.breaker
        self._breaker = Breaker(rules.failures, rules.rest, rules.rests)
        self._notifier = Notifier(self._file.notify, directory.asked_in)
        self._tracker = CampaignTracker()
        self._running: dict[str, RunningTry] = {}
        self._comparing: dict[str, Worker] = {}
        self._looked: dict[str, float] = {}
        self._low_since: float | None = None
        self._ends_by: float | None = None
        self._stop = False

    @property
    def state(self) -> CampaignState:
        """Return the current state of the campaign."""
        return self._tracker.state

    def execute(self) -> CampaignState:
        """Run the campaign until every job is done, has failed or is left out. Return the campaign's final state.

        Raises:
            InputError: the campaign has no jobs, or its events are damaged.
            InterruptedRunError: SIGINT or SIGTERM; ``mplab campaign resume`` continues.
            LabNotReadyError: another process runs this campaign, or there is no disk space left for its runs.
            MplabError: an event cannot be written.
        """
        directory = self._directory
        if not directory.read_state().jobs:
            raise InputError(f"{directory.path}: no job was planned: begin a new campaign")
        handlers = {number: signal.signal(number, self._interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            with (
                resource_lock(directory.lock_name, run_id=directory.id),
                EventLog(directory.events_file, durable=True) as self._events,
                EventTail(directory.events_file, CampaignEvent) as self._tail,
            ):
                self._execute()
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        return self.state

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        self._stop = True

    def _execute(self) -> None:
        self._follow()
        deadline = Ending(self._file.max, self._file.until).deadline(datetime.now().astimezone())
        self._ends_by = deadline.timestamp() if deadline is not None else None
        self._append(CampaignStarted(ends_by=self._ends_by))
        try:
            while self._goes_on():
                time.sleep(_POLL_S)
        finally:
            self._end_all()
        self._tidy()
        self._append(CampaignFinished())
        self._tell("finished", f"{self.state.title}: finished", _summary(self.state))

    def _goes_on(self) -> bool:
        """Do one round: read events, handle ended tries, start jobs. Return whether another round is needed.

        Raises the errors of `execute`.
        """
        self._follow()
        self._take_ended()
        for running in self._running.values():
            running.request(wait=self.state.phase == "paused" or bool(self.state.disk_low))
            running.end_when_dead(self._file.stall)
        self._look_at_disk()
        if self._stop:
            self._interrupted("stopped by a signal")
            raise InterruptedRunError(f"stopped; continue with: mplab campaign resume {self._directory.path}")
        self._leave_out()
        self._begin()
        self._on_state(self.state)
        return bool(self._running or self._comparing or next(self._waiting(), None))

    def _append(self, event: CampaignEvent) -> None:
        """Append an event to the log and apply it to the state. If the disk is full, wait for space.

        Raises:
            MplabError: the disk stays full for the time ``stall`` of the campaign file, or the campaign must stop.
        """
        until = time.monotonic() + self._file.stall
        while True:
            try:
                self._events.append(event)
                break
            except MplabError:
                if self._stop or time.monotonic() > until:
                    raise
                time.sleep(_POLL_S)
        self._follow()

    def _follow(self) -> None:
        """Read new events, including those of other processes, and apply them to the state."""
        for event in self._tail.poll():
            self._tracker.feed(event)

    # --- Begin ---------------------------------------------------------------------------------------------------

    def _waiting(self) -> Iterator[JobStatus]:
        """Yield the jobs that wait for their first or next try, in the order in which they are to start."""
        jobs = {status.job.id: status for status in self.state.jobs}
        order_of = list(jobs)
        if self._file.order == "shuffled":
            Random(self._directory.id).shuffle(order_of)  # noqa: S311 - an order, not a secret
        for job_id in order_of:
            if jobs[job_id].state == "waiting" and job_id not in self._comparing:
                yield jobs[job_id]

    def _begin(self) -> None:
        """Start a try of every waiting job that can start now; finish waiting jobs whose run is complete."""
        for status in list(self._waiting()):
            if self._is_good(status):
                if status.tries[-1].code == GateError.exit_code and not status.worse:
                    self._worse(status.job, "a budget is broken")
                self._done(status.job, status.run)
            elif self._may_begin(status):
                if self._changed(status.job):
                    self._fail(status, f"{CHANGED}: its cells would not be comparable; begin a new campaign")
                else:
                    self._start(status)

    @staticmethod
    def _is_good(status: JobStatus) -> bool:
        """Return whether the last try of a waiting job completed its run.

        Such a job still waits only because the campaign was killed before it logged the job's end.
        """
        return bool(status.tries) and status.tries[-1].code in (0, GateError.exit_code)

    def _may_begin(self, status: JobStatus) -> bool:
        if self.state.phase == "paused" or self.state.disk_low:
            return False
        if self._file.at_once is not None and len(self._running) >= self._file.at_once:
            return False
        now = time.time()
        if not all(self._breaker.usable(self.state.resource(name), now) for name in status.job.resources):
            return False
        if now < self._looked.get(status.job.id, 0.0):
            return False
        locks = [*status.job.resources, *([f"run-{status.run}"] if status.run else [])]
        free = not any(map(is_locked, locks))
        self._looked[status.job.id] = 0.0 if free else now + _BUSY_S
        return free

    def _start(self, status: JobStatus) -> None:
        job, number = status.job, len(status.tries) + 1
        going_on = bool(status.run) and (self._runs / status.run / "manifest.json").is_file()
        run = status.run if going_on else new_run_id(job.experiment)
        directory = RunDirectory(self._runs / run)
        before = cells_of(progress_of(directory))
        ends_by = ["--ends-by", str(self._ends_by)] if self._ends_by is not None else []
        common = ["--runs", str(self._runs), "--quiet", *ends_by]
        if going_on:
            again = ["--failed"] if before.ok + before.invalid + before.failed + before.left_out == before.total else []
            arguments = ["resume", str(self._runs / run), *common, *again]
        else:
            lab_options = [*(["--lab", job.lab] if job.lab else []), *(["--phone", job.phone] if job.phone else [])]
            variables = [word for key, value in job.given.items() for word in ("--set", f"{key}={json.dumps(value)}")]
            arguments = ["run", job.file, *common, *lab_options, *variables, "--run-id", run]
        self._append(JobStarted(job=job.id, run=run, number=number))
        worker = Worker(arguments, self._directory.logs / f"{job.id}-{number}.log", self._program)
        self._running[job.id] = RunningTry(job, directory, worker, before)

    def _leave_out(self) -> None:
        """Leave out waiting jobs that can no longer start: a resource is in quarantine, or too little time is left."""
        late = []
        for status in [status for status in self._waiting() if not self._is_good(status)]:
            bad = [name for name in status.job.resources if self.state.resource(name).quarantined]
            if bad:
                reason = f"{bad[0]} is in quarantine: {self.state.resource(bad[0]).reason}"
                self._append(JobFinished(job=status.job.id, state="left out", reason=reason))
            elif self._ends_by is not None and time.time() + status.job.block_s > self._ends_by:
                late.append(status.job.id)
        if late:
            reason = "not started: it would not have ended in time (max, until)"
            self._append(CampaignCut(reason=reason, jobs=tuple(late)))
            for job_id in late:
                self._append(JobFinished(job=job_id, state="left out", reason=reason))

    # --- End -----------------------------------------------------------------------------------------------------

    def _take_ended(self) -> None:
        for job_id, running in list(self._running.items()):
            code = running.worker.poll()
            if code is not None:
                del self._running[job_id]
                self._ended(running, code)
        for job_id, worker in list(self._comparing.items()):
            code = worker.poll()
            if code is not None:
                del self._comparing[job_id]
                self._compared(self.state.job(job_id).job, code, worker.said())

    def _ended(self, running: RunningTry, code: int) -> None:
        job, cells = running.job, cells_of(running.progress())
        verdict = judge(code, running.worker.said(), running.before, cells)
        if running.stalled:
            verdict = Verdict("again", f"no sign of life for {self._file.stall:.0f} s", verdict.resources)
        elif running.worker.stopping:
            verdict = Verdict(verdict.next if verdict.next == "done" else "again", "stopped with its campaign")
        if verdict.busy:
            self._looked[job.id] = time.time() + _BUSY_S
        blamed = running.stalled or not (running.worker.stopping or verdict.busy)
        number = len(self.state.job(job.id).tries)
        reason = verdict.reason if verdict.next != "done" else ""
        self._append(
            JobEnded(job=job.id, run=running.run, code=code, reason=reason, blamed=blamed, cells=cells, number=number)
        )
        self._judge_resources(job, verdict)
        if verdict.next == "done":
            if code == GateError.exit_code:
                self._worse(job, running.worker.said())
            self._done(job, running.run)
        elif blamed:
            tries = sum(one_try.blamed for one_try in self.state.job(job.id).tries)
            if verdict.next == "failed" or tries >= self._file.tries:
                self._fail(self.state.job(job.id), verdict.reason)

    def _fail(self, status: JobStatus, reason: str) -> None:
        self._append(JobFinished(job=status.job.id, state="failed", reason=reason))
        self._tell("failed", f"{status.job.id} failed", reason, run=status.run, tries=len(status.tries))

    def _done(self, job: Job, run: str) -> None:
        """Finish a job whose run is complete. If the campaign compares runs, start the comparison instead.

        The job is then finished after the comparison.
        """
        if self._file.compare is None or self._stop:
            self._append(JobFinished(job=job.id, state="done", reason=""))
            return
        window = str(self._file.compare.window)
        arguments = ["compare", run, "--runs", str(self._runs), "--window", window]
        self._comparing[job.id] = Worker(arguments, self._directory.logs / f"{job.id}-compare.log", self._program)

    def _compared(self, job: Job, code: int, message: str) -> None:
        no_baseline = code == InputError.exit_code and NoBaselineError.PHRASE in message
        if code == GateError.exit_code:
            self._worse(job, message)
        elif code != 0 and not no_baseline:
            self._worse(job, f"cannot be compared: {message or f'exit code {code}'}")
        elif not self.state.job(job.id).worse:
            self._append(JobCompared(job=job.id, passed=True, text="no earlier run" if no_baseline else "as before"))
        self._append(JobFinished(job=job.id, state="done", reason=""))

    def _worse(self, job: Job, text: str) -> None:
        self._append(JobCompared(job=job.id, passed=False, text=text))
        self._tell("worse", f"{job.id} is worse", text, run=self.state.job(job.id).run)

    def _judge_resources(self, job: Job, verdict: Verdict) -> None:
        if verdict.resources == "unknown":
            return
        self._append(ResourceUsed(resources=job.resources, good=verdict.resources == "good"))
        for name in job.resources if verdict.resources == "bad" else ():
            status = self.state.resource(name)
            reason = f"{status.failures} tries in a row went wrong with it, the last: {job.id}: {verdict.reason}"
            match self._breaker.judge(status):
                case "rest":
                    until = time.time() + self._breaker.rest_s
                    self._append(ResourceRests(resource=name, until=until, reason=reason))
                case "quarantine":
                    self._append(ResourceQuarantined(resource=name, reason=reason))
                    hint = f"Look at it, then: mplab campaign release '{name}'"
                    self._tell("quarantined", f"{name} is in quarantine", f"{reason}\n{hint}", resource=name)

    # --- Watch ---------------------------------------------------------------------------------------------------

    def _look_at_disk(self) -> None:
        """Pause all runs while there is too little disk space.

        Raises:
            LabNotReadyError: there has been too little space for the time ``stall`` of the campaign file.
        """
        free = shutil.disk_usage(self._runs).free
        low = free < self._file.keep_free
        if low and not self.state.disk_low:
            reason = f"{_gb(free)} free for {self._runs}, less than {_gb(self._file.keep_free)} (keep_free): runs wait"
            self._low_since = time.monotonic()
            self._append(DiskLow(free_bytes=free, reason=reason))
            self._tell("disk", "Too little space", reason, free_bytes=free)
        elif not low and self.state.disk_low:
            self._append(DiskEnough(free_bytes=free))
        elif low and self._low_since is not None and time.monotonic() - self._low_since > self._file.stall:
            self._interrupted(self.state.disk_low)
            where = f"mplab campaign resume {self._directory.path}"
            raise LabNotReadyError(f"{self.state.disk_low}; make space, then: {where}")

    def _tidy(self) -> None:
        """Apply the retention rules of the campaign file. Call only while no analysis is running."""
        if self._file.retention is None:
            return
        for result in apply_retention(plan_retention(self._runs, self._file.retention), self._runs):
            about, freed = result.action.text, result.freed_bytes
            self._append(Tidied(text=about, freed_bytes=freed, problem=result.problem))

    # --- Stop ----------------------------------------------------------------------------------------------------

    def _interrupted(self, reason: str) -> None:
        self._end_all()
        self._append(CampaignInterrupted(reason=reason))
        self._on_state(self.state)
        self._tell("interrupted", f"{self.state.title}: interrupted", f"{reason}\n{_summary(self.state)}")

    def _end_all(self) -> None:
        """End the processes of all running tries and comparisons, and wait for their end."""
        for worker in (*(running.worker for running in self._running.values()), *self._comparing.values()):
            worker.stop()
        while self._running or self._comparing:
            time.sleep(_POLL_S)
            for job_id, running in list(self._running.items()):
                if (code := running.worker.poll()) is not None:
                    del self._running[job_id]
                    self._ended(running, code)
            self._comparing = {job: worker for job, worker in self._comparing.items() if worker.poll() is None}

    def _tell(self, kind: Kind, title: str, text: str, **facts: str | int | float | bool) -> None:
        message = Message(kind, title, text, self._directory.id, facts)
        for delivery in self._notifier.send(message):
            self._append(Notified(kind=kind, to=delivery.to, ok=delivery.ok, error=delivery.error))


def _summary(state: CampaignState) -> str:
    """Return the text of a message about the campaign: one line for each job."""
    return "\n".join(_line(status) for status in state.jobs)


def _line(status: JobStatus) -> str:
    cells = status.cells
    words: Sequence[str] = [status.job.id, status.state, f"{cells.ok} of {status.job.cells} cells ok"]
    more = "; ".join(filter(None, (status.reason, status.compared if status.worse else "")))
    return ", ".join(words) + (f": {more}" if more else "")


def _gb(size: int) -> str:
    return f"{size / 1e9:.1f} GB"
