"""Select the values of a figure from a run's scores."""

from collections.abc import Callable

import polars as pl

from mplab.analysis.figures.run_traces import Traces
from mplab.analysis.figures.shapes.common import NoDataError
from mplab.format.experiment import TransportRecord


def by_label(traces: Traces, metric: str) -> pl.DataFrame:
    """Return the values of a metric in the columns ``facet``, ``class``, ``transport``, ``cell`` and ``value``.

    The class is the label of the value. The facet names the scenario and the link, each only if there are several.
    """
    return _faceted(traces, metric).select("facet", pl.col("label").alias("class"), "transport", "cell", "value")


def several_classes(traces: Traces, metric: str, nothing: str) -> pl.DataFrame:
    """Return the values as `by_label`, without the facets that have fewer than two classes.

    Raises:
        NoDataError: there is no such facet; ``nothing`` is the message.
    """
    frame = by_label(traces, metric)
    counts = frame.group_by("facet").agg(pl.col("class").n_unique().alias("classes"))
    wide = counts.filter(pl.col("classes") > 1)["facet"].to_list()
    chosen = frame.filter(pl.col("facet").is_in(wide))
    if chosen.is_empty():
        raise NoDataError(nothing)
    return chosen


def needs(traces: Traces, wanted: Callable[[TransportRecord], bool], nothing: str) -> None:
    """Raise `NoDataError` with the text ``nothing`` unless ``wanted`` returns True for a transport that has scores."""
    there = set(traces.scores["transport"])
    if not any(wanted(transport) for transport in traces.transports if transport.label in there):
        raise NoDataError(nothing)


def is_mptcp(transport: TransportRecord) -> bool:
    """Return whether a connection over the transport can use several paths without MPFlex sessions, as with MPTCP."""
    return not transport.single_path and not transport.sessions


def schedules(scheduler: str) -> Callable[[TransportRecord], bool]:
    """Return a function that returns whether a transport has MPFlex sessions with this scheduler."""
    return lambda transport: transport.sessions and transport.options.get("scheduler") == scheduler


def compares(traces: Traces, metric: str) -> None:
    """Raise `NoDataError` unless both Multipath TCP and a transport with MPFlex sessions have values of ``metric``."""
    there = set(traces.scores.filter(pl.col("metric") == metric)["transport"])
    measured = [transport for transport in traces.transports if transport.label in there]
    sessions = any(transport.sessions for transport in measured)
    missing = [
        title for title, present in (("mptcp", any(map(is_mptcp, measured))), ("mpflex", sessions)) if not present
    ]
    if missing:
        raise NoDataError(f"it compares mptcp and mpflex, and no ok cell of {' or '.join(missing)} has a {metric}")


def _faceted(traces: Traces, metric: str) -> pl.DataFrame:
    values = traces.scores.filter(pl.col("metric") == metric)
    several = [name for name in ("scenario", "link") if values[name].n_unique() > 1]
    facet = pl.concat_str(several, separator=" · ") if several else pl.lit("")
    return values.with_columns(facet=facet)
