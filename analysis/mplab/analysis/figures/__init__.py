"""The figures of a report: one module each, found by name.

A module with ``ORDER: int`` and ``draw(analysis) -> Iterable[Drawing]`` is a figure; nothing else names it. Those
from mptrace's tables are in `mplab.analysis.figures.traces`, those after one figure of a paper in
`mplab.analysis.figures.papers`.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from mplab.analysis.decode import Problem
from mplab.analysis.figures import traces
from mplab.analysis.figures.style import Drawing
from mplab.analysis.result import Analysis
from mplab.analysis.traces import traces_of


def draw_all(analysis: Analysis) -> Iterator[Drawing | Problem]:
    """Every figure that this analysis has data for, in the order of the report; a `Problem` where drawing one failed.

    Of the traces the chosen few; of those after papers the one that the experiment is named after.
    """
    for module in _modules():
        yield from _drawn(module.__name__.rpartition(".")[2], partial(module.draw, analysis))
    experiment = analysis.run.manifest.experiment.name
    data = traces_of(analysis.run)
    for figure in traces.figures():
        if figure.in_report or figure.belongs_to(experiment):
            yield from _drawn(figure.name, partial(traces.draw, data, [figure]))


def _drawn(name: str, draw: Callable[[], Iterable[Drawing | traces.LeftOut]]) -> Iterator[Drawing | Problem]:
    try:
        yield from (made for made in draw() if isinstance(made, Drawing))
    except Exception as error:  # noqa: BLE001, RUF100 - what one figure cannot draw must not hide the others
        yield Problem("report", f"figure {name} cannot be drawn: {type(error).__name__}: {error}")


def _modules() -> list[Any]:
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.ispkg)
    modules: list[Any] = [importlib.import_module(f"{__name__}.{name}") for name in names]
    return sorted((m for m in modules if hasattr(m, "draw")), key=lambda m: int(m.ORDER))
