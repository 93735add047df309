"""Asks a service as a phone would: by its names, with its certificate checked."""

from mplab.base.machine import CommandResult
from mplab.base.programs import CURL
from mplab.drivers.services.protocol import Service, ServiceContext

_PORTS = (80, 443)
_MARGIN_S = 2.0
"""What curl is given to end by itself."""


def fetch(
    service: Service, context: ServiceContext, url: str, *arguments: str, timeout_s: float = 3.0
) -> CommandResult:
    """Get `url` from the node that the service runs in; names of the service need no name server.

    Args:
        service: whose hosts may be named.
        context: where it runs.
        url: what is asked for.
        arguments: of curl, beside the usual ones, e.g. ``--fail``.
        timeout_s: how long it may take.
    """
    resolve = [
        part for host, at in service.hosts.items() for port in _PORTS for part in ("--resolve", f"{host}:{port}:{at}")
    ]
    argv = [
        *(str(CURL.path()), "-q", "--silent", "--show-error", "--noproxy", "*"),
        *("--max-time", f"{timeout_s:g}", "--cacert", str(context.authority.ca_pem), *resolve, *arguments, url),
    ]
    return context.host.run(argv, timeout_s=timeout_s + _MARGIN_S, check=False)
