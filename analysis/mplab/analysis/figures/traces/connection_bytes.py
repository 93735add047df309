"""Plot the distribution of the bytes that connections carried."""

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import APPLICATIONS, BYTES, OPENED
from mplab.analysis.figures.shapes.cdf import Cdf
from mplab.analysis.figures.shapes.common import Axis

FIGURE = TraceFigure(
    order=11,
    shape=Cdf(
        title="Bytes of connections",
        paper="baerts2015 fig. 5.2",
        axis=Axis("Payload of both directions", "bytes", "log"),
        share="Share of connections",
        caption="Each byte once, of connections whose beginning was captured; connections without payload left out. "
        + APPLICATIONS,
        values=lambda traces: traces.applications.pooled("connections", BYTES.alias("value"), where=OPENED),
        nothing="no connection carried payload",
    ),
)
