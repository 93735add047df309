"""Undo: what was changed is changed back, last change first, also after an error and a killed process."""

import contextlib
import fcntl
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import structlog

from mplab.base.errors import CellError, MplabError
from mplab.base.lock import private_directory

COMMAND_TIMEOUT_S = 30.0

_log = structlog.get_logger(__name__)

Command = Sequence[str]


class UndoError(CellError):
    """Changes that could not be taken back; the message names each with its reason."""


@dataclass(frozen=True)
class _Step:
    name: str
    action: Callable[[], object]
    entry: int | None


class UndoStack:
    """Takes back every registered change, last one first, when the ``with`` block ends.

    Register *before* the change: an action must do no harm when its change was never made. Every action is
    tried; one that fails is logged and stops no other. A block without an error of its own then ends with
    UndoError; an error of the block stays the error, with what could not be undone as a note on it::

        with UndoStack() as undo:
            undo.register("phone: no MPTCP endpoints", lambda: phone.ip("mptcp endpoint flush"))
            phone.ip("mptcp endpoint add …")
    """

    def __init__(self, journal: "UndoJournal | None" = None) -> None:
        """With `journal`, steps registered with commands outlive this process; see `UndoJournal.recover`."""
        self._journal = journal
        self._steps: list[_Step] = []

    def register(self, name: str, action: Callable[[], object], *, commands: Sequence[Command] = ()) -> None:
        """Have `action` run at the end.

        Args:
            name: what is undone, for messages: device first.
            action: takes the change back.
            commands: command lines that do the same, for a later process; in the journal and on disk on
            return.
        """
        entry = self._journal.add(name, commands) if self._journal is not None and commands else None
        self._steps.append(_Step(name, action, entry))

    def undo_all(self) -> list[str]:
        """Run every action, last one first; the failures, as ``name: reason``.

        Raises:
            KeyboardInterrupt: it came during an action; the others have run.
        """
        failures: list[str] = []
        interrupt: BaseException | None = None
        while self._steps:
            step = self._steps.pop()
            try:
                step.action()
                if self._journal is not None and step.entry is not None:
                    self._journal.done(step.entry)
            except Exception as error:  # one failed undo must not keep the others from running
                expected = isinstance(error, MplabError)
                _log.error("undo failed", step=step.name, error=str(error), exc_info=not expected)
                failures.append(f"{step.name}: {error}")
            except (KeyboardInterrupt, SystemExit) as error:
                failures.append(f"{step.name}: interrupted")
                interrupt = error
        if interrupt is not None:
            raise interrupt
        return failures

    def __enter__(self) -> Self:
        """Nothing is undone yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Undo; see the class."""
        failures = self.undo_all()
        if not failures:
            return
        text = f"not undone: {'; '.join(failures)}"
        if error is None:
            raise UndoError(text)
        error.add_note(text)


@dataclass(frozen=True)
class Recovered:
    """One change that a dead process had left, and whether it is taken back now."""

    name: str
    owner_pid: int
    failure: str = ""
    """Why not; empty when it is."""


class UndoJournal:
    """What a process has changed and not yet taken back, on disk, as command lines.

    One file for each process: a first line with its owner (pid, start time, boot), then
    ``{"id", "name", "commands"}`` before each change and ``{"done": id}`` after its undo, each on disk before
    the call returns. The owner holds a lock on the file, which the kernel takes away when the owner dies. The
    file goes when nothing in it is left to undo.
    """

    def __init__(self, directory: Path) -> None:
        """Opens a journal in `directory`, which is made private to this user. Raises LabNotReadyError."""
        private_directory(directory)
        descriptor, name = tempfile.mkstemp(prefix=f"{os.getpid()}-", suffix=".new", dir=directory)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        self._descriptor = descriptor
        self._path = Path(name).with_suffix(".jsonl")
        self._next = 1
        self._pending: set[int] = set()
        self._write({"format": 1, **_identity(os.getpid())})
        Path(name).rename(self._path)  # only now can `recover` see it: locked, and with its owner
        _sync_directory(directory)

    def add(self, name: str, commands: Sequence[Command]) -> int:
        """Note a change that is about to be made; the number to give to `done`."""
        entry = self._next
        self._next += 1
        self._write({"id": entry, "name": name, "commands": [list(command) for command in commands]})
        self._pending.add(entry)
        return entry

    def done(self, entry: int) -> None:
        """The change has been taken back."""
        self._write({"done": entry})
        self._pending.discard(entry)

    def close(self) -> None:
        """End the journal; what is not done stays on disk for `recover`."""
        if not self._pending:
            self._path.unlink(missing_ok=True)
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        """The journal itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    @staticmethod
    def recover(directory: Path) -> list[Recovered]:
        """Take back what dead processes have left in `directory`, each one's last change first.

        What fails stays in its journal for the next time. Journals of living processes are left alone.

        Raises:
            LabNotReadyError: the directory, whose commands would be run, is not private to this user.
        """
        if not directory.exists():
            return []
        private_directory(directory)
        recovered = []
        for path in sorted(directory.glob("*.jsonl")):
            with _owned_by_nobody(path) as owned:
                if owned:
                    recovered += _recover_file(path)
        return recovered

    def _write(self, record: dict[str, Any]) -> None:
        os.write(self._descriptor, (json.dumps(record) + "\n").encode())
        os.fsync(self._descriptor)


@contextlib.contextmanager
def _owned_by_nobody(path: Path) -> Iterator[bool]:
    """Yields True, holding the journal's lock, when no living process owns it."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        yield False  # gone in the meantime, or not a journal
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
    else:
        records = _read_records(path)
        yield not (records and _alive(records[0]))
    finally:
        os.close(descriptor)


def _recover_file(path: Path) -> list[Recovered]:
    records = _read_records(path)
    owner = int(records[0].get("pid", 0)) if records else 0
    finished = {record["done"] for record in records if "done" in record}
    pending = [record for record in records if "id" in record and record["id"] not in finished]
    recovered = []
    for record in reversed(pending):
        failure = _run(record["commands"])
        recovered.append(Recovered(record["name"], owner, failure))
        if failure:
            _log.error("undo of a dead process failed", step=record["name"], owner_pid=owner, error=failure)
            continue
        with path.open("a", encoding="utf-8") as file:
            file.write("\n" + json.dumps({"done": record["id"]}) + "\n")  # on a line of its own after a cut one
    if not any(item.failure for item in recovered):
        path.unlink(missing_ok=True)
    return recovered


def _run(commands: Sequence[Command]) -> str:
    """Run them all; why the first that failed did, or ""."""
    failures = []
    for command in commands:
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            failures.append(f"{' '.join(command)}: {error}")
            continue
        if done.returncode != 0:
            failures.append(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()[-300:]}")
    return failures[0] if failures else ""


def _read_records(path: Path) -> list[dict[str, Any]]:
    """The complete lines. A cut last line was never followed by its change: records are on disk before."""
    records = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            record = json.loads(line)
            if isinstance(record, dict):
                records.append(record)
    return records


def _identity(pid: int) -> dict[str, Any]:
    """Tells a process from a later one with the same pid: start time (clock ticks since boot) and boot."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    start = int(stat.rpartition(")")[2].split()[19])  # field 22 of proc_pid_stat(5)
    return {"pid": pid, "start": start, "boot": boot}


def _alive(owner: dict[str, Any]) -> bool:
    try:
        found = _identity(int(owner["pid"]))
    except (OSError, KeyError, ValueError, IndexError):
        return False
    return all(owner.get(key) == value for key, value in found.items())


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
