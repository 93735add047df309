"""Draw figures from a run's traces: SVG, and the data as CSV. Those without data are left out, with the reason."""

from pathlib import Path
from typing import Annotated

import typer

from mplab.analysis.figures.catalog import catalog, load, write_figures
from mplab.base.files import explained
from mplab.cli.options import JsonOption, RunsOption, find_run
from mplab.cli.output import err, out, output_folder, print_json, table
from mplab.run.run_directory import RUNS


def figures(
    run_name: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="Run directory, or the beginning or end of its name (by default, the newest run), or a folder of "
            "tables that 'mptrace FILE… -o FOLDER' wrote.",
        ),
    ] = "",
    *,
    figure: Annotated[
        list[str] | None,
        typer.Option(
            "--figure", "-f", metavar="NAME", help="Draw only this figure; may be repeated.", show_default=False
        ),
    ] = None,
    cell: Annotated[
        list[str] | None,
        typer.Option(
            "--cell",
            metavar="CELL",
            help="Use only this cell; may be repeated. By default, all ok cells are used.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write to this folder. By default, it is 'figures' in the run.",
            show_default=False,
            metavar="FOLDER",
            callback=output_folder,
        ),
    ] = None,
    list_them: Annotated[bool, typer.Option("--list", help="List the figures without drawing them.")] = False,
    runs: RunsOption = RUNS,
    as_json: JsonOption = False,
) -> None:
    if list_them:
        _list(as_json=as_json)
        return

    tables = bool(run_name) and (Path(run_name) / "connections.parquet").is_file()
    path = Path(run_name) if tables else find_run(run_name, runs)
    folder = output if output is not None else path / "figures"
    with explained(folder), err.status("Drawing …"):
        written, left_out = write_figures(load(path, cell or ()), figure or (), folder)
    if as_json:
        reasons = [{"figure": missing.name, "reason": missing.reason} for missing in left_out]
        print_json({"figures": [str(file) for file in written], "left_out": reasons})
        return
    for file in written:
        out.print(str(file), markup=False, soft_wrap=True)
    for missing in left_out:
        err.print(f"{missing.name} is left out: {missing.reason}", style="yellow", markup=False)


def _list(*, as_json: bool) -> None:
    known = catalog()
    if as_json:
        print_json(
            [
                {
                    "name": entry.name,
                    "title": entry.figure.shape.title,
                    "after": entry.figure.shape.paper,
                    "in_report": entry.figure.in_report,
                    "origin": entry.origin,
                }
                for entry in known.of_traces
            ]
        )
    else:
        foreign = any(entry.origin for entry in known.of_traces)
        rows = table("figure", "shows", "after", "in report", *(["from"] if foreign else []))
        for entry in known.of_traces:
            shape, shown = entry.figure.shape, "yes" if entry.figure.in_report else ""
            rows.add_row(entry.name, shape.title, shape.paper, shown, *([entry.origin] if foreign else []))
        out.print(rows)
    for problem in known.unusable.values():
        err.print(problem, style="yellow", markup=False, soft_wrap=True)
