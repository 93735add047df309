"""Define the style of all figures: sizes, colours, and SVG whose bytes depend only on the data."""

import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import matplotlib
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from mplab.analysis.metric import Metric
from mplab.analysis.text import percent, slug

WIDTH_IN, TITLE_IN, TITLE_SIZE = 7.2, 0.3, 11.0
INK, QUIET, GRID, BAND = "#1c2430", "#5b6675", "#e4e7ec", "#d9efe4"
LINE_WIDTH, MARKER_SIZE = 1.6, 5.0
MAX_FACETS = 6
"""Maximum number of facets in a drawing; for a metric with more label values, one facet shows the values' medians."""

FACET_COLUMNS = 3
QUARTERS = ((0, 0.25, 0.5, 0.75, 1), ("0", "25 %", "50 %", "75 %", "100 %"))
"""(positions, labels) of the ticks of an axis with shares."""

INTERFACE_COLOURS = {"wlan0": "#0072B2", "rmnet0": "#E69F00"}
OTHER_INTERFACE_COLOURS = ("#CC79A7", "#56B4E9", "#009E73", "#999999")

STYLE: Any = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9.0,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#9aa4b2",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "text.color": INK,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "xtick.major.size": 3.0,
    "ytick.major.size": 0.0,
    "legend.frameon": False,
    "legend.fontsize": 9.0,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "hatch.linewidth": 1.2,
}

_NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))
_WEB_FONTS = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"


@dataclass(frozen=True)
class Drawing:
    """A figure with the data that it shows.

    ``section`` is its section in the report. ``scenario``, ``link`` and ``metric`` are names, each "" if the figure
    shows several.
    """

    stem: str
    section: Literal["gain", "distribution", "share", "links", "timeline", "traces", "paper"]
    title: str
    caption: str
    svg: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    scenario: str = ""
    link: str = ""
    metric: str = ""


@dataclass
class Canvas:
    """A figure in progress: ``with Canvas(title, height_in) as canvas`` applies the style inside the block.

    ``height_in`` is the height without the title, inches.
    """

    title: str
    height_in: float
    figure: Figure = field(init=False)

    def __enter__(self) -> "Canvas":
        """Set matplotlib's parameters to `STYLE`, create the empty figure, and return this object."""
        self._context = matplotlib.rc_context()
        self._context.__enter__()
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        self.figure = Figure(figsize=(WIDTH_IN, self.height_in + TITLE_IN), layout="constrained")
        FigureCanvasSVG(self.figure)
        return self

    def __exit__(self, *exception: object) -> None:
        """Restore matplotlib's previous parameters."""
        self._context.__exit__(None, None, None)

    def facets(self, count: int, *, sharex: bool = False, sharey: bool = False) -> list[Axes]:
        """Add ``count`` axes to the figure, at most `FACET_COLUMNS` in a row, and return them."""
        columns = min(count, FACET_COLUMNS)
        rows = math.ceil(count / columns)
        grid = self.figure.subplots(rows, columns, squeeze=False, sharex=sharex, sharey=sharey)
        axes = list(grid.flat)
        for unused in axes[count:]:
            unused.remove()
        return axes[:count]

    def legend(self, handles: Sequence[Artist], columns: int = 4) -> None:
        """Draw one legend above all axes, below the figure's title."""
        self.figure.legend(
            handles=list(handles),
            loc="outside upper left",
            ncols=columns,
            borderaxespad=0.2,
            borderpad=0.1,
            handlelength=1.8,
            title=self.title,
            alignment="left",
            title_fontproperties={"weight": "bold", "size": TITLE_SIZE},
        )

    def svg(self, stem: str) -> str:
        """Return the figure as SVG, without date and program name; its identifiers depend only on ``stem``."""
        if not self.figure.legends:
            self.figure.suptitle(self.title, x=0.01, ha="left", fontsize=TITLE_SIZE, fontweight="bold")
        buffer = io.BytesIO()
        with matplotlib.rc_context({"svg.hashsalt": stem}):
            self.figure.savefig(buffer, format="svg", metadata=_NO_METADATA)
        return _tidy(buffer.getvalue().decode())


def panel_title(scenario: str, link: str, title: str) -> str:
    """Return the title of a panel, such as ``web · baseline · Page load time``."""
    return " · ".join((scenario, link, title))


def percent_axis(axes: Axes) -> None:
    """Label the x axis, which has fractions, in percent, with at most five intervals."""
    axes.locator_params(axis="x", nbins=5)
    axes.xaxis.set_major_formatter(lambda value, _: percent(round(value, 6)))


def share_axis(axes: Axes) -> None:
    """Set range and ticks of the y axis of a cumulative distribution, which has shares of 0 … 1."""
    axes.set_ylim(-0.03, 1.05)
    axes.set_yticks(*QUARTERS)


def name_rows(
    axes: Axes, names: Sequence[str], *, first: int = 0, grid: bool = False, fontsize: float | None = None
) -> None:
    """Label the rows of a figure on the y axis with ``names``, from y = ``first`` at the top downwards."""
    axes.set_yticks(range(first, first + len(names)), names, fontsize=fontsize)
    axes.set_ylim(first + len(names) - 0.4, first - 0.6)
    axes.tick_params(axis="y", labelcolor=INK)
    if not grid:
        axes.grid(visible=False, axis="y")


def facet_rows(count: int) -> int:
    """Return the number of rows in which `Canvas.facets` places ``count`` axes."""
    return math.ceil(count / FACET_COLUMNS)


def axis_title(metric: Metric) -> str:
    """Return the metric's title, with its unit if it has one: ``Download time (s)``."""
    return f"{metric.title} ({metric.unit})" if metric.unit else metric.title


def direction(metric: Metric) -> str:
    """Return ``Less is better.`` or ``More is better.``, depending on the metric; "" if neither is better."""
    return {"lower": "Less is better.", "higher": "More is better.", "neither": ""}[metric.better]


def interface_colour(name: str, others: Sequence[str] = ()) -> str:
    """Return the fixed colour of an interface; an unknown one gets a colour by its place among ``others``."""
    if name in INTERFACE_COLOURS:
        return INTERFACE_COLOURS[name]
    unknown = sorted(other for other in {*others, name} if other not in INTERFACE_COLOURS)
    return OTHER_INTERFACE_COLOURS[unknown.index(name) % len(OTHER_INTERFACE_COLOURS)]


def inline(drawing: Drawing) -> str:
    """Return a drawing's SVG for an HTML page: without prolog, and with identifiers that are unique in the page."""
    start = drawing.svg.index("<svg")
    svg = drawing.svg[start:]
    prefix = slug(drawing.stem)
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r'href="#', f'href="#{prefix}-', svg)
    svg = re.sub(r"url\(#", f"url(#{prefix}-", svg)
    label = drawing.title.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    svg = re.sub(r'<svg ([^>]*?)width="[^"]*" height="[^"]*"', r"<svg \1", _attributes_first(svg), count=1)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)


def _attributes_first(svg: str) -> str:
    """Move width and height, with empty values, to the first place among the attributes of the SVG's root element."""
    end = svg.index(">")
    root, rest = svg[:end], svg[end:]
    sizes = re.findall(r'\b(?:width|height)="[^"]*"', root)
    for size in sizes:
        root = root.replace(" " + size, "", 1)
    return root.replace("<svg", '<svg width="" height=""', 1) + rest


def _tidy(svg: str) -> str:
    svg = re.sub(r"<!DOCTYPE.*?>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = svg.replace("'DejaVu Sans'", _WEB_FONTS)
    return re.sub(r"[ \t]+$", "", svg, flags=re.MULTILINE)
