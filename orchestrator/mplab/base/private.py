"""Read files that hold a secret. Only their owner may have access to them.

Exports `private_file_problem`, `read_secret`.
"""

import os
import stat
from pathlib import Path

from mplab.base.errors import InputError

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


def _mode_problem(path: Path, found: os.stat_result) -> str:
    return f"others may read {path}: chmod 600 {path}" if stat.S_IMODE(found.st_mode) & 0o077 else ""
