"""Kinds of figures: what a figure's module has as ``FIGURE``."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from mplab.analysis.figures.run_traces import Traces
from mplab.analysis.figures.style import Drawing
from mplab.analysis.statistics.result import Analysis


class FigureShape(Protocol):
    """What a `TraceFigure` shows and how; see `mplab.analysis.figures.shapes`."""

    @property
    def title(self) -> str:
        """Its title."""

    @property
    def paper(self) -> str:
        """The figures that it is drawn after: ``baerts2015 fig. 5.1``; "" for one of our own."""

    def draw(self, name: str, traces: Traces) -> Iterator[Drawing]:
        """Yield the drawings; never empty axes.

        Raises:
            NoDataError: there is nothing to draw.
        """


@dataclass(frozen=True, kw_only=True)
class RunFigure:
    """A figure from the statistics of a run, on the page of every run that has its data.

    Attributes:
        order: its place among the figures of this kind.
        title: for lists of figures.
        draw: yields the drawings; none when the run has no data for it.
    """

    order: int
    title: str
    draw: Callable[[Analysis], Iterable[Drawing]]


@dataclass(frozen=True, kw_only=True)
class TraceFigure:
    """A figure from the tables or the scores of a run's cells, which `mplab figures` draws, too.

    Attributes:
        order: its place among the figures of this kind.
        shape: draws it.
        in_report: it is on the page of every run that has its data.
        of_paper: it is drawn from scores, after one figure of a paper, and is on the page of each run of the experiment
            that is called as the figure.
    """

    order: int
    shape: FigureShape
    in_report: bool = False
    of_paper: bool = False

    def is_shown(self, name: str, experiment: str) -> bool:
        """Return whether the figure `name` is on the page of a run of an experiment."""
        return self.in_report or (self.of_paper and (experiment == name or experiment.startswith(f"{name}-")))

    def lacks(self, traces: Traces) -> str:
        """Return why nothing can be drawn at all; "" when something may be."""
        if not self.of_paper:
            return "" if traces.traces else "no ok cell has tables"
        if not traces.scored:
            return "no ok cell"
        return "" if not traces.scores.is_empty() else "no ok cell has scores: 'mplab analyze' makes them"


Figure: TypeAlias = RunFigure | TraceFigure
