"""Plot the distribution of page load times with a longer round trip on one path (han2015 fig. 6)."""

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.scored import over_links
from mplab.analysis.figures.shapes.cdf import Cdf
from mplab.analysis.figures.shapes.common import Axis

NOTHING = "it compares page load times with several round trips, and fewer than two link conditions have them"

FIGURE = TraceFigure(
    order=106,
    of_paper=True,
    shape=Cdf(
        title="Page load time with a longer round trip on one path",
        paper="han2015 fig. 6",
        axis=Axis("Page load time", "s"),
        share="Share of page loads",
        caption="After han2015 figure 6: every load of every site is a step.",
        values=lambda traces: over_links(traces, "page_load_time", NOTHING),
        nothing="no page was loaded",
        section="paper",
    ),
)
