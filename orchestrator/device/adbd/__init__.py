"""The device side of adb's protocol, over TCP.

Written from the protocol's own documents (protocol.txt, SERVICES.TXT and SYNC.TXT of Android's adb).
"""

from orchestrator.device.adbd.backend import Backend, Channel
from orchestrator.device.adbd.server import AdbServer

__all__ = ["AdbServer", "Backend", "Channel"]
