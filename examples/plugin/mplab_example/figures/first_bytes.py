"""The figure `first-bytes`: the time to the first byte of every request of `first-byte`, one point each."""

from collections.abc import Iterable

from mplab.analysis.figures.kinds import RunFigure
from mplab.analysis.figures.style import Canvas, Drawing
from mplab.analysis.statistics.summaries import Analysis

TITLE = "Time to the first byte"
COLUMNS = ("cell", "transport", "request", "time_s")


def draw(analysis: Analysis) -> Iterable[Drawing]:
    """Yield one figure; none if the run does not have the scenario."""
    rows = [
        (cell.id, cell.spec.transport, observation["request"], observation["time_s"])
        for cell in analysis.run.cells
        if cell.ok and cell.spec is not None
        for observation in cell.observations()
        if observation["event"] == "first_byte"
    ]
    if not rows:
        return
    with Canvas(TITLE, 2.6) as canvas:
        (axes,) = canvas.facets(1)
        axes.plot([row[1] for row in rows], [row[3] for row in rows], "o")
        axes.set_ylabel("s")
        svg = canvas.svg("first-bytes")
    yield Drawing("first-bytes", "timeline", TITLE, "One point for each request.", svg, COLUMNS, rows)


FIGURE = RunFigure(order=900, title=TITLE, draw=draw)
