"""Sum the bytes that each path of a session carried, from the logs of agent and proxy."""

from collections import Counter
from collections.abc import Iterable, Mapping

from mplab.format.agentlog import LogRecord, SessionSummary

_KEPT = ("t", "what", "interface", "incarnation", "error")
_NAMES = ("bytes_up", "bytes_down", "copied_up", "copied_down")


def session_summary(agent: Iterable[LogRecord], proxy: Iterable[LogRecord]) -> SessionSummary:
    """Return the bytes that each path of a session carried, from the logs of both sides; {} without a session.

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
