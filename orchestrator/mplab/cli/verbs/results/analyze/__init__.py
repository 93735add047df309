"""Make tables, scores, figures and report again from a run's raw data, or check our tables."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.text import Text

from mplab.analysis.crosscheck.check import check, require
from mplab.analysis.crosscheck.model import CrossCheckReport
from mplab.analysis.record.decode import RETENTION, captures
from mplab.analysis.record.run import read_run
from mplab.base.errors import InputError
from mplab.cli.options import CAPTURES, JsonOption, find_run
from mplab.cli.output import err, out, print_json, table
from mplab.cli.report_output import analyze_with_progress, show_report
from mplab.cli.verbs.results.analyze.cluster import (
    AllOption,
    Asked,
    CaOption,
    CertOption,
    ClusterOption,
    KeyOption,
    MemoryOption,
    PlaceOption,
    analyze_on_cluster,
)
from mplab.run.run_directory import RUNS

MAX_ROWS = 50
"""Maximum number of differences that are printed; ``--json`` has all."""


Tool = Literal["mptcptrace", "tcptrace", "tshark"]
"""Tool that our tables can be compared with."""


def analyze(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN|FILE",
            help="Run directory, or the beginning or end of its name. By default, the newest run is used. "
            "With --cross-check also captures, which are merged by time.",
            show_default=False,
        ),
    ] = None,
    *,
    cross_check: Annotated[
        Tool | None,
        typer.Option(
            "--cross-check",
            help="Run this tool on the same captures and list every difference to our tables. Exit codes: 0 all "
            "agree within the documented definitions (docs/cross-check.md) · 1 differences · 2 bad input · "
            "3 the tool is not installed.",
        ),
    ] = None,
    cluster: ClusterOption = "",
    all_runs: AllOption = False,
    memory: MemoryOption = "",
    tls_ca: CaOption = None,
    tls_cert: CertOption = None,
    tls_key: KeyOption = None,
    runs: PlaceOption = str(RUNS),
    as_json: JsonOption = False,
) -> None:
    if cluster and cross_check is not None:
        raise InputError("--cross-check cannot run on a cluster")
    if cluster:
        options = Asked(cluster, memory, tls_ca, tls_cert, tls_key)
        analyze_on_cluster(options, names or [], runs, all_runs=all_runs, as_json=as_json)
        return
    if all_runs or memory or "://" in runs:
        raise InputError(
            "--all-runs, --memory and runs at a URL need --cluster; --cluster local uses only this machine"
        )
    if cross_check is not None:
        _cross_check(cross_check, names or [], Path(runs), as_json=as_json)
        return
    if names and len(names) > 1:
        raise InputError(
            f"one run at a time, {len(names)} were named: several need --cluster; "
            "captures are read only with --cross-check"
        )
    name = names[0] if names else ""
    if Path(name).suffix in CAPTURES:
        raise InputError(f"{name}: {_about_capture(Path(name))}")
    path = find_run(name, Path(runs))
    analyze_with_progress(path)
    show_report(path, as_json=as_json)


def _about_capture(file: Path) -> str:
    if not file.is_file():
        return "no such file"
    return f"a capture, not a run. 'mptrace {file}' reads it, --cross-check compares it with another tool"


def _cross_check(tool: Tool, names: Sequence[str], runs: Path, *, as_json: bool) -> None:

    require(tool)
    reports: dict[str, CrossCheckReport] = {}
    with err.status("Comparing …") as status:
        for name, files in _captures(names, runs).items():
            status.update(Text(f"Comparing {name} with {tool}"))
            reports[name] = check(tool, files)
    if as_json:
        print_json({"tool": tool, "captures": {name: _content(report) for name, report in reports.items()}})
    else:
        for name, report in reports.items():
            _show(name, report)
    if not all(report.agree for report in reports.values()):
        raise typer.Exit(1)


def _captures(names: Sequence[str], runs: Path) -> dict[str, list[Path]]:
    """Return name of a group → its capture files.

    If `names` are files, they are one group. If `names` is one run of the folder `runs` (empty: the newest run), each
    cell with captures is a group.

    Raises:
        InputError: a file does not exist, or no cell of the run has captures.
    """

    files = [Path(name) for name in names]
    if files and all(path.is_file() for path in files):
        return {", ".join(names): files}
    if len(names) > 1 or (files and files[0].suffix in CAPTURES):
        missing = ", ".join(str(path) for path in files if not path.is_file())
        raise InputError(f"{missing}: there is no such file; captures or one run can be compared")
    run = find_run(names[0] if names else "", runs)
    by_cell = {cell.id: paths for cell in read_run(run).cells if (paths := captures(cell))}
    if not by_cell:
        removed = f": {RETENTION} there lists the removed ones" if (run / RETENTION).is_file() else ""
        raise InputError(f"{run}: no cell has captures{removed}")
    return by_cell


def _show(name: str, report: CrossCheckReport) -> None:
    out.print(f"{name}: {report.flows} flows in mptrace and {report.tool}", style="bold", soft_wrap=True)
    for note in report.notes:
        out.print(f"  {note}", markup=False, soft_wrap=True)
    rows = table("field", "agree", "explained", "differ")
    for field in report.fields:
        differ = sum(d.field == field for d in report.differences)
        explained = sum(n for (f, _), n in report.explained.items() if f == field)
        style = "red" if differ else ""
        rows.add_row(field, str(report.agreed[field]), str(explained or ""), str(differ or ""), style=style)
    out.print(rows)
    for definition, text in sorted(report.definitions.items()):
        out.print(f"• {definition}: {text}", markup=False, soft_wrap=True)
    if report.differences:
        rows = table("flow", "field", "mptrace", report.tool, f"field of {report.tool}")
        for d in report.differences[:MAX_ROWS]:
            rows.add_row(d.flow, d.field, str(d.ours), str(d.theirs), d.theirs_field)
        out.print(rows)
        if len(report.differences) > MAX_ROWS:
            out.print(f"… and {len(report.differences) - MAX_ROWS} more: --json has all")
    for program, flows in (("mptrace", report.only_ours), (report.tool, report.only_theirs)):
        for flow in flows[:MAX_ROWS]:
            out.print(f"only {program} has {flow}", style="red", markup=False)
    verdict = "they agree" if report.agree else f"{len(report.differences)} differences"
    out.print(f"→ {verdict}\n", markup=False)


def _content(report: CrossCheckReport) -> dict[str, object]:
    return {
        "flows": report.flows,
        "agree": report.agree,
        "notes": report.notes,
        "agreed": dict(report.agreed),
        "explained": [
            {"field": field, "definition": name, "count": count} for (field, name), count in report.explained.items()
        ],
        "definitions": report.definitions,
        "differences": [vars(difference) for difference in report.differences],
        "only_ours": report.only_ours,
        "only_theirs": report.only_theirs,
    }
