"""Emulate the screen of the device with scripted apps, and the servers of UI test frameworks that control it."""

from mplab.device.screen.load import load_script
from mplab.device.screen.protocol import InstalledPackage
from mplab.device.screen.script import AppScript
from mplab.device.screen.scripted import ScriptedScreen

__all__ = ["AppScript", "InstalledPackage", "ScriptedScreen", "load_script"]
