"""Internet access through a lab file's proxy: allowed destinations and name resolution."""

from functools import cache
from ipaddress import IPv4Network, collapse_addresses
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from mplab.base.suggest import show
from mplab.format.names import FileModel
from mplab.format.sites import NETWORK

PUBLIC = "public"
"""Word in a rule that stands for all public IPv4 addresses, without private and special-purpose networks."""

_SPECIAL = (
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24"),
    *("192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
    *("224.0.0.0/4", "240.0.0.0/4"),
)
"""IANA's special-purpose registry (RFC 6890), multicast included."""
_NEVER = ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4")
"""Networks that a rule must not be part of: the proxy's own machine, link-local, multicast, reserved addresses."""
_LARGEST_PORT = 65535


def _network(text: str) -> IPv4Network | None:
    """Parse the network of an allow rule; None: the word `PUBLIC`. Raises ValueError."""
    if text == PUBLIC:
        return None
    try:
        network = IPv4Network(text)
    except ValueError:
        raise ValueError(f"network {show(text)}: 'public' or an IPv4 network is needed, like '192.0.2.0/24'") from None
    if any(network.subnet_of(IPv4Network(never)) for never in _NEVER) or network.subnet_of(IPv4Network(NETWORK)):
        raise ValueError(
            f"network '{network}': loopback, link-local, multicast or the lab's own addresses. Leave the rule out"
        )
    special = [IPv4Network(text) for text in _SPECIAL]
    if any(network != other and network.supernet_of(other) for other in special):
        raise ValueError(
            f"network '{network}': covers private and special addresses. Write 'public' for all of the Internet"
        )
    return network


def _ports(text: str) -> tuple[int, ...]:
    """Parse the TCP ports of an allow rule; empty: ``*``, all ports. Raises ValueError."""
    if text == "*":
        return ()
    ports = tuple(int(word) if word.isascii() and word.isdigit() else 0 for word in text.split(","))
    if not all(0 < port <= _LARGEST_PORT for port in ports):
        raise ValueError(f"ports {show(text)}: '*' or ports between 1 and {_LARGEST_PORT} are needed, like '80,443'")
    return ports


def _parse_rule(value: object) -> str:
    network, colon, ports = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    if not colon:
        raise ValueError(f"rule {show(value)}: NETWORK:PORTS is needed, like 'public:80,443'")
    _network(network)
    _ports(ports)
    return f"{network}:{ports}"


Rule = Annotated[str, BeforeValidator(_parse_rule)]


class InternetFile(FileModel):
    """Destinations outside the lab to which the proxy connects phones."""

    allow: list[Rule] = Field(
        min_length=1,
        max_length=64,
        description="Destinations, NETWORK:PORTS: 'public' or an IPv4 network, and TCP ports or '*'.",
    )
    names: Literal["upstream", "lab"] = Field(
        "upstream",
        description="upstream: the engine host's resolver answers names outside of the lab; lab: only the lab's names.",
    )

    def missing_ports(self, ports: tuple[int, ...]) -> tuple[int, ...]:
        """Return those of `ports` that no rule for public addresses allows."""
        allowed = [_ports(rule.rpartition(":")[2]) for rule in self.allow if _reaches_public(rule)]
        return tuple(port for port in ports if not any(not rule or port in rule for rule in allowed))

    def proxy_rules(self) -> list[str]:
        """Return the rules as in the proxy's configuration: IPv4 networks in CIDR form with ports."""
        return [f"{network}:{ports}" for network, ports in self._expanded()]

    def _expanded(self) -> list[tuple[IPv4Network, str]]:
        expanded: list[tuple[IPv4Network, str]] = []
        for rule in self.allow:
            text, _, ports = rule.rpartition(":")
            network = _network(text)
            expanded += [(part, ports) for part in (public_networks() if network is None else (network,))]
        return expanded


def _reaches_public(rule: str) -> bool:
    network = _network(rule.rpartition(":")[0])
    return network is None or not any(network.subnet_of(IPv4Network(other)) for other in _SPECIAL)


@cache
def public_networks() -> tuple[IPv4Network, ...]:
    """Return the networks that together contain every public IPv4 address."""
    left = [IPv4Network("0.0.0.0/0")]
    for special in map(IPv4Network, _SPECIAL):
        left = [
            part
            for network in left
            for part in (network.address_exclude(special) if special.subnet_of(network) else (network,))
        ]
    return tuple(collapse_addresses(left))
