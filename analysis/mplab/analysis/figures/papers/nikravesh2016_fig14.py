"""Plot the download time of single files, by size (nikravesh2016 fig. 14)."""

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import Traces
from mplab.analysis.figures.scored import compares, several_classes
from mplab.analysis.figures.shapes.classes import Classes
from mplab.analysis.figures.shapes.common import Axis

METRIC = "download_time"


def values(traces: Traces) -> pl.DataFrame:
    """Return download times, s, with the file size as ``class`` (a row of the figure).

    Raises:
        NoDataError: Multipath TCP or MPFlex has no download times, or no scenario has two file sizes or more.
    """
    compares(traces, METRIC)
    return several_classes(traces, METRIC, "it shows download times by size, and no scenario has two sizes or more")


FIGURE = TraceFigure(
    order=114,
    of_paper=True,
    shape=Classes(
        title="Time to download one file",
        paper="nikravesh2016 fig. 14",
        axis=Axis("Download time", "s", "log"),
        caption="After nikravesh2016 figure 14, from our downloads.",
        values=values,
        nothing="no file was downloaded",
    ),
)
