"""Locks on what only one run at a time may use: a phone, a router, a run directory."""

import contextlib
import json
import os
import stat
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from filelock import FileLock, Timeout

from orchestrator.errors import LabNotReadyError

IN_USE = "is in use"
"""What the error of a lock says that somebody else holds."""


def default_lock_directory() -> Path:
    """``/run/lock/mplab`` for root, else ``$XDG_RUNTIME_DIR/mplab``, else ``/tmp/mplab-<uid>``."""
    user = os.getuid()
    if user == 0 and Path("/run/lock").is_dir() and os.access("/run/lock", os.W_OK):
        return Path("/run/lock/mplab")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and Path(runtime).is_dir() and os.access(runtime, os.W_OK):
        return Path(runtime) / "mplab"
    return Path(tempfile.gettempdir()) / f"mplab-{user}"


def private_directory(path: Path) -> Path:
    """Make `path` when missing, for this user alone.

    Raises:
        LabNotReadyError: it cannot be made, is a symbolic link, belongs to somebody else, or others may write
        to it.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        raise LabNotReadyError(f"{path}: cannot be made: {error.strerror}") from error
    if not stat.S_ISDIR(found.st_mode):
        raise LabNotReadyError(f"{path}: a directory is needed, not a link or file: remove it")
    if found.st_uid != os.getuid():
        raise LabNotReadyError(f"{path}: belongs to user {found.st_uid}, not {os.getuid()}: remove it")
    if found.st_mode & 0o022:
        raise LabNotReadyError(f"{path}: others may write to it: run 'chmod 700 {path}'")
    return path


@contextlib.contextmanager
def resource_lock(name: str, *, run_id: str = "", directory: Path | None = None, wait_s: float = 0.0) -> Iterator[None]:
    """Hold `name` for the ``with`` block. The kernel releases it when this process dies, however it dies.

    Args:
        name: what is locked: ``phone-1``, a serial number.
        run_id: of the holder, for the message that others see.
        directory: where the locks are; default: `default_lock_directory`.
        wait_s: how long to wait for another holder, seconds.

    Raises:
        LabNotReadyError: somebody else holds it; the message says who and since when.
    """
    folder = private_directory(directory if directory is not None else default_lock_directory())
    file = quote(name, safe="")
    lease = folder / f"{file}.lease.json"
    lock = FileLock(folder / f"{file}.lock", timeout=wait_s, mode=0o600, is_singleton=False)
    try:
        lock.acquire()
    except Timeout:
        raise LabNotReadyError(f"{name} {IN_USE}{_holder(lease)}: wait for it, or stop it") from None
    try:
        _write_lease(lease, run_id)
        yield
    finally:
        lease.unlink(missing_ok=True)
        lock.release()


def is_locked(name: str, *, directory: Path | None = None) -> bool:
    """Whether a living process of this user holds `name`."""
    try:
        with resource_lock(name, directory=directory):
            return False
    except LabNotReadyError:
        return True


def _write_lease(lease: Path, run_id: str) -> None:
    since = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    new = lease.with_suffix(".new")
    new.write_text(json.dumps({"pid": os.getpid(), "run_id": run_id, "since": since}), encoding="utf-8")
    new.replace(lease)


def _holder(lease: Path) -> str:
    """`` by run … (pid …) since …``, or nothing while the holder has not written it yet."""
    try:
        found = json.loads(lease.read_text(encoding="utf-8"))
        run = f"run {found['run_id']}" if found["run_id"] else "a process"
        return f" by {run} (pid {found['pid']}) since {found['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return ""
