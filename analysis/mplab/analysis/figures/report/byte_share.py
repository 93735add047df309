"""Draw the share of each interface in the bytes of a transport, as stacked bars."""

from collections.abc import Iterable

from matplotlib.patches import Patch

from mplab.analysis.figures.kinds import RunFigure
from mplab.analysis.figures.style import INK, ON_COLOUR, Canvas, Drawing, interface_colour, text_size
from mplab.analysis.scores.shares import InterfaceShare
from mplab.analysis.statistics.summaries import Analysis
from mplab.analysis.text import slug
from mplab.format.link import interface_title

COLUMNS = (
    "scenario",
    "link",
    "transport",
    "interface",
    "cells",
    "bytes_up",
    "bytes_down",
    "share_mean",
    "share_min",
    "share_max",
)
TITLE = "{link} · Bytes per interface"
LABEL_FROM = 0.08
"""Minimum share of a part of a bar that is labelled with its percentage; in a narrower part, the text would not fit."""


def draw(analysis: Analysis) -> Iterable[Drawing]:
    """Yield a drawing per link condition."""
    for link in dict.fromkeys(share.link for share in analysis.shares):
        shares = [share for share in analysis.shares if share.link == link]
        stem = slug("byte-share", link)
        yield Drawing(
            stem=stem,
            section="share",
            title=TITLE.format(link=link),
            caption="Unique payload of both directions at the phone; mean of the cells' shares.",
            svg=_svg(analysis, shares, link, stem),
            columns=COLUMNS,
            rows=[
                (
                    s.scenario,
                    s.link,
                    s.transport,
                    s.interface,
                    s.cells,
                    s.bytes_up,
                    s.bytes_down,
                    s.share,
                    s.lowest,
                    s.highest,
                )
                for s in shares
            ],
            link=link,
        )


def _svg(analysis: Analysis, shares: list[InterfaceShare], link: str, stem: str) -> str:
    titles = {transport.label: transport.title for transport in analysis.run.transports}
    bars = list(dict.fromkeys((share.scenario, share.transport) for share in shares))
    interfaces = list(dict.fromkeys(share.interface for share in shares))
    places = _places(bars)
    with Canvas(TITLE.format(link=link), 0.8 + 0.24 * (max(places.values()) + 1)) as canvas:
        axes = canvas.facets(1)[0]
        left = dict.fromkeys(bars, 0.0)
        for share in shares:
            bar = (share.scenario, share.transport)
            colour = interface_colour(share.interface, interfaces)
            axes.barh(places[bar], share.share, left=left[bar], height=0.72, color=colour, edgecolor="white")
            if share.share >= LABEL_FROM:
                axes.text(
                    left[bar] + share.share / 2,
                    places[bar],
                    f"{share.share * 100:.0f} %",
                    ha="center",
                    va="center",
                    color=ON_COLOUR,
                    fontsize=text_size(8.5),
                )
            left[bar] += share.share
        axes.set_yticks(
            [places[bar] for bar in bars],
            [f"{scenario} · {titles.get(transport, transport)}" for scenario, transport in bars],
        )
        axes.tick_params(axis="y", labelcolor=INK)
        axes.set_ylim(max(places.values()) + 0.5, -0.5)
        axes.set_xlim(0, 1)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25 %", "50 %", "75 %", "100 %"])
        axes.set_xlabel("Share of the bytes")
        axes.grid(visible=False, axis="y")
        canvas.legend(
            [Patch(color=interface_colour(name, interfaces), label=interface_title(name)) for name in interfaces]
        )
        return canvas.svg(stem)


def _places(bars: list[tuple[str, str]]) -> dict[tuple[str, str], float]:
    """Return bar (scenario, transport) → its y position, with a gap between scenarios."""
    places: dict[tuple[str, str], float] = {}
    row, before = 0.0, None
    for bar in bars:
        row += 0.45 if before not in {None, bar[0]} else 0.0
        places[bar] = row
        row, before = row + 1, bar[0]
    return places


FIGURE = RunFigure(order=40, title="Bytes per interface", draw=draw)
