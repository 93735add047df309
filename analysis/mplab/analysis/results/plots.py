"""Draw a metric of one or more runs for notebooks, in the style of the report's figures."""

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mplab.analysis.errors import FigureError
from mplab.analysis.figures.style import FACET_COLUMNS, GRID, INK, LINE_WIDTH, MARKER_SIZE, STYLE, WIDTH_IN, name_rows
from mplab.analysis.metric import label_sort_key
from mplab.analysis.record.run import Run
from mplab.analysis.results.frames import SEPARATOR, Results
from mplab.analysis.text import listed
from mplab.base.suggest import unknown
from mplab.format.experiment import TransportRecord

MAX_RUNS = 12
"""Maximum number of runs in a plot; of more runs, the newest are drawn."""
MAX_FACETS = 24
"""Maximum number of facets (scenario, link condition and labels) in a plot."""
FACET = ("scenario", "link", "labels")
"""Columns whose values have a facet each."""
_POINT_SPREAD = 0.25
_ROW_IN, _MARGIN_IN = 0.28, 0.8


class ResultsFigure(Figure):
    """A matplotlib figure that notebooks show as SVG, also when pyplot is not used."""

    def _repr_svg_(self) -> str:
        file = io.BytesIO()
        with _styled("mplab"):
            self.savefig(file, format="svg", metadata=dict.fromkeys(("Date", "Creator")))
        return file.getvalue().decode()


@dataclass(frozen=True)
class _Row:
    """A row of a facet: the values of one transport in one run, with the median and interval of the run's report."""

    run: str
    transport: TransportRecord
    values: Sequence[float]
    median: float
    interval: tuple[float, float] | None

    @property
    def key(self) -> tuple[str, str]:
        return self.run, self.transport.label


def plot(results: Results, metric: str, *, scenario: str = "", link: str = "", labels: str = "") -> ResultsFigure:
    """Draw each value of a metric as a point, and the median with its 95 % interval, per run and transport.

    Each scenario, link condition and combination of labels has a facet; values are never pooled over them, nor over
    runs. The intervals are those of the reports. ``scenario``, ``link`` and ``labels`` select facets.

    Raises:
        FigureError: no value has this metric, scenario, link or labels, or the plot would have too many facets.
    """
    values = results.cell_values.drop_nulls(FACET)
    if values.is_empty():
        raise FigureError("there are no values; 'mplab analyze' computes them from the runs")
    for column, name in {"metric": metric, "scenario": scenario, "link": link, "labels": labels}.items():
        if name or column == "metric":
            known = values[column].unique().to_list()
            if name not in known:
                raise FigureError(unknown(column, name, known))
            values = values.filter(pl.col(column) == name)
    measured = set(values["run_id"])
    runs = [run for run in results.records if run.manifest.run_id in measured][-MAX_RUNS:]
    values = values.filter(pl.col("run_id").is_in([run.manifest.run_id for run in runs]))
    facets = sorted(values.select(FACET).unique().rows(), key=_sort_key)
    if len(facets) > MAX_FACETS:
        several = [name for name in FACET if values[name].n_unique() > 1]
        raise FigureError(f"{metric} has {len(facets)} facets; at most {MAX_FACETS} are drawn: give {listed(several)}")
    reports = results.statistics.filter(metric=metric)
    rows = [list(_rows(runs, values, reports, dict(zip(FACET, facet, strict=True)))) for facet in facets]
    if not all(rows):
        raise FigureError(f"{metric} has values of transports that are not in the plan of their run")
    title, unit = reports.select("title", "unit").rows()[-1] if reports.height else (metric, values["unit"][0])
    with _styled():
        figure = _draw(facets, rows, f"{title} ({unit})" if unit else title)
        if len(runs) < len(measured):
            figure.suptitle(f"The newest {len(runs)} of {len(measured)} runs", fontsize=9.0)
    return figure


def _draw(facets: Sequence[tuple[str, str, str]], rows: Sequence[Sequence[_Row]], title: str) -> ResultsFigure:
    several_runs = len({row.run for facet in rows for row in facet}) > 1
    columns = min(len(facets), FACET_COLUMNS - several_runs)  # names of runs are long
    lines = math.ceil(len(facets) / columns)
    height_in = lines * (_MARGIN_IN + _ROW_IN * max(map(len, rows))) + (0.3 if several_runs else 0)
    figure = ResultsFigure(figsize=(WIDTH_IN, height_in), layout="constrained")
    grid = list(figure.subplots(lines, columns, squeeze=False).flat)
    varied = [len({facet[index] for facet in facets}) > 1 for index in range(3)]
    for index, (axes, facet, own) in enumerate(zip(grid, facets, rows, strict=False)):
        words = [word for word, shown in zip(facet, varied, strict=True) if word and shown]
        axes.set_title(SEPARATOR.join(words or filter(None, facet)))
        for place, row in enumerate(own):
            _draw_row(axes, place, row)
        axes.margins(x=0.08)
        if min(min(row.values) for row in own) >= 0:
            axes.set_xlim(left=0)
        axes.locator_params(axis="x", nbins=4)
        _name_rows(axes, own, several_runs=several_runs)
        if index % columns and [row.key for row in own] == [row.key for row in rows[index - 1]]:
            axes.tick_params(axis="y", labelleft=False)
    for axes in grid[len(facets) :]:
        axes.remove()
    figure.supxlabel(title, fontsize=9.0, color=INK)
    if several_runs:
        transports = {row.transport.label: row.transport for own in rows for row in own}.values()
        figure.legend(handles=[_handle(transport) for transport in transports], loc="outside upper left", ncols=4)
    return figure


def _draw_row(axes: Axes, place: int, row: _Row) -> None:
    colour = row.transport.colour
    spread = _POINT_SPREAD if len(row.values) > 1 else 0.0
    places = place + np.linspace(-spread, spread, len(row.values))
    look: Any = {"marker": row.transport.marker, "markersize": MARKER_SIZE - 1, "alpha": 0.45}
    axes.plot(row.values, places, linestyle="none", color=colour, **look)
    if row.interval is not None:
        axes.plot(row.interval, [place, place], color=colour, linewidth=LINE_WIDTH + 1)
    axes.plot([row.median, row.median], [place - 0.36, place + 0.36], color=colour, linewidth=LINE_WIDTH + 0.6)


def _name_rows(axes: Axes, rows: Sequence[_Row], *, several_runs: bool) -> None:
    """Label the rows with their transports, or, with several runs, the first row of each run with the run."""
    if not several_runs:
        name_rows(axes, [row.transport.title for row in rows])
        return
    starts = [index for index, row in enumerate(rows) if index == 0 or rows[index - 1].run != row.run]
    name_rows(axes, [row.run if index in starts else "" for index, row in enumerate(rows)], fontsize=7.5)
    for start in starts[1:]:
        axes.axhline(start - 0.5, color=GRID, linewidth=0.6)


def _handle(transport: TransportRecord) -> Line2D:
    look: Any = {"color": transport.colour, "marker": transport.marker, "label": transport.title}
    return Line2D([], [], linewidth=LINE_WIDTH, **look)


def _rows(runs: Sequence[Run], values: pl.DataFrame, reports: pl.DataFrame, facet: Mapping[str, str]) -> Iterator[_Row]:
    reported = {(row["run_id"], row["transport"]): row for row in reports.filter(**facet).iter_rows(named=True)}
    own = values.filter(**facet).sort("block", "cell")
    for run in runs:
        for transport in run.transports:
            key = run.manifest.run_id, transport.label
            found = own.filter(run_id=key[0], transport=key[1])["value"].to_list()
            if found:
                yield _Row(key[0], transport, found, *_median(reported.get(key, {}), found))


def _median(described: Mapping[str, float | None], values: Sequence[float]) -> tuple[float, tuple[float, float] | None]:
    """Return the median and its interval from a row of `Results.statistics`; without a report, no interval."""
    median, low, high = described.get("median"), described.get("low"), described.get("high")
    interval = (low, high) if low is not None and high is not None else None
    return (float(np.median(values)), None) if median is None else (median, interval)


def _sort_key(facet: tuple[str, str, str]) -> tuple[object, ...]:
    scenario, link, labels = facet
    return scenario, link, label_sort_key(tuple(("", value) for value in labels.split(SEPARATOR)))


@contextmanager
def _styled(salt: str = "") -> Iterator[None]:
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({**STYLE, "svg.hashsalt": salt or None})
        yield
