"""Plot the distribution of page load times over HTTP/1.1 and HTTP/2 (han2015 fig. 2)."""

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.scored import over_scenarios
from mplab.analysis.figures.shapes.cdf import Cdf
from mplab.analysis.figures.shapes.common import Axis

NOTHING = "it compares page load times over two protocols, and fewer than two scenarios have them"

FIGURE = TraceFigure(
    order=102,
    of_paper=True,
    shape=Cdf(
        title="Page load time over HTTP/1.1 and HTTP/2",
        paper="han2015 fig. 2",
        axis=Axis("Page load time", "s"),
        share="Share of page loads",
        caption="After han2015 figure 2: every load of every site is a step.",
        values=lambda traces: over_scenarios(traces, "page_load_time", NOTHING),
        nothing="no page was loaded",
        section="paper",
    ),
)
