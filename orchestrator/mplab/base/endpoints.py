"""What a lab tells phones, transports and proxies: by which addresses they find each other. Every lab gives one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

PROBE_PORT: Final = 5007
TCP_PORT: Final = 7001
MPTCP_PORT: Final = 7002
MPFLEX_PORT: Final = 7003
MPFLEX_PLAIN_PORT: Final = 7004


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

    @property
    def tcp(self) -> str:
        """The proxy's listener for plain TCP."""
        return f"{self.proxy}:{TCP_PORT}"

    @property
    def mptcp(self) -> str:
        """For Multipath TCP."""
        return f"{self.proxy}:{MPTCP_PORT}"

    @property
    def mpflex(self) -> str:
        """For sessions of MPFlex."""
        return f"{self.proxy}:{MPFLEX_PORT}"

    @property
    def mpflex_plain(self) -> str:
        """For sessions whose paths are not private."""
        return f"{self.proxy}:{MPFLEX_PLAIN_PORT}"
