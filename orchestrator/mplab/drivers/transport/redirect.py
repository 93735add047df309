"""Redirect a phone's TCP and DNS to the agent that runs on the phone."""

from typing import Final

from mplab.drivers.phone.routes import accept_system_udp
from mplab.format.sites import DNS_ADDRESS, ECHO_ADDRESS, ECHO_PORT

REDIRECT_PORT: Final = 3128
DNS_PORT: Final = 3153
SOCKS_PORT: Final = 1080
HTTP_PORT: Final = 8118
MARK: Final = 0xC00000
"""Firewall mark of the agent's own packets, which are not redirected.

Android does not use the bits 21 to 28 (netd's Fwmark.h), and the mark uses only these. Lower bits would select one of
Android's networks and its routing rules."""
_MARK_MASK: Final = 0x1FE00000
"""Bits 21 to 28. Rules compare only these bits, because Android sets other bits of the mark."""


def nft_rules(proxy: str) -> str:
    """Return nft rules for a phone: redirect TCP and DNS to the agent, reject other UDP (QUIC).

    UDP to `proxy`, the proxy's address, passes, because link probes use it. Datagrams to the origin's echo service also
    pass: they use the default route unless an application sends them through the agent.
    """
    return f"""
table ip mplab {{
  chain output {{
    type nat hook output priority -100;
    meta mark {MARK:#x} return
    udp dport 53 redirect to :{DNS_PORT}
    ip daddr {{ 127.0.0.0/8, {proxy} }} return
    meta l4proto tcp redirect to :{REDIRECT_PORT}
  }}
  chain refuse {{
    type filter hook output priority 0;
    meta mark {MARK:#x} accept
    ip daddr {{ 127.0.0.0/8, {proxy} }} accept
    ip daddr {ECHO_ADDRESS} udp dport {ECHO_PORT} accept
    meta l4proto udp counter reject
  }}
}}
"""


def direct_nft_rules(proxy: str) -> str:
    """Return nft rules that replace those of `nft_rules`: TCP and lookups leave the phone, other UDP is rejected."""
    return f"""
table ip mplab {{
  chain refuse {{
    type filter hook output priority 0;
    ip daddr {{ 127.0.0.0/8, {proxy} }} accept
    ip daddr {ECHO_ADDRESS} udp dport {ECHO_PORT} accept
    ip daddr {DNS_ADDRESS} udp dport 53 accept
    meta l4proto udp counter reject
  }}
}}
"""


IPTABLES_UNDO: Final = """
while iptables -w -t nat -D OUTPUT -j mplab 2>/dev/null; do :; done
while iptables -w -D OUTPUT -j mplab 2>/dev/null; do :; done
for table in nat filter; do iptables -w -t $table -F mplab; iptables -w -t $table -X mplab; done 2>/dev/null
true
"""
"""Shell lines, to be run as root, that remove the rules of `iptables_script` if they exist."""


def iptables_script(proxy: str) -> str:
    """Return shell lines, to be run as root, that make the rules of `nft_rules` by iptables: Android has no nft.

    The rules precede the system's rules and replace rules that a killed run has left. UDP of the Android system passes:
    a phone that cannot renew its DHCP lease loses its WiFi.
    """
    return f"""{IPTABLES_UNDO}
set -e
iptables -w -t nat -N mplab
iptables -w -t nat -A mplab -m mark --mark {MARK:#x}/{_MARK_MASK:#x} -j RETURN
iptables -w -t nat -A mplab -p udp --dport 53 -j REDIRECT --to-ports {DNS_PORT}
iptables -w -t nat -A mplab -d 127.0.0.0/8 -j RETURN
iptables -w -t nat -A mplab -d {proxy} -j RETURN
iptables -w -t nat -A mplab -p tcp -j REDIRECT --to-ports {REDIRECT_PORT}
iptables -w -t nat -I OUTPUT -j mplab
iptables -w -N mplab
iptables -w -A mplab -m mark --mark {MARK:#x}/{_MARK_MASK:#x} -j RETURN
iptables -w -A mplab -d 127.0.0.0/8 -j RETURN
iptables -w -A mplab -d {proxy} -j RETURN
iptables -w -A mplab -d {ECHO_ADDRESS} -p udp --dport {ECHO_PORT} -j RETURN
iptables -w -A mplab -p udp --sport 68 --dport 67 -j RETURN
{accept_system_udp("iptables")}
iptables -w -A mplab -p udp -j REJECT
iptables -w -I OUTPUT -j mplab
"""
