"""Select the values of a figure from a run's scores."""

from collections.abc import Callable
from itertools import permutations

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


def over_links(traces: Traces, metric: str, nothing: str) -> pl.DataFrame:
    """Return all values of a metric with the link condition in ``variant``, so that one panel shows all conditions.

    The columns are those of `SCORES`, and ``variant``; ``link`` is "".

    Raises:
        NoDataError: there are values under fewer than two conditions; ``nothing`` is the message.
    """
    values = traces.scores.filter(pl.col("metric") == metric)
    if values["link"].n_unique() < 2:  # noqa: PLR2004, RUF100 - a comparison
        raise NoDataError(nothing)
    return values.with_columns(variant=pl.col("link"), link=pl.lit(""))


def over_scenarios(traces: Traces, metric: str, nothing: str) -> pl.DataFrame:
    """Return all values of a metric with the scenario in ``variant``, so that one panel shows all scenarios.

    Raises:
        NoDataError: fewer than two scenarios have values; ``nothing`` is the message.
    """
    values = traces.scores.filter(pl.col("metric") == metric)
    if values["scenario"].n_unique() < 2:  # noqa: PLR2004, RUF100 - a comparison
        raise NoDataError(nothing)
    return values.with_columns(variant=pl.col("scenario"), scenario=pl.lit(""))


def paired(
    traces: Traces, metric: str, pairs: Callable[[TransportRecord, TransportRecord], str], nothing: str
) -> pl.DataFrame:
    """Return the values of pairs of transports, which ran in the same block, scenario and link with the same label.

    The columns are those of `SCORES`, ``value`` and ``transport`` being those of the first transport of the pair;
    ``other``, the value of the second; ``variant``, the text that ``pairs`` returned.

    Args:
        traces: the scores.
        metric: name of the metric.
        pairs: returns the name of a pair, or "" if the two transports are none.
        nothing: message when there is no pair.

    Raises:
        NoDataError: no pair of transports has values.
    """
    blocks = {c.name: c.record.spec.block or c.record.spec.repetition for c in traces.scored if c.record is not None}
    values = traces.scores.filter((pl.col("metric") == metric) & pl.col("cell").is_in(list(blocks)))
    values = values.with_columns(
        block=pl.col("cell").replace_strict(blocks, return_dtype=pl.Int64),
        turn=pl.int_range(pl.len()).over("cell", "label"),
    )
    keys = ["scenario", "link", "label", "block", "turn"]
    frames = []
    for first, second in permutations(traces.transports, 2):
        if not (name := pairs(first, second)):
            continue
        others = values.filter(pl.col("transport") == second.label).select(*keys, other="value")
        own = values.filter(pl.col("transport") == first.label).join(others, on=keys, maintain_order="left")
        frames.append(own.with_columns(variant=pl.lit(name)))
    found = pl.concat(frames) if frames else pl.DataFrame()
    if found.is_empty():
        raise NoDataError(nothing)
    return found.drop("block", "turn")


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
