"""UDP ports of Android's own services, which firewall rules on a phone must accept."""

_SYSTEM_UDP = ("123", "500", "4500")
"""Ports of NTP and IKE (calls over WiFi), which Android always uses."""


def accept_system_udp(program: str) -> str:
    """Return rules that accept Android's own UDP traffic; `program` is ``iptables`` or ``ip6tables``."""
    return "\n".join(f"{program} -w -A mplab -p udp --dport {port} -j RETURN" for port in _SYSTEM_UDP)
