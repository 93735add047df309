"""User interfaces: what a scenario can do to an app's screen, whatever drives it."""

from mplab.drivers.ui.protocol import AppState, AppUi, BrowserFactory, BrowserUi, Event, Instrumented, Ui

__all__ = ["AppState", "AppUi", "BrowserFactory", "BrowserUi", "Event", "Instrumented", "Ui"]
