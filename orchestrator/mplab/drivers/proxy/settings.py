"""Configuration of `mpflex proxy`, wherever it runs."""

from collections.abc import Mapping, Sequence
from typing import Any

from mplab.format.sites import ECHO_ADDRESS, ECHO_PORT, NETWORK

WEB_PORTS = (53, 80, 443)
"""Ports of the origin that phones always reach."""


def proxy_settings(
    *,
    listen: Mapping[str, str],
    secret_file: str,
    ports: Sequence[int],
    congestion_control: str,
    log: str,
    session: Mapping[str, Any],
    internet: Sequence[str] = (),
    **others: Any,  # noqa: ANN401 - what mpflex's own configuration has
) -> dict[str, Any]:
    """Return the proxy's configuration: it connects to the origin, and to what `internet` allows.

    Args:
        listen: transport → address with port.
        secret_file: the secret shared with the agents.
        ports: of the origin's services that phones reach, beside those of the web.
        congestion_control: pinned on every socket towards the phone; "": the system's.
        log: of connections.
        session: settings for sessions.
        internet: further destinations, in the form of the proxy's allow list: ``NETWORK:PORTS``.
        others: further keys.
    """
    return {
        "listen": dict(listen),
        "secret_file": secret_file,
        "allow": [
            f"{NETWORK}:{','.join(map(str, (*WEB_PORTS, *ports)))}",
            f"{ECHO_ADDRESS}/32:{ECHO_PORT}",
            *internet,
        ],
        "congestion_control": congestion_control,
        "log": log,
        "session": dict(session),
        **others,
    }
