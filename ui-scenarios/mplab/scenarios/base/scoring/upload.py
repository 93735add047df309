"""Score uploads: their time and goodput, and the share of the bytes that arrived."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import polars as pl

from mplab.analysis.metric import LOOK_RESOLUTION, NOT_NEGATIVE, Metric, Observation, Value, look_resolution

_ACTIVITY = "Uploading a file"
_metric = partial(Metric, limits=NOT_NEGATIVE)
METRICS: tuple[Metric, ...] = (
    _metric(
        "upload_time",
        "Upload time of a file",
        "s",
        "lower",
        headline=True,
        source="baerts2015 §4.3",
        activity=_ACTIVITY,
        way="up",
    ),
    _metric(
        "goodput",
        "Goodput",
        "Mbit/s",
        "higher",
        headline=True,
        source="RFC 2647 §3.17",
        activity=_ACTIVITY,
        outcome="reaches {value}",
        way="up",
    ),
    _metric("goodput_windows", "Goodput in windows of 250 packets", "Mbit/s", "higher", source="baerts2015 §4.7.2"),
    _metric(
        "uploaded_share",
        "Share of the files that arrived within the time",
        "%",
        "higher",
        source="baerts2015 §4.3",
        limits=(0.0, 100.0),
    ),
    LOOK_RESOLUTION,
)
"""Metrics of every scenario that uploads."""

WINDOW_PACKETS = 250
SMALLEST_CONNECTION_BYTES = 1_000_000
"""Connections that send fewer bytes are left out of the goodput in windows (baerts2015 §4.7.2)."""


def score(observations: Sequence[Observation], tables: Mapping[str, pl.DataFrame], folder: object) -> list[Value]:
    """Return upload time and goodput of each file; for all files, the share that arrived and the goodput in windows.

    ``upload_time`` is the time from the tap until the app shows that the server has the complete file; a cancelled
    upload has no such time. ``goodput`` is the number of the file's bytes that the server received, divided by the
    duration of the upload. If a cancelled upload has neither confirmed bytes (an Android app reports none) nor the
    server's log, it has no goodput, and ``uploaded_share`` has no value.
    """
    timelines = {item["file"]: item["timeline"] for item in observations if item["event"] == "arrived"}
    values, begun, arrived = look_resolution(observations), 0, 0
    known = True
    for upload in observations:
        if upload["event"] == "upload":
            begun += upload["size_bytes"]
            timeline = timelines.get(upload["file"], [])
            if upload["state"] != "done" and upload["blocks"] is None and not timeline:
                known = False
                continue
            came = _arrived_bytes(upload, timeline)
            arrived += came
            if upload["state"] == "done":
                values.append(Value("upload_time", upload["duration_s"]))
            if upload["duration_s"] > 0:
                values.append(Value("goodput", came * 8 / upload["duration_s"] / 1e6))
    if begun and known:
        values.append(Value("uploaded_share", 100 * arrived / begun))
    if windows := window_goodput_mbps(tables):
        values.append(Value("goodput_windows", sum(windows) / len(windows)))
    return values


def _arrived_bytes(upload: Observation, timeline: Sequence[Sequence[float]]) -> int:
    """Return the number of a file's bytes that the server had at the end of the upload.

    For a cancelled upload, this is the larger of two numbers: bytes confirmed to the app, and bytes in the server's
    log (`timeline`).
    """
    if upload["state"] == "done":
        return int(upload["size_bytes"])
    confirmed: int = sum(block["bytes"] for block in upload["blocks"] or ())
    return max(confirmed, int(timeline[-1][1]) if timeline else 0)


@dataclass(frozen=True)
class _Window:
    connection: int
    start_s: float
    end_s: float
    bytes: int
    packets: int

    def bytes_between(self, start_s: float, end_s: float) -> float:
        """Return the number of bytes that the window sent in an interval, if its rate was constant."""
        common_s = min(end_s, self.end_s) - max(start_s, self.start_s)
        return self.bytes * common_s / (self.end_s - self.start_s) if common_s > 0 else 0.0


def window_goodput_mbps(tables: Mapping[str, pl.DataFrame]) -> list[float]:
    """Return the phone's sending throughput, Mbit/s, in each window of 250 packets with payload.

    The method is T* of baerts2015 §4.7.2, but the windows do not overlap. Only connections that send at least 1 MB have
    windows; a Multipath TCP connection counts as one connection. The bytes that other connections sent during a
    window are added to its bytes: the result is the phone's throughput even if a session uses one connection per path.

    Args:
        tables: tables ``connections`` and ``throughput`` of mptrace.
    """
    large = {
        row["connection_id"]
        for row in tables["connections"].iter_rows(named=True)
        if row["bytes_up"] >= SMALLEST_CONNECTION_BYTES
    }
    rows = [
        row
        for row in tables["throughput"].iter_rows(named=True)
        if row["connection_id"] in large and row["direction"] == "up" and row["duration_s"] > 0
    ]
    multipath = {row["connection_id"] for row in rows if row["level"] == "mptcp"}
    windows = [
        _Window(
            connection=row["connection_id"],
            start_s=row["start_ns"] / 1e9,
            end_s=row["start_ns"] / 1e9 + row["duration_s"],
            bytes=row["bytes"],
            packets=row["packets"],
        )
        for row in rows
        if row["level"] == ("mptcp" if row["connection_id"] in multipath else "tcp")
    ]
    return [_goodput_mbps(window, windows) for window in windows if window.packets == WINDOW_PACKETS]


def _goodput_mbps(window: _Window, windows: Sequence[_Window]) -> float:
    others = sum(
        other.bytes_between(window.start_s, window.end_s) for other in windows if other.connection != window.connection
    )
    return (window.bytes + others) * 8 / (window.end_s - window.start_s) / 1e6
