"""User interfaces: actions on an app's screen, the same for every tool (Appium, uiautomator2, …) that performs them."""

from mplab.base.browser import Event
from mplab.drivers.ui.protocol import AppState, AppUi, BrowserFactory, BrowserUi, Instrumented, Ui

__all__ = ["AppState", "AppUi", "BrowserFactory", "BrowserUi", "Event", "Instrumented", "Ui"]
