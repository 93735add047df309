"""Plot the distribution of page load times with losses on WiFi, Multipath TCP (han2015 fig. 4)."""

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.scored import over_links
from mplab.analysis.figures.shapes.cdf import Cdf
from mplab.analysis.figures.shapes.common import Axis

NOTHING = "it compares page load times under several losses, and fewer than two link conditions have them"

FIGURE = TraceFigure(
    order=104,
    of_paper=True,
    shape=Cdf(
        title="Page load time with losses on WiFi, Multipath TCP",
        paper="han2015 fig. 4",
        axis=Axis("Page load time", "s"),
        share="Share of page loads",
        caption="After han2015 figure 4: every load of every site is a step.",
        values=lambda traces: over_links(traces, "page_load_time", NOTHING),
        nothing="no page was loaded",
        section="paper",
    ),
)
