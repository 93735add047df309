"""MPFlex: each application connection is a stream of one session, which has a lasting TCP connection per interface."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mplab.base.outages import Disturbances
from mplab.base.paths import INTERFACES, RMNET, WLAN
from mplab.drivers.transport.mpflex.options import PINNED, POLICIES_DIR, TRIGGERS, MpflexOptions
from mplab.drivers.transport.protocol import AgentSettings, Evidence, Transport
from mplab.format.agentlog import ActiveCheck, ConnectionRecord, LogRecord, PathRecord, SessionSummary

_TROUBLES = frozenset({"stalled", "ended", "failed"})
"""Events of a path that count as problems unless the experiment caused them."""

_REPLACED = frozenset({"", "another connection has taken its place"})
"""Errors in the event ``ended`` of a path that stalled and was set up again; "": the proxy noticed the stall first."""

_REPLACING_S = 1.0
"""Maximum time between the end of a path and the start of its replacement, s."""

_LONG_CONNECTION_BYTES = 256_000
"""Minimum size of a long connection, both directions, bytes: it has filled every congestion window more than once."""

_LONG_CONNECTION_BPS = 150_000
"""Minimum rate of a long connection, both directions, bit/s. Below it, one path is enough: a call has 100 kbit/s."""

_KINDS: Mapping[str, str] = {"wifi": WLAN, "cellular": RMNET}


class Mpflex(Transport):
    """`Transport` over one MPFlex session, which has a path (a TCP connection) on every interface.

    Args:
        options: options in the experiment file.
        interfaces: interface of the phone → its address.
        files: contents that the experiment has read from `POLICIES_DIR`: ``policies/NAME.yaml`` → content.
    """

    def __init__(
        self, options: MpflexOptions, interfaces: Mapping[str, str], files: Mapping[str, bytes] | None = None
    ) -> None:
        self._options = options
        self._files = files or {}
        self._interfaces = dict(interfaces)
        self._primary = INTERFACES[options.primary or "wifi"]

    @property
    def expected_subflows(self) -> int:
        """Number of paths that a session must have: one per interface."""
        return len(self._interfaces)

    def _policy(self) -> str | None:
        """Return the content of the rule file that the options name; None if they name no rule file."""
        if self._options.policy is None:
            return None
        file = f"{self._options.policy}.yaml"
        content = self._files.get(f"{POLICIES_DIR.name}/{file}")
        return (content if content is not None else (POLICIES_DIR / file).read_bytes()).decode()

    def agent_settings(self) -> AgentSettings:
        """Return the agent's settings for a session over all interfaces, the primary interface first.

        The proxy gets the same settings for its sessions.
        """
        options = self._options
        return AgentSettings(
            "mpflex",
            listener="mpflex_plain" if options.plain else "mpflex",
            paths=tuple(sorted(self._interfaces, key=lambda device: device != self._primary)),
            plain=options.plain,
            policy=self._policy(),
            session={
                "scheduler": options.scheduler,
                "reinjection": {trigger: trigger in options.reinjection for trigger in TRIGGERS},
                "feeding": options.feeding,
                "send_buffer_bytes": options.send_buffer or 0,
            },
            datagrams=True,
        )

    def check_active(self, active: ActiveCheck) -> list[str]:
        """Return reasons why the test session is not as requested: no MPFlex, a missing path, or wrong encryption."""
        if active.get("transport") != "mpflex":
            return [f"the test connection was {active.get('transport')}, mpflex was requested"]
        reasons = [
            f"the test session had no path on {device}"
            for device in self._interfaces
            if device not in active.get("paths", ())
        ]
        if reasons or not active.get("ok"):
            reasons.append(f"the test session failed: {active.get('error')}")
        if bool(active.get("plain")) != self._options.plain:
            reasons.append("the paths were {}, {} were requested".format(*_privacy(plain=self._options.plain)))
        return reasons

    def prove(self, evidence: Evidence) -> list[str]:
        """Return reasons why log and captures do not prove that the cell ran over an MPFlex session; [] if they do.

        Every interface must have one lasting path and no other TCP connection to the proxy. Without a policy, long
        connections must have used the paths that the scheduler uses. With a policy, its rules must have been in force,
        and each connection must have used only the paths of its rule.
        """
        prove_streams = self._prove_streams if self._options.policy is None else self._prove_ruled_streams
        reasons = [*self.check_active(evidence.active), *self._prove_paths(evidence), *prove_streams(evidence)]
        return reasons + (self._prove_captured(evidence) if evidence.captured else [])

    def summarise(self, agent: Sequence[LogRecord], proxy: Sequence[LogRecord]) -> SessionSummary:
        """Return the bytes that each path carried, and the events of all paths; see `session_summary`."""
        return session_summary(agent, proxy)

    def _prove_paths(self, evidence: Evidence) -> list[str]:
        """Return reasons why an interface had no path, or lost it without a change by the experiment; or []."""
        attached: Counter[str] = Counter()
        troubles: Counter[tuple[str, str, str]] = Counter()
        for event in evidence.log:
            if event["event"] != "path":
                continue
            device, change = event["interface"], event["what"]
            if change == "attached":
                attached[device] += 1
            elif attached[device] and change in _TROUBLES and not _asked_for(event, evidence):
                troubles[device, change, event.get("error", "")] += 1
        return [
            *(f"the agent had no path on {device}" for device in self._interfaces if not attached[device]),
            *(
                f"the path on {device} {change} {_times(count)}{f': {error}' if error else ''}"
                for (device, change, error), count in troubles.items()
            ),
        ]

    def _prove_streams(self, evidence: Evidence) -> list[str]:
        streams = [event for event in evidence.log if event["event"] == "connection"]
        if not streams:
            return ["the agent's log has no connection"]
        if self._options.scheduler in PINNED:
            elsewhere = sum(
                path["bytes_in"] + path["bytes_out"] + path["copies_out"]
                for stream in streams
                if self._primary not in evidence.disturbances.devices
                for path in stream.get("paths", ())
                if path["interface"] != self._primary
            )
            return [f"{elsewhere} bytes went over another path than {self._primary}"] if elsewhere else []
        partial = [
            stream
            for stream in streams
            if _is_long(stream)
            and (missing := set(self._interfaces) - _carriers(stream))
            and not _excused(missing, stream, evidence.disturbances)
        ]
        return [f"{len(partial)} long connections did not use every path"] if partial else []

    def _prove_ruled_streams(self, evidence: Evidence) -> list[str]:
        """Return reasons why the policy was not in force, and how streams violated its rules; [] if there are none."""
        read = [event for event in evidence.log if event["event"] == "policy"]
        if not read:
            return [f"the agent read no policy, {self._options.policy} was requested"]
        reasons = [f"the policy was not in force: {event['error']}" for event in read if event.get("error")]
        streams = [event for event in evidence.log if event["event"] == "connection" and event.get("scheme")]
        if not streams:
            return [*reasons, "the agent's log has no connection that a rule decided over"]
        for stream in streams:
            reasons += self._prove_scheme(stream, evidence.disturbances)
        return list(dict.fromkeys(reasons))

    def _prove_scheme(self, stream: ConnectionRecord, disturbances: Disturbances) -> list[str]:
        scheme = read_scheme(stream["scheme"], self._interfaces)
        used = _carriers(stream)
        rule = f"rule '{stream.get('rule', '')}' ({stream['scheme']})"
        if strange := sorted(used - scheme.active - scheme.backup):
            return [f"a connection of {rule} went over {', '.join(strange)}"]
        spread = (self._options.scheduler if scheme.scheduler == "default" else scheme.scheduler) not in PINNED
        long = _is_long(stream)
        missing = sorted(scheme.active - used)
        if spread and long and missing and not _excused(missing, stream, disturbances):
            return [f"a long connection of {rule} did not use {', '.join(missing)}"]
        return []

    def _prove_captured(self, evidence: Evidence) -> list[str]:
        """Return reasons why the captures do not show exactly one new TCP connection to the proxy per interface.

        Several connections are allowed on an interface whose path the experiment interrupts, changes or makes lossy,
        because a path that stalls or ends is set up again. Negotiated Multipath TCP is always a reason.
        """
        if any(row["kind"] == "mptcp" for row in evidence.connections):
            return ["Multipath TCP was negotiated, mpflex was requested"]
        begun = Counter(flow["interface"] for flow in evidence.subflows)
        return [
            f"{begun[device]} TCP connections to the proxy began on {device}, one path was requested"
            for device in self._interfaces
            if begun[device] != 1
            and not (begun[device] and (device in evidence.disturbances.devices or _may_stall(device, evidence)))
        ]


def _is_long(stream: ConnectionRecord) -> bool:
    """Return True when a stream was so large and fast that it must have used several paths."""
    size = stream["bytes_up"] + stream["bytes_down"]
    return bool(size >= _LONG_CONNECTION_BYTES and 8 * size >= _LONG_CONNECTION_BPS * stream.get("duration_s", 0.0))


@dataclass(frozen=True)
class Scheme:
    """Scheduler and paths that a policy rule prescribes for the streams to which it applies.

    Attributes:
        scheduler: name of the scheduler; ``default``: the scheduler in the options of ``mpflex``.
        active: interfaces that carry the streams.
        backup: interfaces that carry them only when all active ones fail.
    """

    scheduler: str
    active: frozenset[str]
    backup: frozenset[str]


def read_scheme(text: str, interfaces: Iterable[str]) -> Scheme:
    """Parse the text that describes the scheme of a policy rule in the agent's log.

    Examples: ``minrtt over wifi``, ``default over every other path; backup cellular``.

    Raises:
        ValueError: the text has another form.
    """
    match = re.fullmatch(r"(\S+) over ([^;]+?)(?:; backup (.+))?", text)
    if match is None:
        raise ValueError(f"scheme {text!r}: not as the agent writes one")
    backup = _named_paths(match[3] or "")
    every = match[2] in {"every path", "every other path"}
    return Scheme(match[1], frozenset(interfaces) - backup if every else _named_paths(match[2]), backup)


def _named_paths(text: str) -> frozenset[str]:
    names = (name.strip() for name in text.split(","))
    return frozenset(_KINDS.get(name, name) for name in names if name)


def _asked_for(event: PathRecord, evidence: Evidence) -> bool:
    """Return True when a change by the experiment explains `event`: the stall, end or failure of a path."""
    device, story = event["interface"], evidence.disturbances
    if event["what"] == "stalled":
        # When one path is lost, its load moves to the others at once, and their queues grow.
        disturbed = any(story.out(other, event["t"]) for other in story.devices)
        return _may_stall(device, evidence) or disturbed
    return story.out(device, event["t"]) or (_may_stall(device, evidence) and _replaced(event, evidence.log))


def _replaced(event: PathRecord, log: Iterable[LogRecord]) -> bool:
    """Return True when `event` is the end of a path that had stalled and was set up again."""
    return (
        event["what"] == "ended"
        and event.get("error", "") in _REPLACED
        and any(
            other["event"] == "path"
            and (other["what"], other["interface"]) == ("attached", event["interface"])
            and other["incarnation"] > event["incarnation"]
            and abs(other["t"] - event["t"]) <= _REPLACING_S
            for other in log
        )
    )


def _may_stall(device: str, evidence: Evidence) -> bool:
    """Return True when the experiment makes the path on an interface lose packets, or changes its link condition."""
    return device in evidence.lossy or device in evidence.disturbances.reshaped


def _excused(missing: Iterable[str], stream: ConnectionRecord, story: Disturbances) -> bool:
    """Return True when an outage of `missing` (interfaces) by the experiment explains why a stream did not use them."""
    return bool(story.outages) and story.excuse(missing, stream["opened"], stream["opened"] + stream["duration_s"])


def _carriers(stream: ConnectionRecord) -> set[str]:
    """Return the interfaces that carried bytes of a stream."""
    return {path["interface"] for path in stream.get("paths", ()) if path["bytes_in"] + path["bytes_out"] > 0}


def _privacy(*, plain: bool) -> tuple[str, str]:
    """Return two phrases for the message that the encryption is not as requested: measured encryption, requested paths.

    Args:
        plain: paths without TLS were requested.
    """
    return ("private", "plain ones") if plain else ("plain", "private ones")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


_KEPT = ("t", "what", "interface", "incarnation", "error")
_NAMES = ("bytes_up", "bytes_down", "copied_up", "copied_down")


def session_summary(agent: Iterable[LogRecord], proxy: Iterable[LogRecord]) -> SessionSummary:
    """Return the bytes and events of each path of a session, from the logs of agent and proxy; {} without a session.

    Args:
        agent: records of the agent's log.
        proxy: records of the proxy's log of the same cell.

    Returns:
        ``paths``: interface → ``{bytes_up, bytes_down, copied_up, copied_down}``. ``bytes_*`` counts each byte of a
        stream once; ``copied_*`` counts the bytes of copies. ``events``: events of the paths in the agent's log.
    """
    paths: dict[str, Counter[str]] = {}
    events = []
    for direction, records in (("up", agent), ("down", proxy)):
        for record in records:
            if record["event"] == "path" and direction == "up":
                fields: Mapping[str, object] = record
                events.append({name: fields[name] for name in _KEPT if name in fields})
            for path in record.get("paths", ()) if record["event"] == "connection" else ():
                counts = paths.setdefault(path["interface"], Counter())
                counts[f"bytes_{direction}"] += path["bytes_out"]
                counts[f"copied_{direction}"] += path["copies_out"]
    summary = {interface: {name: counts[name] for name in _NAMES} for interface, counts in sorted(paths.items())}
    return {"paths": summary, "events": events} if summary or events else {}
