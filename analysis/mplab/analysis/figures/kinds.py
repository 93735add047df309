"""Define the kinds of figures: the classes of the object ``FIGURE`` in a figure's module."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from mplab.analysis.figures.run_traces import Traces
from mplab.analysis.figures.style import Drawing
from mplab.analysis.statistics.summaries import Analysis


class FigureShape(Protocol):
    """Selects and draws the data of a `TraceFigure`; `mplab.analysis.figures.shapes` has shapes for common plots."""

    @property
    def title(self) -> str:
        """Return the title of the figure."""

    @property
    def paper(self) -> str:
        """Return the reproduced figure of a paper, such as ``baerts2015 fig. 5.1``; "" for an original figure."""

    def draw(self, name: str, traces: Traces) -> Iterator[Drawing]:
        """Yield the drawings of the figure called ``name``; none of them is empty.

        Raises:
            NoDataError: there is nothing to draw.
        """


@dataclass(frozen=True, kw_only=True)
class RunFigure:
    """A figure made from the statistics of a run; it is in the report of every run that has data for it.

    Attributes:
        order: sort key of the figure among the figures of this kind.
        title: title in lists of figures.
        draw: yields the drawings; nothing when the run has no data for them.
        stems: beginnings of the stems of the drawings; empty: they begin with the name of the figure.
    """

    order: int
    title: str
    draw: Callable[[Analysis], Iterable[Drawing]]
    stems: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TraceFigure:
    """A figure made from the tables or the scores of a run's cells; ``mplab figures`` can draw it, too.

    Attributes:
        order: sort key of the figure among the figures of this kind.
        shape: selects the data and draws them.
        in_report: True: the figure is in the report of every run that has data for it.
        of_paper: True: the figure reproduces a figure of a paper from scores. It is in the report of runs whose
            experiment has the figure's name (NAME, or NAME-…).
    """

    order: int
    shape: FigureShape
    in_report: bool = False
    of_paper: bool = False

    def is_shown(self, name: str, experiment: str) -> bool:
        """Return whether the report of a run of ``experiment`` shows this figure, called ``name``."""
        return self.in_report or (self.of_paper and (experiment == name or experiment.startswith(f"{name}-")))

    def lacks(self, traces: Traces) -> str:
        """Return the reason why nothing can be drawn; "" when the traces or scores exist."""
        if not self.of_paper:
            return "" if traces.traces else "no ok cell has tables"
        if not traces.scored:
            return "no ok cell"
        return "" if not traces.scores.is_empty() else "no ok cell has scores: 'mplab analyze' makes them"


Figure: TypeAlias = RunFigure | TraceFigure
