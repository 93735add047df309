"""Redirection of a phone's TCP to the agent: the agent's mark uses no bits that Android interprets."""

from mplab.drivers.transport.redirect import MARK, iptables_script, nft_rules

_NETD = 0xE01FFFFF
"""Bits 0 to 20 (network, permission, accounting), 29 to 31 (vendor, wake-ups) of netd's Fwmark.h."""
_CONNECTION = 0x03000000
"""Bits that netd's StrictController uses in the connection's mark."""


def test_the_agents_mark_says_nothing_to_android() -> None:
    assert MARK & (_NETD | _CONNECTION) == 0
    assert iptables_script("203.0.113.5").count(f"--mark {MARK:#x}/0x1fe00000 -j RETURN") == 2, "whatever netd adds"
    assert nft_rules("203.0.113.5").count(f"meta mark {MARK:#x}") == 2
