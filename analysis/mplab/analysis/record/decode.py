"""Make tables from the captures of each cell with ``mptrace``."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from mplab.analysis.errors import ProgramMissingError
from mplab.analysis.record.run import Cell
from mplab.analysis.record.tables import ENDS, FOLDER, LOOPBACK, PROXY
from mplab.base.places import BIN
from mplab.format.captured import ORIGIN_CAPTURE

TIMEOUT_S = 1800.0
MAX_MESSAGE_CHARACTERS = 300
LOOPBACK_CAPTURE, PROXY_CAPTURE = "phone-lo.pcapng", "proxy.pcapng"
SUFFIX, COMPRESSED = ".pcapng", ".gz"
RETENTION = "retention.jsonl"
"""File of a run directory that lists the captures that the retention rules removed or compressed."""
AGENT_LOG, TLS_KEYS = Path("logs/agent.jsonl"), Path("logs/tls-keys.txt")
NETWORKS = {"wlan0": "wifi", "rmnet0": "cellular"}
"""Interface of the phone → name of its network."""

NEEDED = ("connections", "subflows")
"""Tables without which a folder of tables is incomplete."""

SENT_AGAIN = (*NEEDED, "retransmissions", "reinjections")
"""Tables that are made from the proxy's capture. The phone's capture lacks some retransmissions of the proxy, since one
of the two copies may be lost before the phone. baerts2015 §6.2.2 also counts retransmissions at the server."""


@dataclass(frozen=True)
class AnalysisProblem:
    """A problem with tables, scores or figures, which the report lists; ``cell``: the cell's ID, or ``report``."""

    cell: str
    message: str


@dataclass(frozen=True)
class DecodeJob:
    """A call of mptrace: arguments with paths relative to the cell's folder, and the folder ``target`` for tables."""

    name: str
    arguments: tuple[str, ...]
    target: Path

    def command(self, program: Path, fresh: Path) -> list[str]:
        """Return the command line that writes the tables to ``fresh``; captures are relative to the cell's folder."""
        return [str(program), *self.arguments, "-o", str(fresh)]


def find_mptrace(given: Path | None = None) -> Path:
    """Return the path of ``mptrace``: ``given``, or in the folder $MPLAB_BIN, or in `BIN`.

    Raises:
        ProgramMissingError: there is no executable file at any of these paths.
    """
    if given is not None:
        candidates = [given]
    else:
        folder = os.environ.get("MPLAB_BIN")
        candidates = [Path(folder) / "mptrace"] if folder else []
        candidates.append(BIN / "mptrace")
    for candidate in candidates:
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate.resolve()
    looked = ", ".join(str(candidate) for candidate in candidates)
    raise ProgramMissingError(f"mptrace: no such program (looked at {looked}); `make setup` builds it")


def captures(cell: Cell) -> list[Path]:
    """Return the captures of the phone's interfaces except loopback, sorted by name.

    The list is empty when any capture of the cell was removed.
    """
    folder = cell.directory
    if folder is None or _removed_in_part(cell, folder):
        return []
    names = {path.name.removesuffix(COMPRESSED) for path in folder.glob(f"phone-*{SUFFIX}*")}
    stored_as = (stored(folder, name) for name in sorted(names) if name.endswith(SUFFIX) and name != LOOPBACK_CAPTURE)
    return [path for path in stored_as if path is not None]


def stored(folder: Path, name: str) -> Path | None:
    """Return the path of the capture ``name`` in ``folder``, plain or compressed; None if it is missing or empty."""
    return next((path for path in (folder / name, folder / f"{name}{COMPRESSED}") if _has_content(path)), None)


def _removed_in_part(cell: Cell, folder: Path) -> bool:
    """Return whether a capture of the cell was removed: tables of the rest would not describe the cell."""
    if cell.record is None or not (folder.parent.parent / RETENTION).is_file():
        return False
    return any(stored(folder, Path(capture.file).name) is None for capture in cell.record.captures if capture.packets)


def options(folder: Path) -> tuple[str, ...]:
    """Return mptrace's options for a cell: the lab's networks, and the agent's log and the TLS keys if they exist."""
    networks = tuple(word for name, network in NETWORKS.items() for word in ("--network", f"{name}={network}"))
    log = ("--proxy-log", str(AGENT_LOG)) if _has_content(folder / AGENT_LOG) else ()
    keys = ("--keys", str(TLS_KEYS)) if _has_content(folder / TLS_KEYS) else ()
    return (*networks, *log, *keys)


def jobs(folder: Path, files: Sequence[Path], *, same_clock: bool = False) -> list[DecodeJob]:
    """Return the calls of mptrace for a cell: first for the phone's interfaces (required), then for its other captures.

    On loopback, the redirect to the agent splits each connection into two halves, which mptrace joins. If there is a
    capture of the far end (the proxy; the origin on the direct route), mptrace compares it with those of the phone.
    Tables of the far end itself are made only with ``same_clock``: the figures that use them combine times of both
    ends.

    Args:
        folder: folder of the cell.
        files: captures of the phone's interfaces.
        same_clock: phone and proxy were captured by one clock, as in the virtual lab.
    """
    target = folder / FOLDER
    names = tuple(path.name for path in files)
    calls = [DecodeJob("captures", (*names, *options(folder)), target)]
    if loopback := stored(folder, LOOPBACK_CAPTURE):
        calls.append(DecodeJob("loopback", (loopback.name, "--join-loopback", *options(folder)), target / LOOPBACK))
    if far := stored(folder, PROXY_CAPTURE) or stored(folder, ORIGIN_CAPTURE):
        phone = tuple(word for name in names for word in ("--phone", name))
        clock = ("--same-clock",) if same_clock else ()
        if same_clock:
            calls.append(DecodeJob("proxy", (far.name, "--tables", ",".join(SENT_AGAIN)), target / PROXY))
        calls.append(DecodeJob("both ends", ("ends", *phone, "--proxy", far.name, *clock), target / ENDS))
    return calls


def make_tables(
    cells: Iterable[Cell],
    mptrace: Path | None = None,
    *,
    same_clock: bool = False,
    done: Callable[[Cell], None] | None = None,
) -> list[AnalysisProblem]:
    """Write ``tables/`` of each cell with captures, in parallel, and return the problems of all cells.

    Cells without captures keep their tables.

    Args:
        cells: cells to decode.
        mptrace: path of the program; None: see `find_mptrace`.
        same_clock: phone and proxy were captured by one clock.
        done: called after each cell.

    Raises:
        ProgramMissingError: there are captures, and ``mptrace`` is missing.
    """
    work = [(cell, files) for cell in cells if cell.record is not None and (files := captures(cell))]
    if not work:
        return []
    program = find_mptrace(mptrace)
    problems = []
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        running = [(cell, pool.submit(_decode_cell, program, files, same_clock)) for cell, files in work]
        for cell, future in running:
            problems += [AnalysisProblem(cell.id, message) for message in future.result()]
            if done is not None:
                done(cell)
    return problems


def _decode_cell(program: Path, files: Sequence[Path], same_clock: bool) -> list[str]:
    """Run all calls of mptrace for a cell, and return the problems; later calls need the tables of the first one."""
    folder = files[0].parent
    messages = []
    first, *others = jobs(folder, files, same_clock=same_clock)
    if message := _decode(program, folder, first):
        messages.append(message)
    if first.target.is_dir():
        messages += [f"{job.name}: {message}" for job in others if (message := _decode(program, folder, job))]
    return messages


def _decode(program: Path, folder: Path, job: DecodeJob) -> str:
    """Run mptrace into a temporary folder, and rename this folder to the target; return the problem, or ""."""
    fresh = folder / "tables.new"
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.rmtree(job.target, ignore_errors=True)
    command = job.command(program, Path(fresh.name))
    try:
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        shutil.rmtree(fresh, ignore_errors=True)
        return f"mptrace did not end within {TIMEOUT_S:.0f} s"
    words = " ".join(result.stderr.split())[:MAX_MESSAGE_CHARACTERS]
    written = any(fresh.glob("*.parquet")) if job.name == "both ends" else _whole(fresh)
    if result.returncode not in {0, 1} or not written:
        shutil.rmtree(fresh, ignore_errors=True)
        return f"mptrace ended with exit code {result.returncode} and no tables: {words or 'no message'}"
    fresh.rename(job.target)
    return f"the captures are readable in part only: {words}" if result.returncode == 1 else ""


def _whole(folder: Path) -> bool:
    return all((folder / f"{name}.parquet").is_file() for name in NEEDED)


def _has_content(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0
