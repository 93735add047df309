"""User interfaces: actions on an app's screen for scenarios, independent of the automation that performs them."""

from mplab.base.browser import Event
from mplab.drivers.ui.protocol import AppState, AppUi, BrowserFactory, BrowserUi, Instrumented, Ui

__all__ = ["AppState", "AppUi", "BrowserFactory", "BrowserUi", "Event", "Instrumented", "Ui"]
