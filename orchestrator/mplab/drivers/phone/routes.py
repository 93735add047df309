"""Routes of a phone whose system leaves them alone."""

_PRIMARY_METRIC = 50


def primary_command(interface: str, gateway: str) -> str:
    """The `ip` command that makes a phone prefer an interface; it may be given again and again."""
    return f"route replace default via {gateway} dev {interface} metric {_PRIMARY_METRIC}"


_SYSTEM_UDP = ("123", "500", "4500")
"""Ports of NTP and IKE (calls over WiFi): Android's own, for as long as the phone is used."""


def accept_system_udp(program: str) -> str:
    """Return lines of a root shell that accept the UDP of Android itself in the chain ``mplab``.

    Args:
        program: ``iptables`` or ``ip6tables``.
    """
    return "\n".join(f"{program} -w -A mplab -p udp --dport {port} -j RETURN" for port in _SYSTEM_UDP)
