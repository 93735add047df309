"""Run hooks: commands that run on the host around a run and its cells, if this user has allowed them."""

import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from mplab.base.errors import InputError, LabNotReadyError, MplabError
from mplab.base.files import explained
from mplab.base.kernel import die_with_parent
from mplab.format.events import EventLog
from mplab.format.hooks import HOOK_NAMES, Argv, Hooks
from mplab.format.runevents import HookFailed
from mplab.format.units import format_duration_s
from mplab.run.hostrpc import Answer, HostClient
from mplab.run.run_directory import RunDirectory

LOG = "hooks.log"
"""Log file in ``logs`` of the run, and of each attempt at a cell: the commands and their output."""

QUESTION = "hook"

_POLL_S = 0.05


def check_programs(hooks: Hooks) -> None:
    """Raise LabNotReadyError if the program of a hook is missing on this host."""
    missing = [
        f"{name}: no program {command[0]!r} on this host"
        for name in HOOK_NAMES
        for command in hooks.commands(name)
        if shutil.which(command[0]) is None
    ]
    if missing:
        raise LabNotReadyError("; ".join(dict.fromkeys(f"hook {text}" for text in missing)))


class HookRunner:
    """Runs the hooks of one run on this host, from before its lab starts until after it has ended.

    Entering it runs ``before_run``. Leaving it runs ``after_run``, with `outcome` in its environment.

    Args:
        hooks: hooks of the experiment.
        directory: directory of the run.
    """

    def __init__(self, hooks: Hooks, directory: RunDirectory) -> None:
        self._hooks = hooks
        self._directory = directory
        self._closed = False
        self.outcome = "failed"
        """``ok``; ``failed``: a cell is not ok or the run ended with an error; ``interrupted``."""

    def __enter__(self) -> Self:
        """Run ``before_run``. If it fails or is interrupted, run ``after_run`` too. Raises LabNotReadyError."""
        outcome, problem = "interrupted", ""
        try:
            problem = self._of_run("before_run", "")
            outcome = "failed" if problem else ""
        finally:
            if outcome:
                self._of_run("after_run", outcome)
        if problem:
            raise LabNotReadyError(f"{self._directory.path}: {problem}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Run ``after_run``. A failure is only logged, because the outcome of the run does not change."""
        with suppress(MplabError):
            self._of_run("after_run", self.outcome)

    def close(self) -> None:
        """Kill the command of a cell's hook if one is running, because the lab is ending."""
        self._closed = True

    def answer(self, question: Mapping[str, object]) -> Answer:
        """Run a hook of an attempt at a cell: ``before_cell`` or ``after_cell``, as `question` requests.

        Returns:
            ``{"problem": TEXT}``; TEXT is "" if all commands of the hook succeeded.

        Raises:
            InputError: `question` requests another hook.
            MplabError: the log cannot be written.
        """
        name, cell, attempt = str(question["name"]), str(question["cell"]), str(question["attempt"])
        if name not in ("before_cell", "after_cell"):
            raise InputError(f"no hook of a cell: {name}")
        log = self._directory.partial_dir(cell) / "logs" / LOG
        about = {"MPLAB_CELL": cell, "MPLAB_ATTEMPT": attempt, "MPLAB_OUTCOME": str(question["outcome"])}
        return {"problem": self._run(name, about, log)}

    def _of_run(self, name: str, outcome: str) -> str:
        log = self._directory.path / "logs" / LOG
        problem = self._run(name, {"MPLAB_CELL": "", "MPLAB_OUTCOME": outcome}, log)
        if problem:
            with EventLog(self._directory.events_file) as events:
                events.append(HookFailed(hook=name, reason=problem))
        return problem

    def _run(self, name: str, about: Mapping[str, str], log: Path) -> str:
        """Run the commands of a hook until one fails; return how it failed, or ""."""
        commands = self._hooks.commands(name)
        if not commands:
            return ""
        environment = {**os.environ, "MPLAB_RUN": str(self._directory.path.resolve()), "MPLAB_HOOK": name, **about}
        with explained(log), _appended(log) as output:
            for command in commands:
                time_text = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
                output.write(f"# {time_text} {name}: {shlex.join(command)}\n".encode())
                output.flush()
                start = output.tell()
                problem = self._command(command, environment, output.fileno(), during=name)
                with log.open("rb") as written:
                    written.seek(start)
                    lines = written.read().decode(errors="replace").strip().splitlines()
                output.seek(0, os.SEEK_END)
                output.write(f"# {problem or 'ok'}\n".encode())
                if problem:
                    return f"hook {name}: '{shlex.join(command)}': {problem}{f': {lines[-1]}' if lines else ''}"
        return ""

    def _command(self, command: Argv, environment: Mapping[str, str], output: int, *, during: str) -> str:
        """Run a command; return how it failed, or "".

        If this process dies, the kernel kills the command, but not processes that the command has started.
        """
        parent = os.getpid()
        try:
            process = subprocess.Popen(
                command,
                cwd=self._directory.path,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=lambda: die_with_parent(parent),  # noqa: PLW1509 - prctl only
            )
        except OSError as error:
            return f"cannot be run: {error.strerror}"
        deadline = time.monotonic() + self._hooks.timeout
        try:
            while process.poll() is None:
                time.sleep(_POLL_S)
                if time.monotonic() > deadline:
                    return f"not ended within {format_duration_s(self._hooks.timeout)}"
                if self._closed and during.endswith("_cell"):
                    return "ended with the run"
        finally:
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return f"exit code {process.returncode}" if process.returncode else ""


def _appended(log: Path) -> BinaryIO:
    log.parent.mkdir(parents=True, exist_ok=True)
    return log.open("ab")


def ask_hook(outside: HostClient, name: str, *, cell: str, attempt: int, outcome: str = "") -> str:
    """Ask the host process to run the hook `name` of a cell. Return how it failed, or "". Raises MplabError."""
    answer = outside.ask(QUESTION, name=name, cell=cell, attempt=attempt, outcome=outcome)
    return str(answer["problem"])
