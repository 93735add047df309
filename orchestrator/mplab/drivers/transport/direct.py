"""The direct route: the applications' own sockets use the transport to the origin, without agent and proxy."""

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from mplab.base.errors import DeviceError
from mplab.base.nodes import Node
from mplab.base.polling import wait_until
from mplab.base.programs import SS
from mplab.drivers.phone import Phone
from mplab.drivers.transport import direct_check
from mplab.drivers.transport.agent import Agent
from mplab.drivers.transport.protocol import Evidence
from mplab.format.agentlog import ActiveCheck, LogRecord
from mplab.format.sites import FILE_ADDRESS, FILE_HOST

_CHECK_TIMEOUT_S = 15.0
_POLL_S = 0.01
_CHECK_PATH = "/10000000"
"""File of the test connection. Only about a receive buffer of it, 64 kB, crosses the path."""


class DirectRoute:
    """The phone's side of the direct route. It takes the place of `Agent` in a cell: there is no process to run.

    Args:
        phone: phone whose applications use the route.
        origin: machine of the origin's servers.
        logs: folder for ``direct-check.log``, the output of the test connection's program.
    """

    def __init__(self, phone: Phone, origin: Node, logs: Path) -> None:
        self._phone = phone
        self._origin = origin
        self._log = logs / "direct-check.log"

    def start(self) -> None:
        """Do nothing: there is no agent."""

    def stop(self) -> None:
        """Do nothing: there is no agent."""

    def check_alive(self) -> None:
        """Do nothing: there is no agent that could have ended."""

    def records(self) -> Sequence[LogRecord]:
        """Return []: only an agent keeps a log."""
        return []

    def check(self, *, subflows: int) -> ActiveCheck:
        """Open a test connection to the origin's download server as an application would; return its description.

        Args:
            subflows: number of subflows to wait for.

        Raises:
            DeviceError: no test connection could be made.
        """
        argv = [sys.executable, "-I", "-S", str(Path(direct_check.__file__)), FILE_HOST, _CHECK_PATH]
        argv += [self._phone.program(SS), str(subflows), f"{_CHECK_TIMEOUT_S:g}"]
        before = self._log.stat().st_size if self._log.exists() else 0
        process = self._phone.spawn(argv, log=self._log)
        try:
            wait_until(
                lambda: self._output(before).endswith("\n") or process.poll() is not None,
                2 * _CHECK_TIMEOUT_S,
                interval_s=_POLL_S,
            )
            try:
                active: ActiveCheck = json.loads(self._output(before))
            except ValueError:
                active = {"ok": False, "error": self._output(before).strip()[-200:] or "no answer"}
            if not active.get("ok") and "mptcp" not in active:
                raise DeviceError("direct route", f"no test connection to the origin: {active.get('error')}")
            active["origin_congestion_control"] = ", ".join(self._algorithms_at_origin())
        finally:
            process.stop()
        return active

    def _output(self, begin: int) -> str:
        return self._log.read_bytes()[begin:].decode(errors="replace") if self._log.exists() else ""

    def _algorithms_at_origin(self) -> list[str]:
        """Return the congestion controls of the open connections of the origin's download server, sorted."""
        argv = [self._origin.program(SS), "-tniH", "state", "established", "src", f"{FILE_ADDRESS}:80"]
        return sorted(set(re.findall(r"(\S+) wscale:", self._origin.run(argv).stdout)))


Carrier = Agent | DirectRoute
"""What carries the applications' connections in a cell."""


def at_origin(evidence: Evidence) -> list[str]:
    """Return a reason if the origin's capture has no connection of the phone, otherwise []."""
    if evidence.captured and not evidence.origin_connections:
        return ["no TCP connection was captured at the origin"]
    return []
