"""Plot how much the first path and the congestion control change the throughput (deng2014 fig. 13 and 14)."""

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import Traces
from mplab.analysis.figures.scored import is_mptcp, paired
from mplab.analysis.figures.shapes.cdf import Cdf
from mplab.analysis.figures.shapes.common import Axis
from mplab.format.experiment import TransportRecord

NOTHING = "it compares download times of two Multipath TCP that differ in one option, and there are none"
OPTIONS = {"primary": "Network", "congestion_control": "CC"}
"""Option in which the transports of a pair differ → the paper's name of the curve."""


def values(traces: Traces) -> pl.DataFrame:
    """Return relative differences of the throughputs, as shares, with the size as facet.

    The difference is that of the throughputs, divided by the throughput over the transport that is first in the
    experiment; in the paper, that is WiFi first, or decoupled congestion control.

    Raises:
        NoDataError: no two transports differ in one of `OPTIONS` only.
    """
    order = [transport.label for transport in traces.transports]

    def pairs(first: TransportRecord, second: TransportRecord) -> str:
        if not (is_mptcp(first) and is_mptcp(second)) or order.index(first.label) < order.index(second.label):
            return ""
        names = {*first.options, *second.options}
        differing = [name for name in names if first.options.get(name) != second.options.get(name)]
        return OPTIONS.get(differing[0], "") if len(differing) == 1 else ""

    rows = paired(traces, "download_time", pairs, NOTHING)
    return rows.with_columns(
        value=(pl.col("other") / pl.col("value") - 1).abs(), scenario=pl.col("label"), link=pl.lit("")
    )


FIGURE = TraceFigure(
    order=120,
    of_paper=True,
    shape=Cdf(
        title="Relative difference of the throughputs",
        paper="deng2014 fig. 13, 14",
        axis=Axis("Relative difference", "share"),
        share="Share of downloads",
        caption=(
            "After deng2014 figures 13 and 14: downloads of the same block and link condition are a pair, whose "
            "transports differ in the first path (Network) or in the congestion control (CC)."
        ),
        values=values,
        nothing=NOTHING,
        section="paper",
    ),
)
