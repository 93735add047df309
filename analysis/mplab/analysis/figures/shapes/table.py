"""Draw a table of numbers, with a row per scenario, link and transport."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import polars as pl

from mplab.analysis.figures.run_traces import Traces
from mplab.analysis.figures.shapes.common import Axis, NoDataError
from mplab.analysis.figures.style import GRID, INK, QUIET, Canvas, Drawing, text_size
from mplab.analysis.text import slug

KEYS = ("scenario", "link", "transport")
MOST_ROWS = 30
"""Maximum number of rows of a drawing."""

_GAP = 2
"""Space between two columns, characters."""
_WIDE = 72
"""Width of a table, characters, above which its text is smaller."""


@dataclass(frozen=True)
class NumberTable:
    """A table of a run.

    Attributes:
        columns: column of the values → its title and unit, in the order of the table.
        values: returns the columns `KEYS` and ``columns``, with one row for each combination of the keys.
        nothing: message when there is no row.
    """

    title: str
    paper: str
    caption: str
    columns: Mapping[str, Axis]
    values: Callable[[Traces], pl.DataFrame]
    nothing: str

    def draw(self, name: str, traces: Traces) -> Iterator[Drawing]:
        """Yield a drawing per page of at most `MOST_ROWS` rows. Raises NoDataError when there is no row."""
        frame = self.values(traces)
        if frame.is_empty():
            raise NoDataError(self.nothing)
        titles = {transport.label: transport.title for transport in traces.transports}
        shown = frame.select(*KEYS, *self.columns).with_columns(pl.col("transport").replace(titles))
        keys = [key for key in KEYS if key == "transport" or shown[key].n_unique() > 1]
        for page, start in enumerate(range(0, shown.height, MOST_ROWS)):
            yield self._page(slug("trace", name, str(page + 1) if page else ""), shown[start : start + MOST_ROWS], keys)

    def _page(self, stem: str, frame: pl.DataFrame, keys: Sequence[str]) -> Drawing:
        heads = [*(key.capitalize() for key in keys), *(axis.label for axis in self.columns.values())]
        texts = [
            [str(row[key]) for key in keys] + [axis.text(row[name]) for name, axis in self.columns.items()]
            for row in frame.iter_rows(named=True)
        ]
        widths = [max(map(len, column)) + _GAP for column in zip(heads, *texts, strict=True)]
        ends = list(accumulate(widths))
        with Canvas(self.title, 0.3 + 0.22 * (len(texts) + 1)) as canvas:
            axes = canvas.facets(1)[0]
            axes.set_axis_off()
            axes.set_xlim(0, ends[-1])
            axes.set_ylim(len(texts) + 0.5, -0.5)
            size = text_size(8.5 * min(1.0, _WIDE / ends[-1]))
            for line, words in enumerate([heads, *texts]):
                for column, word in enumerate(words):
                    left = column < len(keys)
                    place = ends[column] - widths[column] if left else ends[column] - _GAP
                    look = {"color": INK if line else QUIET, "fontweight": "normal" if line else "bold"}
                    axes.text(place, line, word, ha="left" if left else "right", va="center", fontsize=size, **look)  # type: ignore[arg-type]
            axes.axhline(0.5, color=GRID)
            svg = canvas.svg(stem)
        return Drawing(stem, "traces", self.title, self.caption, svg, frame.columns, frame.rows())
