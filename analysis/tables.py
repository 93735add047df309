"""Captures → tables: runs ``mptrace`` over each cell and reads what it wrote."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from analysis.errors import ProgramMissingError
from analysis.run import Cell

TIMEOUT_S = 1800.0
MAX_MESSAGE_CHARACTERS = 300

CONNECTIONS: dict[str, type[pl.DataType]] = {
    "connection_id": pl.Int32,
    "kind": pl.String,
    "mptcp_version": pl.Int32,
    "client": pl.String,
    "client_port": pl.Int32,
    "server": pl.String,
    "server_port": pl.Int32,
    "start_ns": pl.Int64,
    "duration_s": pl.Float64,
    "syn_seen": pl.Boolean,
    "fallback": pl.Boolean,
    "token": pl.String,
    "subflows": pl.Int32,
    "bytes_up": pl.Int64,
    "bytes_down": pl.Int64,
    "reinjected_up": pl.Int64,
    "reinjected_down": pl.Int64,
    "closed": pl.String,
    "interfaces": pl.String,
}
"""Columns of ``connections.parquet``."""

SUBFLOWS: dict[str, type[pl.DataType]] = {
    "connection_id": pl.Int32,
    "subflow_id": pl.Int32,
    "role": pl.String,
    "interface": pl.String,
    "client": pl.String,
    "client_port": pl.Int32,
    "server": pl.String,
    "server_port": pl.Int32,
    "start_ns": pl.Int64,
    "duration_s": pl.Float64,
    "join_delay_ms": pl.Float64,
    "established": pl.Boolean,
    "backup": pl.Boolean,
    "rtt_handshake_ms": pl.Float64,
    "segments_up": pl.Int64,
    "segments_down": pl.Int64,
    "payload_up": pl.Int64,
    "payload_down": pl.Int64,
    "unique_up": pl.Int64,
    "unique_down": pl.Int64,
    "retransmitted_segments_up": pl.Int64,
    "retransmitted_segments_down": pl.Int64,
    "retransmitted_bytes_up": pl.Int64,
    "retransmitted_bytes_down": pl.Int64,
    "first_payload_ns": pl.Int64,
    "last_payload_ns": pl.Int64,
    "syn_seen": pl.Boolean,
    "syn_retries": pl.Int32,
    "closed": pl.String,
}
"""Columns of ``subflows.parquet``."""

SCHEMAS = {"connections": CONNECTIONS, "subflows": SUBFLOWS}


@dataclass(frozen=True)
class Problem:
    """What kept the tables of a cell from being whole; the report lists it."""

    cell: str
    message: str


def find_mptrace(given: Path | None = None) -> Path:
    """Where ``mptrace`` is: as given, in the folder $MPLAB_BIN, or in ``build/bin`` of the checkout."""
    if given is not None:
        candidates = [given]
    else:
        folder = os.environ.get("MPLAB_BIN")
        candidates = [Path(folder) / "mptrace"] if folder else []
        candidates.append(Path(__file__).resolve().parent.parent / "build" / "bin" / "mptrace")
    for candidate in candidates:
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate.resolve()
    looked = ", ".join(str(candidate) for candidate in candidates)
    raise ProgramMissingError(f"mptrace: no such program (looked at {looked}); `make build` builds it")


def captures(cell: Cell) -> list[Path]:
    """The captures of the phone's own interfaces, loopback excluded, in order of name."""
    if cell.directory is None:
        return []
    found = sorted(cell.directory.glob("phone-*.pcapng"))
    return [path for path in found if path.name != "phone-lo.pcapng" and path.stat().st_size > 0]


def make_tables(
    cells: Iterable[Cell], mptrace: Path | None = None, *, done: Callable[[Cell], None] | None = None
) -> list[Problem]:
    """Write ``tables/`` of each cell that has captures, in parallel; cells without keep what they have.

    Raises:
        ProgramMissingError: there are captures and no ``mptrace``.
    """
    work = [(cell, files) for cell in cells if cell.record is not None and (files := captures(cell))]
    if not work:
        return []
    program = find_mptrace(mptrace)
    problems = []
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        jobs = [(cell, pool.submit(_decode, program, cell, files)) for cell, files in work]
        for cell, job in jobs:
            message = job.result()
            if message:
                problems.append(Problem(cell.id, message))
            if done is not None:
                done(cell)
    return problems


def read_tables(cell: Cell) -> dict[str, pl.DataFrame]:
    """``connections`` and ``subflows`` of a cell, empty (with their columns) when it has no tables."""
    return {name: _read_table(cell, name) for name in SCHEMAS}


def _decode(program: Path, cell: Cell, files: list[Path]) -> str:
    """Run mptrace into a folder beside ``tables`` and put it there; returns what went wrong, if anything."""
    folder = files[0].parent
    target, fresh = folder / "tables", folder / "tables.new"
    shutil.rmtree(fresh, ignore_errors=True)
    command = [str(program), *(path.name for path in files), "-o", fresh.name]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        shutil.rmtree(fresh, ignore_errors=True)
        return f"mptrace did not end within {TIMEOUT_S:.0f} s"
    words = " ".join(done.stderr.split())[:MAX_MESSAGE_CHARACTERS]
    written = all((fresh / f"{name}.parquet").is_file() for name in SCHEMAS)
    shutil.rmtree(target, ignore_errors=True)
    if done.returncode not in {0, 1} or not written:
        shutil.rmtree(fresh, ignore_errors=True)
        return f"mptrace ended with exit code {done.returncode} and no tables: {words or 'it said nothing'}"
    fresh.rename(target)
    return f"the captures are readable in part only: {words}" if done.returncode == 1 else ""


def _read_table(cell: Cell, name: str) -> pl.DataFrame:
    path = cell.directory / "tables" / f"{name}.parquet" if cell.directory else None
    if path is None or not path.is_file():
        return pl.DataFrame(schema=SCHEMAS[name])
    return pl.read_parquet(path)
