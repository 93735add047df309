"""Plot the shares of connections by their number of subflows."""

from collections.abc import Mapping, Sequence

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import MPTCP
from mplab.analysis.figures.shapes.bars import Bars
from mplab.format.palette import BLUE, GREY, OLIVE, PURPLE, SKY, VERMILION

MOST = 4
COLOURS = (GREY, SKY, BLUE, OLIVE, VERMILION, PURPLE)


def look(parts: Sequence[str]) -> Mapping[str, tuple[str, str]]:
    """Return number of subflows → title and colour."""
    return {part: (f"{part} subflows" if part != "1" else "1 subflow", COLOURS[i]) for i, part in enumerate(parts)}


FIGURE = TraceFigure(
    order=53,
    shape=Bars(
        title="Subflows per connection",
        paper="baerts2015 table 5.1",
        axis_title="Share of Multipath TCP connections",
        caption="Established subflows in the whole life of a connection, not at the same time.",
        values=lambda traces: traces.pooled(
            "connections",
            pl.when(pl.col("subflows") > MOST)
            .then(pl.lit(f"over {MOST}"))
            .otherwise(pl.col("subflows").cast(pl.String))
            .alias("part"),
            pl.lit(1).alias("amount"),
            where=MPTCP,
        ),
        look=look,
        nothing="there is no Multipath TCP connection",
    ),
)
