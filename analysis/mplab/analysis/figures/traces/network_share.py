"""Plot the share of each network in the bytes of all connections."""

from collections.abc import Mapping, Sequence

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import UNIQUE
from mplab.analysis.figures.shapes.bars import Bars
from mplab.analysis.figures.shapes.common import network_colours, network_title


def look(networks: Sequence[str]) -> Mapping[str, tuple[str, str]]:
    """Return network → title and colour, WiFi first."""
    colours = network_colours(networks)
    ordered = sorted(networks, key=lambda name: (name != "wifi", name != "cellular", name))
    return {name: (network_title(name), colours[name]) for name in ordered}


FIGURE = TraceFigure(
    order=52,
    shape=Bars(
        title="Bytes per network",
        paper="",
        axis_title="Share of unique payload, both directions",
        caption="All connections of all ok cells together, so that large cells weigh more.",
        values=lambda traces: traces.pooled("subflows", pl.col("network").alias("part"), UNIQUE.alias("amount")),
        look=look,
        nothing="no subflow carried payload",
    ),
)
