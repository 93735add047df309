"""Plot the total time of bundles of short flows (nikravesh2016 fig. 15)."""

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import Traces
from mplab.analysis.figures.scored import by_label, compares
from mplab.analysis.figures.shapes.classes import Classes
from mplab.analysis.figures.shapes.common import Axis

METRIC = "bundle_time"


def values(traces: Traces) -> pl.DataFrame:
    """Return the total times of bundles of flows, s, with the pattern of flows as ``class`` (a row of the figure).

    Raises:
        NoDataError: Multipath TCP or MPFlex has no such times.
    """
    compares(traces, METRIC)
    return by_label(traces, METRIC)


FIGURE = TraceFigure(
    order=115,
    of_paper=True,
    shape=Classes(
        title="Time for a bundle of short flows",
        paper="nikravesh2016 fig. 15",
        axis=Axis("From the start of the first flow to the end of the last", "s"),
        caption="After nikravesh2016 figure 15, from our downloads; the patterns are ours.",
        values=values,
        nothing="no bundle was downloaded",
    ),
)
