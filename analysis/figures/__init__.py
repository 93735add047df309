"""The figures of a report: one module each, found by name.

A module with ``ORDER: int`` and ``draw(analysis) -> Iterable[Drawing]`` is a figure; nothing else names it.
"""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

from analysis.figures.style import Drawing
from analysis.result import Analysis


def draw_all(analysis: Analysis) -> Iterator[Drawing]:
    """Every figure that this analysis has data for, in the order of the report."""
    for module in _modules():
        yield from module.draw(analysis)


def _modules() -> list[Any]:
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    modules: list[Any] = [importlib.import_module(f"{__name__}.{name}") for name in names]
    return sorted((m for m in modules if hasattr(m, "draw")), key=lambda m: int(m.ORDER))
