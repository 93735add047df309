"""Find and run the tools that mptrace is compared with, and convert captures to a format that they can read."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mplab.analysis.errors import CaptureError, ToolMissingError

TIMEOUT_S = 3600.0
MAX_MESSAGE_CHARACTERS = 400
WIRESHARK = "it comes with Wireshark (Debian, Ubuntu: `apt install tshark`)"
COOKED = {"linux-sll": 16, "linux-sll2": 20}
"""Link type that is converted to raw IP → number of bytes before its IP header."""


def find_program(name: str, install: str) -> str:
    """Return the path of a program.

    Raises:
        ToolMissingError: it is not installed; the message includes ``install``.
    """
    path = shutil.which(name)
    if path is None:
        raise ToolMissingError(f"{name} is not installed: {install}")
    return path


def run_program(
    command: Sequence[str], folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> str:
    """Run a program, in ``folder`` if it is given, and return its standard output.

    Raises:
        CaptureError: it fails, or does not end within `TIMEOUT_S`.
    """
    name = Path(command[0]).name
    try:
        result = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise CaptureError(f"{name} did not end within {TIMEOUT_S:.0f} s") from error
    if result.returncode != 0:
        lines = (line for line in (result.stderr or result.stdout).splitlines() if not line.startswith("Running as"))
        words = " ".join(" ".join(lines).split())[-MAX_MESSAGE_CHARACTERS:]
        raise CaptureError(f"{name} ended with exit code {result.returncode}: {words or 'no message'}")
    return result.stdout


@dataclass(frozen=True)
class Prepared:
    """A capture file with the packets of all given captures, and notes on its conversion."""

    path: Path
    notes: tuple[str, ...] = ()


def merged(files: Sequence[Path], folder: Path) -> Prepared:
    """Merge several captures into one pcapng file; a single capture is returned unchanged.

    Raises:
        CaptureError: a file cannot be read.
        ToolMissingError: mergecap is not installed.
    """
    if len(files) == 1:
        return Prepared(files[0])
    target = folder / "merged.pcapng"
    run_program([find_program("mergecap", WIRESHARK), "-w", str(target), *map(str, files)])
    return Prepared(target, (f"{len(files)} captures were merged by time (mergecap)",))


def as_pcap(files: Sequence[Path], folder: Path) -> Prepared:
    """Merge and convert captures into one pcap file with Ethernet or raw IP frames.

    It is meant for tools that cannot read newer formats.


    Raises:
        CaptureError: a file cannot be read, or holds several link types or an unknown one.
        ToolMissingError: mergecap, capinfos or editcap is not installed.
    """
    capture = merged(files, folder)
    link = link_type(capture.path)
    target = folder / "converted.pcap"
    convert = [find_program("editcap", WIRESHARK), "-F", "pcap"]
    notes = [*capture.notes, "the captures were converted to pcap, with times in microseconds (editcap)"]
    if link in COOKED:
        convert += ["-C", f"0:{COOKED[link]}", "-L", "-T", "rawip"]
        notes.append(f"link headers ({link}) were cut off: the tool knows bare IP, but not them")
    run_program([*convert, str(capture.path), str(target)])
    return Prepared(target, tuple(notes))


def link_type(path: Path) -> str:
    """Return the link type of all packets in a capture by Wireshark's name: ``ether``, ``linux-sll2``.

    Raises:
        CaptureError: the file cannot be read, or holds several link types or an unknown one.
        ToolMissingError: capinfos is not installed.
    """
    words = run_program([find_program("capinfos", WIRESHARK), "-T", "-m", "-r", "-E", str(path)]).strip().rsplit(",", 1)
    if len(words) != 2 or words[1] in {"per-packet", "unknown", ""}:
        raise CaptureError(f"{path}: packets of several or unknown link types cannot be converted")
    return words[1]
