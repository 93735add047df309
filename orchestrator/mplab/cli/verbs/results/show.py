"""Show one cell: its verdict, its measured links and transport, its steps, scores and files."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from mplab.analysis.record.run import Cell, Run, read_run
from mplab.analysis.record.steps import timelines
from mplab.analysis.scores.scoring import read_cell_values
from mplab.analysis.text import quantity
from mplab.base.errors import InputError
from mplab.base.humanize import space
from mplab.cli.options import JsonOption, RunsOption, find_run
from mplab.cli.output import counted, out, print_json, table
from mplab.format.cell import CellRecord, LinkProof
from mplab.format.record import json_of
from mplab.format.units import format_duration_ms, format_percent, format_rate
from mplab.run.run_directory import RUNS

_STYLES = {"ok": "green", "invalid": "yellow", "failed": "red"}
_MOST_NAMED = 8


def show(
    run_name: Annotated[str, typer.Argument(metavar="RUN", help="Run directory, or the beginning or end of its name.")],
    cell_name: Annotated[
        str, typer.Argument(metavar="CELL", help="Cell, the beginning of its name, or its number in the run: 7.")
    ],
    *,
    runs: RunsOption = RUNS,
    as_json: JsonOption = False,
) -> None:
    run = read_run(find_run(run_name, runs))
    cell = _find(run, cell_name)
    if as_json:
        print_json(_content(run, cell))
        return
    _print_head(cell)
    if cell.record is not None:
        _print_section("Links", _links(cell.record.links))
        _print_section("Verification", _verification(cell.record))
    _print_section("Steps", _steps(run, cell))
    _print_section("Scores", _scores(cell))
    _print_section("Files", _folders(cell))


def _find(run: Run, name: str) -> Cell:
    """Return the cell of a run that `name` means: its id, its number, or the start of its id.

    Raises:
        InputError: no cell matches, or more than one.
    """
    exact = [cell for cell in run.cells if cell.id == name or (cell.spec and str(cell.spec.index) == name)]
    matches = exact or [cell for cell in run.cells if cell.id.startswith(name)]
    if len(matches) == 1:
        return matches[0]
    cells = ", ".join(cell.id for cell in (matches or run.cells)[:_MOST_NAMED])
    if matches:
        raise InputError(f"{run.directory}: {name!r} fits {len(matches)} cells. Give more of the name: {cells}")
    raise InputError(f"{run.directory}: no cell is called {name!r}. Cells: {cells}")


def _print_head(cell: Cell) -> None:
    attempt = f", attempt {cell.record.attempt}" if cell.record is not None and cell.record.attempt > 1 else ""
    out.print(f"{cell.id}: {cell.outcome}{attempt}", style=_STYLES.get(cell.outcome, "yellow"))
    if cell.spec is not None:
        spec = cell.spec
        where = f"block {spec.block}, repetition {spec.repetition}, seed {spec.seed:08x}"
        out.print(f"{spec.scenario} × {spec.transport} × {spec.link}: {where}", soft_wrap=True)
    if cell.directory is not None:
        out.print(f"in {cell.directory}", soft_wrap=True)
    for reason in cell.reasons:
        out.print(f"• {reason}", style="red", soft_wrap=True)
    for warning in cell.record.warnings if cell.record is not None else ():
        out.print(f"! {warning}", style="yellow", soft_wrap=True)
    for earlier in cell.record.attempts[: cell.record.attempt - 1] if cell.record is not None else ():
        out.print(f"attempt {earlier.attempt}: {earlier.outcome}: {earlier.reason}", style="dim", soft_wrap=True)


def _print_section(title: str, rows: Table) -> None:
    if rows.row_count:
        out.print(f"\n{title}", style="bold")
        out.print(rows)


def _links(links: Mapping[str, LinkProof]) -> Table:
    rows = table("path", "shaped by", "quantity", "requested", "measured")
    for interface, proof in links.items():
        requested, measured = proof.asked, proof.measured
        quantities = (
            ("download rate", _rate(requested.down_kbps), _measured(measured.down_kbps, format_rate)),
            ("upload rate", _rate(requested.up_kbps), _measured(measured.up_kbps, format_rate)),
            ("round-trip time", _measured(requested.rtt_ms, format_duration_ms), _rtt(proof)),
            (
                "loss",
                _measured(requested.loss_percent, format_percent),
                _measured(measured.loss_percent, format_percent),
            ),
        )
        for index, row in enumerate(quantities):
            rows.add_row(*("", "") if index else (interface, proof.where), *row)
    return rows


def _rate(kbps: float | None) -> str:
    return format_rate(kbps) if kbps else "unlimited"


def _measured(value: float | None, format_value: Callable[[float], str]) -> str:
    return "–" if value is None else format_value(float(f"{value:.4g}"))


def _rtt(proof: LinkProof) -> str:
    spread = proof.measured.rtt_ms_iqr
    text = _measured(proof.measured.rtt_ms_median, format_duration_ms)
    return text if spread is None else f"{text} (interquartile range {_measured(spread, format_duration_ms)})"


def _verification(record: CellRecord) -> Table:
    """Return a table of a cell's evidence: transport, congestion control, captures."""
    rows = table("", "")
    proof = record.proof
    for name, value in proof.active.items():
        rows.add_row(name, str(value))
    for interface, subflows in proof.subflows.items():
        carried = f"{space(subflows.bytes_down)} down, {space(subflows.bytes_up)} up"
        rows.add_row(f"subflows on {interface}", f"{subflows.established} established, {carried}")
    for path, session in proof.session.paths.items():
        carried = f"{space(session.bytes_down)} down, {space(session.bytes_up)} up"
        rows.add_row(f"session on {path}", carried)
    for name, count in proof.counters.items():
        if count:
            rows.add_row(name, str(count))
    for sender, algorithm in record.congestion_control.known().items():
        rows.add_row(f"congestion control of {sender}", algorithm)
    for capture in record.captures:
        lost = f", {capture.dropped} dropped" if capture.dropped else ""
        rows.add_row(capture.file, f"{counted(capture.packets, 'packet')}{lost}")
    return rows


def _steps(run: Run, cell: Cell) -> Table:
    rows = table("at", "", "took")
    for moment in timelines(run).get(cell.id, ()):
        took = "" if moment.took_s is None else f"{moment.took_s:.1f} s"
        rows.add_row(f"{moment.at_s:.1f} s", f"  {moment.text}" if moment.is_step else moment.text, took)
    return rows


def _scores(cell: Cell) -> Table:
    rows = table("metric", "", "value")
    for row in read_cell_values(cell.directory) if cell.directory is not None else ():
        rows.add_row(row.metric, " · ".join(row.labels.values()), quantity(row.value, row.unit))
    return rows


def _folders(cell: Cell) -> Table:
    """Return a table of a cell's folder: each file with its size, each subfolder with number and size of its files."""
    rows = table("", "", "")
    sizes: dict[str, list[int]] = {}
    for file, size in _files(cell):
        folder = len(file.parts) > 1
        sizes.setdefault(f"{file.parts[0]}/" if folder else file.name, []).append(size)
    for name, file_sizes in sizes.items():
        rows.add_row(name, counted(len(file_sizes), "file") if name.endswith("/") else "", space(sum(file_sizes)))
    return rows


def _files(cell: Cell) -> list[tuple[Path, int]]:
    """Return (path in the cell's folder, size in bytes) of each file of a cell, sorted by path."""
    if cell.directory is None:
        return []
    files = (path for path in sorted(cell.directory.rglob("*")) if not path.is_dir())
    return [(file.relative_to(cell.directory), file.lstat().st_size) for file in files]


def _content(run: Run, cell: Cell) -> dict[str, object]:
    values = read_cell_values(cell.directory) if cell.directory is not None else ()
    return {
        "format": 1,
        "run": run.manifest.run_id,
        "cell": cell.id,
        "directory": None if cell.directory is None else str(cell.directory),
        "outcome": cell.outcome,
        "reasons": list(cell.reasons),
        "spec": None if cell.spec is None else json_of(cell.spec),
        "record": None if cell.record is None else json_of(cell.record),
        "timeline": [
            {
                "at_s": round(moment.at_s, 3),
                "event": moment.text,
                "took_s": None if moment.took_s is None else round(moment.took_s, 3),
            }
            for moment in timelines(run).get(cell.id, ())
        ],
        "scores": [row.model_dump() for row in values],
        "files": [{"file": str(file), "size_bytes": size} for file, size in _files(cell)],
    }
