"""Proxies: the other end of every transport."""

from mplab.drivers.proxy.protocol import Proxy

__all__ = ["Proxy"]
