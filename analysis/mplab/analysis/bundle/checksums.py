"""Compute and compare SHA-256 checksums of files, in the format of coreutils' ``sha256sum``."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias

from mplab.analysis.errors import BundleError

CHUNK = 1 << 20
Damage: TypeAlias = Literal["differs", "missing", "not listed"]
_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")


@dataclass(frozen=True)
class Broken:
    """A file that does not match the list of checksums."""

    name: str
    damage: Damage


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, hexadecimal. Raises BundleError when the file cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise BundleError(f"{path}: cannot be read: {error.strerror or error}") from error


def digest_of(content: bytes) -> str:
    """Return the SHA-256 of ``content``, hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def digests(root: Path, names: Iterable[str]) -> dict[str, str]:
    """Return name → SHA-256 of files below ``root``. Raises BundleError when one cannot be read."""
    return {name: digest(root / name) for name in names}


def render(sums: Mapping[str, str]) -> bytes:
    """Return ``sums`` (name → SHA-256) as the input of ``sha256sum --check``, sorted by name."""
    return "".join(f"{sums[name]}  {name}\n" for name in sorted(sums)).encode()


def parse(path: Path) -> dict[str, str]:
    """Return name → SHA-256 from a file that `render` made.

    Raises:
        BundleError: the file is missing or cannot be read, or a line is wrong (the message has its number).
    """
    sums: dict[str, str] = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError as error:
        raise BundleError(f"{path.name} is missing: this is no bundle of a run") from error
    except (OSError, UnicodeDecodeError) as error:
        raise BundleError(f"{path.name} cannot be read: {error}") from error
    for number, line in enumerate(lines, 1):
        match = _LINE.fullmatch(line)
        if match is None or match[2] in sums:
            problem = "not a checksum and a name" if match is None else f"{match[2]} for the second time"
            raise BundleError(f"{path.name}:{number}: {problem}")
        sums[match[2]] = match[1]
    return sums


def broken(root: Path, names: Iterable[str], sums: Mapping[str, str]) -> list[Broken]:
    """Compare the files ``names`` below ``root`` with ``sums`` (name → SHA-256); return the deviations, sorted by name.

    Raises:
        BundleError: a file cannot be read.
    """
    there = set(names)
    deviations = [Broken(name, "missing") for name in sums.keys() - there]
    deviations += [Broken(name, "not listed") for name in there - sums.keys()]
    deviations += [Broken(name, "differs") for name in there & sums.keys() if digest(root / name) != sums[name]]
    return sorted(deviations, key=lambda one: one.name)


class Reader:
    """Reads a file, and computes the SHA-256 of the bytes that were read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hash = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """Read and return up to ``size`` bytes of the file, and add them to the checksum."""
        content = self._file.read(size)
        self._hash.update(content)
        return content

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the bytes read until now, hexadecimal."""
        return self._hash.hexdigest()
