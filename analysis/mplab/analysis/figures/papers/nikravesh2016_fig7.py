"""Plot the difference of the mean bitrates of Multipath TCP and of TCP over WiFi (nikravesh2016 fig. 7)."""

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import Traces
from mplab.analysis.figures.scored import is_mptcp, paired
from mplab.analysis.figures.shapes.cdf import Cdf
from mplab.analysis.figures.shapes.common import Axis
from mplab.format.experiment import TransportRecord

NOTHING = "it compares mean bitrates of Multipath TCP and of TCP over one path in the same block, and there are none"


def values(traces: Traces) -> pl.DataFrame:
    """Return the differences, kbit/s, with the single path as ``variant``; all link conditions are pooled.

    Raises:
        NoDataError: no block has mean bitrates of both transports.
    """
    rows = paired(traces, "mean_bitrate", _of_single_path, NOTHING)
    return rows.with_columns(value=pl.col("value") - pl.col("other"), link=pl.lit(""))


def _of_single_path(first: TransportRecord, second: TransportRecord) -> str:
    return f"minus {second.title}" if is_mptcp(first) and second.single_path else ""


FIGURE = TraceFigure(
    order=107,
    of_paper=True,
    shape=Cdf(
        title="Mean bitrate of Multipath TCP, less that of a single path",
        paper="nikravesh2016 fig. 7",
        axis=Axis("Difference of the mean bitrates", "kbit/s"),
        share="Share of videos",
        caption="After nikravesh2016 figure 7: videos of the same block and link condition are a pair.",
        values=values,
        nothing=NOTHING,
        section="paper",
    ),
)
