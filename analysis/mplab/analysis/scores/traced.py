"""Compute metrics of every scenario from the tables of a cell's captures: shares, delays, data sent again, connections.

A paper's number of a kind of traffic, such as the share of LTE in the bytes, is compared with these metrics by claims
(`mplab.analysis.verdicts.claims`). Connections and subflows are those on the phone's interfaces. Metrics whose names
begin with ``app_connection`` count the connections of the apps: those on the phone's loopback interface between app
and agent, or on the interfaces if the run has no agent.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import polars as pl

from mplab.analysis.files import parse_json
from mplab.analysis.metric import NOT_NEGATIVE, Metric, Observation, Value
from mplab.analysis.record.decode import NETWORKS
from mplab.analysis.record.tables import FOLDER, LOOPBACK, Tables
from mplab.analysis.scores.plugins import ScoringPlugin
from mplab.format.cell import CellRecord

SHORT_S = 1.0
"""Maximum duration of a short connection, seconds (baerts2015 §4.6.1, figure 4.2)."""

QUANTILES = (("50 %", 0.5), ("75 %", 0.75), ("90 %", 0.9))
"""Label and probability of the quantiles of the sizes of connections; nikravesh2016 figure 2 has the second."""

_metric = partial(Metric, limits=NOT_NEGATIVE, traced=True)
_share = partial(Metric, limits=(0.0, 100.0), traced=True)

METRICS: tuple[Metric, ...] = (
    _share(
        "network_share",
        "Share of a network in the payload",
        "%",
        "neither",
        ("network",),
        source="han2015 §4.1; adarsh2019 figures 4 and 7",
    ),
    _share(
        "primary_share",
        "Share of the initial subflow in the payload of Multipath TCP",
        "%",
        "neither",
        source="nikravesh2016 §3.1, figure 1",
    ),
    _share(
        "wholly_on_primary",
        "Multipath TCP connections with all payload on the initial subflow",
        "%",
        "neither",
        source="nikravesh2016 §3.1, figure 1",
    ),
    _share(
        "both_paths_used",
        "Multipath TCP connections with payload on two networks",
        "%",
        "neither",
        source="han2015 §4.1.1",
    ),
    _metric("subflow_count", "Subflows of a Multipath TCP connection, mean", "", "neither", source="baerts2015 §5.3.1"),
    _share("unused_subflows", "Additional subflows without payload", "%", "neither", source="baerts2015 §5.3.1"),
    _share("fallback_share", "Multipath TCP connections that fell back", "%", "lower", source="baerts2015 §5.2.1"),
    _metric(
        "join_delay",
        "First SYN to SYN of the second subflow, median",
        "ms",
        "lower",
        source="baerts2015 §4.7.1, figure 4.6; RFC 8684 §3.2",
    ),
    _metric(
        "join_handshake",
        "Handshake of additional subflows, median",
        "ms",
        "lower",
        ("network",),
        source="nikravesh2016 §3.1, figure 3",
    ),
    _metric(
        "handshake_delay",
        "Handshake of initial subflows, median",
        "ms",
        "lower",
        ("network",),
        source="RFC 9293 §3.5",
    ),
    _metric(
        "rtt_mean",
        "Mean round-trip time of subflows from the phone and back, median",
        "ms",
        "lower",
        ("network",),
        source="baerts2015 §4.6, figures 4.3 and 4.4",
    ),
    _metric(
        "retransmitted_share",
        "Retransmitted payload, relative to the payload",
        "%",
        "lower",
        ("direction",),
        source="baerts2015 §4.7.4, figure 4.10",
    ),
    _metric(
        "reinjected_bytes",
        "Reinjected payload",
        "kB",
        "lower",
        ("direction",),
        source="baerts2015 §6.3.1, figure 6.8",
    ),
    _metric(
        "reinjected_share",
        "Reinjected payload, relative to the payload",
        "%",
        "lower",
        ("direction",),
        source="baerts2015 §4.7.4, figure 4.10",
    ),
    _metric(
        "free_window",
        "Free receive window of the largest Multipath TCP connection, mean",
        "kB",
        "neither",
        source="nikravesh2016 §3.2",
    ),
    _share(
        "retransmitting_connections",
        "Connections with two subflows or more that retransmit payload",
        "%",
        "lower",
        ("direction",),
        source="baerts2015 §4.7.4, figure 4.10",
    ),
    _share(
        "reinjecting_connections",
        "Connections with two subflows or more that reinject payload",
        "%",
        "lower",
        ("direction",),
        source="baerts2015 §4.7.4, figure 4.10",
    ),
    _metric("app_connections", "Connections of the apps", "", "neither", source="baerts2015 table 4.1"),
    _metric(
        "app_connection_duration", "Duration of apps' connections, median", "s", "neither", source="han2015 §4.1.1"
    ),
    _share(
        "app_connections_short",
        "Connections of the apps that take less than 1 s",
        "%",
        "neither",
        source="baerts2015 §4.6.1, figure 4.2",
    ),
    _share(
        "app_connections_short_bytes",
        "Share of connections that take less than 1 s in the apps' payload",
        "%",
        "neither",
        source="baerts2015 §4.6.1, figure 4.2",
    ),
    _metric(
        "app_connection_bytes",
        "Payload of the apps' connections, quantile",
        "kB",
        "neither",
        ("direction", "quantile"),
        source="nikravesh2016 §3.1, figure 2",
    ),
    Metric(
        "transport_overhead",
        "Payload on the interfaces beyond that of the apps and its copies, relative to that of the apps",
        "%",
        "lower",
        source="nikravesh2016 §5.6",
        traced=True,
    ),
    _metric(
        "copied_share",
        "Copies of data on another path, relative to the data (MPFlex)",
        "%",
        "lower",
        source="nikravesh2016 §5.4",
    ),
)
"""Metrics of every scenario with captures. A cell without the connections that a metric needs has no value of it."""

_UNIQUE = pl.col("unique_up") + pl.col("unique_down")
_BYTES = pl.col("bytes_up") + pl.col("bytes_down")


def score(
    tables: Mapping[str, pl.DataFrame],
    loopback: Mapping[str, pl.DataFrame],
    networks: Sequence[str] = (),
    copied: int = 0,
) -> list[Value]:
    """Return the values of `METRICS` for a cell.

    Args:
        tables: tables of the phone's interfaces.
        loopback: tables of the phone's loopback interface; empty if the run has no agent.
        networks: networks with a capture. One without a subflow has the share 0 %.
        copied: bytes of the apps that an MPFlex session copied to another path.
    """
    if tables["connections"].is_empty():
        return []
    apps = tables["connections"] if loopback["connections"].is_empty() else loopback["connections"]
    return [
        *_networks(tables["subflows"], networks),
        *_multipath(tables["connections"], tables["subflows"]),
        *_delays(tables["subflows"], tables["directions"]),
        *_again(tables["connections"], tables["directions"]),
        *_free_window(tables["connections"], tables["directions"]),
        *_apps(apps.filter(pl.col("syn_seen"))),
        *_overhead(tables["subflows"], loopback["connections"], copied),
    ]


def extended(plugin: ScoringPlugin) -> ScoringPlugin:
    """Return the scoring plug-in of a scenario, extended so that it also computes the metrics of the traces."""

    def both(observations: Sequence[Observation], tables: Mapping[str, pl.DataFrame], cell: Path) -> list[Value]:
        record = _record(cell)
        interfaces = [capture.interface for capture in record.captures] if record is not None else []
        captured = [NETWORKS[interface] for interface in interfaces if interface in NETWORKS]
        paths = record.proof.session.paths.values() if record is not None else ()
        copied = sum(path.copied_up + path.copied_down for path in paths)
        own = score(tables, Tables(cell / FOLDER / LOOPBACK), captured, copied)
        once = sum(path.bytes_up + path.bytes_down for path in paths)
        copies = [Value("copied_share", 100 * copied / once)] if once > 0 else []
        return [*plugin.score(observations, tables, cell), *own, *copies]

    return ScoringPlugin(plugin.name, (*plugin.metrics, *METRICS), both)


def _networks(subflows: pl.DataFrame, networks: Sequence[str]) -> Iterator[Value]:
    carried = subflows.filter(pl.col("network") != "").group_by("network").agg(total=_UNIQUE.sum())
    total = carried["total"].sum()
    if total > 0:
        by_network = {**dict.fromkeys(networks, 0), **dict(carried.iter_rows())}
        for network, own in sorted(by_network.items()):
            yield Value("network_share", 100 * own / total, {"network": network})


def _multipath(connections: pl.DataFrame, subflows: pl.DataFrame) -> Iterator[Value]:
    asked = connections.filter(pl.col("kind") == "mptcp")
    if asked.is_empty():
        return
    yield Value("fallback_share", _mean_percent(asked["fallback"]))
    yield Value("subflow_count", _number(asked["subflows"].mean()))
    yield from _median("join_delay", asked["join_delay_ms"])
    own = subflows.join(asked, on="connection_id", how="semi")
    added = own.filter((pl.col("role") == "additional") & pl.col("established"))
    if not added.is_empty():
        yield Value("unused_subflows", _mean_percent(~added["used"]))
    carried = (
        own.group_by("connection_id")
        .agg(
            total=_UNIQUE.sum(),
            first=_UNIQUE.filter(pl.col("role") == "initial").sum(),
            networks=pl.col("network").filter(_UNIQUE > 0).n_unique(),
        )
        .filter(pl.col("total") > 0)
    )
    if not carried.is_empty():
        yield Value("primary_share", _percent(carried["first"].sum(), carried["total"].sum()))
        yield Value("wholly_on_primary", _mean_percent(carried["first"] == carried["total"]))
        yield Value("both_paths_used", _mean_percent(carried["networks"] > 1))


def _delays(subflows: pl.DataFrame, directions: pl.DataFrame) -> Iterator[Value]:
    for name, role in (("handshake_delay", "initial"), ("join_handshake", "additional")):
        known = subflows.filter((pl.col("role") == role) & (pl.col("network") != ""))
        yield from _medians(name, known, "rtt_handshake_ms", "network")
    networks = subflows.filter(pl.col("network") != "").select("connection_id", "subflow_id", "network")
    # On the phone, the round trips of data from the network ("down") are those within the phone.
    sampled = directions.filter(
        (pl.col("level") == "tcp") & (pl.col("direction") == "up") & (pl.col("rtt_samples") > 0)
    )
    sampled = sampled.join(networks, on=["connection_id", "subflow_id"])
    yield from _medians("rtt_mean", sampled, "rtt_mean_ms", "network")


def _again(connections: pl.DataFrame, directions: pl.DataFrame) -> Iterator[Value]:
    again = directions.filter(pl.col("level") == "tcp").with_columns(
        again=pl.col("retransmitted_bytes") + pl.col("hole_bytes").fill_null(0)
    )
    for direction in ("up", "down"):
        payload = connections[f"bytes_{direction}"].sum()
        if payload > 0:
            labels = {"direction": direction}
            resent = again.filter(pl.col("direction") == direction)["again"].sum()
            yield Value("retransmitted_share", _percent(resent, payload), labels)
            reinjected = connections[f"reinjected_{direction}"].fill_null(0).sum()
            yield Value("reinjected_bytes", float(reinjected) / 1000, labels)
            yield Value("reinjected_share", _percent(reinjected, payload), labels)
    several = connections.filter((_BYTES > 0) & (pl.col("subflows") > 1))  # as in figure 4.10
    if several.is_empty():
        return
    for direction in ("up", "down"):
        labels = {"direction": direction}
        numbers = again.filter((pl.col("direction") == direction) & (pl.col("again") > 0)).select("connection_id")
        sent = several.join(numbers, on="connection_id", how="semi").height
        yield Value("retransmitting_connections", 100 * sent / several.height, labels)
        reinjecting = several.filter(pl.col(f"reinjected_{direction}") > 0).height
        yield Value("reinjecting_connections", 100 * reinjecting / several.height, labels)


def _free_window(connections: pl.DataFrame, directions: pl.DataFrame) -> Iterator[Value]:
    """Yield the mean window that the receiver announced, less the mean bytes in flight, in the larger direction."""
    largest = connections.filter((pl.col("kind") == "mptcp") & (pl.col("subflows") > 1)).sort(_BYTES).tail(1)
    for number, up, down in largest.select("connection_id", "bytes_up", "bytes_down").iter_rows():
        data, acknowledgements = ("up", "down") if up > down else ("down", "up")
        own = directions.filter((pl.col("connection_id") == number) & (pl.col("level") == "mptcp"))
        window = own.filter(pl.col("direction") == acknowledgements)["window_mean"].drop_nulls()
        flight = own.filter(pl.col("direction") == data)["flight_mean"].drop_nulls()
        if not (window.is_empty() or flight.is_empty()):
            yield Value("free_window", max(0.0, window[0] - flight[0]) / 1000)


def _apps(connections: pl.DataFrame) -> Iterator[Value]:
    yield Value("app_connections", float(connections.height))
    if connections.is_empty():
        return
    yield from _median("app_connection_duration", connections["duration_s"])
    short = connections.filter(pl.col("duration_s") < SHORT_S)
    yield Value("app_connections_short", 100 * short.height / connections.height)
    total = connections.select(_BYTES.sum()).item()
    if total > 0:
        yield Value("app_connections_short_bytes", 100 * short.select(_BYTES.sum()).item() / total)
    for direction in ("up", "down"):
        for label, probability in QUANTILES:
            size = connections[f"bytes_{direction}"].quantile(probability, "linear")
            yield Value("app_connection_bytes", float(size or 0) / 1000, {"direction": direction, "quantile": label})


def _overhead(subflows: pl.DataFrame, apps: pl.DataFrame, copied: int) -> Iterator[Value]:
    of_apps = apps.select(_BYTES.sum()).item() if not apps.is_empty() else 0
    if of_apps > 0:
        beyond = subflows.select(_UNIQUE.sum()).item() - of_apps - copied
        yield Value("transport_overhead", 100 * beyond / of_apps)


def _record(cell: Path) -> CellRecord | None:
    """Return the record of a cell; None if it cannot be read."""
    try:
        return CellRecord.model_validate(parse_json((cell / "cell.json").read_bytes()))
    except (OSError, ValueError):
        return None


def _median(metric: str, values: pl.Series) -> Iterator[Value]:
    known = values.drop_nulls()
    if not known.is_empty():
        yield Value(metric, _number(known.median()))


def _medians(metric: str, rows: pl.DataFrame, column: str, *labels: str) -> Iterator[Value]:
    """Yield the median of a column for each combination of the values of the columns ``labels``."""
    known = rows.filter(pl.col(column).is_not_null())
    for *names, middle in known.group_by(*labels).agg(pl.col(column).median()).sort(*labels).iter_rows():
        yield Value(metric, float(middle), dict(zip(labels, names, strict=True)))


def _number(value: object) -> float:
    return float(value)  # type: ignore[arg-type]


def _percent(part: object, whole: object) -> float:
    return 100 * _number(part) / _number(whole)


def _mean_percent(values: pl.Series) -> float:
    return 100 * _number(values.mean())
