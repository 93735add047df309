"""Tables as mptrace writes them, of made-up connections: only a few segments are made, and all counts follow them."""

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl

from mplab.analysis.record.schema import SCHEMAS, VERSION, VERSION_KEY

START_NS = 1_790_000_000_000_000_000
MS = 1_000_000
LARGE = 100
"""Number of segments from which a connection uses every subflow."""
SEGMENT = 1400
NETWORKS = {"wlan0": "wifi", "rmnet0": "cellular"}
DELAYS_MS = {"wlan0": 25.0, "rmnet0": 60.0}
ADDRESSES = {"wlan0": "10.64.1.2", "rmnet0": "10.64.2.2"}

Row = dict[str, Any]


@dataclass(frozen=True)
class Sent:
    """A segment with payload, as the capture recorded it."""

    time_ns: int
    subflow: int
    offset: int
    bytes: int
    kind: str = "data"


@dataclass
class Trace:
    """Connections of one capture; `rows` are their tables.

    Args:
        interfaces: of the subflows of each connection, the initial one first.
        connections: number of connections.
        segments: number of segments that the largest one sends down.
        objects: whether web objects were seen in the payload.
    """

    seed: str = "1"
    interfaces: Sequence[str] = ("wlan0", "rmnet0")
    connections: int = 6
    segments: int = 120
    objects: bool = True
    rows: dict[str, list[Row]] = field(default_factory=lambda: {name: [] for name in SCHEMAS})

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)  # noqa: S311
        for number in range(self.connections):
            self._connection(number, max(2, self.segments // 2**number))

    @property
    def mptcp(self) -> bool:
        return len(self.interfaces) > 1

    def write(self, folder: Path) -> None:
        """Write one Parquet file per table."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in SCHEMAS:
            self.frame(name).write_parquet(folder / f"{name}.parquet", metadata={VERSION_KEY: str(VERSION)})

    def frame(self, name: str) -> pl.DataFrame:
        return frame(name, self.rows[name])

    def _connection(self, number: int, segments: int) -> None:
        start = START_NS + number * 40 * MS
        down = self._send(start + 100 * MS, segments)
        up = self._send(start + 90 * MS, max(2, segments // 8), subflows=1 if segments < LARGE else 0)
        end = max(sent.time_ns for sent in (*down, *up))
        ids = {"connection_id": number}
        for direction, sent in (("up", up), ("down", down)):
            self._data_level(ids, direction, sent, start)
            for subflow in range(len(self.interfaces)):
                self._direction(
                    ids | {"subflow_id": subflow}, "tcp", direction, [s for s in sent if s.subflow == subflow]
                )
        for subflow, interface in enumerate(self.interfaces):
            self._subflow(ids | {"subflow_id": subflow}, interface, start, (up, down))
        fresh = {
            direction: sum(s.bytes for s in sent if s.kind == "data")
            for direction, sent in (("up", up), ("down", down))
        }
        again = sum(s.bytes for s in down if s.kind == "reinjection")
        self.rows["connections"].append(
            ids
            | {
                "kind": "mptcp" if self.mptcp else "tcp",
                "mptcp_version": 1 if self.mptcp else -1,
                "client": ADDRESSES[self.interfaces[0]],
                "client_port": 40000 + number,
                "server": "10.64.3.2",
                "server_port": 7002,
                "host": f"site-{number}.lab",
                "application": "browser",
                "start_ns": start,
                "duration_s": (end - start) / 1e9,
                "syn_seen": True,
                "fallback": False,
                "subflows": len(self.interfaces),
                "subflows_asked": len(self.interfaces),
                "subflows_used": len({s.subflow for s in (*up, *down)}),
                "bytes_up": fresh["up"],
                "bytes_down": fresh["down"],
                "reinjected_up": 0,
                "reinjected_down": again,
                "join_delay_ms": 31.5 + number if self.mptcp else None,
                "closed": "fin",
                "interfaces": ",".join(self.interfaces),
                "networks": ",".join(NETWORKS[i] for i in self.interfaces),
            }
        )
        if self.objects:
            self._objects(ids, start, end)

    def _send(self, start: int, segments: int, subflows: int = 0) -> list[Sent]:
        """Return new segments on changing subflows; some are retransmitted, on the same or on another subflow."""
        rng, sent, time, offset, subflow = self._rng, [], start, 0, 0
        for number in range(segments):
            time += int(rng.expovariate(1.0) * 3 * MS) + 1
            if rng.random() < 0.2:
                subflow = rng.randrange(subflows or len(self.interfaces))
            sent.append(Sent(time, subflow, offset, SEGMENT))
            if number % 17 == 9:
                sent.append(Sent(time + MS, subflow, offset, SEGMENT, "retransmission"))
            if self.mptcp and number % 23 == 11:
                sent.append(Sent(time + 2 * MS, 1 - subflow, offset, SEGMENT, "reinjection"))
            offset += SEGMENT
        return sent

    def _delay_ms(self, subflow: int) -> float:
        return DELAYS_MS[self.interfaces[subflow]] * self._rng.uniform(0.9, 1.6)

    def _data_level(self, ids: Row, way: str, sent: Sequence[Sent], start: int) -> None:
        level = "mptcp" if self.mptcp else "tcp"
        window = 60_000
        for s in sent:
            self.rows["points"].append(
                ids
                | {"subflow_id": s.subflow, "level": level, "direction": way, "time_ns": s.time_ns, "kind": s.kind}
                | {"offset": s.offset, "bytes": s.bytes, "weight": 1}
            )
            if s.kind != "data":
                continue
            acked = s.time_ns + int(self._delay_ms(s.subflow) * MS)
            for kind, value in (("ack", s.offset + s.bytes), ("window", s.offset + s.bytes + window)):
                self.rows["points"].append(
                    ids
                    | {"subflow_id": s.subflow, "level": level, "direction": way, "time_ns": acked, "kind": kind}
                    | {"offset": value, "bytes": 0, "weight": 1}
                )
        for s in sent:
            if s.kind == "reinjection":
                self.rows["reinjections"].append(
                    ids
                    | {"direction": way, "time_ns": s.time_ns, "offset": s.offset, "bytes": s.bytes}
                    | {"from_subflow": 1 - s.subflow, "to_subflow": s.subflow, "since_original_ms": 2.0}
                    | {"cause": "window", "acked": False}
                )
            elif s.kind == "retransmission":
                self.rows["retransmissions"].append(
                    ids
                    | {"subflow_id": s.subflow, "direction": way, "time_ns": s.time_ns, "seq": s.offset}
                    | {"bytes": s.bytes, "kind": "twice", "cause": "fast", "spurious": False, "since_first_ms": 1.0}
                )
        if self.mptcp:
            self._bursts(ids, way, [s for s in sent if s.kind == "data"])
            self._direction(ids | {"subflow_id": -1}, "mptcp", way, sent)

    def _bursts(self, ids: Row, way: str, sent: Sequence[Sent]) -> None:
        burst: list[Sent] = []
        for s in (*sent, None):
            if burst and (s is None or s.subflow != burst[-1].subflow):
                self.rows["bursts"].append(
                    ids
                    | {"subflow_id": burst[0].subflow, "direction": way, "start_ns": burst[0].time_ns}
                    | {"duration_s": (burst[-1].time_ns - burst[0].time_ns) / 1e9, "offset": burst[0].offset}
                    | {"bytes": sum(b.bytes for b in burst), "packets": len(burst), "weight": 1}
                )
                burst = []
            if s is not None:
                burst.append(s)

    def _direction(self, ids: Row, level: str, way: str, sent: Sequence[Sent]) -> None:
        """Add counts, round trips, acknowledgements and throughput of the data that one side sent."""
        row = ids | {"level": level, "direction": way}
        fresh = [s for s in sent if s.kind == "data"]
        rtts = [self._delay_ms(s.subflow) for s in fresh]
        span = (sent[-1].time_ns - sent[0].time_ns) / 1e9 if len(sent) > 1 else None
        total, again = sum(s.bytes for s in sent), sum(s.bytes for s in sent if s.kind == "retransmission")
        switches = sum(a.subflow != b.subflow for a, b in pairwise(fresh))
        self.rows["directions"].append(
            row
            | {"segments": len(sent) + 2, "data_segments": len(sent), "bytes": total, "unique_bytes": total - again}
            | {"retransmitted_bytes": again, "retransmitted_segments": again // SEGMENT, "fast": again // SEGMENT}
            | {"reinjected_bytes": sum(s.bytes for s in sent if s.kind == "reinjection")}
            | {"rtt_samples": len(rtts), "window_max": 60_000 + 1000 * len(sent)}
            | {"rtt_mean_ms": sum(rtts) / len(rtts) if rtts else None}
            | {"throughput_bps": 8 * (total - again) / span if span else None}
            | ({"switches": switches, "switches_per_s": switches / span if span else None} if level == "mptcp" else {})
        )
        for s, rtt in zip(fresh, rtts, strict=True):
            self.rows["rtt"].append(row | {"time_ns": s.time_ns + int(rtt * MS), "rtt_ms": rtt, "weight": 1})
        for size, count in Counter(min(2, 1 + i % 3) * SEGMENT for i in range(len(fresh))).items():
            self.rows["acks"].append(row | {"bytes": size, "count": count})
        for window in _windows(fresh, 25):
            self.rows["throughput"].append(
                row
                | {"start_ns": window[0].time_ns, "duration_s": (window[-1].time_ns - window[0].time_ns) / 1e9}
                | {"bytes": sum(s.bytes for s in window), "packets": len(window)}
            )

    def _subflow(self, ids: Row, interface: str, start: int, ways: tuple[Sequence[Sent], Sequence[Sent]]) -> None:
        initial = ids["subflow_id"] == 0
        begun = start if initial else start + 31 * MS
        up, down = ([s for s in segments if s.subflow == ids["subflow_id"]] for segments in ways)
        self.rows["subflows"].append(
            ids
            | {
                "role": "initial" if initial else "additional",
                "interface": interface,
                "network": NETWORKS[interface],
                "client": ADDRESSES[interface],
                "client_port": 40000 + ids["connection_id"],
                "server": "10.64.3.2",
                "server_port": 7002,
                "ip_version": 4,
                "start_ns": begun,
                "duration_s": 1.0,
                "join_delay_ms": None if initial else 31.0,
                "opened_by": "client",
                "established": True,
                "used": bool(up or down),
                "backup": False,
                "payload_up": sum(s.bytes for s in up),
                "payload_down": sum(s.bytes for s in down),
                "unique_up": sum(s.bytes for s in up if s.kind != "retransmission"),
                "unique_down": sum(s.bytes for s in down if s.kind != "retransmission"),
                "rtt_handshake_ms": DELAYS_MS[interface],
                "syn_seen": True,
                "closed": "fin",
            }
        )
        events = [("syn", begun, "up"), ("established", begun + int(DELAYS_MS[interface] * MS), "up")]
        events.append(("mp-capable" if initial else "mp-join", begun, "up"))
        if down:
            events.append(("first-data", down[0].time_ns, "down"))
        for event, time, direction in events:
            self.rows["events"].append(ids | {"time_ns": time, "direction": direction, "event": event})

    def _objects(self, ids: Row, start: int, end: int) -> None:
        step = (end - start - 100 * MS) // 4
        for stream in range(3):
            request = start + 100 * MS + stream * step
            parts = [SEGMENT * (stream + 2) for _ in self.interfaces]
            by_network = zip((NETWORKS[i] for i in self.interfaces), parts, strict=True)
            self.rows["objects"].append(
                ids
                | {"protocol": "h2", "stream_id": 2 * stream + 1, "method": "GET", "status": 200, "type": "image/png"}
                | {"url": f"https://site-{ids['connection_id']}.lab/object-{stream}.png", "request_ns": request}
                | {"response_ns": request + step // 3, "end_ns": request + step, "duration_ms": step / MS}
                | {"request_body": 0, "response_body": sum(parts), "header_bytes": 300, "complete": True}
                | {"subflows": ",".join(f"{i}:{part}" for i, part in enumerate(parts))}
                | {"networks": ",".join(f"{network}:{part}" for network, part in by_network)}
            )


def frame(name: str, rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Return the rows of a table; columns that a row leaves out are null."""
    blank: Row = dict.fromkeys(SCHEMAS[name])
    return pl.DataFrame([blank | dict(row) for row in rows], schema=SCHEMAS[name])


def _windows(sent: Sequence[Sent], size: int) -> list[Sequence[Sent]]:
    return [sent[i : i + size] for i in range(0, len(sent), size)]
