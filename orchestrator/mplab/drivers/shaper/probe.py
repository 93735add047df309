"""Link probe over UDP from a phone's interface to a server next to the proxy."""

import json
import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from mplab.base.programs import LINKEM
from mplab.drivers.phone import Phone
from mplab.drivers.shaper.protocol import PathMeasurement, ProbeError
from mplab.format.path import PathCondition

_PROBE_TIMEOUT_S = 60.0
_PINGS = 15
_PING_PAUSE_S, _QUICK_PING_PAUSE_S = 0.03, 0.01
_BLAST_S, _QUICK_BLAST_S, _JITTERY_BLAST_S = 0.3, 0.2, 3.0
_FEWEST_LOSS_PACKETS, _MOST_LOSS_PACKETS = 200, 1000
_EXPECTED_LOSSES = 10
"""Expected number of lost echoes in a probe of a lossy path, so high that 0 lost is no chance (`mplab.cell.judge`)."""


class LinkProbe:
    """Measures a phone's paths by running ``linkem probe`` on the phone.

    Args:
        phone: phone that sends the probes.
        server: address and port of `linkem probe-server`, as the phone sees it.
        quick: measure paths without jitter in less time. Only for links whose delay is the same for each packet and
            that let no bursts pass, as those of linkem; not for radios and token buckets.
    """

    def __init__(self, phone: Phone, server: str, *, quick: bool = False) -> None:
        self._phone = phone
        self._server = server
        self._quick = quick

    def __call__(self, conditions: Mapping[str, PathCondition]) -> Mapping[str, PathMeasurement]:
        """Measure all paths at the same time; return interface → measurement of its path.

        Args:
            conditions: interface → requested link condition of its path; the rate and loss determine the number of
                packets.

        Raises:
            ProbeError: a path does not answer.
        """
        self._phone.program(LINKEM)  # copy it once, before the threads start
        with ThreadPoolExecutor(len(conditions) or 1, thread_name_prefix="probe") as threads:
            running = {device: threads.submit(self._probe, device, path) for device, path in conditions.items()}
            return {device: measurement.result() for device, measurement in running.items()}

    def _probe(self, device: str, path: PathCondition) -> PathMeasurement:
        pause_s, blast_s = _times_s(path, quick=self._quick)
        argv = [
            *(self._phone.program(LINKEM), "probe", "--json", "--device", self._phone.devices.get(device, device)),
            *("--server", self._server),
            *("--pings", str(_PINGS), "--ping-pause", f"{pause_s:g}s", "--seconds", f"{blast_s:g}"),
            *("--loss-packets", str(_loss_packets(path))),
            *("--down-kbps", f"{path.down_kbps or 0:g}", "--up-kbps", f"{path.up_kbps or 0:g}"),
        ]
        result = self._phone.shell(argv, timeout_s=_PROBE_TIMEOUT_S, check=False)
        if result.exit_code != 0:
            raise ProbeError(
                device, "the link probe failed", exit_code_found=result.exit_code, stderr=result.stderr or result.stdout
            )
        return parse_probe(result.stdout)


def _times_s(path: PathCondition, *, quick: bool) -> tuple[float, float]:
    """Return the pause between two echoes and the duration of a blast, s. Jitter needs longer averages."""
    if path.down.jitter_ms or path.up.jitter_ms:
        return _PING_PAUSE_S, _JITTERY_BLAST_S
    return (_QUICK_PING_PAUSE_S, _QUICK_BLAST_S) if quick else (_PING_PAUSE_S, _BLAST_S)


def _loss_packets(path: PathCondition) -> int:
    """Return the number of echoes, in addition to the pings, that measure a path's loss; 0 if no loss is requested."""
    share = path.round_trip_loss_percent / 100
    if not share:
        return 0  # captures show unexpected loss, and the pings must return
    return min(max(math.ceil(_EXPECTED_LOSSES / share), _FEWEST_LOSS_PACKETS), _MOST_LOSS_PACKETS)


def parse_probe(text: str) -> PathMeasurement:
    """Parse the output of ``linkem probe --json``: the measurement of one path."""
    measured = json.loads(text)
    return PathMeasurement(
        down_kbps=measured["down_kbps"],
        up_kbps=measured["up_kbps"],
        rtt_ms_median=measured["rtt_ms"]["median"],
        rtt_ms_iqr=measured["rtt_ms"]["iqr"],
        loss_percent=measured["loss_percent"],
        loss_sent=measured["loss_sent"],
    )
