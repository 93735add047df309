"""Locks on resources that only one run may use at a time: a phone, a router, a run directory."""

import contextlib
import fcntl
import hashlib
import json
import os
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from mplab.base.errors import LabNotReadyError

_LOOK_S = 0.2
"""Minimum time for which `resource_lock` retries, seconds: `is_locked` of another process holds the lock briefly."""
_POLL_S = 0.02
_MACHINE_ID = Path("/etc/machine-id")

IN_USE = "is in use"
"""Part of the error message for a lock that another process holds."""


def default_lock_directory() -> Path:
    """Return ``/run/lock/mplab`` for root, else ``$XDG_RUNTIME_DIR/mplab``, else ``/tmp/mplab-<uid>``."""
    user = os.getuid()
    if user == 0 and Path("/run/lock").is_dir() and os.access("/run/lock", os.W_OK):
        return Path("/run/lock/mplab")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and Path(runtime).is_dir() and os.access(runtime, os.W_OK):
        return Path(runtime) / "mplab"
    return Path(tempfile.gettempdir()) / f"mplab-{user}"


def private_directory(path: Path) -> Path:
    """Create `path` if it is missing, with mode 700, and return it.

    Raises:
        LabNotReadyError: the directory cannot be created, is a symbolic link, belongs to another user, or is writable
            by others.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.lstat()
    except OSError as error:
        raise LabNotReadyError(f"{path}: cannot be made: {error.strerror}") from error
    if not stat.S_ISDIR(status.st_mode):
        raise LabNotReadyError(f"{path}: a directory is needed, not a link or file: remove it")
    if status.st_uid != os.getuid():
        raise LabNotReadyError(f"{path}: belongs to user {status.st_uid}, not {os.getuid()}: remove it")
    if status.st_mode & 0o022:
        raise LabNotReadyError(f"{path}: others may write to it: run 'chmod 700 {path}'")
    return path


@contextlib.contextmanager
def resource_lock(name: str, *, run_id: str = "", directory: Path | None = None, wait_s: float = 0.0) -> Iterator[None]:
    """Hold the lock `name` for the ``with`` block. The kernel releases it when this process dies for any reason.

    The lock's files are removed at the end of the block. Those of a killed process are removed by the next holder.

    Args:
        name: locked resource: ``phone-1``, a serial number.
        run_id: run id of the holder, for the error message of other processes.
        directory: directory of the locks; default: `default_lock_directory`.
        wait_s: maximum time to wait for another holder, seconds.

    Raises:
        LabNotReadyError: another process holds the lock; the message names that process and when it took the lock.
    """
    folder = private_directory(directory if directory is not None else default_lock_directory())
    lock, lease = _files(folder, name)
    descriptor = _acquire(lock, wait_s=max(wait_s, _LOOK_S))
    if descriptor is None:
        raise _in_use(name, lease)
    try:
        _write_lease(lease, run_id)
        yield
    finally:
        lease.unlink(missing_ok=True)
        lock.unlink(missing_ok=True)
        os.close(descriptor)


def is_locked(name: str, *, directory: Path | None = None) -> bool:
    """Return whether a living process of this user holds the lock `name`."""
    lock, _ = _files(directory if directory is not None else default_lock_directory(), name)
    try:
        descriptor = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def machine() -> str:
    """Return an opaque name of this machine, which stays the same after a reboot and with another host name.

    A machine without a machine-id, such as most containers, is identified by its host name.
    """
    try:
        number = _MACHINE_ID.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        number = ""
    return hashlib.sha256(f"mplab {number or os.uname().nodename}".encode()).hexdigest()[:16]


def sees_locks(path: Path, holder: str = "") -> bool:
    """Return whether `is_locked` sees the locks of the process that writes to the directory `path`.

    Locks are visible only to the user who owns them, on the same machine.

    Args:
        path: directory that belongs to the user of that process.
        holder: `machine` of that process; "": unknown, taken for this machine.
    """
    return path.stat().st_uid == os.getuid() and holder in {"", machine()}


def check_free(names: Iterable[str], *, directory: Path | None = None) -> None:
    """Check that no living process of this user holds one of the locks `names`.

    Raises:
        LabNotReadyError: a process holds one.
    """
    folder = directory if directory is not None else default_lock_directory()
    for name in names:
        if is_locked(name, directory=folder):
            raise _in_use(name, _files(folder, name)[1])


def _files(folder: Path, name: str) -> tuple[Path, Path]:
    """Return the lock file of `name`, and the file in which the lock's holder describes itself."""
    file = quote(name, safe="")
    return folder / f"{file}.lock", folder / f"{file}.lease.json"


def _acquire(path: Path, *, wait_s: float) -> int | None:
    """Lock the file `path` and return its descriptor. To release the lock, close the descriptor.

    None: another process still held the lock after `wait_s` seconds.
    """
    deadline = time.monotonic() + wait_s
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), path.stat()):
                    return descriptor
            # The previous holder removed the file after it was opened here: a lock on it has no effect.
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(descriptor)
                return None
            time.sleep(_POLL_S)
        os.close(descriptor)


def _in_use(name: str, lease: Path) -> LabNotReadyError:
    return LabNotReadyError(f"{name} {IN_USE}{_holder(lease)}: wait for it, or stop it")


def _write_lease(lease: Path, run_id: str) -> None:
    since = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    new = lease.with_suffix(".new")
    new.write_text(json.dumps({"pid": os.getpid(), "run_id": run_id, "since": since}), encoding="utf-8")
    new.replace(lease)


def _holder(lease: Path) -> str:
    """Return the holder of a lock for a message: `` by run … (pid …) since …``.

    "": the holder has not yet written the file `lease`, in which it describes itself.
    """
    try:
        holder = json.loads(lease.read_text(encoding="utf-8"))
        run = f"run {holder['run_id']}" if holder["run_id"] else "a process"
        return f" by {run} (pid {holder['pid']}) since {holder['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return ""
