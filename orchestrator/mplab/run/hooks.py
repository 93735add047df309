"""Hooks: commands of the host around a run and its cells, and whose commands are run at all."""

import hashlib
import json
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

from mplab.base.enter import die_with_parent
from mplab.base.errors import InputError, LabNotReadyError, MplabError
from mplab.base.files import explained
from mplab.base.state import state_directory
from mplab.format.events import EventLog
from mplab.format.experiment import HOOK_NAMES, Argv, Hooks
from mplab.format.units import format_duration_s
from mplab.run.hostrpc import Answer, HostClient
from mplab.run.run_directory import RunDirectory

LOG = "hooks.log"
"""In ``logs`` of the run, and of each attempt at a cell: the commands and what they printed."""

QUESTION = "hook"

_POLL_S = 0.05


def check_programs(hooks: Hooks) -> None:
    """Raise LabNotReadyError when this host has not the program of a hook."""
    missing = [
        f"{name}: no program {command[0]!r} on this host"
        for name in HOOK_NAMES
        for command in hooks.commands(name)
        if shutil.which(command[0]) is None
    ]
    if missing:
        raise LabNotReadyError("; ".join(dict.fromkeys(f"hook {one}" for one in missing)))


def allow(hooks: Hooks) -> None:
    """Note that the user of this machine has asked for these commands: he has begun a run that has them."""
    if hooks:
        path = _note(hooks)
        with explained(path):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.write_text(f"{hooks.text()}\n", encoding="utf-8")


def check_allowed(hooks: Hooks, whose: object) -> None:
    """Raise InputError when nobody has asked for these commands on this machine."""
    if hooks and not _note(hooks).is_file():
        raise foreign(hooks, whose)


def foreign(hooks: Hooks, whose: object) -> InputError:
    """What to say of commands that come from elsewhere; `whose`: the bundle or run directory."""
    return InputError(
        f"{whose}: its hooks are commands that would be run on this host: {hooks.text()}. Read them; "
        "--allow-hooks runs them"
    )


def _note(hooks: Hooks) -> Path:
    digest = hashlib.sha256(json.dumps(hooks.to_json(), sort_keys=True).encode()).hexdigest()
    return state_directory() / "hooks" / digest[:32]


class HookRunner:
    """Runs the hooks of one run on this host, from before its lab is there until it is gone.

    Entering it runs ``before_run``, leaving it ``after_run``, with `outcome` in its environment.

    Args:
        hooks: of the experiment.
        directory: of the run.
    """

    def __init__(self, hooks: Hooks, directory: RunDirectory) -> None:
        self._hooks = hooks
        self._directory = directory
        self._closed = False
        self.outcome = "failed"
        """``ok``, ``failed``: not all cells are ok, or the run ended with an error; ``interrupted``."""

    def __enter__(self) -> Self:
        """Raises LabNotReadyError when a command failed; ``after_run`` is run then, too, and after an interruption."""
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
        """What fails now is noted in the events and in the log, if that can be; the run is what it is."""
        with suppress(MplabError):
            self._of_run("after_run", self.outcome)

    def close(self) -> None:
        """The lab is going: a command that still runs for a cell is ended."""
        self._closed = True

    def answer(self, asked: Mapping[str, object]) -> Answer:
        """Run the commands around an attempt at a cell: ``{"problem": TEXT}``, "" when all went well."""
        name, cell, attempt = str(asked["name"]), str(asked["cell"]), str(asked["attempt"])
        if name not in ("before_cell", "after_cell"):
            raise InputError(f"no hook of a cell: {name}")
        log = self._directory.partial_dir(cell) / "logs" / LOG
        about = {"MPLAB_CELL": cell, "MPLAB_ATTEMPT": attempt, "MPLAB_OUTCOME": str(asked["outcome"])}
        return {"problem": self._run(name, about, log)}

    def _of_run(self, name: str, outcome: str) -> str:
        log = self._directory.path / "logs" / LOG
        problem = self._run(name, {"MPLAB_CELL": "", "MPLAB_OUTCOME": outcome}, log)
        if problem:
            with EventLog(self._directory.events_file) as events:
                events.append("hook_failed", hook=name, reason=problem)
        return problem

    def _run(self, name: str, about: Mapping[str, str], log: Path) -> str:
        """Run the commands of a hook until one fails; what is wrong with it, or ""."""
        commands = self._hooks.commands(name)
        if not commands:
            return ""
        environment = {**os.environ, "MPLAB_RUN": str(self._directory.path.resolve()), "MPLAB_HOOK": name, **about}
        with explained(log), _appended(log) as output:
            for command in commands:
                begun = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
                output.write(f"# {begun} {name}: {shlex.join(command)}\n".encode())
                output.flush()
                said = output.tell()
                ended = self._command(command, environment, output.fileno(), during=name)
                with log.open("rb") as written:
                    written.seek(said)
                    lines = written.read().decode(errors="replace").strip().splitlines()
                output.seek(0, os.SEEK_END)
                output.write(f"# {ended or 'ok'}\n".encode())
                if ended:
                    return f"hook {name}: '{shlex.join(command)}': {ended}{f': {lines[-1]}' if lines else ''}"
        return ""

    def _command(self, command: Argv, environment: Mapping[str, str], output: int, *, during: str) -> str:
        """How a command failed, or "". What it has left running in the background goes on; it does not outlive us."""
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
        deadline = time.monotonic() + self._hooks.timeout_s
        try:
            while process.poll() is None:
                time.sleep(_POLL_S)
                if time.monotonic() > deadline:
                    return f"not ended within {format_duration_s(self._hooks.timeout_s)}"
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
    """Have the hooks of a cell run outside of the lab; what is wrong, or "". Raises MplabError."""
    answer = outside.ask(QUESTION, name=name, cell=cell, attempt=attempt, outcome=outcome)
    return str(answer["problem"])
