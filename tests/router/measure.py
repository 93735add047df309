"""Traffic of a virtual phone through the test router, measured with linkem's probe."""

import math
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from orchestrator.lab.nodes import Node
from orchestrator.programs import LINKEM
from orchestrator.shaper.linkem import parse_probe
from orchestrator.shaper.protocol import PathMeasurement
from orchestrator.spec.direction import GilbertElliott
from orchestrator.spec.path import PathCondition
from tests.router.inside import SERVER
from tests.router.stand_in import StandInRouter

_PORT = 5007
_PINGS = 15
_ECHOES = 600
_SIGMAS = 4.0
RATE_TOLERANCE = 0.1
RTT_TOLERANCE = 0.1


@contextmanager
def probe_server(router: StandInRouter) -> Iterator[None]:
    """Answers probes in the server's node."""
    argv = router.node("server").argv([str(LINKEM.path()), "probe-server", "--listen", f"{SERVER}:{_PORT}"])
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert "ready" in process.stdout.readline()
            yield
        finally:
            process.terminate()


def probe(phone: Node, paths: Mapping[str, PathCondition]) -> dict[str, PathMeasurement]:
    """Measure all paths at once: interface → what was found."""
    running = {
        device: subprocess.Popen(
            phone.argv(
                [
                    *(str(LINKEM.path()), "probe", "--json", "--device", device, "--server", f"{SERVER}:{_PORT}"),
                    *("--pings", str(_PINGS), "--seconds", "0.4"),
                    *("--loss-packets", str(_ECHOES if path.round_trip_loss_percent else 0)),
                    *("--down-kbps", f"{path.down_kbps or 0:g}", "--up-kbps", f"{path.up_kbps or 0:g}"),
                ]
            ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for device, path in paths.items()
    }
    found = {}
    for device, process in running.items():
        output, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        found[device] = parse_probe(output)
    return found


def differences(asked: PathCondition, found: PathMeasurement, idle: PathMeasurement) -> list[str]:
    """How a path is not what was asked, the way through the router itself (`idle`) allowed for; empty when it is."""
    problems = []
    least, most = asked.rtt_ms * (1 - RTT_TOLERANCE), asked.rtt_ms * (1 + RTT_TOLERANCE) + idle.rtt_ms_median
    if not least <= found.rtt_ms_median <= most:
        problems.append(f"RTT {found.rtt_ms_median:.1f} ms, {asked.rtt_ms:g} ms asked")
    for way, rate, measured in (
        ("down", asked.down_kbps, found.down_kbps),
        ("up", asked.up_kbps, found.up_kbps),
    ):
        if rate and (measured is None or abs(measured - rate) > rate * RATE_TOLERANCE):
            problems.append(f"{way} {measured or 0:.0f} kbit/s, {rate:g} kbit/s asked")
    return problems + loss_differences(asked, found)


def loss_differences(asked: PathCondition, found: PathMeasurement) -> list[str]:
    """Whether a share of losses can be chance: four sigmas, wider where losses come in bursts."""
    share = asked.round_trip_loss_percent / 100
    models = [way.loss for way in (asked.up, asked.down) if isinstance(way.loss, GilbertElliott)]
    together = max([1.0, *((1 + model.correlation) / (1 - model.correlation) for model in models)])
    spread = _SIGMAS * math.sqrt(share * (1 - share) * together / found.loss_sent)
    if abs(found.loss_percent / 100 - share) <= spread:
        return []
    return [f"loss {found.loss_percent:g} % of {found.loss_sent}, {100 * share:.3g} % asked"]
