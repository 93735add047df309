"""Score hand-overs: the silences in a cell's traffic that are caused by scheduled changes of its paths.

The changes are observations of the cell (``change`` in scenario.jsonl, docs/experiment-files.md).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mplab.analysis.metric import NOT_NEGATIVE, Metric, Observation, Value
from mplab.analysis.record.decode import NETWORKS
from mplab.analysis.record.tables import FOLDER, LOOPBACK, Tables
from mplab.analysis.scores.plugins import ScoringPlugin

MOMENT_S = 5.0
"""Duration of a hand-over in which no path goes down, s, e.g. a move of the default route."""

BEFORE_S = 0.5
"""Maximum time, s, by which a silence that counts can begin before a hand-over: at low rates, packets are far apart."""

METRICS = (
    Metric(
        "longest_handover_gap",
        "Longest silence at a hand-over",
        "s",
        "lower",
        headline=True,
        source="baerts2015 ch. 6",
        limits=NOT_NEGATIVE,
        activity="At a hand-over",
        outcome="is silent for {value}",
    ),
    Metric(
        "handover_gap",
        "Silence at a hand-over",
        "s",
        "lower",
        ("outage",),
        source="baerts2015 ch. 6",
        limits=NOT_NEGATIVE,
    ),
)


@dataclass(frozen=True)
class Change:
    """A change of a path, such as an outage, that the experiment scheduled and the cell carried out."""

    time_s: float
    """Start of the change, Unix seconds."""
    at_s: float
    """Planned start, seconds since the start of the scenario."""
    interface: str
    what: str
    """The change in words: ``interface down``."""
    outage: str = ""
    """``begins`` or ``ends`` if the change begins or ends an outage of the path, else ""."""
    no_effect: bool = False
    """True: the change had no effect, e.g. because the transport has no MPTCP endpoints."""

    @property
    def network(self) -> str:
        """Return the network of the changed interface: ``wifi``, ``cellular``, or else the interface's name."""
        return NETWORKS.get(self.interface, self.interface)

    @property
    def title(self) -> str:
        """Return planned start, network and change as text: ``15 s wifi interface down``."""
        return f"{self.at_s:g} s {self.network} {self.what}"


@dataclass(frozen=True)
class Handover:
    """A time interval that starts with a change: a path is down, or connections have to move to another path."""

    change: Change
    end_s: float
    """End of the interval, Unix seconds."""
    gone: bool
    """True: the path was down. False: the path stayed up, but connections had to move."""


def read_changes(observations: Iterable[Observation]) -> tuple[Change, ...]:
    """Return the changes of paths that the observations of a cell report, the earliest first."""
    return tuple(sorted(_changes(observations), key=lambda change: change.time_s))


def _changes(observations: Iterable[Observation]) -> Iterator[Change]:
    for item in observations:
        if item.get("event") == "change" and "begun" in item:
            yield Change(
                time_s=float(item["begun"]),
                at_s=float(item["at_s"]),
                interface=str(item["interface"]),
                what=str(item["what"]),
                outage=str(item.get("outage", "")),
                no_effect="no_effect" in item,
            )


def handovers(changes: Sequence[Change], end_s: float) -> list[Handover]:
    """Return the hand-overs of a cell, in the order of ``changes``.

    An outage lasts until the change that ends it, or until ``end_s`` (end of the cell, Unix seconds). Another change
    that moves connections lasts `MOMENT_S`.
    """
    intervals = []
    for index, change in enumerate(changes):
        if change.outage == "begins":
            ends = (later.time_s for later in changes[index:] if _ends(later, change))
            intervals.append(Handover(change, next(ends, end_s), gone=True))
        elif _moves(change):
            intervals.append(Handover(change, min(change.time_s + MOMENT_S, end_s), gone=False))
    return intervals


def _ends(later: Change, begun: Change) -> bool:
    return later.outage == "ends" and later.interface == begun.interface


def _moves(change: Change) -> bool:
    moving = ("default route", "multipath off", "multipath backup")
    return not change.no_effect and any(word in change.what for word in moving)


def score(
    observations: Sequence[Observation], tables: Mapping[str, pl.DataFrame], used: Collection[str]
) -> list[Value]:
    """Return the silence at each hand-over of a cell, and the longest one, s; hand-overs without traffic have no value.

    Args:
        observations: lines of the cell's ``scenario.jsonl``.
        tables: tables of the capture on the phone's loopback, where the application sends and receives its payload; on
            the direct route, of the phone's interfaces.
        used: interfaces that carried payload; an outage of another interface is no hand-over.
    """
    changes = read_changes(observations)
    if not changes:
        return []
    end_s = max(float(item["t"]) for item in observations)
    times = payload_times(tables)
    own = [handover for handover in handovers(changes, end_s) if handover.change.interface in used or not handover.gone]
    gaps = {handover.change.title: gap_s(times, handover, end_s) for handover in own}
    known = {title: value for title, value in gaps.items() if value is not None}
    values = [Value("handover_gap", value, {"outage": title}) for title, value in known.items()]
    return [*values, Value("longest_handover_gap", max(known.values()))] if known else []


def payload_times(tables: Mapping[str, pl.DataFrame]) -> NDArray[np.float64]:
    """Return the times of the packets with payload, Unix seconds, sorted, in the direction with more payload."""
    points = tables["points"].filter(pl.col("kind") == "data")
    if points.is_empty():
        return np.empty(0)
    totals = points.group_by("direction").agg(pl.col("bytes").sum()).sort("bytes", "direction")
    main = points.filter(pl.col("direction") == totals["direction"][-1])
    return np.sort(main["time_ns"].to_numpy().astype(np.float64) / 1e9)


def gap_s(times: NDArray[np.float64], handover: Handover, end_s: float) -> float | None:
    """Return the longest time without payload around a hand-over, s, or None without such a gap.

    The gap begins at a packet with payload, at most `BEFORE_S` before the hand-over or during it. The gap ends after
    the start of the hand-over, at the next packet with payload or at ``end_s``.
    """
    begin_s = handover.change.time_s - BEFORE_S
    last, following = times, np.append(times[1:], max(end_s, times[-1])) if times.size else times
    begun = (last >= begin_s) & (last <= handover.end_s) & (following >= handover.change.time_s)
    return float((following - last)[begun].max()) if begun.any() else None


def _used(tables: Mapping[str, pl.DataFrame]) -> set[str]:
    """Return the interfaces that carried payload."""
    return set(tables["subflows"].filter(pl.col("used"))["interface"])


def extended(plugin: ScoringPlugin) -> ScoringPlugin:
    """Return the scoring plug-in of a scenario, extended so that it also scores the hand-overs of a cell."""

    def both(observations: Sequence[Observation], tables: Mapping[str, pl.DataFrame], cell: Path) -> list[Value]:
        loopback = Tables(cell / FOLDER / LOOPBACK)
        application = loopback if loopback.exist else tables  # the direct route has no agent, and so no loopback
        return [*plugin.score(observations, tables, cell), *score(observations, application, _used(tables))]

    return ScoringPlugin(plugin.name, (*plugin.metrics, *METRICS), both)
