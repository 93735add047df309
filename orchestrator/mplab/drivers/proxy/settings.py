"""Configuration file of `mpflex proxy`, the same for all kinds of proxy."""

from collections.abc import Mapping, Sequence

from mplab.format.agentlog import SessionSettings
from mplab.format.sites import ECHO_ADDRESS, ECHO_PORT, NETWORK

WEB_PORTS = (53, 80, 443)
"""Ports of the origin that every phone can reach."""


def proxy_settings(
    *,
    listen: Mapping[str, str],
    secret_file: str,
    ports: Sequence[int],
    congestion_control: str,
    log: str,
    session: SessionSettings,
    internet: Sequence[str] = (),
    control: str = "",
) -> dict[str, object]:
    """Return the configuration of `mpflex proxy`, which allows connections to the origin and to `internet`.

    Args:
        listen: transport → address with port.
        secret_file: path of the file with the secret that proxy and agents share.
        ports: ports of the origin's services, which are allowed in addition to `WEB_PORTS`.
        congestion_control: algorithm for every socket towards the phone; "": the system's default.
        log: path of the connection log.
        session: settings for the agent's sessions.
        internet: additional destinations that the proxy allows, ``NETWORK:PORTS``.
        control: path of the control socket; "": none.
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
        "session": session,
        **({"control": control} if control else {}),
    }
