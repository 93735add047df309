"""Plot the download time with the schedulers TxDelay and min-RTT, on paths with different round-trip times."""

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import Traces
from mplab.analysis.figures.scored import needs, schedules, several_classes
from mplab.analysis.figures.shapes.classes import Classes
from mplab.analysis.figures.shapes.common import Axis

METRIC = "download_time"


def values(traces: Traces) -> pl.DataFrame:
    """Return download times, s, with the file size as ``class`` (a row of the figure).

    Raises:
        NoDataError: no ok cell has MPFlex with one of the two schedulers, or no scenario has two file sizes or more.
    """
    for scheduler in ("minrtt", "txdelay"):
        nothing = f"it compares the schedulers minrtt and txdelay, and no ok cell has mpflex:{scheduler}"
        needs(traces, schedules(scheduler), nothing)
    return several_classes(traces, METRIC, "it shows download times by size, and no scenario has two sizes or more")


FIGURE = TraceFigure(
    order=117,
    of_paper=True,
    shape=Classes(
        title="Time to download one file, by scheduler",
        paper="nikravesh2016 fig. 17",
        axis=Axis("Download time", "s", "log"),
        caption="After nikravesh2016 figure 17, from our downloads.",
        values=values,
        nothing="no file was downloaded",
    ),
)
