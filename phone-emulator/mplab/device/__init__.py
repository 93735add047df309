"""Emulate an Android phone: the device side of adb, and the phone that unmodified adb clients reach through it."""

from mplab.device.device import Device
from mplab.device.settings import DeviceSettings

__all__ = ["Device", "DeviceSettings"]
