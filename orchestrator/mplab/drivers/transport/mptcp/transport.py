"""Kernel Multipath TCP (RFC 8684): one MPTCP connection per application connection, subflows on both interfaces."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from math import inf
from typing import Literal

from pydantic import Field

from mplab.base.outages import Disturbances
from mplab.base.paths import INTERFACES, WLAN
from mplab.base.undo import UndoStack
from mplab.drivers.phone import Phone
from mplab.drivers.phone.kernel import KernelMptcp
from mplab.drivers.transport.direct import at_origin
from mplab.drivers.transport.protocol import AgentSettings, Evidence, Transport
from mplab.format.agentlog import ActiveCheck
from mplab.format.captured import ConnectionRow, SubflowRow
from mplab.userfiles.experiments.transport import ViaOptions


class MptcpOptions(ViaOptions):
    """Options of ``mptcp`` in an experiment file."""

    primary: Literal["wifi", "lte"] = Field(
        default="wifi", description="the interface of the initial subflow (default route)"
    )
    mode: Literal["full-mesh", "backup"] = Field(
        default="full-mesh",
        description="full-mesh: both paths carry data; backup: the other path only when the primary fails",
    )


NO_SECOND_SUBFLOW = "without root there is no second subflow: no MPTCP endpoint can be added"


def problem_of(kernel: KernelMptcp, *, rooted: bool) -> str:
    """Return why a phone with this kernel cannot use Multipath TCP with two subflows; "" if it can."""
    if kernel.kind == "none":
        return "its kernel has no Multipath TCP"
    if kernel.kind == "upstream":
        if not rooted:
            return NO_SECOND_SUBFLOW
        return "" if kernel.endpoints else "its ip does not know 'ip mptcp': no endpoint can be added"
    if rooted:
        return ""
    if kernel.enabled and kernel.path_manager in {"fullmesh", "ndiffports"}:
        return ""
    state = f"enabled {int(kernel.enabled)}, path manager {kernel.path_manager or 'unknown'}"
    return f"its kernel is set so that there is no second subflow ({state}), and only root can change that"


def cell_problem_of(kernel: KernelMptcp) -> str:
    """Return why cells cannot use the Multipath TCP of a rooted phone, or "".

    The proxy implements only RFC 8684, not the older protocol of the patches of multipath-tcp.org.
    """
    if kernel.kind == "out-of-tree":
        return f"its kernel has the patches {kernel.version}".rstrip() + ", which proxies do not support"
    return problem_of(kernel, rooted=True)


def note_of(kernel: KernelMptcp) -> str:
    """Return a note about the patches of multipath-tcp.org in a kernel; "" for other kernels."""
    if kernel.kind != "out-of-tree":
        return ""
    backup = "" if kernel.multipath else "; its ip does not know 'multipath': no backup paths"
    return (
        f"out-of-tree {kernel.version or 'of unknown version'}, path manager {kernel.path_manager}, "
        f"scheduler {kernel.scheduler}{backup}"
    )


_SUBFLOW_LIMIT = 4
_LONG_CONNECTION_BYTES = 256_000
"""Minimum size of a long connection, both directions, bytes.

Such a connection lasts long enough to open its second subflow on any link condition of the papers. At 10 Mbit/s it
takes 200 ms, after the four or five round trips of slow start."""

_SYN_RETRIES_S = 3.0
"""Time in which the kernel repeats the SYN of a subflow twice, after 1 s and 2 s."""
_MARGIN_S = 0.2
"""Time that handshakes may take in addition to their round trips: waits of the hosts and in queues."""

_FALLBACK_COUNTERS = (
    "MPTcpExt.MPCapableFallbackACK",
    "MPTcpExt.MPCapableFallbackSYNACK",
    "MPTcpExt.MPFallbackTokenInit",
    "MPTcpExt.InfiniteMapTx",
    "MPTcpExt.InfiniteMapRx",
    "MPTcpExt.DSSCorruptionFallback",
)
_BLACKHOLE_TIMEOUT = "/proc/sys/net/mptcp/blackhole_timeout"


class Mptcp(Transport):
    """`Transport` over kernel Multipath TCP on both interfaces."""

    def __init__(self, options: MptcpOptions, interfaces: Mapping[str, str]) -> None:
        self._primary = INTERFACES[options.primary]
        self._backup = options.mode == "backup"
        self._interfaces = dict(interfaces)
        self.direct = options.via == "direct"

    @property
    def expected_subflows(self) -> int:
        """Number of subflows that a long-lived connection must have: one per interface without a middlebox.

        One if a middlebox removes the options from the initial subflow: the connection is then plain TCP.
        """
        if self._falls_back:
            return 1
        return len(self._interfaces.keys() - set(self.stripped))

    @property
    def _falls_back(self) -> bool:
        """Return whether every connection must fall back, because of a middlebox on the primary path."""
        return self._primary in self.stripped

    def _may_fall_back(self, story: Disturbances) -> bool:
        """Return whether single connections may fall back, so that each one is judged by its start."""
        return self._falls_back or bool(story.outages) or (bool(self.stripped) and story.rerouted_s < inf)

    def setup(self, phone: Phone, undo: UndoStack) -> None:
        """Make the primary interface the default route, and add one MPTCP endpoint per interface."""
        undo.register("phone: default route over WiFi", lambda: phone.prefer(WLAN))
        undo.register(
            "phone: no MPTCP endpoints",
            lambda: phone.ip("mptcp endpoint flush", "mptcp limits set subflow 0 add_addr_accepted 0"),
        )
        phone.sysctl({"net.mptcp.enabled": 1})
        if phone.shell(["test", "-e", _BLACKHOLE_TIMEOUT], check=False).exit_code == 0:
            # Without it, SYNs lost in an outage would disable MPTCP for an hour, and for the following cells.
            phone.sysctl({"net.mptcp.blackhole_timeout": 0})
        endpoints = [
            f"mptcp endpoint add {address} dev {device} subflow"
            + (" backup" if self._backup and device != self._primary else "")
            for device, address in self._interfaces.items()
        ]
        phone.prefer(self._primary)
        phone.ip(
            f"mptcp limits set subflow {_SUBFLOW_LIMIT} add_addr_accepted {_SUBFLOW_LIMIT}",
            *endpoints,
        )

    def missing_on_phone(self, read_kernel: Callable[[], KernelMptcp]) -> str:
        """Return why a rooted phone's kernel has no usable Multipath TCP; "" if it has; see `Transport`."""
        problem = cell_problem_of(read_kernel())
        return f"no Multipath TCP: {problem}" if problem else ""

    def agent_settings(self) -> AgentSettings:
        """Return settings with which the agent opens MPTCP sockets that follow the phone's routes."""
        return AgentSettings("mptcp", listener="mptcp")

    def check_active(self, active: ActiveCheck) -> list[str]:
        """Return reasons why the test connection was not MPTCP with a subflow from every interface.

        Behind a middlebox that removes the options there must be no subflow; on the primary path the connection must
        have fallen back to plain TCP.
        """
        local = active.get("local", ())
        if self._falls_back:
            if active.get("mptcp"):
                return [f"the test connection was Multipath TCP, although {self._removed([self._primary])}"]
            elsewhere = self._interfaces[self._primary] not in local
            return [f"the test connection did not leave from {self._primary}"] if elsewhere else []
        if not active.get("mptcp"):
            return ["the test connection was plain TCP, Multipath TCP was requested"]
        reasons = []
        for device, address in self._interfaces.items():
            if device in self.stripped and address in local:
                reasons.append(f"the test connection had a subflow on {device}, although {self._removed([device])}")
            elif device not in self.stripped and address not in local:
                reasons.append(f"the test connection had no subflow on {device}")
        return reasons

    def _removed(self, devices: Iterable[str]) -> str:
        return f"a middlebox removes its options on {' and '.join(devices)}"

    def prove(self, evidence: Evidence) -> list[str]:
        """Return reasons why counters and captures do not prove that the cell used Multipath TCP; [] if they do.

        No connection may have fallen back to plain TCP. Initial subflows must be on the primary path. A long connection
        must have at least `expected_subflows` subflows. Effects of outages are excused, and handshakes of subflows that
        can last longer than the connection (`_unfinished_joins`). Behind a middlebox that removes the options, the
        reverse must be true: connections that begin there fall back, and others have no subflow there.
        """
        reasons = self.check_active(evidence.active)
        fallbacks = {c: n for c in _FALLBACK_COUNTERS if (n := evidence.phone_counters.get(c, 0))}
        if fallbacks and not self._may_fall_back(evidence.disturbances):
            counts = ", ".join(f"{name} {count}" for name, count in fallbacks.items())
            reasons.append(f"the kernel counted fall-backs to plain TCP: {counts}")
        if self.direct:
            reasons += self._prove_at_origin(evidence)
        return reasons + (self._prove_captured(evidence) if evidence.captured else [])

    def _prove_at_origin(self, evidence: Evidence) -> list[str]:
        """Return reasons why the origin did not see Multipath TCP of the phone, by counters and capture; [] if it did.

        As on the phone: no plain TCP, and two subflows for long connections, except for effects of outages. Behind a
        middlebox that removes options, only the phone's records decide.
        """
        reasons, counters, story = at_origin(evidence), evidence.origin_counters, evidence.disturbances
        if self.stripped:
            return reasons  # the origin does not see what the middlebox has removed
        if not counters.get("MPTcpExt.MPCapableACKRX", 0):
            reasons.append("the origin's kernel accepted no Multipath TCP connection")
        fallbacks = {c: n for c in _FALLBACK_COUNTERS if (n := counters.get(c, 0))}
        if fallbacks and not story.outages:
            counts = ", ".join(f"{name} {count}" for name, count in fallbacks.items())
            reasons.append(f"the origin's kernel counted fall-backs to plain TCP: {counts}")
        rows = [row for row in evidence.origin_connections if not self._begun_in_outage(row, story)]
        if plain := sum(row["kind"] != "mptcp" or row["fallback"] for row in rows):
            reasons.append(f"{plain} of {len(rows)} connections were plain TCP at the origin")
        # A lost SYN of a subflow did not reach the origin: then only the time decides.
        excused = partial(_joins_that_time_excuses, devices=self._interfaces, evidence=evidence)
        if single := self._single(rows, evidence, excused):
            reasons.append(f"{single} long connections never had a second subflow at the origin")
        return reasons

    def _prove_captured(self, evidence: Evidence) -> list[str]:
        if not evidence.connections:
            return ["no TCP connection was captured"]
        reasons = []
        story = evidence.disturbances
        initial = {flow["connection_id"]: flow["interface"] for flow in evidence.subflows if flow["role"] == "initial"}
        begun_on = {
            row["connection_id"]: initial.get(row["connection_id"], self._primary) for row in evidence.connections
        }
        plain = sum(
            (row["kind"] != "mptcp" or row["fallback"])
            and begun_on[row["connection_id"]] not in self.stripped
            and not self._begun_in_outage(row, story)
            for row in evidence.connections
        )
        multipath = [
            device
            for row in evidence.connections
            if row["kind"] == "mptcp"
            and not row["fallback"]
            and (device := begun_on[row["connection_id"]]) in self.stripped
        ]
        if plain:
            reasons.append(f"{plain} of {len(evidence.connections)} connections were plain TCP")
        if multipath:
            removed = self._removed(sorted(set(multipath)))
            reasons.append(
                f"{len(multipath)} of {len(evidence.connections)} connections were Multipath TCP, although {removed}"
            )
        through = {
            flow["interface"]
            for flow in evidence.subflows
            if flow["role"] == "additional" and flow["established"] and flow["interface"] in self.stripped
        }
        if through:
            reasons.append(f"there were subflows on {' and '.join(sorted(through))}, although {self._removed(through)}")
        elsewhere = sum(
            flow["role"] == "initial"
            and flow["interface"] != self._primary
            and not self._begun_in_outage(flow, story)
            and not (story.rerouted_s < inf and story.rerouted_s <= _begin_s(flow))
            for flow in evidence.subflows
        )
        if elsewhere:
            reasons.append(f"{elsewhere} connections began on another interface than {self._primary}")
        if single := self._single(evidence.connections, evidence, partial(_unfinished_joins, evidence=evidence)):
            reasons.append(f"{single} long connections never had a second subflow")
        return reasons + self._prove_backup(evidence)

    def _single(
        self, connections: Iterable[ConnectionRow], evidence: Evidence, excused: Callable[[ConnectionRow], int]
    ) -> int:
        """Return the number of long connections with too few subflows.

        An outage can excuse a connection, and `excused` returns the number of subflows that a connection may lack.
        """
        story = evidence.disturbances
        return sum(
            row["bytes_up"] + row["bytes_down"] >= _LONG_CONNECTION_BYTES
            and row["subflows"] + excused(row) < self.expected_subflows
            and not (story.outages and story.excuse(self._interfaces, _begin_s(row), _begin_s(row) + row["duration_s"]))
            for row in connections
        )

    def _prove_backup(self, evidence: Evidence) -> list[str]:
        carried = sum(
            flow["unique_up"] + flow["unique_down"] for flow in evidence.subflows if flow["interface"] != self._primary
        )
        if self._backup and carried and self._primary not in evidence.disturbances.devices:
            return [f"{carried} bytes went over the backup path while the primary path was up"]
        return []

    def _begun_in_outage(self, row: ConnectionRow | SubflowRow, story: Disturbances) -> bool:
        """Return True when a connection or subflow began in an outage of the primary path.

        Such a connection uses another path, or its SYNs are lost.
        """
        return bool(story.outages) and story.out(self._primary, _begin_s(row))


def _begin_s(row: ConnectionRow | SubflowRow) -> float:
    return float(row["start_ns"]) / 1e9


def _end_s(flow: SubflowRow) -> float:
    return _begin_s(flow) + flow["duration_s"]


def _may_lack(connection: ConnectionRow, device: str, evidence: Evidence) -> bool:
    """Return whether a connection ended before a subflow on an interface had to be established.

    The second subflow is established after about two round trips of the first path and two of the second one. The
    kernel repeats SYNs that a path loses.
    """
    retries_s = _SYN_RETRIES_S if device in evidence.lossy else 0.0
    return connection["duration_s"] < 2 * sum(evidence.rtts_s.values()) + _MARGIN_S + retries_s


def _joins_that_time_excuses(connection: ConnectionRow, devices: Iterable[str], evidence: Evidence) -> int:
    return sum(_may_lack(connection, device, evidence) for device in devices)


def _unfinished_joins(connection: ConnectionRow, evidence: Evidence) -> int:
    """Return the number of subflows of a connection whose handshakes did not end before the connection did.

    A subflow that the server reset while another subflow was open does not count: the server refused it.
    """
    flows = [flow for flow in evidence.subflows if flow["connection_id"] == connection["connection_id"]]
    over_s = max((_end_s(flow) for flow in flows if flow["established"]), default=inf)
    return sum(
        not flow["established"]
        and not (flow["reset_by"] == "server" and _end_s(flow) <= over_s)
        and _may_lack(connection, flow["interface"], evidence)
        for flow in flows
    )
