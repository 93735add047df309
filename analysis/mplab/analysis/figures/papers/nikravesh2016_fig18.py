"""Plot the bytes on each interface, by app and policy (nikravesh2016 fig. 18)."""

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import Traces
from mplab.analysis.figures.scored import needs
from mplab.analysis.figures.shapes.bars import Stacks
from mplab.analysis.figures.shapes.common import Axis
from mplab.analysis.figures.style import INTERFACE_COLOURS

PARTS = {"wifi_bytes": "wlan0", "cellular_bytes": "rmnet0"}
KILO = 1000.0


def values(traces: Traces) -> pl.DataFrame:
    """Return the bytes of both interfaces, with a facet per scenario (an app), and per link if there are several.

    Raises:
        NoDataError: no transport with ok cells has a policy.
    """
    needs(traces, lambda transport: bool(transport.options.get("policy")), "no transport with ok cells has a policy")
    scores = traces.scores.filter(pl.col("metric").is_in(list(PARTS)))
    several = scores["link"].n_unique() > 1
    facet = pl.concat_str("scenario", "link", separator=" · ") if several else pl.col("scenario")
    part = pl.col("metric").replace_strict(PARTS)
    return scores.select(facet.alias("facet"), "transport", part.alias("part"), "cell", pl.col("value") * KILO)


FIGURE = TraceFigure(
    order=118,
    of_paper=True,
    shape=Stacks(
        title="Bytes on each interface, by app and policy",
        paper="nikravesh2016 fig. 18",
        axis=Axis("Frames with all headers, both directions", "bytes"),
        caption="After nikravesh2016 figure 18, which has radio energy where this has bytes: WiFi + LTE, while the app "
        "is used; mean of the cells.",
        values=values,
        look={"wlan0": ("WiFi", INTERFACE_COLOURS["wlan0"]), "rmnet0": ("LTE", INTERFACE_COLOURS["rmnet0"])},
        nothing="no ok cell has counted the bytes of its interfaces",
    ),
)
