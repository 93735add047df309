"""Describe results for a reader: in one line of text, and as HTML for a notebook."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from mplab.analysis.results.columns import RESULT_TABLES
from mplab.analysis.text import listed, plural, printable

if TYPE_CHECKING:
    from mplab.analysis.record.run import Run
    from mplab.analysis.results.frames import Results

NAMED = 3
"""Maximum number of experiments whose names are in the line of text."""
SHOWN = 10
"""Maximum number of runs, and of messages on unread runs, in the HTML."""
COLUMNS = ("run", "experiment", "started (UTC)", "cells", "ok", "report")


def line(results: "Results") -> str:
    """Return one line: numbers of runs, cells and unread folders, names of experiments, days."""
    runs = results.records
    names = sorted({run.manifest.experiment.name for run in runs})
    more = [f"{len(names) - NAMED} more"] if len(names) > NAMED else []
    days = sorted({run.manifest.started[:10] for run in runs})
    parts = [plural(len(runs), "run") + (f" of {listed([*names[:NAMED], *more])}" if names else "")]
    if days:
        parts.append(days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}")
    parts.append(f"{sum(run.counts['ok'] for run in runs)} of {plural(sum(len(run.cells) for run in runs), 'cell')} ok")
    if results.unread:
        parts.append(f"{len(results.unread)} not read")
    return printable("; ".join(parts))


def html(results: "Results") -> str:
    """Return a description as HTML: the line of text, the newest runs, and the reasons of unread runs."""
    newest = results.records[-SHOWN:][::-1]
    shown = f"<p>The newest {len(newest)}:</p>" if len(newest) < len(results.records) else ""
    unread = "".join(f"<li>{_escaped(problem)}</li>" for problem in results.unread[:SHOWN])
    more = len(results.unread) - SHOWN
    return "".join(
        (
            f"<p><b>Results</b>: {_escaped(line(results))}</p>{shown}",
            _table(COLUMNS, map(_row, newest)) if newest else "",
            f"<p>Not read:</p><ul>{unread}{f'<li>… and {more} more</li>' if more > 0 else ''}</ul>" if unread else "",
            f"<p>Tables: {', '.join(f'<code>{name}</code>' for name in RESULT_TABLES)}</p>",
        )
    )


def _row(run: "Run") -> tuple[str, ...]:
    manifest, counts = run.manifest, run.counts
    report = "yes" if (run.directory / "report" / "summary.json").is_file() else "no"
    started = manifest.started[:16].replace("T", " ")
    return (manifest.run_id, manifest.experiment.name, started, str(len(run.cells)), str(counts["ok"]), report)


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{_escaped(column)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(f'<td>{_escaped(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _escaped(text: str) -> str:
    return escape(printable(text))
