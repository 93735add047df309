"""Read back the shaping of a path: parse the output of `tc … show` and compare it with the requested settings."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

Settings = dict[str, float]

_TIME_US = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}
_RATE_BPS = {"bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9, "tbit": 1e12}
_TIME = re.compile(r"([0-9.]+)(s|ms|us|ns)")
_RATE = re.compile(r"([0-9.]+)([kmgt]?bit)", re.IGNORECASE)
_PERCENT = re.compile(r"([0-9.]+)%")
_COUNT = re.compile(r"([0-9]+)(p|b|Kb|Mb)?")
_SENT = re.compile(r"Sent ([0-9]+) bytes ([0-9]+) pkt \(dropped ([0-9]+)")
_BACKLOG = re.compile(r"backlog ([0-9]+[KM]?)b ([0-9]+)p")
_GE_NAMES = ("p", "r", "1-h", "1-k")
_COUNT_UNITS = {"Kb": 1024, "Mb": 1024 * 1024}


@dataclass
class Qdisc:
    """One qdisc in the output of `tc -s qdisc show`.

    Attributes:
        kind: kind of qdisc: ``netem``, ``bfifo``.
        settings: name of the parameter → value; times in µs, rates in bit/s, shares in percent.
        sent_bytes: bytes sent since the qdisc was made.
        sent_packets: packets sent since the qdisc was made.
        dropped: packets dropped by this qdisc or by a qdisc below it.
        waiting: packets that are in the qdisc now.
    """

    kind: str
    settings: Settings
    sent_bytes: int = 0
    sent_packets: int = 0
    dropped: int = 0
    waiting: int = 0


@dataclass
class Shaped:
    """Qdiscs and rate that tc reports for one ifb device."""

    qdiscs: dict[str, Qdisc] = field(default_factory=dict)
    """Handle (``1:``, ``10:``, ``20:``) → qdisc."""
    rate_bps: float | None = None
    """Rate of the htb class 1:1, bit/s; None: tc reports no such class."""


def parse_options(text: str) -> Settings:
    """Parse parameters of netem or of a queue, in the form of tc's arguments or of tc's output.

    Return the values by name; units: see `Qdisc.settings`. Parameters that do not affect packets are left out;
    netem's rate is included, because it keeps packets in order.
    """
    words = text.replace("\n", " ").split()
    settings: Settings = {}
    at = 0
    while at < len(words):
        word, rest = words[at], words[at + 1 :]
        at += 1
        if word in {"limit", "memlimit"} and rest:
            settings[word] = _count(rest[0])
        elif word == "delay" and rest:
            times = [_time(item) for item in rest[:2]]
            settings["delay"] = times[0] or 0.0
            if len(times) > 1 and times[1] is not None:
                settings["jitter"] = times[1]
        elif word in {"target", "interval"} and rest and (time_us := _time(rest[0])) is not None:
            settings[word] = time_us
        elif word in {"duplicate", "reorder"} and rest:
            settings[word] = _percent(rest[0]) or 0.0
        elif word == "loss" and rest:
            _read_loss(rest, settings)
        elif word == "seed" and rest:
            settings["seed"] = float(rest[0])
        elif word == "rate" and rest and (rate := _rate(rest[0])) is not None:
            settings["rate"] = rate
    return settings


def _read_loss(words: list[str], settings: Settings) -> None:
    if words[0] != "gemodel":
        settings["loss"] = _percent(words[0]) or 0.0
        return
    values = [value for word in words[1:9] if word not in _GE_NAMES and (value := _percent(word)) is not None]
    settings.update(zip(("ge-p", "ge-r", "ge-bad", "ge-good"), values, strict=False))


def parse_shaped(text: str) -> Shaped:
    """Parse the output of ``tc -s qdisc show dev IFB`` followed by ``tc -s class show dev IFB``."""
    shaped = Shaped()
    current: Qdisc | None = None
    for line in text.splitlines():
        if match := re.match(r"qdisc (\S+) (\S+:) (?:dev \S+ )?(.*)", line):
            current = Qdisc(match[1], parse_options(match[3]))
            shaped.qdiscs[match[2]] = current
        elif re.match(r"class|filter", line):
            current = None
            if match := re.match(r"class htb 1:1 .*?\brate (\S+)", line):
                shaped.rate_bps = _rate(match[1])
        elif current is not None:
            if match := _SENT.search(line):
                current.sent_bytes, current.sent_packets, current.dropped = (int(number) for number in match.groups())
            elif match := _BACKLOG.search(line):
                current.waiting = int(match[2])
    return shaped


def differences(requested: Mapping[str, str], rate_bps: float, shown: Shaped) -> list[str]:
    """Return a text for each setting that was read back with another value than requested; [] if there is none.

    Args:
        requested: handle → kind and parameters in tc's form: ``{"10:": "netem limit 1000 delay 25ms"}``.
        rate_bps: requested rate of the htb class, bit/s.
        shown: settings that tc reported.
    """
    problems = []
    if shown.rate_bps is None:
        problems.append("no htb class")
    elif abs(shown.rate_bps - rate_bps) > rate_bps * 1e-3:
        problems.append(f"rate {shown.rate_bps:g} bit/s, {rate_bps:g} requested")
    for handle, text in requested.items():
        kind, _, options = text.partition(" ")
        qdisc = shown.qdiscs.get(handle)
        if qdisc is None:
            problems.append(f"no {kind} {handle}")
        elif qdisc.kind != kind:
            problems.append(f"{qdisc.kind} {handle}, {kind} requested")
        else:
            problems += [f"{kind} {text}" for text in _differ(parse_options(options), qdisc.settings)]
    return problems


def _differ(requested: Settings, shown: Settings) -> list[str]:
    """Return a text for each parameter whose value differs from the requested one by more than its tolerance.

    The kernel rounds times to 64 ns and shares to 2⁻³², and tc prints few digits.
    """
    return [
        f"{name} {shown.get(name, 0.0):g}, {requested.get(name, 0.0):g} requested"
        for name in sorted({*requested, *shown})
        if name in requested or name in {"loss", "ge-p", "duplicate", "reorder", "jitter", "delay"}
        if abs(shown.get(name, 0.0) - requested.get(name, 0.0))
        > _SHARE.get(name, 1e-3) * requested.get(name, 0.0) + _GRAIN.get(name, 0.0)
    ]


_SHARE = dict.fromkeys(("delay", "jitter", "target", "interval"), 5e-3)
"""Relative tolerances: tc prints times with three digits (iproute2 6.1, `sprint_time64`), 113.5 ms as 113 ms."""
_GRAIN = {"delay": 2.0, "jitter": 2.0, "target": 2.0, "interval": 2.0, "memlimit": 4096.0} | dict.fromkeys(
    ("loss", "ge-p", "ge-r", "ge-bad", "ge-good", "duplicate", "reorder"), 0.005
)


def _time(word: str) -> float | None:
    match = _TIME.fullmatch(word)
    return float(match[1]) * _TIME_US[match[2]] if match else None


def _rate(word: str) -> float | None:
    match = _RATE.fullmatch(word)
    return float(match[1]) * _RATE_BPS[match[2].lower()] if match else None


def _percent(word: str) -> float | None:
    match = _PERCENT.fullmatch(word)
    return float(match[1]) if match else None


def _count(word: str) -> float:
    match = _COUNT.fullmatch(word)
    return float(match[1]) * _COUNT_UNITS.get(match[2] or "", 1) if match else 0.0
