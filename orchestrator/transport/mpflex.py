"""MPFlex: every application connection is a stream of one session, over a persistent TCP connection per interface."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from orchestrator.lab import topology
from orchestrator.phone import Phone
from orchestrator.spec.resolve import Look
from orchestrator.transport.protocol import AgentSettings, Evidence
from orchestrator.undo import UndoStack

Scheduler = Literal["earliest", "minrtt", "txdelay", "roundrobin", "redundant", "backup", "single"]
Trigger = Literal["tail", "stall", "buffer"]

LOOKS: Mapping[str, Look] = {
    "earliest": Look("MPFlex", "#D55E00", "^"),
    "minrtt": Look("MPFlex min-RTT", "#CC79A7", "v"),
    "txdelay": Look("MPFlex TxDelay", "#56B4E9", "P"),
    "roundrobin": Look("MPFlex round robin", "#7F7F7F", "X"),
    "redundant": Look("MPFlex redundant", "#8C564B", "<"),
    "backup": Look("MPFlex backup", "#17BECF", ">"),
    "single": Look("MPFlex single path", "#BCBD22", "h"),
}
"""How each scheduler is drawn."""

_TRIGGERS: tuple[Trigger, ...] = ("tail", "stall", "buffer")
_TROUBLES = frozenset({"stalled", "ended", "failed"})
"""What happens to a path in a cell in which nobody asked for it."""

_PINNED = frozenset({"backup", "single"})
"""Schedulers that use one path as long as it works."""

_LONG_CONNECTION_BYTES = 256_000
"""A connection that carried so much filled the congestion window of every path more than once."""

_DEVICES: Mapping[str, str] = {"wifi": topology.WLAN, "lte": topology.RMNET}


class MpflexOptions(BaseModel):
    """Options of ``mpflex`` in an experiment file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    scheduler: Scheduler = Field(default="earliest", description="which path a message takes; mpflex:NAME says it, too")
    primary: Literal["wifi", "lte"] | None = Field(
        default=None, description="the path of the schedulers single and backup; wifi when left out"
    )
    plain: bool = Field(default=False, description="paths without TLS, for measurements")
    reinjection: tuple[Trigger, ...] = Field(
        default=_TRIGGERS, description="which late messages are copied to another path; [] for none"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.primary is not None and self.scheduler not in _PINNED:
            raise ValueError(f"scheduler '{self.scheduler}' has no 'primary' path: only single and backup have")
        if len(set(self.reinjection)) < len(self.reinjection):
            raise ValueError("'reinjection' has the same entry twice")
        return self


class Mpflex:
    """`Transport` over a session with a path on every interface."""

    def __init__(self, options: MpflexOptions, interfaces: Mapping[str, str]) -> None:
        self._options = options
        self._interfaces = dict(interfaces)
        self._primary = _DEVICES[options.primary or "wifi"]

    @property
    def expected_subflows(self) -> int:
        """One path per interface."""
        return len(self._interfaces)

    def setup(self, phone: Phone, undo: UndoStack) -> None:
        """Nothing: the agent binds each path to its interface."""

    def agent_settings(self) -> AgentSettings:
        """A session over all interfaces, the primary one first; the proxy has the same settings for its direction."""
        options = self._options
        return AgentSettings(
            "mpflex",
            "",
            paths=tuple(sorted(self._interfaces, key=lambda device: device != self._primary)),
            plain=options.plain,
            session={
                "scheduler": options.scheduler,
                "reinjection": {trigger: trigger in options.reinjection for trigger in _TRIGGERS},
            },
        )

    def check_active(self, active: Mapping[str, Any]) -> list[str]:
        """The test session had a path on every interface, private unless asked otherwise."""
        if active.get("transport") != "mpflex":
            return [f"the test connection was {active.get('transport')}, mpflex was asked"]
        reasons = [
            f"the test session had no path on {device}"
            for device in self._interfaces
            if device not in active.get("paths", ())
        ]
        if reasons or not active.get("ok"):
            reasons.append(f"the test session failed: {active.get('error')}")
        if bool(active.get("plain")) != self._options.plain:
            reasons.append("the paths were {}, {} were asked".format(*_privacy(plain=self._options.plain)))
        return reasons

    def prove(self, evidence: Evidence) -> list[str]:
        """One lasting path per interface and no other connection; long connections over the paths of the scheduler."""
        reasons = [*self.check_active(evidence.active), *self._prove_paths(evidence), *self._prove_streams(evidence)]
        return reasons + (self._prove_captured(evidence) if evidence.captured else [])

    def _prove_paths(self, evidence: Evidence) -> list[str]:
        """Why the paths were not there all the time."""
        attached: Counter[str] = Counter()
        troubles: Counter[tuple[str, str, str]] = Counter()
        for event in evidence.log:
            if event["event"] != "path":
                continue
            device, what = event["interface"], event["what"]
            if what == "attached":
                attached[device] += 1
            elif attached[device] and (what != "stalled" or device not in evidence.lossy) and what in _TROUBLES:
                troubles[device, what, event.get("error", "")] += 1
        return [
            *(f"the agent had no path on {device}" for device in self._interfaces if not attached[device]),
            *(
                f"the path on {device} {what} {_times(count)}{f': {error}' if error else ''}"
                for (device, what, error), count in troubles.items()
            ),
        ]

    def _prove_streams(self, evidence: Evidence) -> list[str]:
        streams = [event for event in evidence.log if event["event"] == "connection"]
        if not streams:
            return ["the agent's log has no connection"]
        if self._options.scheduler in _PINNED:
            elsewhere = sum(
                path["bytes_in"] + path["bytes_out"] + path["copies_out"]
                for stream in streams
                for path in stream.get("paths", ())
                if path["interface"] != self._primary
            )
            return [f"{elsewhere} bytes went over another path than {self._primary}"] if elsewhere else []
        partial = [
            stream
            for stream in streams
            if stream["bytes_up"] + stream["bytes_down"] >= _LONG_CONNECTION_BYTES
            and not _carriers(stream) >= set(self._interfaces)
        ]
        return [f"{len(partial)} long connections did not use every path"] if partial else []

    def _prove_captured(self, evidence: Evidence) -> list[str]:
        """The connections that began in the captures are the paths alone."""
        if any(row["kind"] == "mptcp" for row in evidence.connections):
            return ["Multipath TCP was negotiated, mpflex was asked"]
        begun = Counter(flow["interface"] for flow in evidence.subflows)
        return [
            f"{begun[device]} TCP connections to the proxy began on {device}, one path was asked"
            for device in self._interfaces
            if begun[device] != 1
        ]


def session_summary(agent: Iterable[Mapping[str, Any]], proxy: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """What each path of a session carried for its streams, from the logs of both sides; {} without a session.

    Args:
        agent: records of the agent's log.
        proxy: those of the proxy's, of the same cell.

    Returns:
        ``paths``: interface → ``{bytes_up, bytes_down, copied_up, copied_down}``: bytes of streams, each once, and of
        copies. ``events``: what happened to the paths.
    """
    paths: dict[str, Counter[str]] = {}
    events = []
    for direction, records in (("up", agent), ("down", proxy)):
        for record in records:
            if record["event"] == "path" and direction == "up":
                kept = ("t", "what", "interface", "incarnation", "error")
                events.append({name: record[name] for name in kept if name in record})
            for path in record.get("paths", ()) if record["event"] == "connection" else ():
                counts = paths.setdefault(path["interface"], Counter())
                counts[f"bytes_{direction}"] += path["bytes_out"]
                counts[f"copied_{direction}"] += path["copies_out"]
    names = ("bytes_up", "bytes_down", "copied_up", "copied_down")
    summary = {interface: {name: counts[name] for name in names} for interface, counts in sorted(paths.items())}
    return {"paths": summary, "events": events} if summary or events else {}


def _carriers(stream: Mapping[str, Any]) -> set[str]:
    """The interfaces that carried bytes of a stream."""
    return {path["interface"] for path in stream.get("paths", ()) if path["bytes_in"] + path["bytes_out"] > 0}


def _privacy(*, plain: bool) -> tuple[str, str]:
    """What the paths were, and what was asked, when they differ."""
    return ("private", "plain ones") if plain else ("plain", "private ones")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
