"""Plot the web objects of one cell: the times of request and response, and the networks that carried each response."""

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import CellTrace, Traces
from mplab.analysis.figures.shapes.common import Axis, NoDataError, network_colours, network_title
from mplab.analysis.figures.style import Canvas, Drawing, name_rows, text_size
from mplab.analysis.record.tables import Row
from mplab.analysis.text import data, percent, slug
from mplab.format.palette import VERMILION

COLUMNS = (
    "cell",
    "connection_id",
    "stream_id",
    "method",
    "url",
    "status",
    "request_ms",
    "response_ms",
    "end_ms",
    "response_body",
    "networks",
)
LOOPBACK = "loopback"
MAX_OBJECTS = 40
URL_CHARACTERS = 22
WAITING = VERMILION
MS = 1e6
TIME = Axis("Time since the first request", "ms")


def shares(text: str) -> dict[str, int]:
    """Parse ``wifi:1234,cellular:567`` to network → bytes."""
    parts = (part.rpartition(":") for part in text.split(",") if part)
    return {name: int(size) for name, _, size in parts}


@dataclass(frozen=True)
class Waterfall:
    """A figure with a row per web object: first the wait for the response, then the response itself.

    The bar of the response is divided by the networks' shares of its bytes.
    """

    title: str
    paper: str
    caption: str

    def draw(self, name: str, traces: Traces) -> Iterator[Drawing]:
        """Yield a drawing of one cell: the cell with the most objects that were transferred over several networks.

        Raises:
            NoDataError: no cell has objects.
        """
        candidates = [trace for trace in traces.applications.traces if not trace.tables["objects"].is_empty()]
        if not candidates:
            raise NoDataError("no web object was seen: captures need payload, and the keys of TLS")
        yield self._drawing(slug("trace", name), max(candidates, key=_interest))

    def _drawing(self, stem: str, trace: CellTrace) -> Drawing:
        since = [
            ((pl.col(f"{name}_ns") - pl.col("request_ns").min()) / MS).alias(f"{name}_ms")
            for name in ("request", "response", "end")
        ]
        objects = trace.tables["objects"].with_columns(since).sort("request_ms", maintain_order=True)
        shown = objects.head(MAX_OBJECTS)
        networks = list(dict.fromkeys(network for text in shown["networks"] for network in shares(text or "")))
        colours = network_colours(networks)
        with Canvas(self.title, 1.0 + 0.19 * shown.height) as canvas:
            axes = canvas.facets(1)[0]
            for row, item in enumerate(shown.iter_rows(named=True)):
                _bar(axes, row, item, colours)
            name_rows(axes, [_label(item) for item in shown.iter_rows(named=True)], fontsize=text_size(8.0))
            TIME.dress(axes, "x")
            parts = [Patch(color=colours[name], label=_response(name)) for name in networks]
            canvas.legend([Patch(color=WAITING, label="Request, waiting"), *parts])
            svg = canvas.svg(stem)
        caption = f"{self.caption} Cell {trace.name}."
        if objects.height > MAX_OBJECTS:
            caption += f" The first {MAX_OBJECTS} of {objects.height}; the data has all."
        rows = objects.with_columns(cell=pl.lit(trace.name)).select(COLUMNS).rows()
        return Drawing(stem, "traces", self.title, caption, svg, COLUMNS, rows)


def _interest(trace: CellTrace) -> tuple[int, int]:
    """Return (number of web objects transferred over several networks, number of all web objects) of the cell."""
    objects = trace.tables["objects"]
    return objects.filter(pl.col("networks").str.contains(",")).height, objects.height


def _bar(axes: Axes, row: int, item: Row, colours: dict[str, str]) -> None:
    start, first, end = item["request_ms"], item["response_ms"], item["end_ms"]
    if first is None:
        axes.plot([start], [row], marker="x", color=WAITING)
        return
    axes.barh(row, first - start, left=start, height=0.35, color=WAITING)
    parts = shares(item["networks"] or "")
    total, left = sum(parts.values()), first
    for network, size in parts.items():
        width = ((end if end is not None else first) - first) * size / total if total else 0.0
        axes.barh(row, width, left=left, height=0.75, color=colours[network])
        left += width


def _response(network: str) -> str:
    """Return the text of a network in the legend.

    The text names no network for objects of a session: they are captured on the loopback.
    """
    return "Response" if network == LOOPBACK else f"Response over {network_title(network)}"


def _label(item: Row) -> str:
    """Return the label of a web object's row, as in han2015 fig. 5: ``…image.png · 200 (8.0 kB, 21 % WiFi) [3]``."""
    url = item["url"] or ""
    short = url if len(url) <= URL_CHARACTERS else "…" + url[-URL_CHARACTERS:]
    parts = shares(item["networks"] or "")
    known = sum(parts.values()) and LOOPBACK not in parts
    wifi = f", {percent(parts.get('wifi', 0) / sum(parts.values()))} WiFi" if known else ""
    return f"{short} · {item['status']} ({data(item['response_body'] or 0)}{wifi}) [{item['connection_id']}]"


FIGURE = TraceFigure(
    order=80,
    in_report=True,
    shape=Waterfall(
        title="Web objects",
        paper="han2015 fig. 5",
        caption="Within a response, each network's part is as wide as its share of the bytes. "
        "In brackets: the connection.",
    ),
)
