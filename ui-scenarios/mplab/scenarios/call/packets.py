"""Score voice packets and the player by ``getStats``, second by second (W3C webrtc-stats)."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean

from mplab.analysis.metric import Observation

from .stalls import Span

_SETTLED_S = 2.0
"""Time from a call's first sample in which the player adapts its buffer, s. Jitter values of this time are ignored."""


def measured(samples: Sequence[Observation], left_out: Mapping[str, Sequence[Span]]) -> dict[str, float]:
    """Return metric → value over all calls.

    Args:
        samples: observations ``statistics`` of the phone.
        left_out: call → spans to ignore, unix seconds.
    """
    by_call: dict[str, list[Observation]] = {}
    for sample in samples:
        if "inbound" in sample:
            by_call.setdefault(str(sample["call"]), []).append(sample)
    seconds = [
        (before, after)
        for call, found in by_call.items()
        for before, after in pairwise(found)
        if not _within(before["at"], after["at"], left_out.get(call, ()))
    ]
    return {**_shares(seconds), **_jitter(seconds, by_call)}


def _within(begin: float, end: float, spans: Sequence[Span]) -> bool:
    return any(begin < last and end > first for first, last in spans)


_Seconds = Sequence[tuple[Observation, Observation]]


def _shares(seconds: _Seconds) -> dict[str, float]:
    """Return the metrics that divide the growth of one counter by the growth of another counter."""

    def grown(name: str, group: str = "inbound") -> float:
        growth = (after.get(group, {}).get(name, 0) - before.get(group, {}).get(name, 0) for before, after in seconds)
        return float(sum(growth))

    received, lost = grown("packetsReceived"), max(0.0, grown("packetsLost"))
    quotients = {
        "concealment": (100 * grown("concealedSamples"), grown("totalSamplesReceived")),
        "packets_lost": (100 * lost, received + lost),
        "packets_discarded": (100 * grown("packetsDiscarded"), received),
        "jitter_buffer_delay": (1000 * grown("jitterBufferDelay"), grown("jitterBufferEmittedCount")),
        "call_round_trip": (1000 * grown("totalRoundTripTime", "pair"), grown("responsesReceived", "pair")),
        "voice_rate": (8 * grown("bytesReceived") / 1000, sum(after["at"] - before["at"] for before, after in seconds)),
    }
    return {name: above / below for name, (above, below) in quotients.items() if below > 0}


def _jitter(seconds: _Seconds, by_call: Mapping[str, Sequence[Observation]]) -> dict[str, float]:
    settled = {call: found[0]["at"] + _SETTLED_S for call, found in by_call.items()}
    jitter_ms = [
        1000 * after["inbound"]["jitter"] for _, after in seconds if after["at"] >= settled[str(after["call"])]
    ]
    return {"voice_jitter": fmean(jitter_ms), "voice_jitter_worst": max(jitter_ms)} if jitter_ms else {}
