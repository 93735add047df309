"""Undo changes, last one first, also after an error or the death of the process."""

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
from mplab.base.files import Closing
from mplab.base.lock import private_directory

COMMAND_TIMEOUT_S = 30.0

_log = structlog.get_logger(__name__)

Command = Sequence[str]


class UndoError(CellError):
    """Some changes could not be undone; the message names each with its reason."""


@dataclass(frozen=True)
class _Step:
    name: str
    action: Callable[[], object]
    entry: int | None


class UndoStack:
    """Undo all registered changes, last one first, when the ``with`` block ends.

    Register *before* the change: an action must be harmless if its change was never made. Every action is tried; a
    failed one is logged, and the others still run. If an action failed and the block raised no error, the block ends
    with UndoError. If the block raised an error, that error gets a note with the failures::

        with UndoStack() as undo:
            undo.register("phone: no MPTCP endpoints", lambda: phone.ip("mptcp endpoint flush"))
            phone.ip("mptcp endpoint add …")
    """

    def __init__(self, journal: "UndoJournal | None" = None) -> None:
        """Make an empty stack.

        Args:
            journal: journal for steps registered with commands. Such steps survive this process; see
                `UndoJournal.recover`.
        """
        self._journal = journal
        self._steps: list[_Step] = []

    def register(self, name: str, action: Callable[[], object], *, commands: Sequence[Command] = ()) -> None:
        """Register `action` to run when the block ends.

        Args:
            name: name of the undo in messages: the device and its state after the undo, or the thing that is undone.
            action: undoes the change.
            commands: command lines that undo the change from a later process. They are in the journal on disk when this
                method returns.
        """
        entry = self._journal.add(name, commands) if self._journal is not None and commands else None
        self._steps.append(_Step(name, action, entry))

    def undo_all(self) -> list[str]:
        """Run every action, last one first; return the failures as ``name: reason``.

        Raises:
            KeyboardInterrupt: SIGINT arrived during an action; all other actions have run. Likewise SystemExit.
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
        """Return the stack; actions run at the end of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Undo all changes.

        Raises:
            UndoError: an action failed, and the block raised no error.
        """
        failures = self.undo_all()
        if not failures:
            return
        text = f"not undone: {'; '.join(failures)}"
        if error is None:
            raise UndoError(text)
        error.add_note(text)


@dataclass(frozen=True)
class RecoveredChange:
    """One change that a dead process left behind, and the result of undoing it."""

    name: str
    owner_pid: int
    failure: str = ""
    """Reason why the change could not be undone; "": it is undone."""


class UndoJournal(Closing):
    """Changes that a process has made and not yet undone: a file of command lines on disk.

    Each process has one file. Its first line identifies the owner by pid, start time and boot id. A line
    ``{"id", "name", "commands"}`` precedes each change, and ``{"done": id}`` follows its undo. Each line is on disk
    before the call returns. The owner holds a lock on the file, which the kernel releases when the owner dies. The
    file is removed when it holds no change to undo.
    """

    def __init__(self, directory: Path) -> None:
        """Create a journal in `directory`. A missing directory is created with mode 700.

        Raises:
            LabNotReadyError: `directory` is not private to this user.
        """
        private_directory(directory)
        descriptor, name = tempfile.mkstemp(prefix=f"{os.getpid()}-", suffix=".new", dir=directory)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        self._descriptor = descriptor
        self._path = Path(name).with_suffix(".jsonl")
        self._next = 1
        self._pending: set[int] = set()
        self._write({"format": 1, **_identity(os.getpid())})
        Path(name).rename(self._path)  # `recover` must not see the file before it is locked and names its owner
        _sync_directory(directory)

    def add(self, name: str, commands: Sequence[Command]) -> int:
        """Record a change before it is made; return its number for `done`."""
        entry = self._next
        self._next += 1
        self._write({"id": entry, "name": name, "commands": [list(command) for command in commands]})
        self._pending.add(entry)
        return entry

    def done(self, entry: int) -> None:
        """Record that the change has been undone."""
        self._write({"done": entry})
        self._pending.discard(entry)

    def close(self) -> None:
        """Close the journal; changes that are not undone stay on disk for `recover`."""
        if not self._pending:
            self._path.unlink(missing_ok=True)
        os.close(self._descriptor)

    @staticmethod
    def recover(directory: Path) -> list[RecoveredChange]:
        """Undo the changes that dead processes left in `directory`, the last change of each process first.

        A change whose undo fails stays in its journal for the next call. Journals of living processes are skipped.

        Raises:
            LabNotReadyError: `directory`, whose commands would be run, is not private to this user.
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
    """Yield whether no living process owns the journal `path`.

    If so, this process holds the journal's lock until the end of the block.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        yield False  # it was removed in the meantime, or is not a journal
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


def _recover_file(path: Path) -> list[RecoveredChange]:
    records = _read_records(path)
    owner = int(records[0].get("pid", 0)) if records else 0
    finished = {record["done"] for record in records if "done" in record}
    pending = [record for record in records if "id" in record and record["id"] not in finished]
    recovered = []
    for record in reversed(pending):
        failure = _run(record["commands"])
        recovered.append(RecoveredChange(record["name"], owner, failure))
        if failure:
            _log.error("undo of a dead process failed", step=record["name"], owner_pid=owner, error=failure)
            continue
        with path.open("a", encoding="utf-8") as file:
            file.write("\n" + json.dumps({"done": record["id"]}) + "\n")  # the previous line may be incomplete
    if not any(item.failure for item in recovered):
        path.unlink(missing_ok=True)
    return recovered


def _run(commands: Sequence[Command]) -> str:
    """Run all commands, also after a failure; return the first failure as text, "": none failed."""
    failures = []
    for command in commands:
        try:
            result = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            failures.append(f"{' '.join(command)}: {error}")
            continue
        if result.returncode != 0:
            failures.append(f"{' '.join(command)}: exit code {result.returncode}: {result.stderr.strip()[-300:]}")
    return failures[0] if failures else ""


def _read_records(path: Path) -> list[dict[str, Any]]:
    """Return the complete records of a journal, without an incomplete last line.

    A record is on disk before its change is made. The change of an incomplete line was therefore never made.
    """
    records = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            record = json.loads(line)
            if isinstance(record, dict):
                records.append(record)
    return records


def _identity(pid: int) -> dict[str, Any]:
    """Return pid, start time and boot id of a process; together they identify it even if its pid is reused.

    The start time is in clock ticks since boot.
    """
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    start = int(stat.rpartition(")")[2].split()[19])  # field 22 of proc_pid_stat(5)
    return {"pid": pid, "start": start, "boot": boot}


def _alive(owner: dict[str, Any]) -> bool:
    try:
        identity = _identity(int(owner["pid"]))
    except (OSError, KeyError, ValueError, IndexError):
        return False
    return all(owner.get(key) == value for key, value in identity.items())


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
