"""Phones by adb: on a cable, or over TCP."""

from orchestrator.phone.adb.open import adb_server, open_phone, settings_of
from orchestrator.phone.adb.phone import AdbPhone, AdbSettings
from orchestrator.phone.adb.server import AdbServer

__all__ = ["AdbPhone", "AdbServer", "AdbSettings", "adb_server", "open_phone", "settings_of"]
