"""Plot the bytes of each connection on WiFi against those on the cellular network."""

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import CELLULAR, UNIQUE, WIFI, Traces
from mplab.analysis.figures.shapes.common import Axis
from mplab.analysis.figures.shapes.scatter import Scatter


def values(traces: Traces) -> pl.DataFrame:
    """Return each connection's unique payload of both directions on WiFi (``x``) and on cellular (``y``), bytes.

    The minimum is 1 byte, since the axes are logarithmic. The paths of a session count as one connection.
    """
    return traces.each(
        lambda trace: (
            trace.tables["subflows"]
            .filter(pl.col("network").is_in([WIFI, CELLULAR]))
            .with_columns(pl.lit(0, pl.Int32).alias("connection_id") if trace.session else pl.col("connection_id"))
            .group_by("connection_id", maintain_order=True)
            .agg(
                total=UNIQUE.sum(),
                x=UNIQUE.filter(pl.col("network") == WIFI).sum().clip(lower_bound=1),
                y=UNIQUE.filter(pl.col("network") == CELLULAR).sum().clip(lower_bound=1),
            )
            .filter(pl.col("total") > 0)
        )
    )


FIGURE = TraceFigure(
    order=51,
    shape=Scatter(
        title="Bytes on WiFi and on the cellular network",
        paper="",
        x=Axis("WiFi", "bytes", "log"),
        y=Axis("LTE", "bytes", "log"),
        caption="A point is a connection (with MPFlex, a session), both directions; "
        "no byte on a network is drawn as 1 B.",
        values=values,
        nothing="no connection carried payload over WiFi or the cellular network",
    ),
)
