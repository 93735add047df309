"""Make the figures of han2015 that plot distributions of page load times."""

from collections.abc import Callable

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import Traces
from mplab.analysis.figures.shapes.cdf import Cdf
from mplab.analysis.figures.shapes.common import Axis

Select = Callable[[Traces, str, str], pl.DataFrame]
"""A function of `scored` that selects values of a metric; its last argument is the message if there are none."""


def page_loads(figure: int, title: str, select: Select, nothing: str) -> TraceFigure:
    """Return figure number ``figure`` of han2015, whose steps are the page loads that ``select`` returns."""
    return TraceFigure(
        order=100 + figure,
        of_paper=True,
        shape=Cdf(
            title=title,
            paper=f"han2015 fig. {figure}",
            axis=Axis("Page load time", "s"),
            share="Share of page loads",
            caption=f"After han2015 figure {figure}: every load of every site is a step.",
            values=lambda traces: select(traces, "page_load_time", nothing),
            nothing="no page was loaded",
            section="paper",
        ),
    )
