"""Define the service `iperf`: an iperf3 server, which serves one test at a time."""

import time
from collections.abc import Mapping, Sequence

from mplab.base.errors import DeviceError
from mplab.base.programs import Program
from mplab.drivers.services import Service, ServiceContext

HOST, ADDRESS, PORT = "iperf.lab", "10.65.107.1", 5201
IPERF3 = Program("iperf3", ("iperf3",), ("--version",), "iperf3", "throughput, both ways")
_CHECK_TIMEOUT_S = 5.0
_BUSY, _BUSY_S, _POLL_S = "the server is busy", 5.0, 0.1
"""Message of iperf3 while its server still ends the previous test; longest wait for the end of that test, s; time
between two attempts, s."""


class IperfService(Service):
    """An iperf3 server on the origin."""

    name = "iperf"
    title = "iperf3 server"
    network = "10.65.107.0/24"
    hosts: Mapping[str, str] = {HOST: ADDRESS}
    ports = (PORT,)
    programs = (IPERF3,)

    def commands(self, context: ServiceContext) -> Mapping[str, Sequence[str]]:
        """Return the command of the iperf3 server."""
        iperf3 = context.installed.program(IPERF3)
        return {"iperf3": [iperf3, "--server", "--bind", ADDRESS, "--port", str(PORT), "--forceflush"]}

    def check(self, context: ServiceContext) -> None:
        """Check the server by a test of 1 KiB from the origin itself, repeated for up to 5 s while the server is busy.

        Raises:
            DeviceError: no test succeeded.
        """
        argv = [str(IPERF3.path()), "--client", ADDRESS, "--port", str(PORT), "--bytes", "1K", "--length", "1K"]
        deadline = time.monotonic() + _BUSY_S
        while True:
            answer = context.host.run([*argv, "--connect-timeout", "2000"], check=False, timeout_s=_CHECK_TIMEOUT_S)
            if answer.exit_code == 0:
                return
            output = answer.stderr or answer.stdout
            if _BUSY not in output or time.monotonic() > deadline:
                raise DeviceError(self.name, f"iperf3 at {ADDRESS}:{PORT} serves no test", stderr=output)
            time.sleep(_POLL_S)

    def facts(self, context: ServiceContext) -> Mapping[str, str]:
        """Return ``host`` and ``port`` of the iperf3 server."""
        return {"host": HOST, "port": str(PORT)}


SERVICE = IperfService()
