"""User interfaces: what a scenario can do to an app's screen, whatever drives it."""

from orchestrator.ui.protocol import Selector, Ui, UiFactory

__all__ = ["Selector", "Ui", "UiFactory"]
