"""Firewall rules that accept the UDP traffic of Android's own services."""

_SYSTEM_UDP = ("123", "500", "4500")
"""UDP ports of NTP and of IKE (for calls over WiFi)."""


def accept_system_udp(program: str) -> str:
    """Return shell lines that exempt Android's own UDP traffic from the chain ``mplab``.

    `program` is ``iptables`` or ``ip6tables``.
    """
    return "\n".join(f"{program} -w -A mplab -p udp --dport {port} -j RETURN" for port in _SYSTEM_UDP)
