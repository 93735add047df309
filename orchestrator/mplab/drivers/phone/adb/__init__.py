"""Phones controlled by adb, over USB or TCP."""

from mplab.drivers.phone.adb.open import adb_server, open_phone, settings_of
from mplab.drivers.phone.adb.phone import AdbPhone, AdbSettings
from mplab.drivers.phone.adb.server import AdbServer

__all__ = ["AdbPhone", "AdbServer", "AdbSettings", "adb_server", "open_phone", "settings_of"]
