"""Plot the density of the round-trip times of uploaded data, as the application sees them."""

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import Traces, as_a_whole
from mplab.analysis.figures.shapes.cdf import Cdf
from mplab.analysis.figures.shapes.common import Axis


def values(traces: Traces) -> pl.DataFrame:
    """Return round-trip times, ms: with TCP until the acknowledgement, with MPTCP until the data acknowledgement."""
    return traces.each(
        lambda trace: (
            trace.read("rtt")
            .filter(pl.col("direction") == "up")
            .pipe(as_a_whole, trace)
            .select(value="rtt_ms", weight="weight")
        )
    )


FIGURE = TraceFigure(
    order=22,
    shape=Cdf(
        title="Round trips of uploaded data, as the application sees them",
        paper="baerts2015 fig. 4.9",
        axis=Axis("Round trip", "ms", "log"),
        share="Share of samples per class",
        caption="TCP: until the acknowledgement. MPTCP: until the data acknowledgement, reordering included.",
        values=values,
        nothing="no round trip of uploaded data was measured",
        kind="density",
    ),
)
