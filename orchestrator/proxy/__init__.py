"""Proxies: the other end of every transport."""

from orchestrator.proxy.protocol import Proxy

__all__ = ["Proxy"]
