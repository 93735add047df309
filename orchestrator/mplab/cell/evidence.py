"""Define the requested treatment of a cell and the measured evidence. The cell's verdict depends on nothing else."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mplab.base.counters import difference
from mplab.base.outages import Disturbances
from mplab.drivers.capture import CaptureResult
from mplab.drivers.transport import Evidence as TransportEvidence
from mplab.drivers.transport import Transport
from mplab.format.agentlog import ActiveCheck, LogRecord
from mplab.format.captured import CapturedTables, ConnectionRow, SubflowRow
from mplab.format.path import PathCondition
from mplab.format.sockets import SocketSettings

Counters = Mapping[str, Mapping[str, int]]
"""Node (``phone``, ``proxy``, ``links``; on the direct route, ``origin``) → counter → value."""


@dataclass(frozen=True)
class Treatment:
    """The treatment that the experiment requests of a cell.

    Attributes:
        transport: transport with its options.
        paths: interface → link condition.
        sockets: settings of the sockets of agent and proxy.
        handed_over: True: apps are configured with the agent's address, because their TCP is not redirected to it.
    """

    transport: Transport
    paths: Mapping[str, PathCondition]
    sockets: SocketSettings
    handed_over: bool = False


@dataclass(frozen=True)
class CellEvidence:
    """The measurements of a cell that completed all its steps.

    Attributes:
        active: result of the test connection before the scenario.
        changed: node → counter → growth during the scenario.
        captures: result of each packet capture.
        captured: True if packets were captured on the phone.
        connections, subflows: rows from the phone's captures, without connections that began before them.
        origin_connections: the same from the origin's capture; only on the direct route.
        agent_log, proxy_log: records that agent and proxy logged during the cell.
        disturbances: changes that the experiment made to the paths during the scenario.
        parts: why the cell is invalid according to the steps that the lab added (`CellPart.judge`), one sentence each.
    """

    active: ActiveCheck
    changed: Counters
    captures: Sequence[CaptureResult] = ()
    captured: bool = False
    connections: Sequence[ConnectionRow] = ()
    subflows: Sequence[SubflowRow] = ()
    agent_log: Sequence[LogRecord] = ()
    proxy_log: Sequence[LogRecord] = ()
    disturbances: Disturbances = field(default_factory=Disturbances)
    parts: Sequence[str] = ()
    origin_connections: Sequence[ConnectionRow] = ()

    def of_transport(self, paths: Mapping[str, PathCondition]) -> TransportEvidence:
        """Return the evidence from which a transport judges the cell; `paths`: interface → requested link condition."""
        return TransportEvidence(
            active=self.active,
            phone_counters=self.changed["phone"],
            connections=self.connections,
            subflows=self.subflows,
            captured=self.captured,
            log=self.agent_log,
            lossy=[interface for interface, path in paths.items() if path.round_trip_loss_percent],
            rtts_s={interface: path.rtt_ms / 1000 for interface, path in paths.items()},
            disturbances=self.disturbances,
            origin_counters=self.changed.get("origin", {}),
            origin_connections=self.origin_connections,
        )

    @property
    def proxy_algorithms(self) -> list[str]:
        """Return the congestion controls that the proxy's sockets used, sorted."""
        records = (record for record in self.proxy_log if record["event"] == "connection")
        return sorted({name for record in records if (name := record.get("congestion_control", ""))})


def begun_in(tables: CapturedTables) -> tuple[list[ConnectionRow], list[SubflowRow]]:
    """Return the connections whose SYN was captured, and their subflows.

    Other connections are dropped: the captures also contain the last packets of the test connection.
    """
    connections = [row for row in tables["connections"] if row["syn_seen"]]
    ids = {row["connection_id"] for row in connections}
    return connections, [row for row in tables["subflows"] if row["connection_id"] in ids]


def grown(before: Counters, after: Counters) -> Counters:
    """Return node → counter → growth from `before` to `after`."""
    return {node: difference(before[node], after[node]) for node in before}


def keep_counters(directory: Path, before: Counters, after: Counters) -> None:
    """Write ``counters/NODE-before.json`` and ``counters/NODE-after.json`` into a cell's directory."""
    folder = directory / "counters"
    folder.mkdir()
    for when, counters in (("before", before), ("after", after)):
        for node, values in counters.items():
            (folder / f"{node}-{when}.json").write_text(json.dumps(values, indent=0, sort_keys=True))
