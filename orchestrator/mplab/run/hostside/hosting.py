"""Do the host process's part of a run: hooks, containers, the process inside the lab, and answers to it."""

import json
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from mplab.base.deferred import deferred
from mplab.base.enter import NOTHING, lab_process
from mplab.base.errors import InputError, InterruptedRunError, MplabError, reported_error
from mplab.base.files import Closing
from mplab.drivers.proxy import HostedResources
from mplab.format.events import EventTail
from mplab.format.experiment import IntervalRule
from mplab.format.record import json_of
from mplab.format.runevents import RunEvent
from mplab.lab.catalog import services_of
from mplab.lab.hosting import hosted
from mplab.run.hostrpc import Answer, Handler, HostServer
from mplab.run.hostside.hooks import QUESTION as HOOK
from mplab.run.hostside.hooks import HookRunner
from mplab.run.labside.ending import ENOUGH
from mplab.run.progress import SILENT, ProgressTracker, RunCallbacks, RunProgress
from mplab.run.run_directory import RunDirectory
from mplab.userfiles.experiments.experiment import Experiment

_POLL_S = 0.2
_INTERRUPTED = InterruptedRunError.exit_code


class _Follower(Closing):
    """Reads the events of a run while it is running, passes each new one to `watch`, and tracks the progress."""

    def __init__(self, file: Path, watch: RunCallbacks) -> None:
        self._tail = EventTail(file, RunEvent)
        self._watch = watch
        self._tracker = ProgressTracker()

    def close(self) -> None:
        """Stop reading events."""
        self._tail.close()

    def poll(self) -> None:
        for event in self._tail.poll():
            self._tracker.feed(event)
            self._watch.event(event)

    @property
    def progress(self) -> RunProgress:
        return self._tracker.progress()


def run_cells(
    directory: RunDirectory, experiment: Experiment, locks: ExitStack, *, watch: RunCallbacks = SILENT
) -> RunProgress:
    """Run the cells that are not complete, in a lab started for them; return the run's progress.

    Call it in the main thread of the process, because it forwards signals to the lab.

    Args:
        directory: directory of the run.
        experiment: experiment of the run.
        locks: stack from `mplab.run.hostside.beginning.held`; it is closed when this function returns.
        watch: receives the events.

    Raises:
        InterruptedRunError: SIGINT or SIGTERM.
        MplabError: the run stopped. The message says why; the type depends on the exit code of the process inside.
    """
    log = directory.path / "logs" / "orchestrator.log"
    log.parent.mkdir(exist_ok=True)
    with _Follower(directory.events_file, watch) as follower:
        follower.poll()
        with locks, HookRunner(experiment.hooks, directory) as hooks:
            code, output = _run_inside(directory, experiment, hooks, follower, log)
            progress = follower.progress
            hooks.outcome = "interrupted" if code == _INTERRUPTED else "ok" if code == 0 and progress.good else "failed"
        follower.poll()  # events of a hook after the run
    if code == _INTERRUPTED:
        raise InterruptedRunError(
            f"stopped after {progress.done} of {progress.total} cells; continue with: mplab resume {directory.path}"
        )
    if code != 0:
        raise _error_of(code, output, log)
    return progress


def _run_inside(
    directory: RunDirectory, experiment: Experiment, hooks: HookRunner, follower: _Follower, log_file: Path
) -> tuple[int, str]:
    """Start the lab's containers, and run the process inside the lab to its end. Return its exit code and output."""
    command = [sys.executable, "-m", "mplab.run.labside.inside", "run", str(directory.path.resolve())]
    with ExitStack() as stack:
        log = stack.enter_context(log_file.open("ab"))
        output = stack.enter_context(tempfile.TemporaryFile())
        containers = stack.enter_context(
            hosted(
                experiment.lab,
                congestion_control=experiment.congestion_control,
                services=services_of(experiment),
                run_id=directory.run_id,
            )
        )
        _check_images(directory, containers)
        inherited = containers.inherited() if containers is not None else NOTHING
        answers = stack.enter_context(
            HostServer({HOOK: hooks.answer, ENOUGH: stop_rule_handler(directory.path, experiment.ending.interval)})
        )
        stack.callback(hooks.close)
        process = lab_process(
            command,
            stdout=output,
            stderr=log,
            inherited=answers.inherited(inherited),
            private=not experiment.lab.real,
        )
        inside = stack.enter_context(process)
        answers.begin()
        follower.poll()
        while (code := inside.wait(_POLL_S)) is None:
            follower.poll()
        follower.poll()  # the last events
        output.seek(0)
        return code, output.read().decode(errors="replace")


def _check_images(directory: RunDirectory, containers: HostedResources | None) -> None:
    """Raise InputError if the containers of proxy and origin differ from those in the manifest."""
    if containers is None:
        return
    if changed := containers.changed_since(json_of(directory.read_manifest().lab)):
        raise InputError(
            f"{directory.path}: {changed} have changed since the run began: its cells would not be comparable; "
            "start a new run"
        )


def _error_of(code: int, output: str, log: Path) -> MplabError:
    """Return the error that the process inside reported; if it reported none, an error with the last line of `log`."""
    for line in output.splitlines():
        record = json.loads(line)
        if record["event"] == "error":
            return reported_error(code, record["error"])
    lines = log.read_text(errors="replace").strip().splitlines()
    return MplabError(f"the run ended unexpectedly: {lines[-1] if lines else f'exit code {code}'} (see {log})")


def stop_rule_handler(run: Path, rule: IntervalRule | None) -> Handler:
    """Return the function that answers the question `ENOUGH`: are the intervals of the run narrow enough?

    The function first scores the ok cells that have no scores.
    """

    def answer(_question: Mapping[str, object]) -> Answer:
        if rule is None:
            return {"enough": False, "text": "the experiment has no rule for intervals", "numbers": {}}
        with deferred("slow to import, needed by few experiments"):
            from mplab.run.hostside.metrics import intervals_of
        return intervals_of(run, rule)

    return answer
