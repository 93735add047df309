"""Commands for routes and firewall rules that several kinds of phones use."""

_PRIMARY_METRIC = 50


def primary_command(interface: str, gateway: str, congestion_control: str = "") -> str:
    """Return the `ip` command that makes an interface the default route. Running the command again changes nothing.

    Args:
        interface: the interface.
        gateway: address of its router.
        congestion_control: algorithm of the connections that use the route; "": that of each socket.
    """
    command = f"route replace default via {gateway} dev {interface} metric {_PRIMARY_METRIC}"
    return f"{command} congctl {congestion_control}" if congestion_control else command


_SYSTEM_UDP = ("123", "500", "4500")
"""UDP ports of NTP and of IKE (for calls over WiFi)."""


def accept_system_udp(program: str) -> str:
    """Return shell lines that exempt Android's own UDP traffic (NTP, IKE) from the firewall chain ``mplab``.

    `program` is ``iptables`` or ``ip6tables``.
    """
    return "\n".join(f"{program} -w -A mplab -p udp --dport {port} -j RETURN" for port in _SYSTEM_UDP)
