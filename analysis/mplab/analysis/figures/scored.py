"""Choosing from a run's scores what a figure shows."""

from collections.abc import Callable

import polars as pl

from mplab.analysis.figures.run_traces import Traces
from mplab.analysis.figures.shapes.common import NoDataError
from mplab.format.experiment import Transport


def by_label(traces: Traces, metric: str) -> pl.DataFrame:
    """The values of a metric with its labels as classes; a facet per scenario and link, named where several are."""
    return _faceted(traces, metric).select("facet", pl.col("label").alias("class"), "transport", "cell", "value")


def several_classes(traces: Traces, metric: str, nothing: str) -> pl.DataFrame:
    """As `by_label`, of facets with two classes or more; raises `NoDataError` with ``nothing`` without any."""
    frame = by_label(traces, metric)
    counts = frame.group_by("facet").agg(pl.col("class").n_unique().alias("classes"))
    wide = counts.filter(pl.col("classes") > 1)["facet"].to_list()
    chosen = frame.filter(pl.col("facet").is_in(wide))
    if chosen.is_empty():
        raise NoDataError(nothing)
    return chosen


def needs(traces: Traces, wanted: Callable[[Transport], bool], nothing: str) -> None:
    """Raise `NoDataError` with ``nothing`` unless a transport that has scores is wanted."""
    there = set(traces.scores["transport"])
    if not any(wanted(transport) for transport in traces.transports if transport.label in there):
        raise NoDataError(nothing)


def is_mptcp(transport: Transport) -> bool:
    """Whether each connection uses several paths by itself, as with Multipath TCP."""
    return not transport.single_path and not transport.sessions


def schedules(scheduler: str) -> Callable[[Transport], bool]:
    """Whether a session's messages are placed by that scheduler."""
    return lambda transport: transport.sessions and transport.options.get("scheduler") == scheduler


def compares(traces: Traces, metric: str) -> None:
    """Raise `NoDataError` unless Multipath TCP and a transport with sessions both have values of a metric."""
    there = set(traces.scores.filter(pl.col("metric") == metric)["transport"])
    measured = [transport for transport in traces.transports if transport.label in there]
    sessions = any(transport.sessions for transport in measured)
    missing = [title for title, found in (("mptcp", any(map(is_mptcp, measured))), ("mpflex", sessions)) if not found]
    if missing:
        raise NoDataError(f"it compares mptcp and mpflex, and no ok cell of {' or '.join(missing)} has a {metric}")


def _faceted(traces: Traces, metric: str) -> pl.DataFrame:
    found = traces.scores.filter(pl.col("metric") == metric)
    several = [name for name in ("scenario", "link") if found[name].n_unique() > 1]
    facet = pl.concat_str(several, separator=" · ") if several else pl.lit("")
    return found.with_columns(facet=facet)
