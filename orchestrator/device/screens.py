"""Which screen and which agents a device gets."""

from pathlib import Path

from orchestrator.device.android.model import PhoneModel
from orchestrator.device.screen import HomeScreen, Screen
from orchestrator.device.screen.agents import Agents
from orchestrator.device.settings import DeviceSettings


def make_screen(_settings: DeviceSettings, model: PhoneModel, _runtime: Path) -> tuple[Screen, Agents]:
    """The screen of a device, and the UI frameworks' programs that know it."""
    return HomeScreen(model.screen.width, model.screen.height), {}
