"""Draw the figures of a run as SVG, PDF or PNG, with their data as CSV and a gallery page."""

import re
import shlex
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mplab.analysis.figures.catalog import NamedFigure, catalog, load, write_figures
from mplab.analysis.figures.catalog import figures as check_names
from mplab.analysis.figures.kinds import Figure, RunFigure
from mplab.analysis.figures.style import WIDTH_IN, Format, Look
from mplab.analysis.figures.stylefile import parameters, read_style, style_text
from mplab.analysis.pipeline import statistics_of
from mplab.analysis.report.gallery import NAME, gallery
from mplab.base.errors import InputError
from mplab.base.files import explained, replace
from mplab.cli.options import JsonOption, RunsOption, find_run
from mplab.cli.output import err, out, output_folder, print_json, table
from mplab.run.run_directory import RUNS


class _Format(StrEnum):
    SVG = "svg"
    PDF = "pdf"
    PNG = "png"


_FORMATS: dict[_Format, Format] = {_Format.SVG: "svg", _Format.PDF: "pdf", _Format.PNG: "png"}
_INCHES = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72}
_LENGTH = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)")
_LEAST_IN, _MOST_IN = 1.0, 40.0
_TEXT_PT = (3.0, 40.0)


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
            help="Use only the traces of this cell; may be repeated. By default, all ok cells are used.",
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
    formats: Annotated[
        list[_Format] | None,
        typer.Option(
            "--format",
            metavar="svg|pdf|png",
            help="Write files of this format; may be repeated. By default, SVG files are written.",
            show_default=False,
        ),
    ] = None,
    width: Annotated[
        str, typer.Option(metavar="LENGTH", help="Set the width of each figure: 3.5in, 88mm, 8.8cm or 252pt.")
    ] = f"{WIDTH_IN:g}in",
    height: Annotated[
        str, typer.Option(metavar="LENGTH", help="Set the height of each figure. By default, it depends on the data.")
    ] = "",
    font: Annotated[
        str, typer.Option(metavar="NAME", help="Draw all text with this font, such as 'STIXGeneral' or 'serif'.")
    ] = "",
    font_size: Annotated[
        str,
        typer.Option(
            metavar="LENGTH", help="Set the size of the text, such as 8pt; titles and labels are scaled with it."
        ),
    ] = "",
    style: Annotated[
        Path | None,
        typer.Option(
            "--style",
            metavar="FILE",
            help="Use this style file, a changed copy of the output of --show-style.",
            show_default=False,
            dir_okay=False,
        ),
    ] = None,
    list_them: Annotated[
        bool,
        typer.Option("--list", help="List the figures, and whether the run's report has them, without drawing them."),
    ] = False,
    show_style: Annotated[bool, typer.Option("--show-style", help="Print the style of the figures as a file.")] = False,
    runs: RunsOption = RUNS,
    as_json: JsonOption = False,
) -> None:
    if show_style:
        typer.echo(style_text(), nl=False)
        return
    if list_them:
        _list(_reported(run_name, runs), as_json=as_json)
        return

    look = Look(
        width_in=_length("--width", width),
        height_in=_length("--height", height) if height else None,
        parameters=parameters(
            read_style(style) if style is not None else {},
            font,
            _length("--font-size", font_size, low=_TEXT_PT[0] / 72, high=_TEXT_PT[1] / 72) * 72 if font_size else None,
        ),
        formats=tuple(dict.fromkeys(_FORMATS[kind] for kind in formats or (_Format.SVG,))),
    )
    tables = bool(run_name) and (Path(run_name) / "connections.parquet").is_file()
    path = Path(run_name) if tables else find_run(run_name, runs)
    folder = output if output is not None else path / "figures"
    statistics = None if tables or cell else lambda: statistics_of(path)
    check_names(figure or ())
    traces = load(path, cell or ())
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with explained(folder), err.status("Drawing …"):
        written, left_out = write_figures(traces, figure or (), folder, look=look, statistics=statistics)
        page = folder / NAME
        title = path.resolve().name
        command = _command(path.name, {"--figure": figure, "--cell": cell}, look, font, style)
        replace(page, gallery(title, written, left_out, command, look.width_in).encode())
    files = [file for entry in written for file in entry.files]
    if as_json:
        reasons = [{"figure": missing.name, "reason": missing.reason} for missing in left_out]
        print_json({"figures": [str(file) for file in files], "left_out": reasons, "gallery": str(page)})
        return
    for file in files:
        out.print(str(file), markup=False, soft_wrap=True)
    for missing in left_out:
        err.print(f"{missing.name} is left out: {missing.reason}", style="yellow", markup=False, soft_wrap=True)
    out.print(f"\nGallery: {page}", markup=False, soft_wrap=True)


def _length(option: str, text: str, low: float = _LEAST_IN, high: float = _MOST_IN) -> float:
    """Return a length in inches. Raises InputError: it has no unit, or is out of range."""
    match = _LENGTH.fullmatch(text.strip())
    if match is None or match[2] not in _INCHES:
        raise InputError(f"{option}: found {text!r}, a length with a unit is needed, such as 3.5in, 88mm or 252pt")
    inches = float(match[1]) * _INCHES[match[2]]
    if not low <= inches <= high:
        limits = " to ".join(f"{limit / _INCHES[match[2]]:.4g}{match[2]}" for limit in (low, high))
        raise InputError(f"{option}: found {text!r}, allowed: {limits}")
    return inches


def _command(name: str, chosen: Mapping[str, Sequence[str] | None], look: Look, font: str, style: Path | None) -> str:
    """Return the command that draws the same figures again; ``chosen`` is option → its values."""
    words = ["mplab", "figures", name]
    words += [word for option, values in chosen.items() for value in values or () for word in (option, value)]
    words += [word for kind in look.formats for word in ("--format", kind)]
    words += ["--width", f"{look.width_in:.4g}in"]
    words += ["--height", f"{look.height_in:.4g}in"] if look.height_in is not None else []
    words += ["--font", font] if font else []
    size = look.parameters.get("font.size")
    words += ["--font-size", f"{size:g}pt"] if size is not None and style is None else []
    words += ["--style", style.name] if style is not None else []
    return shlex.join(words)


def _reported(run_name: str, runs: Path) -> frozenset[str] | None:
    """Return the stems of the figures in the report of a run; None: there is no run, or it has no report."""
    try:
        folder = find_run(run_name, runs) / "report" / "figures"
    except InputError:
        if run_name:
            raise
        return None
    return frozenset(path.stem for path in folder.glob("*.svg")) if folder.is_dir() else None


def _in_report(named: NamedFigure[Figure], reported: frozenset[str] | None) -> str:
    """Return whether the report has a figure: ``yes``, ``no data`` or "" (never).

    If there is no report, return ``if it has data`` or "".
    """
    figure = named.figure
    if isinstance(figure, RunFigure):
        starts = figure.stems or (named.name,)
        found = any(stem == start or stem.startswith(f"{start}-") for stem in reported or () for start in starts)
    else:
        pattern = re.compile(rf"(trace|paper)-{re.escape(named.name)}(-\d+)?")
        found = any(map(pattern.fullmatch, reported or ()))
        if not found and not figure.in_report:
            return ""
    if reported is None:
        return "if it has data"
    return "yes" if found else "no data"


def _list(reported: frozenset[str] | None, *, as_json: bool) -> None:
    known = catalog()
    entries = known.all
    rows_of = [(entry, *_about(entry.figure), _in_report(entry, reported)) for entry in entries]
    if as_json:
        print_json(
            [
                {
                    "name": entry.name,
                    "title": title,
                    "after": paper,
                    "in_report": isinstance(entry.figure, RunFigure) or entry.figure.in_report,
                    "in_this_report": None if reported is None else shown == "yes",
                    "origin": entry.origin,
                }
                for entry, title, paper, shown in rows_of
            ]
        )
    else:
        foreign = any(entry.origin for entry in entries)
        rows = table("figure", "shows", "after", "in report", *(["from"] if foreign else []))
        for entry, title, paper, shown in rows_of:
            rows.add_row(entry.name, title, paper, shown, *([entry.origin] if foreign else []))
        out.print(rows)
    for problem in known.unusable.values():
        err.print(problem, style="yellow", markup=False, soft_wrap=True)


def _about(figure: Figure) -> tuple[str, str]:
    """Return the title of a figure, and the figure of a paper that it reproduces."""
    return (figure.title, "") if isinstance(figure, RunFigure) else (figure.shape.title, figure.shape.paper)
