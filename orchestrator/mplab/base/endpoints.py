"""Addresses by which phones, transports and proxies of a lab reach each other. Every lab returns one `Endpoints`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

PROBE_PORT: Final = 5007
Listener = Literal["tcp", "mptcp", "mpflex", "mpflex_plain"]
"""Listener of ``mpflex proxy``: one for each kind of connection that ``mpflex agent`` opens."""
PORTS: Final[Mapping[Listener, int]] = {"tcp": 7001, "mptcp": 7002, "mpflex": 7003, "mpflex_plain": 7004}
"""Port of each listener; sessions without encryption connect to ``mpflex_plain``."""


@dataclass(frozen=True)
class Endpoints:
    """Addresses of a lab, as its phone sees them.

    Attributes:
        proxy: address of the proxy, which listens on the ports that this module defines.
        dns: address and port of the name server behind the proxy.
        spare: interface of the phone → addresses that the interface can get when it joins another access point; empty:
            unknown.
        app_proxy: address of the agent's SOCKS5 server on the phone, for apps that must be configured to use it;
            "": the phone redirects the apps' TCP connections to the agent.
        app_http_proxy: address of the agent's HTTP proxy on the phone, for apps that use the proxy of Android's
            settings; "": see `app_proxy`.
    """

    proxy: str
    dns: str
    spare: Mapping[str, Sequence[str]] = field(default_factory=dict)
    app_proxy: str = ""
    app_http_proxy: str = ""

    @property
    def probe_server(self) -> str:
        """Address and port of `linkem probe-server`."""
        return f"{self.proxy}:{PROBE_PORT}"

    def listener(self, name: Listener) -> str:
        """Return ``ADDRESS:PORT`` of the proxy's listener `name`."""
        return f"{self.proxy}:{PORTS[name]}"
