"""The figures that `mplab figures` draws: one module each, found by name; ``FIGURE`` in it draws.

Here are those from mptrace's tables, in `mplab.analysis.figures.papers` those from the cells' scores.

`mplab figures` lists and draws them all; those whose module says ``REPORT = True`` are on the page of every run that
has the data. What is drawn after which figure of which paper: docs/figures.md.
"""

import importlib
import pkgutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from mplab.analysis.errors import FigureError
from mplab.analysis.figures import papers
from mplab.analysis.figures.shapes.common import NoDataError
from mplab.analysis.figures.style import Drawing
from mplab.analysis.text import did_you_mean
from mplab.analysis.traces import Traces


class Figure(Protocol):
    """A shape with what it shows; ``paper`` names the figures that it is drawn after."""

    @property
    def title(self) -> str:
        """Its title."""

    @property
    def paper(self) -> str:
        """``baerts2015 fig. 5.1``, or "" when it is ours alone."""

    def draw(self, name: str, traces: Traces) -> Iterator[Drawing]:
        """The drawings; raises `NoDataError`, never draws empty axes."""


@dataclass(frozen=True)
class Named:
    """A figure as the command line knows it."""

    name: str
    figure: Figure
    order: int
    in_report: bool
    """On the page of every run that has the data."""
    of_paper: bool = False
    """Drawn from scores, after one figure of a paper; on the page of the runs of the experiment of its name."""

    def belongs_to(self, experiment: str) -> bool:
        """Whether it is on the page of a run of this experiment: of its own, or of one named after it."""
        return self.of_paper and (experiment == self.name or experiment.startswith(f"{self.name}-"))


@dataclass(frozen=True)
class LeftOut:
    """A figure that was not drawn, and why."""

    name: str
    reason: str


def figures(names: Sequence[str] = ()) -> list[Named]:
    """The figures of these names, or all, in the order of the report.

    Raises:
        FigureError: there is no such figure; the message names those that there are.
    """
    known = {named.name: named for named in sorted(_all(), key=lambda n: (n.order, n.name))}
    for name in names:
        if name not in known:
            raise FigureError(f"no figure is called {name!r}.{did_you_mean(name, known)} Figures: {', '.join(known)}")
    return [known[name] for name in names or known]


def draw(traces: Traces, chosen: Sequence[Named]) -> Iterator[Drawing | LeftOut]:
    """Each figure's drawings, or why it has none."""
    for named in chosen:
        lacking = _lacking(named, traces)
        if lacking:
            yield LeftOut(named.name, lacking)
            continue
        try:
            yield from named.figure.draw(named.name, traces)
        except NoDataError as reason:
            yield LeftOut(named.name, str(reason))


def _lacking(named: Named, traces: Traces) -> str:
    """Why nothing can be drawn at all; "" when something may be."""
    if not named.of_paper:
        return "" if traces.traces else "no ok cell has tables"
    if not traces.scored:
        return "no ok cell"
    return "" if not traces.scores.is_empty() else "no ok cell has scores: 'mplab analyze' makes them"


def _all() -> Iterator[Named]:
    for folder, package, of_paper in ((__path__, __name__, False), (papers.__path__, papers.__name__, True)):
        for found in pkgutil.iter_modules(folder):
            module = importlib.import_module(f"{package}.{found.name}")
            if hasattr(module, "FIGURE"):
                name = found.name.replace("_", "-")
                in_report = bool(getattr(module, "REPORT", False))
                yield Named(name, module.FIGURE, int(module.ORDER), in_report, of_paper)
