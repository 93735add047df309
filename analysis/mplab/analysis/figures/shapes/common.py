"""Define the common parts of the shapes: panels, series, axes, and the reason why a figure is left out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import polars as pl
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from mplab.analysis.figures.run_traces import Traces
from mplab.analysis.figures.style import LINE_WIDTH, MAX_FACETS, log_axis, short_number
from mplab.analysis.text import percent, slug
from mplab.format.experiment import TransportRecord
from mplab.format.palette import BLUE, GREEN, GREY, OLIVE, PURPLE, SKY, VERMILION

Facet = TypeVar("Facet")
Scale = Literal["linear", "log"]
LONG_TITLE = 26
"""Number of characters of a legend entry above which the legend has two columns instead of three."""

DASHES = ("-", "--", ":", "-.")
NETWORK_COLOURS = {"wifi": BLUE, "cellular": VERMILION, "ethernet": GREEN, "loopback": GREY}
NETWORK_TITLES = {"wifi": "WiFi", "cellular": "LTE", "": "Other"}
OTHER_COLOURS = (PURPLE, SKY, GREEN, OLIVE, GREY)


class NoDataError(Exception):
    """There is nothing to draw; the text names the missing data."""


@dataclass(frozen=True)
class Axis:
    """A quantity on an axis; the unit "bytes" is shown with prefixes, "share" in percent."""

    title: str
    unit: str = ""
    scale: Scale = "linear"

    @property
    def label(self) -> str:
        """Return the axis title with its unit, ``Duration (s)``; without the unit for bytes and shares."""
        return f"{self.title} ({self.unit})" if self.unit not in {"", "bytes", "share"} else self.title

    def shows(self, column: str) -> pl.Expr:
        """Return a polars expression for values that the axis can show: finite, and above 0 if it is logarithmic."""
        value = pl.col(column)
        return value.is_finite() & (value > 0) if self.scale == "log" else value.is_finite()

    def text(self, value: float) -> str:
        """Return a value as text, in the form of the axis' tick labels."""
        if self.unit == "share":
            return percent(round(value, 6))
        if self.unit != "bytes":
            return short_number(value)
        prefixes = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0))
        name, size = next((p for p in prefixes if abs(value) >= p[1]), prefixes[-1])
        return f"{short_number(value / size)} {name}"

    def dress(self, axes: Axes, side: Literal["x", "y"]) -> None:
        """Set scale, title and ticks of the x or y axis (``side``) of ``axes``; the title names a logarithmic scale."""
        axis = axes.xaxis if side == "x" else axes.yaxis
        axes.set(**{f"{side}label": self.label})
        if self.scale == "log" and log_axis(axes, side):
            axes.set(**{f"{side}label": f"{self.label}, log scale"})
        elif self.scale == "linear":
            axes.locator_params(axis=side, nbins=4)
        axis.set_major_formatter(FuncFormatter(lambda value, _: self.text(value)))


@dataclass(frozen=True)
class FigureSeries:
    """A curve, box or cloud of points of one transport.

    ``variant`` distinguishes several of the same transport; "" if there is one.
    """

    transport: TransportRecord
    variant: str

    @property
    def title(self) -> str:
        """Return the transport's title, with the variant after it if there is one: ``Multipath TCP, wifi``."""
        return f"{self.transport.title}, {self.variant}" if self.variant else self.transport.title


@dataclass(frozen=True)
class FigurePanel:
    """The data of one facet: the rows of one scenario and link condition, by series."""

    title: str
    scenario: str
    link: str
    series: tuple[tuple[FigureSeries, pl.DataFrame], ...]


def pages(
    name: str, frame: pl.DataFrame, traces: Traces, axes: Mapping[str, Axis], nothing: str, *, kind: str = "trace"
) -> Iterator[tuple[str, Sequence[FigurePanel]]]:
    """Divide the rows of a figure into panels, and yield (file stem, panels) of each page, in the order of the traces.

    Rows that ``axes`` (by column) cannot show are left out. A figure that shows several scenarios or links in one panel
    returns "" as their name.

    Raises:
        NoDataError: no row is left; the text is ``nothing``.
    """
    shown = frame if frame.is_empty() else frame.filter(*(axis.shows(column) for column, axis in axes.items()))
    if shown.is_empty():
        raise NoDataError(nothing)
    return paged(name, list(_panels(shown, traces)), kind)


def paged(name: str, facets: Sequence[Facet], kind: str = "trace") -> Iterator[tuple[str, Sequence[Facet]]]:
    """Yield (file stem, facets) of each page of at most `MAX_FACETS` facets: ``trace-NAME``, ``trace-NAME-2``."""
    for page, start in enumerate(range(0, len(facets), MAX_FACETS)):
        yield slug(kind, name, str(page + 1) if page else ""), facets[start : start + MAX_FACETS]


def variants(all_series: Sequence[FigureSeries]) -> dict[str, str]:
    """Return variant → line style, for all variants of the series."""
    names = list(dict.fromkeys(series.variant for series in all_series))
    return {name: DASHES[index % len(DASHES)] for index, name in enumerate(names)}


def series_of(panels: Sequence[FigurePanel]) -> list[FigureSeries]:
    """Return the distinct series of the panels."""
    return list({(s.transport.label, s.variant): s for panel in panels for s, _ in panel.series}.values())


def handle(series: FigureSeries, dash: str, *, marker: bool = False) -> Line2D:
    """Return the legend entry of a series."""
    look = {"linestyle": "none", "marker": series.transport.marker} if marker else {"linestyle": dash}
    return Line2D([], [], color=series.transport.colour, linewidth=LINE_WIDTH, label=series.title, **look)  # type: ignore[arg-type]


def legend_columns(handles: Sequence[Line2D]) -> int:
    """Return the number of columns of a legend with these entries: two if an entry is long, else three."""
    return 2 if max((len(str(h.get_label())) for h in handles), default=0) > LONG_TITLE else 3


def named_networks(column: str = "network") -> pl.Expr:
    """Return a polars expression that replaces network names in a column by their titles (`NETWORK_TITLES`)."""
    return pl.col(column).replace(NETWORK_TITLES)


def network_colours(names: Sequence[str]) -> dict[str, str]:
    """Return network → colour; known networks have the same colour in every figure."""
    others = [name for name in dict.fromkeys(names) if name not in NETWORK_COLOURS]
    return NETWORK_COLOURS | {name: OTHER_COLOURS[i % len(OTHER_COLOURS)] for i, name in enumerate(others)}


def network_title(name: str) -> str:
    """Return the title of a network: ``WiFi`` for ``wifi``."""
    return NETWORK_TITLES.get(name, name.capitalize())


def thinned(frame: pl.DataFrame, most: int) -> pl.DataFrame:
    """Return every n-th row of ``frame``, n being the smallest number for which at most ``most`` rows are left."""
    return frame.gather_every(-(-frame.height // most)) if frame.height > most else frame


def _panels(frame: pl.DataFrame, traces: Traces) -> Iterator[FigurePanel]:
    looks = {transport.label: transport for transport in traces.transports}
    places_of = [(trace.scenario, trace.link) for trace in traces.traces]
    places_of += [(cell.scenario, cell.link) for cell in traces.scored]
    known = list(dict.fromkeys(places_of))
    places = sorted(
        frame.select("scenario", "link").unique().rows(),
        key=lambda place: (known.index(place) if place in known else len(known), place),
    )
    several = len({scenario for scenario, _ in places}) > 1, len({link for _, link in places}) > 1
    names = sorted(frame["variant"].unique()) if "variant" in frame.columns else [""]
    for scenario, link in places:
        rows = frame.filter((pl.col("scenario") == scenario) & (pl.col("link") == link))
        series = []
        for label, transport in looks.items():
            for variant in names:
                own = rows.filter(pl.col("transport") == label)
                own = own.filter(pl.col("variant") == variant) if "variant" in frame.columns else own
                if not own.is_empty():
                    series.append((FigureSeries(transport, variant), own))
        if series:
            title = " · ".join(word for word, shown in zip((scenario, link), several, strict=True) if shown)
            yield FigurePanel(title, scenario, link, tuple(series))
