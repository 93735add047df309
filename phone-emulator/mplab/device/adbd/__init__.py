"""Implement the device side of adb's protocol over TCP.

Sources: protocol.txt, SERVICES.TXT and SYNC.TXT of Android's adb.
"""

from mplab.device.adbd.backend import Backend, Channel
from mplab.device.adbd.debian import find_adbd
from mplab.device.adbd.server import EmulatedAdbd

__all__ = ["Backend", "Channel", "EmulatedAdbd", "find_adbd"]
