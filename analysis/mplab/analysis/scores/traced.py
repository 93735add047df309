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

TIMES = (("10 s", 10.0), ("100 s", 100.0))
"""Label and seconds of the durations of connections that baerts2015 figure 5.1 compares."""

SMALL_BYTES = 10_000
"""Bytes that a small connection stays below; most that a small acknowledgement covers (baerts2015 figures 5.2, 5.4)."""

DIFFERENCES = (("15 ms", 15.0), ("100 ms", 100.0), ("200 ms", 200.0))
"""Label and milliseconds of the differences of round-trip times in the text of baerts2015 figure 5.3."""

CARRIED_BYTES, SAMPLES = 100_000, 3
"""Minimum payload and number of round trips of a subflow whose mean round-trip time counts (baerts2015 figure 5.3)."""

LONG_BYTES = 1_000_000
"""Minimum payload of a direction whose changes of the subflow count (baerts2015 §5.2.5, figure 5.5)."""

RATES = (("10/s", 10.0), ("100/s", 100.0))
"""Label and changes per second in the text of baerts2015 figure 5.5."""

PARTS = (("first fifth", 0.0, 0.2), ("last fifth", 0.8, 1.0), ("last twentieth", 0.95, 1.0))
"""Label, beginning and end of parts of a connection's duration (baerts2015 §5.3.2, figures 5.7 and 5.9)."""

SIZES = (("10 kB", 0, 10_000), ("100 kB", 10_000, 100_000), ("1 MB", 100_000, 1_000_000), ("10 MB", 1_000_000, 10**7))
"""Label (the upper limit), and limits in bytes, of classes of connections (baerts2015 §5.3.3, figure 5.10)."""

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
    _share(
        "connections_by_subflows",
        "Multipath TCP connections by their number of subflows",
        "%",
        "neither",
        ("subflows",),
        source="baerts2015 §5.2.2, table 5.1",
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
        "join_wait",
        "SYN to first payload of additional subflows, relative to their handshake, median",
        "",
        "neither",
        source="baerts2015 §4.7.1, figure 4.6",
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
        "data_rtt",
        "Round-trip time of uploaded data as the application sees it, mean",
        "ms",
        "lower",
        source="baerts2015 §4.7.3, figure 4.9",
    ),
    _metric(
        "data_rtt_jitter",
        "Round-trip time of uploaded data as the application sees it, standard deviation",
        "ms",
        "lower",
        source="baerts2015 §4.7.3, figure 4.9",
    ),
    _share(
        "rtt_difference_within",
        "Multipath TCP connections whose slowest and fastest subflow differ by at most a time in their mean "
        "round-trip time",
        "%",
        "neither",
        ("difference",),
        source="baerts2015 §5.2.3, figure 5.3",
    ),
    _share(
        "duplicate_acks",
        "Duplicates among the TCP acknowledgements of downloads; connections with two subflows or more",
        "%",
        "lower",
        source="baerts2015 §5.2.4, figure 5.4",
    ),
    _share(
        "small_acks",
        "Share of acknowledgements of at most 10 kB in the downloads; connections with two subflows or more",
        "%",
        "neither",
        ("level",),
        source="baerts2015 §5.2.4, figure 5.4",
    ),
    _share(
        "switching_above",
        "Directions with 1 MB or more, and two subflows, that change the subflow more often than a rate",
        "%",
        "neither",
        ("rate",),
        source="baerts2015 §5.2.5, figure 5.5",
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
        "window_filled",
        "Most bytes in flight of the largest Multipath TCP connection, relative to its largest receive window",
        "%",
        "neither",
        source="baerts2015 §5.3.3, figure 5.11",
    ),
    _metric(
        "largest_window",
        "Largest receive window announced for a Multipath TCP connection, median; by the size that it stays below",
        "kB",
        "neither",
        ("size",),
        source="baerts2015 §5.3.3, figure 5.10",
    ),
    _share(
        "again_within",
        "Retransmissions and reinjections in a part of the life of their Multipath TCP connections",
        "%",
        "neither",
        ("kind", "part"),
        source="baerts2015 §5.3.2, figures 5.7 and 5.9",
    ),
    _share(
        "reinjections_by_window",
        "Reinjections that a full receive window causes",
        "%",
        "lower",
        source="baerts2015 §5.3.3",
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
    _metric("app_bytes", "Payload of the apps", "kB", "neither", ("direction",), source="baerts2015 table 4.1"),
    _share(
        "app_connections_within",
        "Connections of the apps that take less than a time",
        "%",
        "neither",
        ("time",),
        source="baerts2015 §5.2, figure 5.1",
    ),
    _share(
        "app_connections_small",
        "Connections of the apps that carry less than 10 kB",
        "%",
        "neither",
        source="baerts2015 §5.2, figure 5.2",
    ),
    _share(
        "busiest_connection",
        "Share of the connection with most of the web objects in the objects",
        "%",
        "neither",
        source="han2015 §4.1.1, figure 5",
    ),
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
        *_data_rtt(tables["connections"], tables["directions"]),
        *_rtt_differences(tables["subflows"], tables["directions"]),
        *_acknowledgements(tables["connections"], tables["directions"], tables["acks"]),
        *_switches(tables["directions"]),
        *_free_window(tables["connections"], tables["directions"]),
        *_largest_window(tables["connections"], tables["directions"]),
        *_lives(tables["connections"], tables["retransmissions"], tables["reinjections"]),
        *_busiest(tables["objects"]),
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
    counts = asked["subflows"].filter(asked["subflows"] > 0)
    if not counts.is_empty():
        for label, chosen in (("1", counts == 1), ("2", counts == 2), ("more", counts > 2)):
            yield Value("connections_by_subflows", _mean_percent(chosen), {"subflows": label})
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
    carrying = subflows.filter((pl.col("role") == "additional") & (pl.col("rtt_handshake_ms") > 0))
    wait_ms = (pl.col("first_payload_ns") - pl.col("start_ns")) / 1e6
    yield from _median("join_wait", carrying.select(wait=wait_ms / pl.col("rtt_handshake_ms"))["wait"])
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


def _data_rtt(connections: pl.DataFrame, directions: pl.DataFrame) -> Iterator[Value]:
    """Yield mean and standard deviation of all samples: of data acknowledgements, or of those of TCP."""
    levels = connections.select("connection_id", level="kind")
    samples = directions.join(levels, on=["connection_id", "level"]).filter(
        (pl.col("direction") == "up") & (pl.col("rtt_samples") > 0)
    )
    if samples.is_empty():
        return
    weight, mean = pl.col("rtt_samples"), pl.col("rtt_mean_ms")
    square = pl.col("rtt_stdev_ms").fill_null(0) ** 2 + mean**2
    count, first, second = samples.select(n=weight.sum(), one=(weight * mean).sum(), two=(weight * square).sum()).row(0)
    yield Value("data_rtt", first / count)
    yield Value("data_rtt_jitter", max(0.0, second / count - (first / count) ** 2) ** 0.5)


def _rtt_differences(subflows: pl.DataFrame, directions: pl.DataFrame) -> Iterator[Value]:
    carrying = subflows.filter(_UNIQUE >= CARRIED_BYTES).select("connection_id", "subflow_id")
    rtt = pl.col("rtt_mean_ms")
    differences = (
        directions.filter((pl.col("level") == "tcp") & (pl.col("direction") == "up"))
        .filter((pl.col("rtt_samples") >= SAMPLES) & rtt.is_not_null())
        .join(carrying, on=["connection_id", "subflow_id"], how="semi")
        .group_by("connection_id")
        .agg(n=pl.len(), difference=rtt.max() - rtt.min())
        .filter(pl.col("n") > 1)["difference"]
    )
    if not differences.is_empty():
        for label, most in DIFFERENCES:
            yield Value("rtt_difference_within", _mean_percent(differences <= most), {"difference": label})


def _acknowledgements(connections: pl.DataFrame, directions: pl.DataFrame, acks: pl.DataFrame) -> Iterator[Value]:
    several = connections.filter((pl.col("kind") == "mptcp") & (pl.col("subflows") > 1))
    own = acks.filter((pl.col("direction") == "down") & (pl.col("bytes") > 0)).join(
        several, on="connection_id", how="semi"
    )
    # The side that sends up acknowledges the downloads.
    sent = directions.filter((pl.col("level") == "tcp") & (pl.col("direction") == "up"))
    duplicates = int(sent.join(several, on="connection_id", how="semi")["duplicate_acks"].sum())
    first = int(own.filter(pl.col("level") == "tcp")["count"].sum())
    if first > 0:
        yield Value("duplicate_acks", _percent(duplicates, first + duplicates))
    weighted = own.with_columns(weight=pl.col("bytes") * pl.col("count"))
    for level in ("tcp", "mptcp"):
        rows = weighted.filter(pl.col("level") == level)
        if not rows.is_empty():
            small = rows.filter(pl.col("bytes") <= SMALL_BYTES)["weight"].sum()
            yield Value("small_acks", _percent(small, rows["weight"].sum()), {"level": level})


def _switches(directions: pl.DataFrame) -> Iterator[Value]:
    long = directions.filter((pl.col("level") == "mptcp") & (pl.col("unique_bytes") >= LONG_BYTES))
    rates = long.filter(pl.col("switches") > 0)["switches_per_s"].drop_nulls()
    if not rates.is_empty():
        for label, least in RATES:
            yield Value("switching_above", _mean_percent(rates > least), {"rate": label})


def _largest_window(connections: pl.DataFrame, directions: pl.DataFrame) -> Iterator[Value]:
    windows = directions.group_by("connection_id").agg(window=pl.col("window_max").max())
    rows = connections.filter(pl.col("kind") == "mptcp").join(windows, on="connection_id")
    for label, least, limit in SIZES:
        own = rows.filter((least <= _BYTES) & (limit > _BYTES))["window"].drop_nulls()
        if not own.is_empty():
            yield Value("largest_window", _number(own.median()) / 1000, {"size": label})


def _lives(connections: pl.DataFrame, retransmissions: pl.DataFrame, reinjections: pl.DataFrame) -> Iterator[Value]:
    lives = connections.filter((pl.col("kind") == "mptcp") & (pl.col("duration_s") > 0)).select(
        "connection_id", "start_ns", "duration_s", "subflows"
    )
    since = (pl.col("time_ns") - pl.col("start_ns")) / 1e9 / pl.col("duration_s")
    for kind, events in (("retransmissions", retransmissions), ("reinjections", reinjections)):
        times = events.join(lives, on="connection_id").select(since.alias("since"))["since"]
        if not times.is_empty():
            for part, begin, end in PARTS:
                yield Value("again_within", _mean_percent(times.is_between(begin, end)), {"kind": kind, "part": part})
    caused = reinjections.join(lives, on="connection_id", how="semi")["cause"]
    if not caused.is_empty():
        yield Value("reinjections_by_window", _mean_percent(caused == "window"))


def _busiest(objects: pl.DataFrame) -> Iterator[Value]:
    if not objects.is_empty():
        most = objects.group_by("connection_id").len()["len"].max()
        yield Value("busiest_connection", _percent(most, objects.height))


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
        most = own.filter(pl.col("direction") == data)["flight_max"].drop_nulls()
        widest = own.filter(pl.col("direction") == acknowledgements)["window_max"].drop_nulls()
        if not (most.is_empty() or widest.is_empty()) and widest[0] > 0:
            yield Value("window_filled", min(100.0, 100 * most[0] / widest[0]))


def _apps(connections: pl.DataFrame) -> Iterator[Value]:
    yield Value("app_connections", float(connections.height))
    if connections.is_empty():
        return
    yield from _median("app_connection_duration", connections["duration_s"])
    for label, limit in TIMES:
        yield Value("app_connections_within", _mean_percent(connections["duration_s"] < limit), {"time": label})
    sizes = connections.select(_BYTES.alias("bytes"))["bytes"]
    carrying = sizes.filter(sizes > 0)
    if not carrying.is_empty():
        yield Value("app_connections_small", _mean_percent(carrying < SMALL_BYTES))
    short = connections.filter(pl.col("duration_s") < SHORT_S)
    yield Value("app_connections_short", 100 * short.height / connections.height)
    total = connections.select(_BYTES.sum()).item()
    if total > 0:
        yield Value("app_connections_short_bytes", 100 * short.select(_BYTES.sum()).item() / total)
    for direction in ("up", "down"):
        yield Value("app_bytes", float(connections[f"bytes_{direction}"].sum()) / 1000, {"direction": direction})
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
