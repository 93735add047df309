"""Packet-delivery traces in Mahimahi's format: the times at which a link may deliver a packet."""

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, StringConstraints
from typing_extensions import TypedDict

from mplab.base.suggest import show, unknown

PACKET_BYTES = 1504
"""Bytes per delivery opportunity: a packet of 1500 bytes with the header of Mahimahi's tunnel (mm-link)."""

TRACES_FOLDER = "traces"
"""Folder of the traces, next to the folder of the link conditions."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_MOST_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Profile:
    """Summary of a trace.

    Attributes:
        opportunities: number of packets that the trace can deliver.
        lasts_ms: period after which the trace repeats, ms.
        sha256: SHA-256 of the file, hex.
    """

    opportunities: int
    lasts_ms: int
    sha256: str

    @property
    def mean_kbps(self) -> float:
        """Mean rate of the whole trace, kbit/s, with `PACKET_BYTES` for each delivery opportunity."""
        return self.opportunities * PACKET_BYTES * 8 / self.lasts_ms


class TraceJson(TypedDict):
    """Trace as written in records."""

    name: str
    sha256: str


@dataclass(frozen=True)
class Trace:
    """A packet-delivery trace in a file.

    Each line is the time of one delivery opportunity: whole milliseconds, ascending. The trace repeats forever.
    """

    file: Path
    """Path of the file; in a record, only its name."""
    sha256: Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{64})?$")] = ""
    """SHA-256 of the file, hex, as in a record; "": see `profile`."""

    @property
    def name(self) -> str:
        """Name of the trace in a link file: that of its file."""
        return self.file.name

    def times_ms(self) -> tuple[int, ...]:
        """Return the time of each delivery opportunity, ms. Raises ValueError: the file is not a trace."""
        return _read(self.file)[0]

    def profile(self) -> Profile:
        """Return the summary of the trace. Raises ValueError: the file is not a trace."""
        return _read(self.file)[1]

    def to_json(self) -> TraceJson:
        """Return ``{name, sha256}``, as in manifest.json. Raises ValueError: the file is not a trace."""
        return {"name": self.name, "sha256": self.sha256 or self.profile().sha256}

    def check(self) -> None:
        """Check that the file exists and is a trace.

        Raises:
            ValueError: it does not exist (the message lists the files of the folder), or it is not a trace.
        """
        if not is_trace_name(self.name) or not self.file.is_file():
            folder = self.file.parent
            names = [file.name for file in folder.iterdir() if _is_trace(file)] if folder.is_dir() else []
            raise ValueError(f"{unknown('trace', self.name, names)} (files in {folder})")
        self.profile()


def _from_json(found: object) -> object:
    """Convert input in the form of `Trace.to_json` to field values; return other input unchanged."""
    if isinstance(found, dict) and "name" in found:
        return {**found, "file": parse_trace_name(found["name"])}
    return found


RecordedTrace = Annotated[Trace, BeforeValidator(_from_json)]
"""Trace in a record: ``{name, sha256}``."""


def is_trace_name(text: str) -> bool:
    """Return whether `text` can be the name of a trace file."""
    return _NAME.fullmatch(text) is not None


def parse_trace_name(found: object) -> str:
    """Return `found` if it can be the name of a trace file. Raises ValueError."""
    if not isinstance(found, str) or not is_trace_name(found):
        raise ValueError(f"trace {show(found)}: the name of a file in router-configs/{TRACES_FOLDER} is needed")
    return found


def _is_trace(file: Path) -> bool:
    return file.is_file() and file.suffix not in {".md", ".yaml"} and is_trace_name(file.name)


@lru_cache(maxsize=64)
def _read(file: Path) -> tuple[tuple[int, ...], Profile]:
    try:
        source = file.read_bytes()
    except OSError as error:
        raise ValueError(f"trace {file}: cannot be read: {error.strerror}") from None
    if len(source) > _MOST_BYTES:
        raise ValueError(f"trace {file}: larger than {_MOST_BYTES // 2**20} MiB")
    times: list[int] = []
    for number, line in enumerate(source.split(b"\n"), 1):
        text = line.strip()
        if not text:
            continue
        if not (text.isdigit() and len(text) <= 9):
            shown = show(text.decode(errors="replace"))
            raise ValueError(f"trace {file}:{number}: found {shown}, a whole number of milliseconds is needed")
        if times and int(text) < times[-1]:
            raise ValueError(f"trace {file}:{number}: {int(text)} ms is before {times[-1]} ms: times must not go back")
        times.append(int(text))
    if not times or times[-1] == 0:
        raise ValueError(f"trace {file}: the last line must be more than 0 ms: the trace begins again then")
    return tuple(times), Profile(len(times), times[-1], hashlib.sha256(source).hexdigest())
