"""What the emulated device shows, and what its user does to it."""

from orchestrator.device.screen.home import HomeScreen
from orchestrator.device.screen.protocol import InstalledPackage, Screen

__all__ = ["HomeScreen", "InstalledPackage", "Screen"]
