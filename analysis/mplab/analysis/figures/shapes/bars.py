"""Draw stacked bars: of shares (`Bars`), or of amounts in several facets (`Stacks`)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from mplab.analysis.figures.run_traces import Traces
from mplab.analysis.figures.shapes.common import Axis, NoDataError, paged
from mplab.analysis.figures.style import (
    INK,
    ON_COLOUR,
    QUARTERS,
    Canvas,
    Drawing,
    facet_columns,
    facet_rows,
    name_rows,
    text_size,
    title_below,
)
from mplab.analysis.text import percent, slug

COLUMNS = ("scenario", "link", "transport", "part", "amount", "share")
LABEL_FROM = 0.08
"""Minimum share of a part of a bar that is labelled with its percentage; in a narrower part, the text would not fit."""
STACK_COLUMNS = ("facet", "transport", "part", "cell", "value")
ROOM = 1.95
"""Length of the x axis relative to the longest bar: it leaves space for the numbers to the right of the bars."""


@dataclass(frozen=True)
class Bars:
    """A figure of stacked bars of shares, with a bar per scenario, link and transport.

    ``values`` returns columns ``part`` and ``amount``; ``look`` returns title and colour of each part, in order.
    """

    title: str
    paper: str
    axis_title: str
    caption: str
    values: Callable[[Traces], pl.DataFrame]
    look: Callable[[Sequence[str]], Mapping[str, tuple[str, str]]]
    nothing: str

    def draw(self, name: str, traces: Traces) -> Iterator[Drawing]:
        """Yield one drawing. Raises NoDataError when the amounts are zero or missing."""
        frame = self.values(traces)
        if frame.is_empty() or not frame["amount"].sum():
            raise NoDataError(self.nothing)
        keys = ["scenario", "link", "transport"]
        amounts = frame.group_by(*keys, "part", maintain_order=True).agg(pl.col("amount").sum())
        total = pl.col("amount").sum().over(keys)
        shares = amounts.with_columns(share=pl.col("amount") / total).filter(total > 0)
        yield self._drawing(slug("trace", name), shares, traces)

    def _drawing(self, stem: str, shares: pl.DataFrame, traces: Traces) -> Drawing:
        titles = {transport.label: transport.title for transport in traces.transports}
        bars = list(dict.fromkeys(shares.select("scenario", "link", "transport").iter_rows()))
        parts = self.look(sorted(shares["part"].unique()))
        amounts = {(s, k, t, p): share for s, k, t, p, _, share in shares.select(COLUMNS).iter_rows()}
        with Canvas(self.title, 0.9 + 0.32 * len(bars)) as canvas:
            axes = canvas.facets(1)[0]
            left = [0.0] * len(bars)
            for part, (_, colour) in parts.items():
                for row, bar in enumerate(bars):
                    width = amounts.get((*bar, part), 0.0)
                    axes.barh(row, width, left=left[row], height=0.7, color=colour)
                    if width >= LABEL_FROM:
                        middle = left[row] + width / 2
                        axes.text(
                            middle,
                            row,
                            percent(width),
                            ha="center",
                            va="center",
                            color=ON_COLOUR,
                            fontsize=text_size(8.0),
                        )
                    left[row] += width
            several = len({bar[0] for bar in bars}) > 1, len({bar[1] for bar in bars}) > 1
            name_rows(axes, [_bar_title(bar, titles, several) for bar in bars])
            axes.set_xlim(0, 1)
            axes.set_xticks(*QUARTERS)
            axes.set_xlabel(self.axis_title)
            canvas.legend([Patch(color=colour, label=title) for title, colour in parts.values()])
            svg = canvas.svg(stem)
        return Drawing(stem, "traces", self.title, self.caption, svg, COLUMNS, shares.select(COLUMNS).rows())


def _bar_title(bar: tuple[str, str, str], titles: Mapping[str, str], several: tuple[bool, bool]) -> str:
    scenario, link, transport = bar
    words = [word for word, shown in zip((scenario, link), several, strict=True) if shown]
    return " · ".join((*words, titles.get(transport, transport)))


@dataclass(frozen=True)
class Stacks:
    """A figure of stacked bars, one per transport in each facet; the length of a part is its mean over the cells.

    ``values`` returns the columns of `STACK_COLUMNS`; ``look`` has title and colour of each part, in order.
    """

    title: str
    paper: str
    axis: Axis
    caption: str
    values: Callable[[Traces], pl.DataFrame]
    look: Mapping[str, tuple[str, str]]
    nothing: str

    def draw(self, name: str, traces: Traces) -> Iterator[Drawing]:
        """Yield a drawing per page of facets. Raises NoDataError when the values are zero or missing."""
        frame = self.values(traces)
        if frame.is_empty() or not frame["value"].sum():
            raise NoDataError(self.nothing)
        facets = frame["facet"].unique(maintain_order=True).to_list()
        titles = {transport.label: transport.title for transport in traces.transports}
        for stem, page in paged(name, facets, "paper"):
            yield self._page(stem, page, frame.filter(pl.col("facet").is_in(page)), titles)

    def _page(self, stem: str, facets: Sequence[str], frame: pl.DataFrame, titles: Mapping[str, str]) -> Drawing:
        transports = [label for label in titles if label in set(frame["transport"])]
        means = frame.group_by("facet", "transport", "part").agg(pl.col("value").mean())
        amounts = {(facet, transport, part): value for facet, transport, part, value in means.iter_rows()}
        with Canvas(self.title, 0.35 + (0.75 + 0.34 * len(transports)) * facet_rows(len(facets))) as canvas:
            all_axes = canvas.facets(len(facets), sharey=True)
            for index, (axes, facet) in enumerate(zip(all_axes, facets, strict=True)):
                axes.set_title(facet)
                self._bars(axes, [[amounts.get((facet, t, part), 0.0) for part in self.look] for t in transports])
                name_rows(axes, [titles[label] for label in transports])
                axes.tick_params(axis="y", labelleft=index % facet_columns() == 0)
                self.axis.dress(axes, "x")
                axes.locator_params(axis="x", nbins=2)
            title_below(canvas, all_axes)
            canvas.legend([Patch(color=colour, label=title) for title, colour in self.look.values()])
            svg = canvas.svg(stem)
        return Drawing(stem, "paper", self.title, self.caption, svg, STACK_COLUMNS, frame.select(STACK_COLUMNS).rows())

    def _bars(self, axes: Axes, rows: Sequence[Sequence[float]]) -> None:
        longest = max(sum(parts) for parts in rows)
        for row, parts in enumerate(rows):
            left = 0.0
            for (_, colour), amount in zip(self.look.values(), parts, strict=True):
                axes.barh(row, amount, left=left, height=0.7, color=colour)
                left += amount
            text = " + ".join(self.axis.text(amount) for amount in parts)
            axes.text(left + 0.02 * longest, row, text, va="center", ha="left", color=INK, fontsize=text_size(8.0))
        axes.set_xlim(0, ROOM * longest if longest else 1)
