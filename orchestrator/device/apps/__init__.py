"""Scripted apps of the emulated device, and the programs that some of them run."""

from pathlib import Path

from orchestrator.device.screen.load import load_script
from orchestrator.device.screen.script import AppScript

FOLDER = Path(__file__).resolve().parent


def ready_apps() -> tuple[AppScript, ...]:
    """All that are here."""
    return tuple(load_script(path) for path in sorted(FOLDER.glob("*.yaml")))
