"""The driver of the virtual lab's own proxy: processes in its nodes."""

from typing import TYPE_CHECKING

from mplab.drivers.proxy.driver import ProxyDriver, ServerSettings

if TYPE_CHECKING:
    from mplab.drivers.proxy.servers import Servers


class ProcessDriver(ProxyDriver[None]):
    """See `ProcessServers`."""

    name = "process"

    def open(self, settings: None, lab: ServerSettings) -> "Servers":
        """See `ProxyDriver`."""
        from mplab.drivers.proxy.process.servers import ProcessServers  # noqa: PLC0415

        return ProcessServers(lab)


DRIVER = ProcessDriver()
