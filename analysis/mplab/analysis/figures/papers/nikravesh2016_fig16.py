"""Plot the page load time, by site (nikravesh2016 fig. 16)."""

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import Traces
from mplab.analysis.figures.scored import by_label, compares
from mplab.analysis.figures.shapes.classes import Classes
from mplab.analysis.figures.shapes.common import Axis

METRIC = "page_load_time"


def values(traces: Traces) -> pl.DataFrame:
    """Return page load times, s, with the site as ``class`` (a row of the figure).

    Raises:
        NoDataError: Multipath TCP or MPFlex has no page load times.
    """
    compares(traces, METRIC)
    return by_label(traces, METRIC)


FIGURE = TraceFigure(
    order=116,
    of_paper=True,
    shape=Classes(
        title="Page load time",
        paper="nikravesh2016 fig. 16",
        axis=Axis("Page load time", "s"),
        caption="After nikravesh2016 figure 16, from our page loads; the sites are those of han2015 table 1.",
        values=values,
        nothing="no page was loaded",
    ),
)
