"""What a lab tells phones, transports and proxies: by which addresses they find each other. Every lab gives one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

PROBE_PORT: Final = 5007
Listener = Literal["tcp", "mptcp", "mpflex", "mpflex_plain"]
"""A listener of the program ``mpflex proxy``: one for each kind of connection that ``mpflex agent`` opens."""
PORTS: Final[Mapping[Listener, int]] = {"tcp": 7001, "mptcp": 7002, "mpflex": 7003, "mpflex_plain": 7004}
"""Port of each listener; sessions without privacy come to ``mpflex_plain``."""


@dataclass(frozen=True)
class Endpoints:
    """Addresses of a lab, as its phone sees them.

    Attributes:
        proxy: address of the proxy; it listens on the ports of this module.
        dns: address and port of the name server behind the proxy.
        spare: what new access points give to each interface of the phone; empty: nobody knows.
        app_proxy: the agent's SOCKS5 server on the phone, which apps have to be given; "": the phone leads their TCP to
            the agent, whatever they are told.
        app_http_proxy: its HTTP proxy there, for apps that take the one in Android's settings; "" as of `app_proxy`.
    """

    proxy: str
    dns: str
    spare: Mapping[str, Sequence[str]] = field(default_factory=dict)
    app_proxy: str = ""
    app_http_proxy: str = ""

    @property
    def probe_server(self) -> str:
        """Where `linkem probe-server` listens."""
        return f"{self.proxy}:{PROBE_PORT}"

    def listener(self, name: Listener) -> str:
        """Return address and port of one of the proxy's listeners."""
        return f"{self.proxy}:{PORTS[name]}"
