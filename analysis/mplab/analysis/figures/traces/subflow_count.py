"""List the shares of connections by their number of subflows."""

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import MPTCP, Traces
from mplab.analysis.figures.shapes.common import Axis
from mplab.analysis.figures.shapes.table import KEYS, NumberTable

MOST = 4


def values(traces: Traces) -> pl.DataFrame:
    """Return the number of Multipath TCP connections, and their shares by the number of subflows, 1 … `MOST`, more."""
    pooled = traces.pooled("connections", "subflows", where=MPTCP)
    if pooled.is_empty():
        return pooled
    of_number = {str(number): pl.col("subflows") == number for number in range(1, MOST + 1)}
    shares = {**of_number, "more": pl.col("subflows") > MOST}
    return pooled.group_by(KEYS, maintain_order=True).agg(
        pl.len().alias("connections"), *(chosen.mean().alias(name) for name, chosen in shares.items())
    )


FIGURE = TraceFigure(
    order=53,
    shape=NumberTable(
        title="Subflows per connection",
        paper="baerts2015 table 5.1",
        caption="Established subflows in the whole life of a connection, not at the same time.",
        columns={
            "connections": Axis("Connections"),
            "1": Axis("1 subflow", "share"),
            **{str(number): Axis(f"{number} subflows", "share") for number in range(2, MOST + 1)},
            "more": Axis(f"over {MOST}", "share"),
        },
        values=values,
        nothing="there is no Multipath TCP connection",
    ),
)
