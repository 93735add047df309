"""Send HTTP requests to a service as a phone would: by its host names, with its certificate checked."""

from mplab.base.machine import CommandResult
from mplab.base.programs import CURL
from mplab.drivers.services.protocol import Service, ServiceContext

_PORTS = (80, 443)
_MARGIN_S = 2.0
"""Extra time in which curl can end by itself, s."""


def fetch(
    service: Service, context: ServiceContext, url: str, *arguments: str, timeout_s: float = 3.0
) -> CommandResult:
    """Request `url` by curl on the machine of the service; its host names need no name server.

    Args:
        service: service whose host names are resolved.
        context: context of the running service.
        url: URL to request.
        arguments: additional arguments of curl, e.g. ``--fail``.
        timeout_s: limit for the request, s.
    """
    resolve = [
        part for host, at in service.hosts.items() for port in _PORTS for part in ("--resolve", f"{host}:{port}:{at}")
    ]
    argv = [
        *(str(CURL.path()), "-q", "--silent", "--show-error", "--noproxy", "*"),
        *("--max-time", f"{timeout_s:g}", "--cacert", str(context.authority.ca_pem), *resolve, *arguments, url),
    ]
    return context.host.run(argv, timeout_s=timeout_s + _MARGIN_S, check=False)
