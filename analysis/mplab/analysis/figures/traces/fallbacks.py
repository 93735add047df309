"""Plot the shares of connections that requested Multipath TCP, by the cause of their fallback to plain TCP."""

from collections.abc import Mapping, Sequence

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import MPTCP
from mplab.analysis.figures.shapes.bars import Bars
from mplab.format.palette import BLUE, GREY, OLIVE, PURPLE, SKY, VERMILION

NONE = "none"
TITLES = {
    NONE: ("Multipath TCP", BLUE),
    "handshake": ("no MP_CAPABLE in the SYN/ACK", VERMILION),
    "no-dss": ("data without a mapping", OLIVE),
    "mp-fail": ("MP_FAIL", PURPLE),
    "infinite-mapping": ("infinite mapping", SKY),
}
"""``fallback_cause`` of a connection → title and colour of its part of a bar."""


def look(parts: Sequence[str]) -> Mapping[str, tuple[str, str]]:
    """Return cause → title and colour for the given causes; connections without a fallback are first."""
    known = {part: TITLES[part] for part in TITLES if part in parts}
    return known | {part: (part, GREY) for part in parts if part not in TITLES}


FIGURE = TraceFigure(
    order=54,
    shape=Bars(
        title="Fallback to plain TCP",
        paper="",
        axis_title="Share of connections that requested Multipath TCP",
        caption="The cause of the fallback, as RFC 8684 §3.7 has it; Multipath TCP: no fallback.",
        values=lambda traces: traces.pooled(
            "connections",
            pl.when(pl.col("fallback")).then(pl.col("fallback_cause")).otherwise(pl.lit(NONE)).alias("part"),
            pl.lit(1).alias("amount"),
            where=MPTCP,
        ),
        look=look,
        nothing="no connection requested Multipath TCP",
    ),
)
