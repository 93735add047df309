"""Plot the distribution of the round-trip times of data from the phone."""

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import Traces, with_network
from mplab.analysis.figures.shapes.cdf import Cdf
from mplab.analysis.figures.shapes.common import Axis, named_networks


def values(traces: Traces) -> pl.DataFrame:
    """Return the round-trip times of uploaded data on all subflows, ms, with the network as ``variant`` (a curve).

    Downloads are left out: the captures are at the phone, which acknowledges received data at once, so that their
    round-trip times would not include the path.
    """
    return traces.each(
        lambda trace: (
            trace.read("rtt")
            .filter((pl.col("level") == "tcp") & (pl.col("direction") == "up"))
            .pipe(with_network, trace)
            .select(value="rtt_ms", weight="weight", variant=named_networks())
        )
    )


FIGURE = TraceFigure(
    order=20,
    in_report=True,
    shape=Cdf(
        title="Round trips",
        paper="",
        axis=Axis("Round trip from the phone to the proxy and back", "ms", "log"),
        share="Share of samples",
        caption="Data from the phone on every subflow; thinned samples count for all those that they replace.",
        values=values,
        nothing="no round trip was measured",
    ),
)
