"""Run the papers' experiments again, and make the page that compares the results with the papers."""

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from mplab.analysis.record.run import read_run
from mplab.analysis.verdicts.wording import estimate_words, interval_words
from mplab.base.deferred import deferred
from mplab.base.errors import InputError
from mplab.base.files import explained, replace
from mplab.campaign import executing
from mplab.cli.command import VerbApp
from mplab.cli.options import JsonOption, RunsOption, find_run
from mplab.cli.output import counted, duration, err, out, output_folder, print_json, table
from mplab.cli.verbs.experiments.campaign import CAMPAIGNS, CampaignsOption
from mplab.cli.verbs.experiments.campaign import execute as execute_campaign
from mplab.format.finding import ClaimFinding
from mplab.format.paperresult import PaperResult
from mplab.format.units import parse_duration_s
from mplab.papers.forms import PlanPart, plan_parts, write_campaign
from mplab.papers.page import judge, read_results
from mplab.papers.page import page as page_text
from mplab.papers.repeats import Repeat, repeats
from mplab.run.run_directory import RUNS
from mplab.userfiles.papers.paper import Form, load_catalogue

RESULTS = Path("docs/papers")
"""Default folder of the results and figures; the page is next to it, ``docs/papers.md``."""

NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PAPER|FIGURE…",
        help="Papers, such as han2015, and figures, such as han2015-fig6. By default, all are used.",
        show_default=False,
    ),
]
QuickOption = Annotated[
    bool,
    typer.Option("--quick/--full", help="Use the quick form (about two hours for all) or the full form of each run."),
]
PartTimeOption = Annotated[
    str,
    typer.Option(metavar="DURATION", help="Divide the experiments into parts that take at most this time."),
]
ResultsArgument = Annotated[
    Path,
    typer.Argument(
        metavar="DIRECTORY",
        help="Folder with the results and figures; the page is DIRECTORY.md.",
        callback=output_folder,
    ),
]
OutputOption = Annotated[
    Path,
    typer.Option("--output", "-o", metavar="DIRECTORY", help="Folder for results and figures.", callback=output_folder),
]

app = VerbApp(no_args_is_help=True)


@app.command("list")
def list_rows(
    names: NamesArgument = None,
    *,
    directory: Annotated[
        Path, typer.Option("--results", metavar="DIRECTORY", help="Folder with the results.")
    ] = RESULTS,
    as_json: JsonOption = False,
) -> None:
    """List the figures, tables and numbers of the papers, with their state."""
    catalogue = load_catalogue()
    wanted = {row.id for row in catalogue.chosen(tuple(names or ()))}
    rows = [judged for judged in judge(catalogue, read_results(directory)) if judged.row.id in wanted]
    if as_json:
        print_json([{**judged.row.model_dump(mode="json"), "state": judged.state} for judged in rows])
        return
    listed = table("figure", "shows", "experiment", "state")
    for judged in rows:
        listed.add_row(judged.row.id, judged.row.shows, judged.row.experiment or "", judged.state)
    out.print(listed)


@app.command()
def plan(
    names: NamesArgument = None,
    *,
    quick: QuickOption = True,
    part_time: PartTimeOption = "8 h",
    runs: RunsOption = RUNS,
    as_json: JsonOption = False,
) -> None:
    """Show the experiments of the chosen figures, their cells and times, in parts; nothing is run."""
    with TemporaryDirectory(prefix="mplab-papers-") as folder:
        parts = _parts(names, quick=quick, part_time=part_time, runs=runs, folder=Path(folder))
    jobs = [(part, job) for part in parts for job in part.jobs]
    if as_json:
        print_json(
            [
                {
                    "part": part.number,
                    "experiment": job.experiment,
                    "figures": [row.id for row in job.rows],
                    "cells": len(job.plan.cells),
                    "estimate_s": job.plan.estimate_s,
                    "may_end_early": job.may_end_early,
                }
                for part, job in jobs
            ]
        )
        return
    listed = table("part", "experiment", "figures", "cells", "about")
    for part, job in jobs:
        about = f"{'at most ' if job.may_end_early else ''}{duration(job.plan.estimate_s)}"
        figures = str(len(job.rows))
        listed.add_row(str(part.number), job.experiment, figures, str(len(job.plan.cells)), about)
    out.print(listed)
    total_s = sum(part.estimate_s for part in parts)
    cells = counted(sum(len(job.plan.cells) for _, job in jobs), "cell")
    out.print(
        f"\n{counted(len(parts), 'part')}, {counted(len(jobs), 'experiment')}, {cells}, about {duration(total_s)}"
    )


@app.command()
def run(
    names: NamesArgument = None,
    *,
    quick: QuickOption = True,
    part: Annotated[int, typer.Option(min=1, help="Run this part of the plan.")] = 1,
    part_time: PartTimeOption = "8 h",
    runs: RunsOption = RUNS,
    campaigns: CampaignsOption = CAMPAIGNS,
    as_json: JsonOption = False,
) -> None:
    """Run the experiments of the chosen figures as a campaign; an interrupted one is continued."""
    folder = campaigns / "papers" / _form(quick=quick)
    parts = _parts(names, quick=quick, part_time=part_time, runs=runs, folder=folder)
    if part > len(parts):
        raise InputError(f"--part {part}: the plan has {counted(len(parts), 'part')}; 'mplab papers plan' shows them")
    file = write_campaign(parts[part - 1], _form(quick=quick), folder)
    directory = executing.newest_of(file, campaigns)
    if directory is None or not executing.read(directory).stopped:
        directory = executing.begin(executing.plan(file, runs), runs=runs, campaigns=campaigns)
    else:
        err.print(f"continues {directory.path}", markup=False, soft_wrap=True)
    execute_campaign(directory, as_json=as_json)


@app.command()
def collect(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN…",
            help="Runs. By default, the newest complete run of each experiment in each form is used.",
            show_default=False,
        ),
    ] = None,
    *,
    output: OutputOption = RESULTS,
    runs: RunsOption = RUNS,
    as_json: JsonOption = False,
) -> None:
    """Extract compact results and figures from runs, and make the page."""
    with deferred("Matplotlib is slow to import"):
        from mplab.papers import collect as collecting
    catalogue = load_catalogue()
    chosen = [find_run(name, runs) for name in names or ()] or collecting.newest_runs(runs, catalogue)
    if not chosen:
        raise InputError(f"{runs}: no complete run of the papers' experiments; 'mplab papers run' makes them")
    written: list[Path] = []
    for directory in chosen:
        with err.status(f"Collecting {directory.name} …"):
            written += collecting.write(collecting.collect(directory, catalogue), output)
    written.append(_write_page(output))
    _say(written, as_json=as_json)


@app.command()
def compare(
    names: Annotated[
        list[str], typer.Argument(metavar="RUN…", help="Further runs of experiments that have a recorded result.")
    ],
    *,
    directory: Annotated[
        Path, typer.Option("--results", metavar="DIRECTORY", help="Folder with the recorded results.")
    ] = RESULTS,
    runs: RunsOption = RUNS,
    as_json: JsonOption = False,
) -> None:
    """Compare further runs with the recorded results: does each finding agree within the intervals, and in the verdict?

    Without repetitions, as in most quick forms, a finding has no interval, and only its verdicts can be compared.
    """
    with deferred("Matplotlib is slow to import"):
        from mplab.papers import collect as collecting
    catalogue, results = load_catalogue(), read_results(directory)
    pairs: list[tuple[PaperResult, Path]] = []
    for run_dir in (find_run(name, runs) for name in names):
        manifest = read_run(run_dir).manifest
        recorded = results.get(manifest.experiment.name)
        if recorded is None or recorded.run == manifest.run_id:
            named = f"'{manifest.experiment.name}'"
            problem = "is the recorded run itself" if recorded else f"{named} has no recorded result"
            allowed = f"a further run of an experiment with a result in {directory}"
            raise InputError(f"{run_dir}: {problem}. Allowed: {allowed}")
        pairs.append((recorded, run_dir))
    compared: list[Repeat] = []
    for recorded, run_dir in pairs:
        with err.status(f"Comparing {run_dir.name} …"):
            compared += repeats(recorded, collecting.measure(run_dir, catalogue))
    if as_json:
        print_json(
            [
                {
                    "figure": one.figure,
                    "claim": one.text,
                    "agrees": one.agrees,
                    "same_verdict": one.same_verdict,
                    "recorded": one.recorded.model_dump(mode="json"),
                    "again": one.again and one.again.model_dump(mode="json"),
                }
                for one in compared
            ]
        )
        return
    listed = table("figure", "claim", "group", "recorded", "again", "agrees", "verdict")
    for one in compared:
        group = " · ".join(filter(None, (one.recorded.scenario, one.recorded.link, one.recorded.label_text)))
        again_words = _measured(one.again) if one.again else "not measured"
        listed.add_row(one.figure, one.text, group, _measured(one.recorded), again_words, *_judged(one))
    out.print(listed)
    counts, same = Counter(one.agrees for one in compared), Counter(one.same_verdict for one in compared)
    out.print(
        f"\n{counted(len(compared), 'finding')}: {counts[True]} agree, {counts[False]} differ,"
        f" {counts[None]} without an interval; {same[True]} with the same verdict, {same[False]} with another one"
    )


_AGREES = {True: "yes", False: "no", None: ""}


def _judged(one: Repeat) -> tuple[str, str]:
    """Return the words for agreement within the intervals, and the verdict or both verdicts."""
    verdicts = dict.fromkeys((one.recorded.verdict, one.again.verdict if one.again else one.recorded.verdict))
    return _AGREES[one.agrees], " → ".join(verdicts)


def _measured(finding: ClaimFinding) -> str:
    interval = f" ({interval_words(finding)})" if finding.interval else ""
    return f"{estimate_words(finding)}{interval}"


@app.command()
def page(directory: ResultsArgument = RESULTS, *, as_json: JsonOption = False) -> None:
    """Make the page from the catalogue and the collected results."""
    _say([_write_page(directory)], as_json=as_json)


def _write_page(directory: Path) -> Path:
    file = directory.parent / f"{directory.name}.md"
    text = page_text(load_catalogue(), read_results(directory), directory.name)
    with explained(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        replace(file, text.encode())
    return file


def _say(written: list[Path], *, as_json: bool) -> None:
    if as_json:
        print_json({"written": [str(path) for path in written]})
        return
    for path in written:
        out.print(str(path), markup=False, soft_wrap=True)


def _form(*, quick: bool) -> Form:
    return "quick" if quick else "full"


def _parts(names: list[str] | None, *, quick: bool, part_time: str, runs: Path, folder: Path) -> list[PlanPart]:
    """Return the parts of the plan, whose files are written to `folder`.

    Raises:
        InputError: no figure of `names` has an experiment.
    """
    try:
        part_s = parse_duration_s(part_time)
    except ValueError as error:
        raise InputError(f"--part-time: {error}") from error
    catalogue = load_catalogue()
    rows = catalogue.chosen(tuple(names or ()))
    if not any(row.experiment for row in rows):
        reasons = "; ".join(f"{row.id}: {row.missing or row.cannot or 'it needs no run'}" for row in rows[:5])
        raise InputError(f"no experiment of ours repeats these figures: {reasons}")
    return plan_parts(catalogue, rows, _form(quick=quick), folder, runs=runs, part_s=part_s)
