"""Driver of the virtual lab's own proxy, whose programs run as processes in the lab's nodes."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mplab.base.deferred import deferred
from mplab.base.findings import Finding
from mplab.base.programs import MPFLEX, NGINX
from mplab.drivers.proxy.driver import ProxyDriver, ServerSettings

if TYPE_CHECKING:
    from mplab.drivers.proxy.protocol import Servers


class ProcessDriver(ProxyDriver[None]):
    """Driver of the proxy and servers that run as processes of the lab (`ProcessServers`)."""

    name = "process"

    def open(self, settings: None, lab: ServerSettings) -> "Servers":
        """Return the lab's servers, not yet started. See `ProxyDriver`."""
        with deferred("slow to import"):
            from mplab.drivers.proxy.process.servers import ProcessServers
        return ProcessServers(lab)

    def check(self, settings: None, lab_file: str) -> Iterator[Finding]:
        """Yield one finding for each missing program; if none is missing, one that says so. See `ProxyDriver`."""
        programs = (MPFLEX, NGINX)
        missing = [program for program in programs if program.find() is None]
        for program in missing:
            yield Finding(f"proxy: {program.name}", "missing", f"not found ({program.purpose})", program.remedy)
        if not missing:
            yield Finding("proxy", "ok", f"processes of the lab: {', '.join(program.name for program in programs)}")


DRIVER = ProcessDriver()
