"""Packet-delivery traces: when a link may deliver a packet, in Mahimahi's format."""

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
"""What each opportunity delivers: a packet of 1500 bytes as Mahimahi's tunnel carries it (mm-link)."""

TRACES_FOLDER = "traces"
"""Beside the folder of the link conditions."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_MOST_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Profile:
    """What a trace holds.

    Attributes:
        opportunities: how many packets it can deliver.
        lasts_ms: after so long it begins again.
        sha256: of the file, hex.
    """

    opportunities: int
    lasts_ms: int
    sha256: str

    @property
    def mean_kbps(self) -> float:
        """The rate, over the whole trace."""
        return self.opportunities * PACKET_BYTES * 8 / self.lasts_ms


class TraceJson(TypedDict):
    """A trace in a record."""

    name: str
    sha256: str


@dataclass(frozen=True)
class Trace:
    """A trace by its file: a whole number of milliseconds a line, none less than the one before, for ever again."""

    file: Path
    """In a record: its name only."""
    sha256: Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{64})?$")] = ""
    """Of the file, hex, as a record has it; "": see `profile`."""

    @property
    def name(self) -> str:
        """As in a link file."""
        return self.file.name

    def times_ms(self) -> tuple[int, ...]:
        """When each opportunity comes. Raises ValueError: not such a file."""
        return _read(self.file)[0]

    def profile(self) -> Profile:
        """What is in it. Raises ValueError: not such a file."""
        return _read(self.file)[1]

    def to_json(self) -> TraceJson:
        """Return ``{name, sha256}``, as in manifest.json. Raises ValueError: not such a file."""
        return {"name": self.name, "sha256": self.sha256 or self.profile().sha256}

    def check(self) -> None:
        """Raise ValueError, which names what there is, when there is no such trace or it is wrong."""
        if not is_trace_name(self.name) or not self.file.is_file():
            folder = self.file.parent
            names = [file.name for file in folder.iterdir() if _is_trace(file)] if folder.is_dir() else []
            raise ValueError(f"{unknown('trace', self.name, names)} (files in {folder})")
        self.profile()


def _from_json(found: object) -> object:
    """Take what `Trace.to_json` gave, too."""
    if isinstance(found, dict) and "name" in found:
        return {**found, "file": parse_trace_name(found["name"])}
    return found


RecordedTrace = Annotated[Trace, BeforeValidator(_from_json)]
"""A trace in a record: ``{name, sha256}``."""


def is_trace_name(text: str) -> bool:
    """True for what a file of a trace may be called."""
    return _NAME.fullmatch(text) is not None


def parse_trace_name(found: object) -> str:
    """`found` when a file of a trace may be called so. Raises ValueError."""
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
            found = show(text.decode(errors="replace"))
            raise ValueError(f"trace {file}:{number}: found {found}, a whole number of milliseconds is needed")
        if times and int(text) < times[-1]:
            raise ValueError(f"trace {file}:{number}: {int(text)} ms is before {times[-1]} ms: times must not go back")
        times.append(int(text))
    if not times or times[-1] == 0:
        raise ValueError(f"trace {file}: the last line must be more than 0 ms: the trace begins again then")
    return tuple(times), Profile(len(times), times[-1], hashlib.sha256(source).hexdigest())
