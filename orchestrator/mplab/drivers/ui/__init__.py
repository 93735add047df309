"""User interfaces: actions of a scenario on an app's screen, independent of the driver."""

from mplab.base.browser import Event
from mplab.drivers.ui.protocol import AppState, AppUi, BrowserFactory, BrowserUi, Instrumented, Ui

__all__ = ["AppState", "AppUi", "BrowserFactory", "BrowserUi", "Event", "Instrumented", "Ui"]
