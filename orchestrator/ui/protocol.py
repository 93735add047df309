"""The ``Ui`` protocol."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol


@dataclass(frozen=True)
class Selector:
    """How to find an element: ``css`` or ``xpath`` (``id``, ``text`` on Android)."""

    by: Literal["css", "xpath", "id", "text"]
    value: str


class Ui(Protocol):
    """One app on one phone's screen. Every method raises StepError when it cannot do what it says."""

    def open(self, target: str, *, timeout_s: float = 60.0) -> None:
        """Open a URL (browser) or an activity (Android) and wait until it has loaded."""

    def tap(self, selector: Selector, *, timeout_s: float = 10.0) -> None:
        """Tap an element, waiting for it to appear."""

    def type(self, selector: Selector, text: str, *, timeout_s: float = 10.0) -> None:
        """Type text into an element."""

    def swipe(self, x_from: int, y_from: int, x_to: int, y_to: int, *, duration_s: float = 0.3) -> None:
        """Swipe between two points (pixels)."""

    def wait(self, selector: Selector, *, timeout_s: float = 10.0) -> None:
        """Wait until an element is there."""

    def read(self, selector: Selector, *, timeout_s: float = 10.0) -> str:
        """The text of an element."""

    def back(self) -> None:
        """Go back one screen."""

    def screenshot(self, path: Path) -> None:
        """Save the screen as PNG."""

    def hierarchy(self) -> str:
        """The element tree: page source (browser) or XML (Android)."""

    def evaluate(self, script: str) -> Any:  # noqa: ANN401 - whatever JSON the page returns
        """Run a script in the page and return its JSON value (browsers only)."""

    def network_events(self) -> Sequence[Mapping[str, Any]]:
        """DevTools events (``{"method": …, "params": …}``) since the last call (browsers only)."""


UiFactory = Callable[[], AbstractContextManager[Ui]]
"""Opens a fresh app (clean profile, cold cache) on the phone; leaving the context closes it."""
