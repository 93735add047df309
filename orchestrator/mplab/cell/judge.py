"""Judge whether a cell had the requested treatment. Every function is pure: none reads a file or a device."""

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
    """The verdict on a cell.

    Attributes:
        reasons: why the cell is invalid; empty: it is ok.
        warnings: disturbances that do not make the cell invalid.
    """

    reasons: Sequence[str]
    warnings: Sequence[str]


def judge(evidence: CellEvidence, treatment: Treatment) -> CellVerdict:
    """Judge a cell that completed all its steps: compare `evidence` with the requested `treatment`."""
    links, absent = evidence.changed["links"], evidence.disturbances.devices
    reasons = [
        *_judge_proxy(evidence.proxy_algorithms, treatment.sockets.congestion_control),
        *treatment.transport.prove(evidence.of_transport(treatment.paths)),
        *judge_emulation(links, absent=absent),
        *evidence.parts,
        *(judge_handed_over(evidence.agent_log) if treatment.handed_over else ()),
    ]
    return CellVerdict(reasons, [*judge_captures(evidence.captures), *judge_punctuality(links)])


def judge_active(active: ActiveCheck, treatment: Treatment) -> list[str]:
    """Return why the test connection before the scenario did not use the requested transport; empty if it did."""
    reasons = treatment.transport.check_active(active)
    algorithm = active.get("congestion_control", "")
    if algorithm != treatment.sockets.congestion_control:
        shown = algorithm or "an unknown congestion control"
        whose = "applications'" if treatment.transport.direct else "agent's"
        reasons.append(f"the {whose} sockets use {shown}, {treatment.sockets.congestion_control} was requested")
    if treatment.transport.direct:
        used = active.get("origin_congestion_control") or "an unknown congestion control"
        if used != treatment.sockets.congestion_control:
            reasons.append(f"the origin's sockets use {used}, {treatment.sockets.congestion_control} was requested")
    most = treatment.sockets.receive_buffer_bytes
    if most is not None and not 0 < (found := active.get("receive_buffer_bytes", 0)) <= most:
        shown = f"{found} bytes" if found else "an unknown size"
        reasons.append(f"the receive buffer of the phone's sockets has {shown}, at most {most} was requested")
    return reasons


def _judge_proxy(used: Sequence[str], requested: str) -> list[str]:
    if set(used) <= {requested}:
        return []
    return [f"the proxy's sockets used {', '.join(used)}, {requested} was requested"]


def judge_links(
    requested: Mapping[str, PathCondition], measured: Mapping[str, PathMeasurement], tolerance: Tolerance
) -> list[str]:
    """Return why the measured links are not the requested ones, one sentence for each difference; empty if they are."""
    return [
        reason
        for interface, path in requested.items()
        for reason in _judge_path(interface, path, measured[interface], tolerance)
    ]


def _judge_path(interface: str, requested: PathCondition, measured: PathMeasurement, tolerance: Tolerance) -> list[str]:
    quantities = [
        ("rate down", _judged_rate(requested.down), measured.down_kbps, "kbit/s", tolerance.rate_percent),
        ("rate up", _judged_rate(requested.up), measured.up_kbps, "kbit/s", tolerance.rate_percent),
    ]
    reasons = _judge_rtt(requested, measured, tolerance)
    reasons += [
        f"{name} {value:.4g} {unit} measured, {wanted:.4g} {unit} asked "
        f"(off by {abs(value - wanted) / wanted:.0%}, {percent:g} % allowed)"
        for name, wanted, value, unit, percent in quantities
        if wanted and value is not None and abs(value - wanted) > wanted * percent / 100
    ]
    reasons += _judge_loss(requested, measured)
    return [f"{interface}: {reason}" for reason in reasons]


_MOST_LOSS_OF_RATE_PERCENT = 20.0


def _judged_rate(way: Direction) -> float | None:
    """Return the rate that a probe must measure, in kbit/s; None: a probe cannot measure it.

    A probe sends at 1.3 times the requested rate (docs/linkem.md). If the requested loss is above
    `_MOST_LOSS_OF_RATE_PERCENT`, the remaining packets do not keep the link busy.
    """
    return way.rate_kbps if way.loss_percent <= _MOST_LOSS_OF_RATE_PERCENT else None


_MOST_REORDERED = 0.25
_JITTER_SPREAD = {"uniform": 0.8, "normal": 1.0, "pareto": 1.0, "paretonormal": 1.0}
"""Tolerance of the median of 15 echoes, as a multiple of the jitter: three standard errors of the median. One standard
error is 1 / (2 f sqrt(n)), where f is the density at the median: 1 / 2 for uniform ± 1, and 0.4 where the jitter is the
standard deviation.
"""

_ECHO_BYTES = 76
"""IP bytes of an echo of the probe (``linkem/probe``): a slow link takes noticeable time to send it."""


def _judge_rtt(requested: PathCondition, measured: PathMeasurement, tolerance: Tolerance) -> list[str]:
    wanted, value = requested.rtt_ms, measured.rtt_ms_median
    overtaking = 1 - (1 - requested.down.reorder_percent / 100) * (1 - requested.up.reorder_percent / 100)
    if not wanted or overtaking > _MOST_REORDERED:
        return []  # if many echoes skip the delay, the median is not that of the delayed ones
    spread_ms = math.hypot(
        *(direction.jitter_ms * _JITTER_SPREAD[direction.distribution] for direction in (requested.down, requested.up))
    )
    echo_ms = sum(8 * _ECHO_BYTES / way.rate_kbps for way in (requested.down, requested.up) if way.rate_kbps)
    if abs(value - wanted - echo_ms) <= wanted * tolerance.rtt_percent / 100 + spread_ms:
        return []
    if value > wanted and (requested.down.trace or requested.up.trace):
        return []  # packets wait for a delivery opportunity of the trace
    allowed = f"{tolerance.rtt_percent:g} %" + (f" and {spread_ms:.3g} ms for the jitter" if spread_ms else "")
    off = abs(value - wanted) / wanted
    return [f"RTT {value:.4g} ms measured, {wanted:.4g} ms asked (off by {off:.0%}, {allowed} allowed)"]


_CHANCE = 1e-4
"""Maximum probability of each tail: a number of losses in a tail is not explained by chance."""


def _judge_loss(requested: PathCondition, measured: PathMeasurement) -> list[str]:
    """Return why the measured loss of echoes is not the requested one, by the binomial distribution; empty if it is.

    Bursts of losses reduce the effective number of echoes. The variance of the mean of n values of a two-state Markov
    chain equals that of n (1 - c) / (1 + c) independent values, where c is the correlation of two consecutive values.
    """
    wanted = requested.round_trip_loss_percent
    correlation = max(
        direction.loss.correlation if isinstance(direction.loss, GilbertElliott) else 0.0
        for direction in (requested.down, requested.up)
    )
    echoes = int(measured.loss_sent * (1 - correlation) / (1 + correlation))
    if not wanted or not echoes:
        return []
    low, high = (100 * losses / echoes for losses in _likely_losses(echoes, wanted / 100))
    if low <= measured.loss_percent <= high:
        return []
    return [
        f"loss {measured.loss_percent:.3g} % of {measured.loss_sent} echoes measured, "
        f"{wanted:.3g} % asked there and back "
        f"({low:.3g} to {high:.3g} % would be chance)"
    ]


def _likely_losses(count: int, share: float) -> tuple[int, int]:
    """Return the smallest and the largest likely number of losses among `count` echoes.

    The probability of a number below this range is at most `_CHANCE`, and so is that of a number above it.
    """
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
    """Return a sentence for each counter of packets that the link emulator lost although no loss was requested.

    Args:
        counters: growth of each of the shaper's counters during the cell.
        absent: interfaces of the phone with outages. Their counter ``dropped_send`` is ignored, because packets sent to
            an interface that is down are lost on sending.
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
    """Return a sentence for each link on which more than 1 % of the packets left the emulator late: unrequested jitter.

    Late is more than 1 ms after the due time (docs/linkem.md). The sentence has the mean lateness of the late packets,
    if the emulator counted it.

    Args:
        counters: growth of each of the shaper's counters during the cell.
    """
    late = {name.rpartition(".")[0]: count for name, count in counters.items() if name.endswith(".late_packets")}
    return [
        f"{link}: {count} of {sent} packets left the link emulator late{_by(link, count, counters)}: the host was busy"
        for link, count in late.items()
        if (sent := counters.get(f"{link}.packets_out", 0)) and count > sent * _LATE_SHARE
    ]


def _by(link: str, late: int, counters: Mapping[str, int]) -> str:
    late_us = counters.get(f"{link}.late_us", 0)
    return f", by {late_us / late / 1000:.1f} ms on average" if late_us else ""


def judge_captures(captures: Sequence[CaptureResult]) -> list[str]:
    """Return a sentence for each capture that missed packets."""
    return [f"{c.file}: {c.dropped} packets were dropped by the capture" for c in captures if c.dropped]


def judge_handed_over(log: Iterable[LogRecord]) -> list[str]:
    """Return why apps that were configured with the agent's address did not use it; empty if they did.

    Args:
        log: records of the agent's log. Connections that the agent opens itself, to the name server, have no ``src``.
    """
    carried = (record for record in log if record["event"] == "connection" and record["src"])
    if any(record["bytes_up"] + record["bytes_down"] for record in carried):
        return []
    return ["no app gave the agent a connection, and without root nothing else leads to it"]
