"""Plot the ratio of the throughputs of Multipath TCP and of TCP over WiFi, by link condition (nikravesh2016 fig. 6)."""

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import Traces
from mplab.analysis.figures.scored import is_mptcp, paired
from mplab.analysis.figures.shapes.cdf import Cdf
from mplab.analysis.figures.shapes.common import Axis
from mplab.base.paths import WLAN
from mplab.format.experiment import TransportRecord

NOTHING = "it compares download times of Multipath TCP and of TCP over WiFi in the same block, and there are none"


def values(traces: Traces) -> pl.DataFrame:
    """Return the ratios with the link condition as ``variant``; above 1, Multipath TCP has the higher throughput.

    Raises:
        NoDataError: no block has download times of both transports.
    """
    rows = paired(traces, "download_time", _of_wifi, NOTHING)
    ratio = pl.col("other") / pl.col("value")
    return rows.with_columns(value=ratio, variant=pl.col("link"), link=pl.lit(""))


def _of_wifi(first: TransportRecord, second: TransportRecord) -> str:
    return "ratio" if is_mptcp(first) and second.paths == (WLAN,) else ""


FIGURE = TraceFigure(
    order=106,
    of_paper=True,
    shape=Cdf(
        title="Throughput of Multipath TCP, as a ratio to TCP over WiFi",
        paper="nikravesh2016 fig. 6",
        axis=Axis("Throughput ratio", scale="log"),
        share="Share of downloads",
        caption="After nikravesh2016 figure 6: downloads of one block are a pair. Above 1, Multipath TCP is faster.",
        values=values,
        nothing=NOTHING,
        section="paper",
    ),
)
