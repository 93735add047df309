"""Provide the system in which the device's programs run: namespaces, a root folder, files, processes."""

from mplab.device.system.files import FileThread
from mplab.device.system.system import System, SystemSettings

__all__ = ["FileThread", "System", "SystemSettings"]
