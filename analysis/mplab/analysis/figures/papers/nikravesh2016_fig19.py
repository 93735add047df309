"""Plot the download time by the round-trip time to the proxy (nikravesh2016 fig. 19)."""

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import Traces
from mplab.analysis.figures.scored import compares
from mplab.analysis.figures.shapes.classes import Classes
from mplab.analysis.figures.shapes.common import Axis, NoDataError
from mplab.format.link import LinkCondition

METRICS = ("download_time", "bundle_time")


def values(traces: Traces) -> pl.DataFrame:
    """Return download times of files and of bundles of flows, s, in separate facets.

    The ``class`` (a row of the figure) is the link condition, in the order of the experiment file.

    Raises:
        NoDataError: all link conditions have the same round-trip times, or Multipath TCP or MPFlex has no times.
    """
    scores = traces.scores.filter(pl.col("metric").is_in(METRICS))
    links = [link for link in traces.links if link.name in set(scores["link"])]
    if len({(link.wifi.rtt_ms, link.lte.rtt_ms, link.core_rtt_ms) for link in links}) < 2:
        raise NoDataError(
            "it compares places of the proxy, and the run has no two link conditions of other round trips"
        )
    compares(traces, next((metric for metric in METRICS if metric in set(scores["metric"])), METRICS[0]))
    order = {link.name: index for index, link in enumerate(links)}
    facet = pl.when(pl.col("label") == "").then(pl.col("scenario")).otherwise(pl.col("label"))
    return (
        scores.with_columns(place=pl.col("link").replace_strict(order, default=len(order)), facet=facet)
        .sort("place", maintain_order=True)
        .sort("metric", descending=True, maintain_order=True)
        .select(
            "facet", pl.col("link").replace({link.name: _place(link) for link in links}).alias("class"),
            "transport", "cell", "value",
        )
    )  # fmt: skip


def _place(link: LinkCondition) -> str:
    """Return the label of a link condition's row: ``proxy-a · 27 / 49 ms``.

    The label includes the round-trip times over WiFi and LTE, and that beyond the proxy if it is set.
    """
    text = f"{link.wifi.rtt_ms:g} / {link.lte.rtt_ms:g} ms"
    return f"{link.name} · {text}" + (f" + {link.core_rtt_ms:g} ms" if link.core_rtt_ms else "")


FIGURE = TraceFigure(
    order=119,
    of_paper=True,
    shape=Classes(
        title="Download times by the place of the proxy",
        paper="nikravesh2016 fig. 19",
        axis=Axis("Time", "s"),
        caption="After nikravesh2016 figure 19, from our downloads; round trips over WiFi / LTE to the proxy.",
        values=values,
        nothing="nothing was downloaded",
        one_scale=False,
    ),
)
