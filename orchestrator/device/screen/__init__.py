"""What the emulated device shows, and what its user does to it."""

from orchestrator.device.screen.home import HomeScreen
from orchestrator.device.screen.load import load_script
from orchestrator.device.screen.protocol import InstalledPackage, Screen
from orchestrator.device.screen.script import AppScript
from orchestrator.device.screen.scripted import ScriptedScreen

__all__ = ["AppScript", "HomeScreen", "InstalledPackage", "Screen", "ScriptedScreen", "load_script"]
