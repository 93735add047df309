"""Plot the distribution of the mean round-trip times of subflows."""

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import Traces, with_network
from mplab.analysis.figures.shapes.cdf import Cdf
from mplab.analysis.figures.shapes.common import Axis, named_networks


def values(traces: Traces) -> pl.DataFrame:
    """Return the mean round-trip time, ms, of each subflow and direction.

    ``variant`` (a curve of the figure) is the network with the direction.
    """
    return traces.each(
        lambda trace: (
            trace.tables["directions"]
            .filter((pl.col("level") == "tcp") & (pl.col("rtt_samples") > 0))
            .pipe(with_network, trace)
            .select(value="rtt_mean_ms", variant=named_networks() + " " + pl.col("direction"))
        )
    )


FIGURE = TraceFigure(
    order=21,
    shape=Cdf(
        title="Mean round trip of subflows",
        paper="baerts2015 fig. 4.3, 4.4",
        axis=Axis("Mean round trip", "ms", "log"),
        share="Share of subflows",
        caption="A step is a subflow (a TCP connection has one) that was acknowledged payload in this direction.",
        values=values,
        nothing="no round trip was measured",
    ),
)
