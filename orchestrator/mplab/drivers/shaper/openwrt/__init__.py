"""A real router: OpenWrt over SSH, with the kernel's own traffic control."""

from mplab.drivers.shaper.openwrt.router import Router

__all__ = ["Router"]
