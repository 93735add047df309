"""Draw each metric over all runs of an experiment, and list the changes of its level."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from mplab.analysis.report.trendpage import trend_page
from mplab.analysis.results.frames import load
from mplab.analysis.verdicts.trend import History, experiments, histories, shifts
from mplab.base.errors import InputError
from mplab.base.files import replace
from mplab.base.suggest import unknown
from mplab.cli.options import JsonOption, RunsOption
from mplab.cli.output import err, out, output_file, print_json
from mplab.run.run_directory import RUNS


def trend(
    experiment: Annotated[
        str,
        typer.Argument(help="Name of the experiment. By default, that of the newest run is used.", show_default=False),
    ] = "",
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write the page to this file. By default, it is trend-EXPERIMENT.html in the folder of runs.",
            callback=output_file,
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all-metrics", help="Show all metrics, not only the headline metrics.")
    ] = False,
    open_it: Annotated[bool, typer.Option("--open", help="Open the page in the web browser.")] = False,
    runs: RunsOption = RUNS,
    as_json: JsonOption = False,
) -> None:
    results = load(runs)
    known = experiments(results)
    name = experiment or (known[-1] if known else "")
    if not known:
        why = "; ".join(results.unread) or "'mplab run FILE' makes one, --runs names another folder"
        raise InputError(f"{runs}: no run in it can be read: {why}")
    if name not in known:
        raise InputError(f"{runs}: {unknown('experiment', name, known)}")
    series = histories(results, name, headline_only=not everything)
    if not series:
        raise InputError(f"{runs}: fewer than two analysed runs of {name} with the same metric: there is no history")
    own = [run for run in results.records if run.manifest.experiment.name == name]
    page = output or runs / f"trend-{name}.html"
    replace(page, trend_page(name, series, own[-1].transports).encode())
    for problem in results.unread:
        err.print(f"! {problem}", style="yellow", markup=False)
    changes = list(shifts(series))
    if as_json:
        print_json(
            {
                "experiment": name,
                "page": str(page),
                "level_changes": [vars(change) for change in changes],
                "histories": [_history(history) for history in series],
            }
        )
    else:
        for change in changes:
            style = {"worse": "red", "better": "green"}.get(change.word, "")
            text = f"• {change.word} since {change.run_id}: {change.about}: {change.text}"
            out.print(text, style=style, markup=False, soft_wrap=True)
        if not changes:
            out.print(f"{len(series)} histories: no change of level was seen")
        out.print(f"\nTrend: {page}", markup=False, soft_wrap=True)
    if open_it:
        webbrowser.open(page.resolve().as_uri())


def _history(history: History) -> dict[str, object]:
    return {
        "scenario": history.scenario,
        "link": history.link,
        "metric": history.metric.name,
        "unit": history.metric.unit,
        "labels": history.labels,
        "transport": history.transport,
        "points": [
            {
                "run_id": point.run_id,
                "started": point.started.isoformat() if point.started else None,
                "n": point.n,
                "median": point.median,
                "interval": [point.interval.low, point.interval.high] if point.interval else None,
            }
            for point in history.points
        ],
        "changes": [vars(change) for change in history.changes],
    }
