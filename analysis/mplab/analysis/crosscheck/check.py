"""Run a tool and mptrace on the same captures, and compare the flows that they report."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import polars as pl

from mplab.analysis.crosscheck import mptcptrace, tcptrace, tshark
from mplab.analysis.crosscheck.compare import compare
from mplab.analysis.crosscheck.model import CrossCheckReport, Definition, Endpoint, FlowRecord, Sides
from mplab.analysis.crosscheck.program import as_pcap, find_program, merged, run_program
from mplab.analysis.errors import CaptureError
from mplab.analysis.record.decode import find_mptrace
from mplab.analysis.record.tables import Row, Tables
from mplab.analysis.text import plural

Check = Callable[[Sequence[Path], Mapping[str, pl.DataFrame], Path, CrossCheckReport], None]


def check(tool: str, files: Sequence[Path], mptrace: Path | None = None) -> CrossCheckReport:
    """Compare ``tool`` (one of `TOOLS`) with mptrace on captures from one capture point, merged by time.

    Raises:
        CaptureError: a file is missing, or one of the programs cannot read it.
        ToolMissingError: the tool, or a program that converts captures for it, is not installed.
        ProgramMissingError: mptrace is not built.
    """
    for path in files:
        if not path.is_file():
            raise CaptureError(f"{path}: there is no such file")
    require(tool)
    report = CrossCheckReport(tool)
    with tempfile.TemporaryDirectory(prefix="mplab-cross-check-") as name:
        folder = Path(name)
        paths = [path.resolve() for path in files]
        run_program([str(find_mptrace(mptrace)), *map(str, paths), "-o", str(folder / "tables")], folder)
        TOOLS[tool](paths, Tables(folder / "tables"), folder, report)
    return report


def require(tool: str) -> None:
    """Raise `ToolMissingError` when ``tool`` is not installed."""
    find_program(tool, INSTALL[tool])


def definitions() -> dict[str, list[Definition]]:
    """Return tool → the documented reasons (`Definition`) why its numbers differ from mptrace's."""
    fields = {
        "tshark": (*tshark.SUBFLOW_FIELDS, *tshark.CONNECTION_FIELDS),
        "tcptrace": tcptrace.FIELDS,
        "mptcptrace": mptcptrace.FIELDS,
    }
    return {tool: list(dict.fromkeys(d for field in own for d in field.definitions)) for tool, own in fields.items()}


def _check_tshark(
    files: Sequence[Path], ours: Mapping[str, pl.DataFrame], folder: Path, report: CrossCheckReport
) -> None:
    capture = merged(files, folder)
    report.notes += capture.notes
    own_settings = {"WIRESHARK_CONFIG_DIR": str(folder / "settings")}
    command = [find_program(tshark.NAME, tshark.INSTALL), *tshark.arguments(str(capture.path))]
    subflows, connections = tshark.parse(run_program(command, folder, own_settings))
    compare(report, subflow_records(ours), subflows, tshark.SUBFLOW_FIELDS)
    compare(
        report,
        connection_records(ours),
        connections,
        tshark.CONNECTION_FIELDS,
        # In version 1 the first key is in the SYN/ACK: without a SYN/ACK, tshark finds no MPTCP connection.
        optional=lambda record: record.whole["subflows"] == 0,
    )


def _check_tcptrace(
    files: Sequence[Path], ours: Mapping[str, pl.DataFrame], folder: Path, report: CrossCheckReport
) -> None:
    capture = as_pcap(files, folder)
    report.notes += capture.notes
    command = [find_program(tcptrace.NAME, tcptrace.INSTALL), *tcptrace.ARGUMENTS, str(capture.path)]
    theirs = tcptrace.parse(run_program(command, folder))
    records = subflow_records(ours)
    known = [record for record in records if ":" not in record.a[0]]
    compare(report, records if any(":" in r.a[0] for r in theirs) else known, theirs, tcptrace.FIELDS)


def _check_mptcptrace(
    files: Sequence[Path], ours: Mapping[str, pl.DataFrame], folder: Path, report: CrossCheckReport
) -> None:
    capture = as_pcap(files, folder)
    report.notes += capture.notes
    work = folder / "mptcptrace"
    work.mkdir()
    command = [find_program(mptcptrace.NAME, mptcptrace.INSTALL), "-f", str(capture.path), *mptcptrace.ARGUMENTS]
    printed = run_program(command, work)
    stats = {int(path.stem.removeprefix("stats_")): path.read_text() for path in work.glob("stats_*.csv")}
    records = connection_records(ours)
    readable = [r for r in records if r.whole.get("mptcp_version") == mptcptrace.READABLE_VERSION]
    left_out = {record.key for record in records} - {record.key for record in readable}
    if left_out:
        report.notes.append(f"{plural(len(left_out), 'connection')} left out: not of version 0, which is all it reads")
    theirs = mptcptrace.parse(printed, stats, {(record.a, record.b) for record in records})
    theirs = [record for record in theirs if record.key not in left_out]
    compare(report, [_without_time(record) for record in readable], theirs, mptcptrace.FIELDS)


def _without_time(record: FlowRecord) -> FlowRecord:
    """Return the record with start 0: mptcptrace does not print start times."""
    return FlowRecord(record.a, record.b, 0.0, record.sides, record.whole)


TOOLS: Mapping[str, Check] = {
    tshark.NAME: _check_tshark,
    tcptrace.NAME: _check_tcptrace,
    mptcptrace.NAME: _check_mptcptrace,
}
INSTALL = {module.NAME: module.INSTALL for module in (tshark, tcptrace, mptcptrace)}


NS = 1e9


def subflow_records(tables: Mapping[str, pl.DataFrame]) -> list[FlowRecord]:
    """Return a record per subflow in mptrace's tables.

    The record's ``sides`` has the columns of table ``directions`` (level tcp), its ``whole`` has the columns of
    ``subflows``.
    """
    sides_of = _directions(tables["directions"], "tcp")
    return [
        _record(row, sides_of.get((row["connection_id"], row["subflow_id"]), {}))
        for row in tables["subflows"].iter_rows(named=True)
    ]


def connection_records(tables: Mapping[str, pl.DataFrame]) -> list[FlowRecord]:
    """Return a record per MPTCP connection in mptrace's tables, except those that fell back to TCP.

    The ends of a connection are those of its first subflow.
    """
    frame = tables["connections"].filter((pl.col("kind") == "mptcp") & ~pl.col("fallback").fill_null(value=False))
    sides_of = _directions(tables["directions"], "mptcp")
    records = []
    for row in frame.iter_rows(named=True):
        sides = dict(sides_of.get((row["connection_id"], -1), {}))
        sides["mptcp_bytes"] = (row["bytes_up"], row["bytes_down"])
        sides["mptcp_reinjected"] = (row["reinjected_up"], row["reinjected_down"])
        records.append(_record(row, sides))
    return records


def _record(row: Row, sides: Mapping[str, Sides]) -> FlowRecord:
    client: Endpoint = (row["client"], row["client_port"])
    server: Endpoint = (row["server"], row["server_port"])
    return FlowRecord(client, server, row["start_ns"] / NS, sides, row)


def _directions(frame: pl.DataFrame, level: str) -> dict[tuple[int, int], dict[str, Sides]]:
    """Return (connection ID, subflow ID) → column → (value up, value down), from the table ``directions``.

    Only rows of ``level`` are used. The columns include those that `_with_times` adds.
    """
    rows: dict[tuple[int, int], dict[str, Row]] = {}
    for row in frame.filter(pl.col("level") == level).iter_rows(named=True):
        rows.setdefault((row["connection_id"], row["subflow_id"]), {})[row["direction"]] = _with_times(row)
    return {
        key: {
            name: (both.get("up", {}).get(name), both.get("down", {}).get(name)) for name in next(iter(both.values()))
        }
        for key, both in rows.items()
    }


def _with_times(row: Row) -> Row:
    """Return the row with ``payload_s`` (s from the first to the last payload) and two sums of segment counts.

    ``below_segments`` is the number of reordered segments plus the number of segments that fill a hole in the capture.
    ``again_segments`` is ``below_segments`` plus the number of retransmitted segments. Other tools report only these
    sums.
    """
    first, last = row["first_payload_ns"], row["last_payload_ns"]
    low = _sum(row["hole_segments"], row["reordered_segments"])
    return {
        **row,
        "payload_s": (last - first) / NS if first is not None and last is not None else None,
        "below_segments": low,
        "again_segments": _sum(low, row["retransmitted_segments"]),
    }


def _sum(a: int | None, b: int | None) -> int | None:
    return a + b if a is not None and b is not None else None
