"""Define the style of all figures: sizes, colours, and SVG whose bytes depend only on the data."""

import html
import io
import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import matplotlib
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullFormatter, NullLocator

from mplab.analysis.errors import FigureError
from mplab.analysis.metric import Metric
from mplab.analysis.statistics.summaries import Group
from mplab.analysis.text import LONG, MINUS, THIN_SPACE, percent, power_of_ten, slug
from mplab.format.palette import BLUE, GREEN, GREY, PURPLE, SKY, VERMILION

WIDTH_IN = 6.0
INK, QUIET, GRID, BAND, EDGE = "#1c2430", "#5b6675", "#e4e7ec", "#d9efe4", "#7f8a98"
ON_COLOUR = "#fefefe"
"""Colour of text on a bar: it stays nearly white on a dark page, on which white becomes the colour of the page."""

PAGE_COLOURS = {INK: "ink", QUIET: "quiet", GRID: "grid", BAND: "band", EDGE: "edge", "#ffffff": "figure"}
"""Colour of a figure → the CSS variable (``--NAME``) of the page that replaces it in an inlined figure."""

LINE_WIDTH, MARKER_SIZE = 1.6, 5.0
MAX_FACETS = 6
"""Maximum number of facets in a drawing; for a metric with more label values, one facet shows the values' medians."""

FACET_COLUMNS = 3
_FACET_IN, _NAMED_FACET_IN = 1.7, 2.0
"""Minimum width of a facet, and of one with names of rows, and height of a row of the legend, inches."""

QUARTERS = ((0, 0.25, 0.5, 0.75, 1), ("0", "25 %", "50 %", "75 %", "100 %"))
"""(positions, labels) of the ticks of an axis with shares."""

LEGEND_MARK_IN, LEGEND_CHARACTER_IN, LEGEND_LINE_IN = 0.5, 0.075, 0.19
"""Width of the mark of a legend entry with its gaps, width of a character of its text, height of a line, inches."""

FEW = 10
"""Number of values below which every value is drawn with median and interval, instead of a distribution and a box."""

LOG_FROM = 10.0
"""Ratio of the largest to the smallest value from which a shared axis of values is logarithmic."""
ZERO_FROM = 0.6
"""An axis starts at 0 unless the smallest value is more than this share of the largest."""
EVEN_BELOW = 3.0
"""Ratio of the limits of an axis below which a logarithmic axis becomes a linear one: the two look the same."""
MIN_TICKS = 3

INTERFACE_COLOURS = {"wlan0": BLUE, "rmnet0": VERMILION}
OTHER_INTERFACE_COLOURS = (PURPLE, SKY, GREEN, GREY)

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
    "axes.edgecolor": EDGE,
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
    "pdf.fonttype": 42,
}

PNG_DPI = 300
"""Resolution of PNG files, pixels per inch, unless a style sets ``savefig.dpi``."""

Format: TypeAlias = Literal["svg", "pdf", "png"]

_NO_METADATA: Mapping[Format, dict[str, str | None]] = {
    "svg": dict.fromkeys(("Date", "Creator", "Format", "Type")),
    "pdf": dict.fromkeys(("CreationDate", "Creator", "Producer")),
    "png": {"Software": None},
}
"""Format → the entries of a file's metadata that are left out: dates and programs, which change with each drawing."""

_CELLS = "cells-"
"""Start of the temporary SVG identifiers of artists whose marks name their cells."""
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


@dataclass(frozen=True)
class Look:
    """Size and style of figures; the default is that of the report.

    Attributes:
        width_in: width of each figure, inches.
        height_in: height of each figure, inches; None: it depends on the data.
        parameters: Matplotlib parameters that replace those of `STYLE`.
        formats: formats in which `drawn_as` collects the figures.
    """

    width_in: float = WIDTH_IN
    height_in: float | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    formats: tuple[Format, ...] = ()


@dataclass(frozen=True)
class _Output:
    look: Look
    pictures: dict[tuple[str, Format], bytes]


_OUTPUT: ContextVar[_Output | None] = ContextVar("figures", default=None)


def _output() -> _Output:
    return _OUTPUT.get() or _Output(Look(), {})


@contextmanager
def drawn_as(look: Look) -> Iterator[Mapping[tuple[str, Format], bytes]]:
    """Draw all figures in the block with this look; yield (stem, format) → content of the file of each figure drawn."""
    output = _Output(look, {})
    token = _OUTPUT.set(output)
    try:
        yield output.pictures
    finally:
        _OUTPUT.reset(token)


@dataclass
class Canvas:
    """A figure in progress: ``with Canvas(title, height_in) as canvas`` applies the style inside the block.

    ``title`` names the figure for screen readers and file viewers, and is not drawn: a page has a heading or a caption.
    ``height_in`` is the height, inches.
    """

    title: str
    height_in: float
    figure: Figure = field(init=False)
    _cells: dict[str, list[tuple[str, str]]] = field(init=False, default_factory=dict)

    def __enter__(self) -> "Canvas":
        """Set matplotlib's parameters to `STYLE`, create the empty figure, and return this object."""
        self._context = matplotlib.rc_context()
        self._context.__enter__()
        matplotlib.rcdefaults()
        look = _output().look
        parameters: Any = {**STYLE, **look.parameters}
        matplotlib.rcParams.update(parameters)
        self.figure = Figure(figsize=(look.width_in, look.height_in or self.height_in), layout="constrained")
        FigureCanvasSVG(self.figure)
        return self

    def __exit__(self, *exception: object) -> None:
        """Restore matplotlib's previous parameters."""
        self._context.__exit__(None, None, None)

    def facets(self, count: int, *, sharex: bool = False, sharey: bool = False, named_rows: bool = False) -> list[Axes]:
        """Add ``count`` axes to the figure, at most `facet_columns` in a row, and return them.

        ``named_rows``: each of them has its own names of rows.
        """
        columns = min(count, facet_columns(named_rows=named_rows))
        rows = math.ceil(count / columns)
        grid = self.figure.subplots(rows, columns, squeeze=False, sharex=sharex, sharey=sharey)
        axes = list(grid.flat)
        for unused in axes[count:]:
            unused.remove()
        return axes[:count]

    def legend(self, handles: Sequence[Artist], columns: int = 4) -> None:
        """Draw one legend above all axes, in at most ``columns`` columns that fit the width of the figure.

        A figure without a fixed height becomes higher by the second and each further line of the legend.
        """
        look = _output().look
        longest = max((len(str(handle.get_label())) for handle in handles), default=0)
        fitting = max(1, min(columns, int(look.width_in / (LEGEND_MARK_IN + LEGEND_CHARACTER_IN * longest))))
        if look.height_in is None:
            lines = math.ceil(len(handles) / fitting)
            self.figure.set_figheight(self.figure.get_figheight() + LEGEND_LINE_IN * max(0, lines - 1))
        self.figure.legend(
            handles=list(handles),
            loc="outside upper left",
            ncols=fitting,
            borderaxespad=0.2,
            borderpad=0.1,
            handlelength=1.8,
        )

    def name_cells(self, artist: Artist, cells: Sequence[tuple[str, str]]) -> None:
        """Name the cell of each mark of ``artist``: (cell, text of the tooltip) of each, in order.

        Each mark becomes an SVG group of class ``cell``, with the attribute ``data-cell`` and a ``<title>``. The artist
        is a `Line2D` with markers, all of them inside the figure, or a patch, such as a bar.
        """
        name = f"{_CELLS}{len(self._cells)}"
        artist.set_gid(name)
        self._cells[name] = list(cells)

    def svg(self, stem: str) -> str:
        """Return the figure as SVG, without date and program name; its identifiers depend only on ``stem``.

        Inside of `drawn_as`, add the figure to the collected pictures, too. If the look names a font, the
        returned SVG has outlines instead of letters, because a reader's browser may not have the font.
        """
        output = _output()
        svg = self._svg(stem)
        for kind in output.look.formats:
            output.pictures[stem, kind] = svg.encode() if kind == "svg" else self._saved(kind, stem)
        if "font.family" not in output.look.parameters:
            return svg
        with matplotlib.rc_context({"svg.fonttype": "path"}):
            return self._svg(stem)

    def _svg(self, stem: str) -> str:
        return _with_cells(_tidy(self._saved("svg", stem).decode()), self._cells)

    def _saved(self, kind: Format, stem: str) -> bytes:
        """Return the figure in a format; the bytes depend only on the figure and ``stem``.

        Raises:
            FigureError: inside of `drawn_as`: the figure is too small for its labels.
        """
        buffer = io.BytesIO()
        with matplotlib.rc_context({"svg.hashsalt": stem}), warnings.catch_warnings():
            if _OUTPUT.get() is not None:
                warnings.filterwarnings("error", message="constrained_layout not applied")
            dpi = _output().look.parameters.get("savefig.dpi", PNG_DPI) if kind == "png" else "figure"
            try:
                self.figure.savefig(buffer, format=kind, dpi=dpi, metadata=_NO_METADATA[kind] | {"Title": self.title})
            except UserWarning:
                size = " × ".join(f"{length:.1f}" for length in self.figure.get_size_inches())
                raise FigureError(f"{size} inches are too small for its labels") from None
        return buffer.getvalue()


def panel_title(scenario: str, link: str, title: str) -> str:
    """Return the title of a panel, such as ``web · baseline · Page load time``."""
    return " · ".join((scenario, link, title))


def percent_axis(axes: Axes) -> None:
    """Label the x axis, which has fractions, in percent, with at most five intervals."""
    axes.locator_params(axis="x", nbins=5)
    axes.xaxis.set_major_formatter(lambda value, _: percent(round(value, 6)))


def value_axis(all_axes: Sequence[Axes], values: Sequence[float], label: str) -> None:
    """Dress the x axis of a metric's values, which ``all_axes`` share; the label says if it is not linear from 0.

    Values over a factor of `LOG_FROM` have a logarithmic axis. Other axes start at 0, unless all values would then be
    in a small part of the axis (`ZERO_FROM`), or some are negative.
    """
    low, high = min(values), max(values)
    note = ""
    for axes in all_axes:
        if low > 0 and high / low >= LOG_FROM:
            axes.set_xlim(low / 1.15, high * 1.15)
            note = ", log scale" if log_axis(axes, "x") else ""
            continue
        axes.locator_params(axis="x", nbins=5)
        if low >= 0 and (low <= ZERO_FROM * high or high == 0):
            axes.set_xlim(0, high * 1.06 or 1)
        else:
            axes.margins(x=0.08)
            note = ", axis does not start at 0" if low > 0 else ""
    for axes in all_axes:
        axes.set_xlabel(label + note)


def log_axis(axes: Axes, side: Literal["x", "y"]) -> bool:
    """Make an axis logarithmic, with at least `MIN_TICKS` ticks between its limits; return whether it is.

    An axis whose limits differ by less than a factor of `EVEN_BELOW` stays linear: its ticks would not show the scale.
    """
    axis = axes.xaxis if side == "x" else axes.yaxis
    low, high = (float(end) for end in axis.get_view_interval())
    if low > 0 and high / low < EVEN_BELOW:
        axes.set(**{f"{side}scale": "linear"})
        axis.set_major_locator(MaxNLocator(nbins=5))
        return False
    axes.set(**{f"{side}scale": "log"})
    low, high = (float(end) for end in axis.get_view_interval())
    for steps in ((1.0,), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)):
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        ticks = [step * 10.0**decade for decade in decades for step in steps if low <= step * 10.0**decade <= high]
        if len(ticks) >= MIN_TICKS:
            break
    axis.set_major_locator(FixedLocator(ticks[:: max(1, len(ticks) // 6)]))
    axis.set_minor_locator(LogLocator(subs="auto", numticks=20) if len(steps) == 1 else NullLocator())
    axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(lambda value, _: short_number(value))
    return True


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


def text_size(points: float) -> float:
    """Return a size of text, points, scaled like ``font.size`` by the style; only inside the block of a `Canvas`."""
    return points * float(matplotlib.rcParams["font.size"]) / float(STYLE["font.size"])


def facet_columns(*, named_rows: bool = False) -> int:
    """Return the maximum number of facets in a row: `FACET_COLUMNS`, or fewer in a narrow figure."""
    least = _NAMED_FACET_IN if named_rows else _FACET_IN
    return max(1, min(FACET_COLUMNS, int(_output().look.width_in / least)))


def facet_rows(count: int, *, named_rows: bool = False) -> int:
    """Return the number of rows in which `Canvas.facets` places ``count`` axes."""
    return math.ceil(count / facet_columns(named_rows=named_rows))


def has_few(panel: Sequence[Group]) -> bool:
    """Return whether every transport of a panel has fewer than `FEW` values in each group."""
    return all(len(series.values) < FEW for group in panel for series in group.measured)


def title_below(canvas: Canvas, all_axes: Sequence[Axes]) -> None:
    """Replace the x axis titles of several facets by a common title below them: in narrow facets they would overlap."""
    if len(all_axes) > 1:
        title = all_axes[-1].get_xlabel()
        for axes in all_axes:
            axes.set_xlabel("")
        canvas.figure.supxlabel(title, fontsize="medium", color=INK)


def short_number(value: float) -> str:
    """Return a number with up to three significant digits, from 100 on as an integer: ``0.1``, ``50``, ``20 000``."""
    if abs(value) >= LONG:
        return (MINUS if value < 0 else "") + power_of_ten(abs(value))
    text = f"{value:,.0f}".replace(",", THIN_SPACE) if abs(value) >= 100 else f"{value:.3g}"
    mantissa, _, exponent = text.partition("e")
    return (f"{mantissa}e{int(exponent)}" if exponent else text).replace("-", MINUS)


def axis_title(metric: Metric) -> str:
    """Return the metric's title, with its unit if it has one: ``Download time (s)``."""
    return f"{metric.title} ({metric.unit})" if metric.unit else metric.title


def direction(metric: Metric) -> str:
    """Return ``Lower is better.`` or ``Higher is better.``, depending on the metric; "" if neither is better."""
    return {"lower": "Lower is better.", "higher": "Higher is better.", "neither": ""}[metric.better]


def interface_colour(name: str, others: Sequence[str] = ()) -> str:
    """Return the fixed colour of an interface; an unknown one gets a colour by its place among ``others``."""
    if name in INTERFACE_COLOURS:
        return INTERFACE_COLOURS[name]
    unknown = sorted(other for other in {*others, name} if other not in INTERFACE_COLOURS)
    return OTHER_INTERFACE_COLOURS[unknown.index(name) % len(OTHER_INTERFACE_COLOURS)]


def inline(drawing: Drawing) -> str:
    """Return a drawing's SVG for an HTML page.

    It has no prolog, and its identifiers are unique in the page. The page's CSS variables set the colours that are not
    of data (`PAGE_COLOURS`), so that the figure follows a dark page.
    """
    start = drawing.svg.index("<svg")
    svg = re.sub(r"\s*<title>.*?</title>", "", drawing.svg[start:], count=1, flags=re.DOTALL)
    prefix = slug(drawing.stem)
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r'href="#', f'href="#{prefix}-', svg)
    svg = re.sub(r"url\(#", f"url(#{prefix}-", svg)
    svg = re.sub(r'(?<=style=")[^"]*', lambda style: _COLOUR.sub(_page_colour, style[0]), svg)
    svg = re.sub(r'<svg ([^>]*?)width="[^"]*" height="[^"]*"', r"<svg \1", _attributes_first(svg), count=1)
    # The children of an image are no content for a screen reader; marks that name their cells are.
    role = "group" if 'class="cell"' in svg else "img"
    return svg.replace("<svg ", f'<svg role="{role}" aria-label="{html.escape(drawing.title)}" ', 1)


_COLOUR = re.compile(r"#[0-9a-f]{6}\b")


def _page_colour(match: re.Match[str]) -> str:
    name = PAGE_COLOURS.get(match[0])
    return f"var(--{name})" if name else match[0]


def _with_cells(svg: str, cells: Mapping[str, Sequence[tuple[str, str]]]) -> str:
    """Wrap each mark of the artists that `Canvas.name_cells` named; an artist with another number of marks is skipped.

    An SVG writer leaves out marks that are outside the figure; the others could then not be assigned.
    """

    def wrap(match: re.Match[str]) -> str:
        named, content = cells[match["name"]], match["content"]
        shape, end, drawn = content.rpartition("</defs>")  # the shape of the markers
        if len(_MARK.findall(drawn)) != len(named):
            return f"<g>{content}"
        each = iter(named)
        return "<g>" + shape + end + _MARK.sub(lambda mark: _group(mark[0], *next(each)), drawn)

    end = r'(?=<g id="|<defs>\s*<clipPath|</svg>)'
    return re.sub(rf'<g id="(?P<name>{_CELLS}\d+)">(?P<content>.*?){end}', wrap, svg, flags=re.DOTALL)


_MARK = re.compile(r"<(?:use|path)\b[^>]*/>")


def _group(mark: str, cell: str, text: str) -> str:
    return f'<g class="cell" data-cell="{html.escape(cell)}"><title>{html.escape(text)}</title>{mark}</g>'


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
