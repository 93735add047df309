"""User interfaces: what a scenario can do to an app's screen, whatever drives it."""

from mplab.drivers.ui.protocol import AppState, Ui, UiFactory

__all__ = ["AppState", "Ui", "UiFactory"]
