"""Write files atomically (complete or absent), report a full disk, read files that hold a secret."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from mplab.base.errors import InputError, MplabError

GO_ON = "make space, then 'mplab resume'; what was finished is kept"
"""Advice for a full disk, part of the message."""
_WRONG_PATH = frozenset(
    {
        errno.ENOENT,
        errno.ENOTDIR,
        errno.EISDIR,
        errno.EEXIST,
        errno.EACCES,
        errno.EPERM,
        errno.EROFS,
        errno.ENAMETOOLONG,
        errno.ELOOP,
        errno.EINVAL,
    }
)
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class Closing:
    """Base class of objects that are closed at the end of a ``with`` block."""

    def close(self) -> None:
        """Release the object's resources, such as files and connections."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        """Return the object."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the object."""
        self.close()


def kind_of_failure(error: OSError) -> type[MplabError]:
    """Return the class for the failure of a read or write: `InputError` if the path is wrong, otherwise MplabError."""
    return InputError if error.errno in _WRONG_PATH else MplabError


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn an OSError in the block into an MplabError that names `path`.

    Raises:
        InputError: the path is wrong: a folder is missing, a part of it is a file, or it must not be written.
        MplabError: the block raised another OSError. The message starts with "disk full" for ENOSPC, EDQUOT and EFBIG.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in _FULL:
            raise MplabError(f"disk full: {path} cannot be written ({reason}): {GO_ON}") from error
        raise kind_of_failure(error)(f"{path}: cannot be written: {reason}") from error


def write_new(path: Path, content: bytes) -> None:
    """Write a file that does not exist yet. It appears under its name only when it is complete on disk.

    Raises:
        MplabError: the file exists already, or cannot be written ("disk full: …").
    """
    if path.exists():
        raise MplabError(f"{path}: exists already and is never rewritten")
    replace(path, content)


def replace(path: Path, content: bytes) -> None:
    """Write a file, or replace it atomically: readers see the old content or the new.

    Raises:
        MplabError: the file cannot be written ("disk full: …").
    """
    temporary = path.with_name(f".{path.name}.new")
    with explained(path):
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
            try:
                write_all(descriptor, content)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            temporary.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        sync(path.parent)


def write_all(descriptor: int, content: bytes) -> None:
    """Call ``os.write`` until all bytes are written. Raises OSError."""
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def sync(path: Path) -> None:
    """Flush a file's content, or a directory's entries, to disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(directory: Path) -> None:
    """Flush `directory` and everything below it to disk. Raises OSError."""
    for folder, _, files in os.walk(directory, topdown=False):
        for name in files:
            path = Path(folder) / name
            if path.is_file() and not path.is_symlink():
                sync(path)
        sync(Path(folder))


_MOST_BYTES = 4096


def private_file_problem(path: Path) -> str:
    """Return why a file cannot be used as a secret: it is missing, or others may read it; "": it can be used."""
    if not path.is_file():
        return f"no such file: {path}"
    return _mode_problem(path, path.stat())


def read_secret(path: Path) -> str:
    """Return the only line of a private file. Error messages contain no part of it.

    Raises:
        InputError: the file is missing, other users may read it, or it is not one line of UTF-8 text.
    """
    if problem := private_file_problem(path):
        raise InputError(problem)
    try:
        with path.open("rb") as file:
            if problem := _mode_problem(path, os.fstat(file.fileno())):
                raise InputError(problem)
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        text = content.decode().strip()
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8 text") from None  # the error itself holds the content
    if len(content) > _MOST_BYTES or not text or not text.isprintable():
        raise InputError(f"{path}: one line of text is needed, and nothing else")
    return text


def _mode_problem(path: Path, status: os.stat_result) -> str:
    return f"others may read {path}: chmod 600 {path}" if stat.S_IMODE(status.st_mode) & 0o077 else ""


def state_directory() -> Path:
    """Return ``$XDG_STATE_HOME/mplab``; by default, ``~/.local/state/mplab``."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "mplab"
