"""The figures of a report: one module each, found by name.

A module with ``ORDER: int`` and ``draw(analysis) -> Iterable[Drawing]`` is a figure; nothing else names it. Those
from mptrace's tables are in `analysis.figures.traces`, those after one figure of a paper in `analysis.figures.papers`.
"""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

from analysis.figures import traces
from analysis.figures.style import Drawing
from analysis.result import Analysis
from analysis.traces import traces_of


def draw_all(analysis: Analysis) -> Iterator[Drawing]:
    """Every figure that this analysis has data for, in the order of the report.

    Of the traces the chosen few; of those after papers the one that the experiment is named after.
    """
    for module in _modules():
        yield from module.draw(analysis)
    experiment = analysis.run.manifest.experiment.name
    chosen = [figure for figure in traces.figures() if figure.in_report or figure.belongs_to(experiment)]
    drawn = traces.draw(traces_of(analysis.run), chosen)
    yield from (drawing for drawing in drawn if isinstance(drawing, Drawing))


def _modules() -> list[Any]:
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.ispkg)
    modules: list[Any] = [importlib.import_module(f"{__name__}.{name}") for name in names]
    return sorted((m for m in modules if hasattr(m, "draw")), key=lambda m: int(m.ORDER))
