"""Load the registered figures; draw them for the report of a run, or into a folder for ``mplab figures``."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from mplab.analysis.errors import FigureError
from mplab.analysis.figures.kinds import Figure, RunFigure, TraceFigure
from mplab.analysis.figures.run_traces import Traces, traces_in, traces_of
from mplab.analysis.figures.shapes.common import NoDataError
from mplab.analysis.figures.style import Drawing
from mplab.analysis.files import csv_text, write_text
from mplab.analysis.record.decode import AnalysisProblem
from mplab.analysis.record.run import read_run
from mplab.analysis.statistics.summaries import Analysis
from mplab.base.errors import LabNotReadyError
from mplab.base.plugins import FIGURES
from mplab.base.suggest import did_you_mean

OBJECT = "FIGURE"
Kind_co = TypeVar("Kind_co", bound=Figure, covariant=True)


@dataclass(frozen=True)
class NamedFigure(Generic[Kind_co]):
    """A registered figure.

    Attributes:
        name: name of the plug-in.
        figure: the module's ``FIGURE``.
        origin: the distribution that registers it, such as ``example 0.1.0``; "" for mplab itself.
    """

    name: str
    figure: Kind_co
    origin: str = ""


@dataclass(frozen=True)
class FigureCatalog:
    """All registered figures, each kind in the order of the report.

    ``unusable``: name → problem of each registered figure that cannot be loaded.
    """

    of_run: Sequence[NamedFigure[RunFigure]]
    of_traces: Sequence[NamedFigure[TraceFigure]]
    unusable: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LeftOut:
    """A figure that was not drawn, with the reason; ``failed``: it cannot be loaded, or drawing raised an error."""

    name: str
    reason: str
    failed: bool = False


def catalog() -> FigureCatalog:
    """Load every registered figure.

    Raises:
        InputError: two distributions register the same name.
    """
    of_run: list[NamedFigure[RunFigure]] = []
    of_traces: list[NamedFigure[TraceFigure]] = []
    unusable: dict[str, str] = {}
    for name, plugin in FIGURES.plugins.items():
        origin = plugin.distribution if plugin.foreign else ""
        try:
            figure = FIGURES.load(name, OBJECT)
        except LabNotReadyError as error:
            unusable[name] = str(error)
            continue
        if isinstance(figure, RunFigure):
            of_run.append(NamedFigure(name, figure, origin))
        elif isinstance(figure, TraceFigure):
            of_traces.append(NamedFigure(name, figure, origin))
        else:
            kinds = "neither a RunFigure nor a TraceFigure of mplab.analysis.figures.kinds"
            unusable[name] = f"figure {name}: {plugin.module} (of {plugin.distribution}): {OBJECT} is {kinds}"
    return FigureCatalog(sorted(of_run, key=_place), sorted(of_traces, key=_place), unusable)


def draw_all(analysis: Analysis) -> Iterator[Drawing | AnalysisProblem]:
    """Yield the report's figures for which the analysis has data, in order, and an `AnalysisProblem` for each failure.

    Raises:
        InputError: two distributions register the same name.
    """
    figures_known = catalog()
    for problem in figures_known.unusable.values():
        yield AnalysisProblem("report", problem)
    for named in figures_known.of_run:
        try:
            yield from named.figure.draw(analysis)
        except Exception as error:  # noqa: BLE001, RUF100 - one figure's mistake must not hide the others
            yield _problem(_failed(named.name, error))
    experiment = analysis.run.manifest.experiment.name
    shown = [named for named in figures_known.of_traces if named.figure.is_shown(named.name, experiment)]
    for output in draw(traces_of(analysis.run), shown):
        if isinstance(output, Drawing):
            yield output
        elif output.failed:
            yield _problem(output)


def figures(names: Sequence[str] = ()) -> list[NamedFigure[TraceFigure]]:
    """Return the trace figures called ``names`` in this order; without names, all trace figures in the report's order.

    Raises:
        FigureError: a figure does not exist (the message lists those that do), or cannot be used.
        InputError: two distributions register the same name.
    """
    registered = catalog()
    known = {named.name: named for named in registered.of_traces}
    for name in names:
        if name in registered.unusable:
            raise FigureError(registered.unusable[name])
        if name not in known:
            raise FigureError(f"no figure is called {name!r}.{did_you_mean(name, known)} Figures: {', '.join(known)}")
    return [known[name] for name in names or known]


def draw(traces: Traces, chosen: Sequence[NamedFigure[TraceFigure]]) -> Iterator[Drawing | LeftOut]:
    """Draw the chosen figures; yield the drawings of each, or the reason why it has none."""
    for named in chosen:
        try:
            if lacking := named.figure.lacks(traces):
                yield LeftOut(named.name, lacking)
            else:
                yield from named.figure.shape.draw(named.name, traces)
        except NoDataError as reason:
            yield LeftOut(named.name, str(reason))
        except Exception as error:  # noqa: BLE001, RUF100 - as in `draw_all`
            yield _failed(named.name, error)


def _failed(name: str, error: Exception) -> LeftOut:
    return LeftOut(name, f"{type(error).__name__}: {error}", failed=True)


def _problem(missing: LeftOut) -> AnalysisProblem:
    return AnalysisProblem("report", f"figure {missing.name} cannot be drawn: {missing.reason}")


def _place(named: NamedFigure[Figure]) -> tuple[int, str]:
    return named.figure.order, named.name


def load(path: Path, cells: Sequence[str] = ()) -> Traces:
    """Read the traces of a run directory, or of a folder of tables that ``mptrace FILE… -o FOLDER`` wrote.

    Raises:
        NotARunError: the path is neither a run directory nor a folder of tables.
        FigureError: one of ``cells`` is not the name of an ok cell.
    """
    if (path / "connections.parquet").is_file():
        return traces_in(path)
    return traces_of(read_run(path), cells)


def write_figures(traces: Traces, names: Sequence[str], folder: Path) -> tuple[list[Path], list[LeftOut]]:
    """Draw the trace figures called ``names``, or all if there are no names, into ``folder`` as SVG and CSV files.

    Return the paths of the SVG files, and the figures that were left out.

    Raises:
        FigureError: a figure does not exist, or cannot be used.
        OSError: a file cannot be written.
    """
    written: list[Path] = []
    left_out: list[LeftOut] = []
    if not names:
        left_out += [LeftOut(name, problem, failed=True) for name, problem in catalog().unusable.items()]
    for output in draw(traces, figures(names)):
        if isinstance(output, Drawing):
            path = folder / f"{output.stem.removeprefix('trace-').removeprefix('paper-')}.svg"
            write_text(path, output.svg)
            write_text(path.with_suffix(".csv"), csv_text(output.columns, output.rows))
            written.append(path)
        else:
            left_out.append(output)
    return written, left_out
