"""Open files of run and campaign directories, which other users may have made: no links, no devices, limited sizes."""

import os
import stat
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from mplab.cell.context import TLS_KEYS

_TEXT = "text/plain; charset=utf-8"
_CAPTURE = "application/octet-stream"
_IMAGES = {
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webp": "image/webp",
}
REPORT_TYPES = {
    **_IMAGES,
    ".css": "text/css; charset=utf-8",
    ".csv": "text/csv; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".pdf": "application/pdf",
    ".xml": "application/xml",
}
"""Suffix → content type of the files in ``report/`` that are served."""
CELL_TYPES = {
    **_IMAGES,
    ".csv": "text/csv; charset=utf-8",
    ".gz": _CAPTURE,
    ".har": "application/json",
    ".json": "application/json",
    ".jsonl": _TEXT,
    ".log": _TEXT,
    ".mp4": "video/mp4",
    ".pcap": _CAPTURE,
    ".pcapng": _CAPTURE,
    ".webm": "video/webm",
    ".zst": _CAPTURE,
}
"""Suffix → content type of the files in ``cells/`` that are served: no HTML, and no TLS keys."""
LOG_TYPES = {".jsonl": _TEXT, ".log": _TEXT}
"""Suffix → content type of the files in ``logs/`` that are served."""
_MOST_NAMES = 5000
"""Number of entries of a directory that are read for its list."""
_TYPES_IN = {"report": REPORT_TYPES, "cells": CELL_TYPES, "logs": LOG_TYPES}


def content_type(parts: Sequence[str]) -> str:
    """Return the content type of a file of a run by its path in the run directory; "": the file is not served."""
    if len(parts) < 2 or parts[-1] == TLS_KEYS:
        return ""
    return _TYPES_IN.get(parts[0], {}).get(Path(parts[-1]).suffix.lower(), "")


def is_listed(parts: Sequence[str]) -> bool:
    """Return whether a path in a run directory, whose last part is "", is a directory whose files are listed."""
    return len(parts) > 2 and parts[0] == "cells" and not parts[-1]


def names_below(folder: Path, parts: Sequence[str]) -> list[str]:
    """Return the served names in the directory ``folder/RUN/part…``, sorted; those of directories end with "/".

    Args:
        folder: folder of the run directory.
        parts: name of the run directory, and the path of the directory in it.

    Raises:
        FileNotFoundError: the directory cannot be read, or a part is a link.
    """
    descriptor = _open_below(folder, parts, os.O_DIRECTORY)
    names: list[str] = []
    try:
        with os.scandir(descriptor) as entries:
            for entry in islice(entries, _MOST_NAMES):
                if entry.name.startswith(".") or not entry.name.isprintable():
                    continue
                if entry.is_dir(follow_symlinks=False):
                    names.append(f"{entry.name}/")
                elif content_type([*parts[1:], entry.name]) and entry.is_file(follow_symlinks=False):
                    names.append(entry.name)
    except OSError as error:
        raise FileNotFoundError from error
    finally:
        os.close(descriptor)
    return sorted(names)


def open_below(folder: Path, parts: Sequence[str]) -> BinaryIO:
    """Open the file ``folder/part/part…`` for reading. No part may be a link, be hidden, or contain a slash.

    Raises:
        FileNotFoundError: the file cannot be opened, or is a link or not a regular file.
    """
    descriptor = _open_below(folder, parts, os.O_NONBLOCK)  # do not wait for the writer of a pipe
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise FileNotFoundError


def _open_below(folder: Path, parts: Sequence[str], last_kind: int) -> int:
    """Return a descriptor of ``folder/part/part…``. Raises FileNotFoundError.

    Args:
        folder: folder in which the path begins.
        parts: parts of the path.
        last_kind: flags of ``open`` for the last part.
    """
    if not parts or any(not part or part.startswith(".") or "/" in part or "\0" in part for part in parts):
        raise FileNotFoundError
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise FileNotFoundError from error
    try:
        for index, part in enumerate(parts):
            kind = os.O_DIRECTORY if index < len(parts) - 1 else last_kind
            try:
                inner = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | kind, dir_fd=descriptor)
            except (OSError, ValueError) as error:
                raise FileNotFoundError from error
            os.close(descriptor)
            descriptor = inner
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_below(folder: Path, parts: Sequence[str], most_bytes: int) -> bytes:
    """Return the content of a file, as `open_below` opens it.

    Raises:
        FileNotFoundError: see `open_below`.
        ValueError: the file is larger than `most_bytes`.
    """
    with open_below(folder, parts) as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise ValueError(f"{'/'.join(parts)} has more than {most_bytes >> 20} MiB")
    return content


def fingerprint(folder: Path, *names: str) -> tuple[int, ...]:
    """Return numbers that change when one of the files ``folder/name`` changes; links are not followed."""
    numbers: list[int] = []
    for name in names:
        try:
            status = (folder / name).lstat()
        except OSError:
            numbers += [0, 0, 0]
        else:
            numbers += [status.st_ino, status.st_size, status.st_mtime_ns]
    return tuple(numbers)
