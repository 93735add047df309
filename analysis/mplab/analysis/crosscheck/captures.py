"""Convert captures to a format that the tool to compare with can read."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mplab.analysis.crosscheck.program import WIRESHARK, find_program
from mplab.analysis.errors import CaptureError

TIMEOUT_S = 1800.0
COOKED = {"linux-sll": 16, "linux-sll2": 20}
"""Link types that are converted to raw IP → bytes before the IP header."""


@dataclass(frozen=True)
class Prepared:
    """A file with all packets, and notes on its conversion."""

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
    made = folder / "merged.pcapng"
    _run([find_program("mergecap", WIRESHARK), "-w", str(made), *map(str, files)])
    return Prepared(made, (f"{len(files)} captures were merged by time (mergecap)",))


def as_pcap(files: Sequence[Path], folder: Path) -> Prepared:
    """Merge and convert captures into one plain pcap file with Ethernet or raw IP frames, for old programs.

    Raises:
        CaptureError: a file cannot be read, or holds several link types or an unknown one.
        ToolMissingError: mergecap, capinfos or editcap is not installed.
    """
    one = merged(files, folder)
    link = link_type(one.path)
    made = folder / "converted.pcap"
    convert = [find_program("editcap", WIRESHARK), "-F", "pcap"]
    notes = [*one.notes, "the captures were converted to pcap, with times in microseconds (editcap)"]
    if link in COOKED:
        convert += ["-C", f"0:{COOKED[link]}", "-L", "-T", "rawip"]
        notes.append(f"link headers ({link}) were cut off: the tool knows bare IP, but not them")
    _run([*convert, str(one.path), str(made)])
    return Prepared(made, tuple(notes))


def link_type(path: Path) -> str:
    """Return the link type of all packets by Wireshark's name: ``ether``, ``linux-sll2``.

    Raises:
        CaptureError: the file cannot be read, or holds several link types or an unknown one.
        ToolMissingError: capinfos is not installed.
    """
    words = _run([find_program("capinfos", WIRESHARK), "-T", "-m", "-r", "-E", str(path)]).strip().rsplit(",", 1)
    if len(words) != 2 or words[1] in {"per-packet", "unknown", ""}:
        raise CaptureError(f"{path}: packets of several or unknown link types cannot be converted")
    return words[1]


def _run(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise CaptureError(f"{Path(command[0]).name} did not read the captures within {TIMEOUT_S:g} s") from error
    if done.returncode != 0:
        words = " ".join(line for line in done.stderr.splitlines() if not line.startswith("Running as"))
        raise CaptureError(f"{Path(command[0]).name} cannot read the captures: {words or 'it said nothing'}")
    return done.stdout
