"""Place values and dates on the axes of the charts that pages draw as SVG.

Positions along the x axis are percentages of the chart's width: a chart fits any screen, and its text keeps its size.
"""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import matplotlib.dates
import numpy as np
from markupsafe import Markup
from matplotlib.markers import MarkerStyle
from matplotlib.path import Path as Outline
from matplotlib.ticker import MaxNLocator

from mplab.analysis.record.run import Run
from mplab.analysis.text import MINUS

_DATES: Any = matplotlib.dates
"""The module, whose functions have no types."""

_STEPS = (1, 2, 2.5, 5, 10)
_COMMANDS = {Outline.MOVETO: "M", Outline.LINETO: "L", Outline.CURVE3: "Q", Outline.CURVE4: "C"}


@dataclass(frozen=True)
class Tick:
    """A tick of an axis: its place in percent of the axis, and its label."""

    at: float
    label: str


@dataclass(frozen=True)
class ChartAxis:
    """An axis from ``low`` to ``high`` with its ticks; the places of values are percentages from the low end."""

    low: float
    high: float
    ticks: tuple[Tick, ...]

    def at(self, value: float) -> float:
        """Return the place of a value, percent; values beyond an end are placed at this end."""
        share = (value - self.low) / (self.high - self.low)
        return round(100 * min(1.0, max(0.0, share)), 2)


def value_axis(values: Iterable[float], most: int = 5) -> ChartAxis:
    """Return an axis that covers ``values``, with at most ``most`` intervals between its ticks."""
    known = list(values)
    low, high = min(known), max(known)
    if high <= low:
        low, high = low - abs(low) / 2 - 0.5, high + abs(high) / 2 + 0.5
    ticks = [float(t) for t in MaxNLocator(nbins=most, steps=list(_STEPS)).tick_values(low, high)]
    bare = ChartAxis(ticks[0], ticks[-1], ())
    labels = plain_numbers(ticks)
    return ChartAxis(bare.low, bare.high, tuple(Tick(bare.at(t), n) for t, n in zip(ticks, labels, strict=True)))


def plain_numbers(values: Sequence[float]) -> list[str]:
    """Return evenly spaced numbers as text, without exponents and with the same number of decimals."""
    step = min((b - a for a, b in pairwise(values)), default=1.0)
    decimals = next((d for d in range(10) if abs(round(step, d) - step) < step * 1e-6), 0)
    return [f"{value + 0.0:.{decimals}f}".replace("-", MINUS) for value in np.round(values, decimals)]


def time_axis(times: Sequence[datetime], margin: float = 0.04) -> ChartAxis:
    """Return an axis that covers times, with a free ``margin`` (share of the axis) at both ends.

    Ticks have the date or the time of day (UTC), depending on the length of the axis.
    """
    numbers = [float(_DATES.date2num(time)) for time in times]
    low, high = min(numbers), max(numbers)
    if high == low:
        low, high = low - 0.5, high + 0.5
    reach = high - low
    bare = ChartAxis(low - margin * reach, high + margin * reach, ())
    locator = _DATES.AutoDateLocator(tz=UTC, minticks=3, maxticks=6)
    found = locator.tick_values(_DATES.num2date(bare.low, tz=UTC), _DATES.num2date(bare.high, tz=UTC))
    ticks = [float(tick) for tick in found if bare.low <= tick <= bare.high]
    midnights = [tick for tick in ticks if tick == round(tick)]
    ticks = midnights if len(midnights) > 1 else ticks
    dates = [_DATES.num2date(tick, tz=UTC) for tick in ticks]
    return ChartAxis(
        bare.low,
        bare.high,
        tuple(Tick(bare.at(tick), label) for tick, label in zip(ticks, _date_labels(dates), strict=True)),
    )


def place_of(axis: ChartAxis, time: datetime) -> float:
    """Return the place of a time on a `time_axis`, percent."""
    return axis.at(float(_DATES.date2num(time)))


def _date_labels(dates: Sequence[datetime]) -> list[str]:
    """Return labels of dates: a year or a day that is the same as that of the label before is left out."""
    with_time = any((date.hour, date.minute) != (0, 0) for date in dates)
    labels, before = [], None
    for date in dates:
        new_day = before is None or date.date() != before.date()
        parts = [f"{date.day} {date:%b}"] if new_day or not with_time else []
        if before is None or date.year != before.year:
            parts.append(f"{date:%Y}")
        if with_time:
            parts.append(f"{date:%H:%M}")
        labels.append(" ".join(parts))
        before = date
    return labels


@cache
def marker_path(marker: str, size: float = 4.5) -> Markup:
    """Return the outline of a Matplotlib marker around (0, 0) as data of an SVG path; ``size`` is half its width, px.

    Raises:
        ValueError: Matplotlib has no such marker.
    """
    style = MarkerStyle(marker)
    outline = style.get_path().transformed(style.get_transform())
    scale = size / max(float(np.abs(outline.vertices).max()), 1e-9)
    parts = []
    for points, code in outline.iter_segments(simplify=False):
        pairs = np.asarray(points).reshape(-1, 2) * (scale, -scale)
        numbers = " ".join(f"{x + 0.0:.2f},{y + 0.0:.2f}" for x, y in pairs.round(2))
        parts.append("Z" if code == Outline.CLOSEPOLY else f"{_COMMANDS[code]}{numbers}")
    return Markup("".join(parts))  # noqa: S704 - only numbers


def report_links(page: Path, runs: Iterable[Run]) -> Mapping[str, str]:
    """Return run → link from ``page`` to the page of its report, for each run that has a report."""
    links = {}
    for run in runs:
        report = run.directory / "report" / "index.html"
        if report.is_file():
            links[run.manifest.run_id] = quote(os.path.relpath(report.resolve(), page.parent.resolve()))
    return links


def nice_limit(values: Iterable[float], least: float, most: float) -> float:
    """Return a round number, from ``least`` to ``most``, that is at least the largest of the absolute values."""
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    if largest <= least:
        return least
    power: float = 10.0 ** math.floor(math.log10(largest))
    return min(most, next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= largest * (1 - 1e-9)))
