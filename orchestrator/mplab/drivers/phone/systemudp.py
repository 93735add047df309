"""UDP that Android itself sends, and that firewall rules on a phone must let pass."""

_SYSTEM_UDP = ("123", "500", "4500")
"""Ports of NTP and IKE (calls over WiFi): Android's own, for as long as the phone is used."""


def accept_system_udp(program: str) -> str:
    """Return lines that let pass what Android itself sends by UDP; `program`: ``iptables`` or ``ip6tables``."""
    return "\n".join(f"{program} -w -A mplab -p udp --dport {port} -j RETURN" for port in _SYSTEM_UDP)
