"""Measures traffic of virtual phones with linkem's probe and judges it as a cell does."""

import json
import math
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

from mplab.base.nodes import Node
from mplab.base.programs import LINKEM
from mplab.cell.judge import judge_links
from mplab.drivers.shaper.probe import parse_probe
from mplab.drivers.shaper.protocol import PathMeasurement
from mplab.format.experiment import Tolerance
from mplab.format.path import PathCondition

OPEN = PathCondition.of(None, None, 0.0)
TOLERANCE = Tolerance(rtt_percent=10.0, rate_percent=10.0)
_PORT = 5007
_PINGS = 20
_ECHO_BYTES = 76
"""IP bytes of an echo (docs/linkem.md)."""
_BLAST_S, _LONGEST_BLAST_S = 0.4, 3.0
_BLAST_PER_JITTER = 100
"""Duration of a blast divided by the jitter: packets that arrive in bunches have no steady rate within less time."""
_LOSSES = 60
"""Number of losses to wait for; it has a standard deviation of 13 %."""
_FEWEST_ECHOES, _MOST_ECHOES = 200, 1000
_PROBE_TIMEOUT_S = 90.0
_BLAST_FACTOR = 1.3
"""Offered rate of a blast, divided by the requested rate (linkem's probe)."""
_UNHINDERED = 1.15
"""Minimum rate at which an unshaped blast must arrive, divided by the requested rate."""
_LATE_MS = 1.0


class Slot(NamedTuple):
    """An interface of a virtual phone."""

    phone: Node
    interface: str


@dataclass(frozen=True)
class Found(PathMeasurement):
    """Measurement by a probe with the minimum round-trip time, to which a busy host adds nothing."""

    rtt_ms_min: float = 0.0


@contextmanager
def probe_server(node: Node, address: str) -> Iterator[None]:
    """Run a server that answers probes."""
    argv = node.argv([str(LINKEM.path()), "probe-server", "--listen", f"{address}:{_PORT}"])
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert "ready" in process.stdout.readline()
            yield
        finally:
            process.terminate()


def probe_argv(slot: Slot, server: str, *, pings: int, echoes: int, asked: PathCondition) -> list[str]:
    """Return the command line of one probe."""
    return slot.phone.argv(
        [
            *(str(LINKEM.path()), "probe", "--json", "--device", slot.interface, "--server", f"{server}:{_PORT}"),
            *("--pings", str(pings), "--loss-packets", str(echoes), "--seconds", f"{_blast_s(asked):g}"),
            *("--down-kbps", f"{asked.down_kbps or 0:g}", "--up-kbps", f"{asked.up_kbps or 0:g}"),
        ]
    )


def measure(paths: Mapping[Slot, PathCondition], server: str) -> dict[Slot, Found]:
    """Measure all paths at once and return the measurement of each."""
    running = {
        slot: subprocess.Popen(
            probe_argv(slot, server, pings=_PINGS, echoes=_echoes(path), asked=path),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for slot, path in paths.items()
    }
    measured = {}
    for slot, process in running.items():
        output, errors = process.communicate(timeout=_PROBE_TIMEOUT_S)
        assert process.returncode == 0, errors
        measured[slot] = parse(output)
    return measured


def parse(output: str) -> Found:
    """Parse the output of a probe."""
    return Found(**vars(parse_probe(output)), rtt_ms_min=json.loads(output)["rtt_ms"]["min"])


def ping(slot: Slot, server: str, *, pings: int = 10, echoes: int = 0) -> Found:
    """Measure only round-trip time and loss, of a path without a requested rate."""
    argv = probe_argv(slot, server, pings=pings, echoes=echoes, asked=OPEN)
    result = subprocess.run(argv, capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S, check=False)
    assert result.returncode == 0, result.stderr
    return parse(result.stdout)


def _blast_s(path: PathCondition) -> float:
    jitter_s = max(path.down.jitter_ms, path.up.jitter_ms) / 1000
    return min(max(_BLAST_PER_JITTER * jitter_s, _BLAST_S), _LONGEST_BLAST_S)


def _echoes(path: PathCondition) -> int:
    share = path.round_trip_loss_percent / 100
    return min(max(math.ceil(_LOSSES / share), _FEWEST_ECHOES), _MOST_ECHOES) if share else 0


def serialisation_ms(path: PathCondition) -> float:
    """Return the time that both rates of a path need for an echo, ms, where a link is busy while it sends a packet.

    A token bucket (htb) lets a single packet pass at once.
    """
    return sum(_ECHO_BYTES * 8 / kbps for kbps in (path.down_kbps, path.up_kbps) if kbps)


def path_rtt_ms(asked: PathCondition, found: Found, idle: Found) -> float:
    """Return the round-trip time of the path, ms, without the way through the unshaped router (`idle`).

    Without jitter it comes from the minima: other programs of the host add nothing to them.
    """
    if asked.down.jitter_ms or asked.up.jitter_ms:
        return found.rtt_ms_median - idle.rtt_ms_median
    return found.rtt_ms_min - idle.rtt_ms_min


def differences(asked: PathCondition, found: Found, rtt_ms: float) -> list[str]:
    """Return how a path with the round-trip time `rtt_ms` differs from the request; empty if it does not."""
    return judge_links({"path": asked}, {"path": replace(found, rtt_ms_median=rtt_ms)}, TOLERANCE)


def what_the_host_spoils(asked: PathCondition, found: Found, idle: Found) -> list[str]:
    """Return why a path with the conditions `asked` cannot be judged now: the host spoils unshaped packets.

    Args:
        asked: offered rates, and the delay that would be judged.
        found: measurement without shaping.
        idle: measurement of the same path on an idle host.
    """
    spoilt = []
    for direction, offered, arrived in (
        ("down", asked.down_kbps, found.down_kbps),
        ("up", asked.up_kbps, found.up_kbps),
    ):
        # Without shaping all of a blast arrives, which is more than the requested rate.
        if offered and arrived is not None and arrived < offered * _UNHINDERED:
            spoilt.append(f"unshaped, {direction}, only {arrived:.0f} of {offered * _BLAST_FACTOR:.0f} kbit/s arrive")
    late_ms = path_rtt_ms(asked, found, idle)
    if late_ms > max(_LATE_MS, asked.rtt_ms * TOLERANCE.rtt_percent / 200):
        spoilt.append(f"unshaped, an echo takes {late_ms:.1f} ms longer than before")
    if found.loss_percent:
        spoilt.append(f"unshaped, {found.loss_percent:g} % of the echoes are lost")
    return spoilt
