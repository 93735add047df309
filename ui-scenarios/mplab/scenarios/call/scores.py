"""Score calls by the speech that the phone's user hears, utterance by utterance."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean, pstdev
from typing import Literal

import polars as pl

from mplab.analysis.files import inside
from mplab.analysis.metric import (
    INTERFACE_BYTES,
    LOOK_RESOLUTION,
    NOT_NEGATIVE,
    Limits,
    Metric,
    Observation,
    Value,
    interface_bytes,
    look_resolution,
)
from mplab.scenarios.base.scoring.waiting import DIRECTIONS, wait_of

from . import quality, stalls
from .quality import Clock
from .stalls import Span

_EACH = ("call", "utterance")
_ANY: Limits = (None, None)
_PERCENT, _MOS = (0.0, 100.0), (0.9, 4.7)
_NARROW = "ITU-T P.862, P.862.1 (P.862 Corrigendum 2 included; pesqc2 0.0.4); nikravesh2016 §3.3"
_WIDE = "ITU-T P.862.2 (P.862 Corrigendum 2 included; pesqc2 0.0.4)"
_STATS, _DELAY = "W3C webrtc-stats", "ITU-T G.114"


def _metric(
    name: str,
    title: str,
    unit: str,
    source: str,
    *,
    better: Literal["lower", "higher", "neither"] = "lower",
    labels: tuple[str, ...] = (),
    headline: bool = False,
    limits: Limits = NOT_NEGATIVE,
    outcome: str = "",
) -> Metric:
    activity = "Calling" if outcome else ""
    return Metric(name, title, unit, better, labels, headline, source, limits, activity, outcome or "has {value}")


METRICS: tuple[Metric, ...] = (
    _metric(
        "mos_narrow",
        "PESQ MOS, narrow band, mean over utterances",
        "",
        _NARROW,
        better="higher",
        headline=True,
        limits=_MOS,
        outcome="has a narrow-band MOS of {value}",
    ),
    _metric(
        "mos_wide",
        "PESQ MOS, wide band, mean over utterances",
        "",
        _WIDE,
        better="higher",
        headline=True,
        limits=_MOS,
        outcome="has a wide-band MOS of {value}",
    ),
    # No limits: the clocks of both ends may differ outside of the virtual lab.
    _metric(
        "mouth_to_ear",
        "Delay from mouth to ear, mean",
        "ms",
        _DELAY,
        headline=True,
        limits=_ANY,
        outcome="delays speech by {value}",
    ),
    _metric(
        "concealment",
        "Sound that the player made up",
        "%",
        _STATS,
        headline=True,
        limits=_PERCENT,
        outcome="plays {value} made-up sound",
    ),
    _metric(
        "voice_jitter",
        "Jitter of the voice packets, mean",
        "ms",
        "RFC 3550 §6.4.1",
        headline=True,
        outcome="has a jitter of {value}",
    ),
    _metric("voice_jitter_worst", "Jitter of the voice packets, worst second", "ms", "RFC 3550 §6.4.1"),
    _metric("jitter_buffer_delay", "Wait in the receiver's jitter buffer, mean", "ms", _STATS),
    _metric("mouth_to_ear_95", "Delay from mouth to ear, 95 % quantile", "ms", _DELAY, limits=_ANY),
    _metric("mouth_to_ear_spread", "Standard deviation of the delay from mouth to ear", "ms", "nikravesh2016 §3.3"),
    _metric("call_round_trip", "Round trip of the call's connectivity checks, mean", "ms", _STATS),
    _metric("packets_lost", "Voice packets that never came", "%", "RFC 3550 §6.4.1", limits=_PERCENT),
    _metric("packets_discarded", "Voice packets that came too late or too early to be played", "%", _STATS),
    _metric("voice_rate", "Voice received, payload of RTP", "kbit/s", _STATS, better="neither"),
    _metric("setup_time", "From the answer to the connected call", "s", "ui-scenarios/call"),
    _metric("call_duration", "Time that the call lasted (Android)", "s", "ui-scenarios/call", better="higher"),
    _metric("calls_cut", "Calls that ended by themselves (Android)", "%", "ui-scenarios/call", limits=_PERCENT),
    _metric("not_found", "Speech of which nothing like it was heard", "%", "ui-scenarios/call", limits=_PERCENT),
    _metric(
        "reordering_delay", "Mean wait for the order at the receiver", "ms", "nikravesh2016 §3.3", labels=("direction",)
    ),
    _metric(
        "reordering_delay_95",
        "Wait for the order at the receiver, 95 %",
        "ms",
        "nikravesh2016 §3.3",
        labels=("direction",),
    ),
    _metric(
        "utterances_disturbed",
        "Utterances left out: the host stalled in them",
        "%",
        "ui-scenarios/call",
        limits=_PERCENT,
    ),
    _metric("host_stall_worst", "Longest stall of the host in an utterance", "ms", "ui-scenarios/call"),
    _metric("caller_pauses", "Pauses of the caller's microphone: the host was busy", "ms", "ui-scenarios/call"),
    _metric("player_pauses", "Pauses of the phone's player: the host was busy", "ms", "ui-scenarios/call"),
    _metric("utterance_mos_narrow", "PESQ MOS, narrow band", "", _NARROW, better="higher", labels=_EACH, limits=_MOS),
    _metric("utterance_mos_wide", "PESQ MOS, wide band", "", _WIDE, better="higher", labels=_EACH, limits=_MOS),
    _metric("utterance_delay", "Delay from mouth to ear", "ms", _DELAY, labels=_EACH, limits=_ANY),
    _metric("control_mos_wide", "PESQ MOS of the control call, wide band", "", _WIDE, better="higher", limits=_MOS),
    _metric("control_concealment", "Sound that the player made up in the control call", "%", _STATS, limits=_PERCENT),
    LOOK_RESOLUTION,
    *INTERFACE_BYTES,
)
_CONTROL = "control"
TURN_PORT = 3478
"""TCP port of the TURN server that relays the calls (proxy-docker/mplab/services/turn)."""
_SETTLED_S = 2.0
"""Time at the start of a call in which the player adapts its buffer, s. Jitter values from this time are ignored."""


def score(observations: Sequence[Observation], tables: Mapping[str, pl.DataFrame], folder: Path) -> list[Value]:
    """Return the values of `METRICS` for a cell. Utterances that a stall of the host disturbed are left out."""
    control = [item for item in observations if item.get("call") == _CONTROL]
    calls = [item for item in observations if "call" in item and item["call"] != _CONTROL]
    utterances = [item for item in calls if item["event"] == "utterance"]
    disturbed = [item for item in utterances if stalls.is_disturbed(item)]
    undisturbed = [item for item in calls if item not in disturbed]
    values = [*_heard(undisturbed, folder), *_measured(undisturbed, disturbed), *_host(calls, utterances, disturbed)]
    values += [Value("setup_time", fmean(setups_s))] if (setups_s := _of(calls, "call", "setup_s")) else []
    values += [*_seen(calls), *look_resolution(calls)]
    rated = {value.metric: value.value for value in (*_heard(control, folder), *_measured(control, []))}
    names = {"control_mos_wide": "mos_wide", "control_concealment": "concealment"}
    values += [value for item in observations for value in interface_bytes(item)]
    values += [Value(name, rated[metric]) for name, metric in names.items() if metric in rated]
    return values + _waited(tables, folder)


def _of(observations: Iterable[Observation], event: str, field: str) -> list[float]:
    return [float(item[field]) for item in observations if item["event"] == event]


def _seen(calls: Sequence[Observation]) -> list[Value]:
    """Return the calls' mean duration and the share of cut calls; nothing unless an Android app made the calls."""
    seen = [item for item in calls if item["event"] == "call" and "cut" in item]
    if not seen:
        return []
    return [
        Value("call_duration", fmean(float(item["duration_s"]) for item in seen)),
        Value("calls_cut", 100 * sum(bool(item["cut"]) for item in seen) / len(seen)),
    ]


def _host(
    calls: Sequence[Observation], utterances: Sequence[Observation], disturbed: Sequence[Observation]
) -> list[Value]:
    """Return the share of disturbed utterances, the worst stall, and the pauses of player and caller's microphone."""
    values = []
    if utterances:
        worst = max(max(item.get("stalls_ms", {}).values(), default=0.0) for item in utterances)
        values += [
            Value("utterances_disturbed", 100 * len(disturbed) / len(utterances)),
            Value("host_stall_worst", worst),
        ]
    for name, event in (("player_pauses", "heard"), ("caller_pauses", "spoken")):
        clocks = [Clock(item["clock"], item["rate_hz"]) for item in calls if item["event"] == event]
        values += [Value(name, 1000 * sum(clock.pause_s for clock in clocks))] if clocks else []
    return values


def _waited(tables: Mapping[str, pl.DataFrame], folder: Path) -> list[Value]:
    """Return the reordering delay of the calls at the phone (down) and at the proxy (up)."""
    values = []
    for direction in DIRECTIONS:
        if (wait := wait_of(tables, folder, direction, TURN_PORT)) is not None:
            values.append(Value("reordering_delay", wait.mean_ms, {"direction": direction}))
            if wait.p95_ms is not None:
                values.append(Value("reordering_delay_95", wait.p95_ms, {"direction": direction}))
    return values


def _heard(observations: Sequence[Observation], folder: Path) -> list[Value]:
    """Return the values from the phone's recordings: MOS, delay from mouth to ear, and share of speech not found."""
    values: list[Value] = []
    delays: list[float] = []
    pieces = 0
    for track in (item for item in observations if item["event"] == "heard"):
        recording = quality.read_wav(inside(folder, track["file"]))
        clock = Clock(track["clock"], track["rate_hz"])
        utterances = [item for item in observations if item["event"] == "utterance" and item["call"] == track["call"]]
        for utterance in utterances:
            bounds_s = (utterance["start_s"], utterance["end_s"])
            reference = quality.read_wav(inside(folder, utterance["reference"]))
            heard = quality.hear(reference, recording, clock, bounds_s=bounds_s, said_at=utterance["said_at"])
            labels = {"call": str(track["call"]), "utterance": str(utterance["number"])}
            values += _rated(heard, labels)
            delays += heard.delays_s
            pieces += int((bounds_s[1] - bounds_s[0]) / quality.PIECE_S)
    if pieces:
        values.append(Value("not_found", 100 * (1 - len(delays) / pieces)))
    for band in ("narrow", "wide"):
        mos = [value.value for value in values if value.metric == f"utterance_mos_{band}"]
        values += [Value(f"mos_{band}", fmean(mos))] if mos else []
    if delays:
        ordered = sorted(1000 * delay for delay in delays)
        values += [
            Value("mouth_to_ear", fmean(ordered)),
            Value("mouth_to_ear_95", ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]),
            Value("mouth_to_ear_spread", pstdev(ordered)),
        ]
    return values


def _rated(heard: quality.ReceivedUtterance, labels: Mapping[str, str]) -> list[Value]:
    values = [Value("utterance_delay", 1000 * fmean(heard.delays_s), labels)] if heard.delays_s else []
    if heard.mos is not None:
        values.append(Value("utterance_mos_narrow", heard.mos.narrow, labels))
        values.append(Value("utterance_mos_wide", heard.mos.wide, labels))
    return values


def _measured(observations: Sequence[Observation], disturbed: Sequence[Observation]) -> list[Value]:
    """Return the values from the phone's ``getStats`` (W3C webrtc-stats), outside of `disturbed` utterances."""
    spans: dict[str, list[Span]] = {}
    for item in disturbed:
        spans.setdefault(str(item["call"]), []).append(stalls.span_of(item))
    samples = [item for item in observations if item["event"] == "statistics" and item["side"] == "phone"]
    return [Value(name, value) for name, value in statistics_values(samples, spans).items()]


def statistics_values(samples: Sequence[Observation], left_out: Mapping[str, Sequence[Span]]) -> dict[str, float]:
    """Score voice packets and the player by ``getStats`` (W3C webrtc-stats). Return metric → value over all calls.

    Args:
        samples: observations ``statistics`` of the phone.
        left_out: call → time intervals to ignore, unix times in s.
    """
    by_call: dict[str, list[Observation]] = {}
    for sample in samples:
        if "inbound" in sample:
            by_call.setdefault(str(sample["call"]), []).append(sample)
    seconds = [
        (before, after)
        for call, samples_of_call in by_call.items()
        for before, after in pairwise(samples_of_call)
        if not _within(before["at"], after["at"], left_out.get(call, ()))
    ]
    return {**_shares(seconds), **_jitter(seconds, by_call)}


def _within(begin: float, end: float, spans: Sequence[Span]) -> bool:
    return any(begin < last and end > first for first, last in spans)


_Seconds = Sequence[tuple[Observation, Observation]]


def _shares(seconds: _Seconds) -> dict[str, float]:
    """Return metric → value for those metrics that divide the growth of one counter by that of another counter."""

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
    settled = {call: samples_of_call[0]["at"] + _SETTLED_S for call, samples_of_call in by_call.items()}
    jitter_ms = [
        1000 * after["inbound"]["jitter"] for _, after in seconds if after["at"] >= settled[str(after["call"])]
    ]
    return {"voice_jitter": fmean(jitter_ms), "voice_jitter_worst": max(jitter_ms)} if jitter_ms else {}
