"""The service `iperf`: an iperf3 server, one test at a time."""

import time
from collections.abc import Mapping, Sequence

from mplab.base.errors import DeviceError
from mplab.base.programs import Program
from mplab.drivers.services import Service, ServiceContext

HOST, ADDRESS, PORT = "iperf.lab", "10.65.107.1", 5201
IPERF3 = Program("iperf3", ("iperf3",), ("--version",), "iperf3", "throughput, both ways")
_CHECK_TIMEOUT_S = 5.0
_BUSY, _BUSY_S, _POLL_S = "the server is busy", 5.0, 0.1
"""What iperf3 says while it still ends the test before, and how long that may take."""


class IperfService(Service):
    """`Service`: iperf3."""

    name = "iperf"
    title = "iperf3 server"
    network = "10.65.107.0/24"
    hosts: Mapping[str, str] = {HOST: ADDRESS}
    ports = (PORT,)
    programs = (IPERF3,)

    def commands(self, context: ServiceContext) -> Mapping[str, Sequence[str]]:
        """The server."""
        iperf3 = context.installed.program(IPERF3)
        return {"iperf3": [iperf3, "--server", "--bind", ADDRESS, "--port", str(PORT), "--forceflush"]}

    def check(self, context: ServiceContext) -> None:
        """It serves a test of one block, from the origin itself."""
        argv = [str(IPERF3.path()), "--client", ADDRESS, "--port", str(PORT), "--bytes", "1K", "--length", "1K"]
        deadline = time.monotonic() + _BUSY_S
        while True:
            answer = context.host.run([*argv, "--connect-timeout", "2000"], check=False, timeout_s=_CHECK_TIMEOUT_S)
            if answer.exit_code == 0:
                return
            said = answer.stderr or answer.stdout
            if _BUSY not in said or time.monotonic() > deadline:
                raise DeviceError(self.name, f"iperf3 at {ADDRESS}:{PORT} serves no test", stderr=said)
            time.sleep(_POLL_S)

    def facts(self, context: ServiceContext) -> Mapping[str, str]:
        """Host name and port."""
        return {"host": HOST, "port": str(PORT)}


SERVICE = IperfService()
