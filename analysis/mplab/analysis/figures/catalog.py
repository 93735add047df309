"""Load the registered figures; draw them for the report of a run, or into a folder for ``mplab figures``."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, TypeVar

from mplab.analysis.errors import AnalysisError, FigureError
from mplab.analysis.figures.kinds import Figure, RunFigure, TraceFigure
from mplab.analysis.figures.run_traces import Traces, traces_in, traces_of
from mplab.analysis.figures.shapes.common import NoDataError
from mplab.analysis.figures.style import Drawing, Look, drawn_as
from mplab.analysis.files import csv_text, write_bytes, write_text
from mplab.analysis.record.decode import AnalysisProblem
from mplab.analysis.record.run import read_run
from mplab.analysis.statistics.summaries import Analysis
from mplab.base.errors import LabNotReadyError
from mplab.base.plugins import FIGURES
from mplab.base.suggest import did_you_mean

OBJECT = "FIGURE"
_SVG = Look(formats=("svg",))
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

    @property
    def all(self) -> list[NamedFigure[Figure]]:
        """Return the figures of runs, then those of traces."""
        figures: list[NamedFigure[Figure]] = [*self.of_run]
        return [*figures, *self.of_traces]


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


def figures(names: Sequence[str] = ()) -> list[NamedFigure[Figure]]:
    """Return the figures called ``names`` in this order; without names, all figures in the report's order.

    Raises:
        FigureError: a figure does not exist (the message lists those that do), or cannot be used.
        InputError: two distributions register the same name.
    """
    registered = catalog()
    known = {named.name: named for named in registered.all}
    for name in names:
        if name in registered.unusable:
            raise FigureError(registered.unusable[name])
        if name not in known:
            raise FigureError(f"no figure is called {name!r}.{did_you_mean(name, known)} Figures: {', '.join(known)}")
    return [known[name] for name in names or known]


def draw(
    traces: Traces, chosen: Sequence[NamedFigure[Figure]], analysis: Analysis | None = None
) -> Iterator[Drawing | LeftOut]:
    """Draw the chosen figures; yield the drawings of each, or the reason why it has none.

    ``analysis`` has the statistics for figures of the run; without it, they are left out.
    """
    for named in chosen:
        try:
            yield from _drawings(named.figure, named.name, traces, analysis)
        except NoDataError as reason:
            yield LeftOut(named.name, str(reason))
        except Exception as error:  # noqa: BLE001, RUF100 - as in `draw_all`
            yield _failed(named.name, error)


def _drawings(figure: Figure, name: str, traces: Traces, analysis: Analysis | None) -> Iterator[Drawing]:
    """Yield the drawings of a figure. Raises NoDataError when there are none."""
    if isinstance(figure, TraceFigure):
        if lacking := figure.lacks(traces):
            raise NoDataError(lacking)
        yield from figure.shape.draw(name, traces)
        return
    if analysis is None:
        raise NoDataError("it is drawn from the statistics of a whole run")
    drawings = list(figure.draw(analysis))
    if not drawings:
        raise NoDataError("the run has no data for it")
    yield from drawings


def _failed(name: str, error: Exception) -> LeftOut:
    text = str(error) if isinstance(error, FigureError) else f"{type(error).__name__}: {error}"
    return LeftOut(name, text, failed=True)


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


@dataclass(frozen=True)
class WrittenFigure:
    """A figure in a folder: its drawing, the name of its module, and its files, one for each format, then the CSV."""

    name: str
    source: str
    drawing: Drawing
    files: tuple[Path, ...]
    data: Path


def write_figures(
    traces: Traces,
    names: Sequence[str],
    folder: Path,
    *,
    look: Look = _SVG,
    statistics: Callable[[], Analysis] | None = None,
) -> tuple[list[WrittenFigure], list[LeftOut]]:
    """Draw the figures called ``names``, or all if there are no names, into ``folder``; write the data as CSV files.

    Return the figures, and those that were left out.

    Args:
        traces: traces and scores of the run.
        names: names of figures.
        folder: the folder; it is created.
        look: formats, size and style.
        statistics: returns the statistics of the run, for figures of the run. It is called at most once, and only if
            such a figure is drawn. Without it, or if it raises AnalysisError, these figures are left out.

    Raises:
        FigureError: a figure does not exist, or cannot be used.
        OSError: a file cannot be written.
    """
    written: list[WrittenFigure] = []
    left_out: list[LeftOut] = []
    if not names:
        left_out += [LeftOut(name, problem, failed=True) for name, problem in catalog().unusable.items()]
    chosen = figures(names)
    analysis, problem = None, ""
    if statistics is not None and any(isinstance(named.figure, RunFigure) for named in chosen):
        try:
            analysis = statistics()
        except AnalysisError as error:
            problem = str(error)
    with drawn_as(look) as pictures:
        for named in chosen:
            for output in draw(traces, [named], analysis):
                if isinstance(output, LeftOut):
                    lacking = bool(problem) and isinstance(named.figure, RunFigure)
                    left_out.append(replace(output, reason=problem) if lacking else output)
                    continue
                base = folder / output.stem.removeprefix("trace-").removeprefix("paper-")
                files = []
                for kind in look.formats:
                    files.append(base.with_name(f"{base.name}.{kind}"))
                    write_bytes(files[-1], pictures[output.stem, kind])
                data = base.with_name(f"{base.name}.csv")
                write_text(data, csv_text(output.columns, output.rows))
                paper = named.figure.shape.paper if isinstance(named.figure, TraceFigure) else ""
                written.append(WrittenFigure(named.name, paper, output, tuple(files), data))
    return written, left_out
