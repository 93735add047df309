"""Print the summary of an analysed run."""

from pathlib import Path
from typing import TYPE_CHECKING

from mplab.cli.output import err, out, table
from mplab.run.executing import report_page

if TYPE_CHECKING:
    from mplab.run.concluding import RunSummary


def print_summary(summary: "RunSummary", run: Path) -> None:
    """Print the headline metrics, the answers, and the path of the report."""
    rows = table("scenario", "link", "metric", "transport", "n", "median", "95 % interval", "gain")
    for row in summary.rows:
        if row.headline:
            rows.add_row(
                row.scenario,
                row.link,
                f"{row.metric} ({row.unit})" + (f", {row.labels}" if row.labels else ""),
                row.transport,
                str(row.n),
                row.median,
                row.interval,
                row.gain,
                style="bold" if row.best else "",
            )
    out.print(rows)
    for answer in summary.answers:
        out.print(f"• {answer}", markup=False)
    for warning in summary.warnings:
        err.print(f"! {warning}", style="yellow", markup=False)
    out.print(f"\nReport: {report_page(run)}", markup=False, soft_wrap=True)
