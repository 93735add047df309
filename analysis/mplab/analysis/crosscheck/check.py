"""Run a tool and mptrace on the same captures, and compare their results."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import polars as pl

from mplab.analysis.crosscheck import mptcptrace, tcptrace, tshark
from mplab.analysis.crosscheck.captures import as_pcap, merged
from mplab.analysis.crosscheck.compare import compare
from mplab.analysis.crosscheck.model import CrossCheckReport, Definition, FlowRecord
from mplab.analysis.crosscheck.ours import connection_records, subflow_records
from mplab.analysis.crosscheck.program import find_program, run_program
from mplab.analysis.errors import CaptureError
from mplab.analysis.record.decode import find_mptrace
from mplab.analysis.record.tables import Tables
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
        whole = [path.resolve() for path in files]
        run_program([str(find_mptrace(mptrace)), *map(str, whole), "-o", str(folder / "tables")], folder)
        TOOLS[tool](whole, Tables(folder / "tables"), folder, report)
    return report


def require(tool: str) -> None:
    """Raise `ToolMissingError` when ``tool`` is not installed."""
    find_program(tool, INSTALL[tool])


def definitions() -> dict[str, list[Definition]]:
    """Return tool → all documented definitions by which it differs from mptrace."""
    fields = {
        "tshark": (*tshark.SUBFLOW_FIELDS, *tshark.CONNECTION_FIELDS),
        "tcptrace": tcptrace.FIELDS,
        "mptcptrace": mptcptrace.FIELDS,
    }
    return {
        tool: list(dict.fromkeys(d for field in found for d in field.definitions)) for tool, found in fields.items()
    }


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
