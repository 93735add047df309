"""Emulate an Android phone: the device side of adb, and a phone behind it that stock clients take for a real one."""

from mplab.device.device import Device
from mplab.device.settings import DeviceSettings

__all__ = ["Device", "DeviceSettings"]
