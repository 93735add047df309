"""Driver ``linkem``: the link emulator of the virtual lab."""

import json
import socket
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from pydantic import JsonValue, TypeAdapter

from mplab.base.errors import DeviceError, check_each, last_words
from mplab.base.nodes import Node, NodeProcess
from mplab.base.paths import RMNET, WLAN
from mplab.base.polling import wait_ready
from mplab.base.programs import LINKEM
from mplab.drivers.shaper.driver import EmulatedNetwork, EmulatorDriver
from mplab.drivers.shaper.probe import LinkProbe
from mplab.drivers.shaper.protocol import PathMeasurement
from mplab.format.abilities import Abilities
from mplab.format.path import PathCondition

_CONTROL_TIMEOUT_S = 5.0
_COUNTERS = TypeAdapter(dict[str, dict[str, dict[str, JsonValue]]])
"""Type of the counters in `linkem`'s answer: link → direction → name → value. Some values are ratios, not counters."""
_WAN = "wan"
_LINKS = {WLAN: ("wlan-phone", "wlan-router"), RMNET: ("rmnet-phone", "rmnet-router")}


class LinkemShaper:
    """`Emulator` that runs `linkem` in the lab's node `air`.

    Args:
        network: nodes and phone of the virtual lab, and settings of its links.
    """

    kind = "linkem"

    def __init__(self, network: EmulatedNetwork) -> None:
        self._network = network
        self._control = network.directory / "linkem.sock"
        self._seed = 0
        self._processes: list[tuple[NodeProcess, Path]] = []

    def start(self, *, seed: int) -> None:
        """Start the probe server, and the emulator with all links open: no rate limit, delay or loss.

        Raises:
            DeviceError: emulator or probe server is not ready in time.
        """
        self._seed = seed
        config = {
            "seed": seed,
            "links": [
                *({"name": n, "a": a, "b": b, "up": {}, "down": {}} for n, (a, b) in _LINKS.items()),
                {
                    "name": _WAN,
                    "a": "wan-proxy",
                    "b": "wan-origin",
                    "up": {},
                    "down": {},
                    "delay_by_prefix": dict(self._network.wan_delay_ms),
                },
            ],
        }
        path = self._network.directory / "linkem.json"
        path.write_text(json.dumps(config, indent=1))
        self._spawn(self._network.air, "linkem", ["run", "--config", str(path), "--control", str(self._control)])
        self._spawn(self._network.proxy, "probe-server", ["probe-server", "--listen", self._network.probe_server])

    def _spawn(self, node: Node, name: str, arguments: Sequence[str]) -> None:
        log = self._network.directory / f"{name}.log"
        before = log.stat().st_size if log.exists() else 0
        process = node.spawn([str(LINKEM.path()), *arguments], log=log)
        self._processes.append((process, log))
        wait_ready(process, log, name=f"linkem: {name}" if name != "linkem" else name, since=before)

    def revive(self) -> list[str]:
        """Start emulator and probe server again, with all links open, if one of them has ended unexpectedly.

        Returns:
            One sentence about the restart; [] if both were still running.

        Raises:
            DeviceError: emulator or probe server is not ready in time.
        """
        ended = [log.stem for process, log in self._processes if process.poll() is not None]
        if not ended:
            return []
        self.stop()
        self.start(seed=self._seed)
        return [f"linkem: {' and '.join(ended)} had ended and was started again"]

    def stop(self) -> None:
        """Stop emulator and probe server."""
        for process, _ in reversed(self._processes):
            process.stop()
        self._processes.clear()

    def _ask(self, request: Mapping[str, object]) -> dict[str, JsonValue]:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
                client.settimeout(_CONTROL_TIMEOUT_S)
                client.connect(str(self._control))
                client.sendall(json.dumps(request).encode() + b"\n")
                answer: dict[str, JsonValue] = json.loads(client.makefile().readline())
        except (OSError, ValueError) as error:
            raise DeviceError("linkem", f"no answer to {request['op']!r}: {error}") from error
        if not answer.get("ok"):
            raise DeviceError("linkem", f"{request['op']!r} refused: {answer.get('error')}")
        return answer

    def apply(self, conditions: Mapping[str, PathCondition], *, seed: int, core_rtt_ms: float = 0.0) -> None:
        """Apply the conditions to the paths, and a delay of half of `core_rtt_ms` in each direction behind the proxy.

        Raises:
            DeviceError: `linkem` refused or does not answer.
        """
        core = {"delay_ms": core_rtt_ms / 2} if core_rtt_ms else {}
        self._ask({"op": "apply", "link": _WAN, "up": core, "down": core, "seed": seed})
        for link, path in conditions.items():
            self._ask({"op": "apply", "link": link, **_directions(path), "seed": seed})

    def change(self, interface: str, condition: PathCondition) -> None:
        """Apply another condition to one path. Its random sequence and trace continue; no packet in flight is lost."""
        self._ask({"op": "apply", "link": interface, **_directions(condition), "continue": True})

    def clear(self) -> None:
        """Remove the conditions of all paths, and the delay that `apply` added between proxy and servers."""
        for link in (*_LINKS, _WAN):
            self._ask({"op": "apply", "link": link, "up": {}, "down": {}, "seed": 0})

    def state(self) -> Mapping[str, object]:
        """Return `linkem`'s report on the applied conditions of all links."""
        return self._ask({"op": "state"})

    def where(self, interface: str) -> str:
        """Return ``linkem``, the name of the emulator that shapes every path."""
        return self.kind

    def warnings(self) -> list[str]:
        """Return an empty list: the emulator applies conditions as requested."""
        return []

    def counters(self) -> Mapping[str, int]:
        """Return the counters of `linkem` with integer values: ``{"wlan0.up.packets_in": 12, …}``."""
        return {
            f"{link}.{direction}.{name}": value
            for link, directions in _COUNTERS.validate_python(self._ask({"op": "counters"})["links"]).items()
            for direction, counters in directions.items()
            for name, value in counters.items()
            if isinstance(value, int)
        }

    def check_alive(self) -> None:
        """Raise DeviceError when the emulator or the probe server has ended."""
        check_each(partial(_check_running, process, log) for process, log in self._processes)

    def probe(self, conditions: Mapping[str, PathCondition]) -> Mapping[str, PathMeasurement]:
        """Measure all paths at once over UDP, from the phone's interfaces to the proxy; return results by interface."""
        return LinkProbe(self._network.phone, self._network.probe_server, quick=True)(conditions)


def _check_running(process: NodeProcess, log: Path) -> None:
    if (code := process.poll()) is not None:
        raise DeviceError("linkem", f"{log.stem} has ended by itself ({code})", stderr=last_words(log))


def _directions(path: PathCondition) -> dict[str, object]:
    return {"up": path.up.to_linkem(), "down": path.down.to_linkem()}


class Linkem(EmulatorDriver):
    """`EmulatorDriver` for ``linkem``."""

    name = "linkem"
    title = "the link emulator of the virtual lab"
    method = "linkem"
    abilities = Abilities(title, disciplines=("drop-tail", "codel", "fq_codel"), middleboxes=True, rate_kbps=500_000.0)
    programs = (LINKEM,)

    def open(self, network: EmulatedNetwork) -> LinkemShaper:
        """Return a `LinkemShaper` for `network` that the caller must start."""
        return LinkemShaper(network)


DRIVER = Linkem()
