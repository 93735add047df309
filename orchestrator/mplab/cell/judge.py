"""Whether a cell was what was asked: pure judgements on what was measured. Nothing here reads a file or a device."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from mplab.cell.evidence import CellEvidence, Treatment
from mplab.drivers.capture import CaptureResult
from mplab.drivers.shaper import PathMeasurement
from mplab.format.agentlog import ActiveCheck, LogRecord
from mplab.format.direction import Direction, GilbertElliott
from mplab.format.experiment import Tolerance
from mplab.format.path import PathCondition


@dataclass(frozen=True)
class CellVerdict:
    """Of a cell.

    Attributes:
        reasons: why it is invalid; empty: it is ok.
        warnings: what disturbed it; it counts all the same.
    """

    reasons: Sequence[str]
    warnings: Sequence[str]


def judge(evidence: CellEvidence, treatment: Treatment) -> CellVerdict:
    """Judge a cell that went through all its steps."""
    links, absent = evidence.changed["links"], evidence.disturbances.devices
    reasons = [
        *_judge_proxy(evidence.proxy_algorithms, treatment.congestion_control),
        *treatment.transport.prove(evidence.of_transport(treatment.paths)),
        *judge_emulation(links, absent=absent),
        *evidence.parts,
        *(judge_handed_over(evidence.agent_log) if treatment.handed_over else ()),
    ]
    return CellVerdict(reasons, [*judge_captures(evidence.captures), *judge_punctuality(links)])


def judge_active(active: ActiveCheck, treatment: Treatment) -> list[str]:
    """Why the test connection before the scenario is not what was asked; empty when it is."""
    reasons = treatment.transport.check_active(active)
    found = active.get("congestion_control", "")
    if found != treatment.congestion_control:
        words = found or "an unknown congestion control"
        reasons.append(f"the agent's sockets use {words}, {treatment.congestion_control} was asked")
    return reasons


def _judge_proxy(used: Sequence[str], asked: str) -> list[str]:
    if set(used) <= {asked}:
        return []
    return [f"the proxy's sockets used {', '.join(used)}, {asked} was asked"]


def judge_links(
    asked: Mapping[str, PathCondition], measured: Mapping[str, PathMeasurement], tolerance: Tolerance
) -> list[str]:
    """Why the links are not what was asked; empty when they are."""
    return [
        reason
        for interface, path in asked.items()
        for reason in _judge_path(interface, path, measured[interface], tolerance)
    ]


def _judge_path(interface: str, asked: PathCondition, found: PathMeasurement, tolerance: Tolerance) -> list[str]:
    quantities = [
        ("rate down", _judged_rate(asked.down), found.down_kbps, "kbit/s", tolerance.rate_percent),
        ("rate up", _judged_rate(asked.up), found.up_kbps, "kbit/s", tolerance.rate_percent),
    ]
    reasons = _judge_rtt(asked, found, tolerance)
    reasons += [
        f"{name} {value:.4g} {unit} measured, {wanted:.4g} {unit} asked "
        f"(off by {abs(value - wanted) / wanted:.0%}, {percent:g} % allowed)"
        for name, wanted, value, unit, percent in quantities
        if wanted and value is not None and abs(value - wanted) > wanted * percent / 100
    ]
    reasons += _judge_loss(asked, found)
    return [f"{interface}: {reason}" for reason in reasons]


_MOST_LOSS_OF_RATE_PERCENT = 20.0


def _judged_rate(way: Direction) -> float | None:
    """The rate that a probe has to find; None: it cannot tell.

    It sends 1.3 times as much (docs/linkem.md): where more is lost before the bottleneck, the link is not always busy.
    """
    return way.rate_kbps if way.loss_percent <= _MOST_LOSS_OF_RATE_PERCENT else None


_MOST_REORDERED = 0.25
_JITTER_SPREAD = {"uniform": 0.8, "normal": 1.0, "pareto": 1.0, "paretonormal": 1.0}
"""How far off the median of 15 echoes may be, in parts of the jitter: three standard errors of the median, which are
1 / (2 f sqrt(n)) each, f being the density there: 1 / 2 of ± 1, and 0.4 where the jitter is the standard deviation."""


def _judge_rtt(asked: PathCondition, found: PathMeasurement, tolerance: Tolerance) -> list[str]:
    wanted, value = asked.rtt_ms, found.rtt_ms_median
    overtaking = 1 - (1 - asked.down.reorder_percent / 100) * (1 - asked.up.reorder_percent / 100)
    if not wanted or overtaking > _MOST_REORDERED:
        return []  # with many echoes that skip the delay, the median is not that of the others
    spread_ms = math.hypot(*(way.jitter_ms * _JITTER_SPREAD[way.distribution] for way in (asked.down, asked.up)))
    if abs(value - wanted) <= wanted * tolerance.rtt_percent / 100 + spread_ms:
        return []
    if value > wanted and (asked.down.trace or asked.up.trace):
        return []  # packets wait for their opportunity
    allowed = f"{tolerance.rtt_percent:g} %" + (f" and {spread_ms:.3g} ms for the jitter" if spread_ms else "")
    off = abs(value - wanted) / wanted
    return [f"RTT {value:.4g} ms measured, {wanted:.4g} ms asked (off by {off:.0%}, {allowed} allowed)"]


_CHANCE = 1e-4
"""How rare, on either side, a number of losses must be to be no chance."""


def _judge_loss(asked: PathCondition, found: PathMeasurement) -> list[str]:
    """Losses of echoes follow the binomial distribution; those in bursts count as fewer echoes.

    The variance of the mean of n values of a two-state Markov chain is that of n (1 - c) / (1 + c) independent ones, c
    being the correlation of two in a row.
    """
    wanted = asked.round_trip_loss_percent
    correlation = max(
        way.loss.correlation if isinstance(way.loss, GilbertElliott) else 0.0 for way in (asked.down, asked.up)
    )
    echoes = int(found.loss_sent * (1 - correlation) / (1 + correlation))
    if not wanted or not echoes:
        return []
    low, high = (100 * losses / echoes for losses in _likely_losses(echoes, wanted / 100))
    if low <= found.loss_percent <= high:
        return []
    return [
        f"loss {found.loss_percent:.3g} % of {found.loss_sent} echoes measured, {wanted:.3g} % asked there and back "
        f"({low:.3g} to {high:.3g} % would be chance)"
    ]


def _likely_losses(count: int, share: float) -> tuple[int, int]:
    """The fewest and the most of `count` that are lost, but for `_CHANCE` on either side."""
    if share >= 1:
        return count, count
    below, low, high = 0.0, 0, count
    for losses in range(count + 1):
        log = math.lgamma(count + 1) - math.lgamma(losses + 1) - math.lgamma(count - losses + 1)
        chance = math.exp(log + losses * math.log(share) + (count - losses) * math.log1p(-share))
        if below + chance <= _CHANCE:
            low = losses + 1
        below += chance
        if below >= 1 - _CHANCE:
            high = losses
            break
    return low, high


_UNASKED_LOSSES = ("kernel_dropped", "dropped_send", "dropped_memory")


def judge_emulation(counters: Mapping[str, int], absent: Collection[str] = ()) -> list[str]:
    """What the link emulator lost without being asked to; empty when nothing.

    Args:
        counters: how much each of the shaper's counters has grown during the cell.
        absent: interfaces of the phone that were down for a time: what was sent to them then is lost at their door.
    """
    return [
        f"the link emulator lost {lost} packets that it should not have ({name}): the host is too busy"
        for name, lost in counters.items()
        if lost and name.rpartition(".")[2] in _UNASKED_LOSSES and not _at_the_door(name, absent)
    ]


def _at_the_door(counter: str, absent: Collection[str]) -> bool:
    link, _, lost = counter.split(".")
    return link in absent and lost == "dropped_send"


_LATE_SHARE = 0.01


def judge_punctuality(counters: Mapping[str, int]) -> list[str]:
    """Where the link emulator was often late (by more than 1 ms), which is jitter that nobody asked for.

    Args:
        counters: how much each of the shaper's counters has grown during the cell.
    """
    late = {name.rpartition(".")[0]: count for name, count in counters.items() if name.endswith(".late_packets")}
    return [
        f"{link}: {count} of {sent} packets left the link emulator late: the host was busy"
        for link, count in late.items()
        if (sent := counters.get(f"{link}.packets_out", 0)) and count > sent * _LATE_SHARE
    ]


def judge_captures(captures: Sequence[CaptureResult]) -> list[str]:
    """Which captures miss packets; empty when none does."""
    return [f"{c.file}: {c.dropped} packets were dropped by the capture" for c in captures if c.dropped]


def judge_handed_over(log: Iterable[LogRecord]) -> list[str]:
    """Why apps that had to be told the agent's address did not come to it; empty when they did.

    Args:
        log: records of the agent's log. Its own connections, to the name server, have no source.
    """
    carried = (record for record in log if record["event"] == "connection" and record["src"])
    if any(record["bytes_up"] + record["bytes_down"] for record in carried):
        return []
    return ["no app gave the agent a connection, and without root nothing else leads to it"]
