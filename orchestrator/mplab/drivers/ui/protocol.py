"""What can be done on a screen: `Ui`, and what only a browser (`BrowserUi`) or an app on Android (`AppUi`) can."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from mplab.drivers.ui.hierarchy import Node
from mplab.format.selector import Selector

Json: TypeAlias = Mapping[str, Any]
"""A JSON object that a browser sends."""
Event: TypeAlias = Json
"""One of DevTools: ``{"method": …, "params": …}``."""


@dataclass(frozen=True)
class AppState:
    """What an app has kept.

    Attributes:
        cookies: of all origins.
        cached_objects: in the HTTP cache.
        service_workers: registered or running.
        storage_origins: origins with local storage, IndexedDB, Cache Storage or files.
        storage_bytes: what these take, as far as the app counts it.
    """

    cookies: int
    cached_objects: int
    service_workers: int
    storage_origins: int
    storage_bytes: int

    @property
    def clean(self) -> bool:
        """Whether there is nothing at all."""
        return not any(asdict(self).values())

    def __str__(self) -> str:
        """What there is: ``2 cookies, 1 service workers``."""
        return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in asdict(self).items() if count)


class Ui(Protocol):
    """One app on one phone's screen. Every method raises StepError when it cannot do what it says."""

    def open(self, target: str, *, timeout_s: float = 60.0) -> None:
        """Open a URL (browser) or an activity (Android) and wait until it has loaded."""

    def tap(self, selector: Selector, *, timeout_s: float = 10.0) -> None:
        """Tap an element, waiting for it to appear."""

    def type(self, selector: Selector, text: str, *, timeout_s: float = 10.0, secret: bool = False) -> None:
        """Type text into an element.

        Args:
            secret: `text` is a password: it comes into no log.
        """

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

    def keep_evidence(self, path: Path) -> bool:
        """Save the screen as `path` (PNG) and the element tree beside it, within some seconds; whether that was done.

        Raises nothing: it is called when something has gone wrong.
        """

    def state(self) -> AppState:
        """What the app has kept: cookies, cached objects, service workers, storage."""


class Instrumented(Protocol):
    """A page that can be asked what it has loaded."""

    def open(self, target: str, *, timeout_s: float = 60.0) -> None:
        """Open a URL and wait until it has loaded."""

    def evaluate(self, script: str) -> Any:  # noqa: ANN401 - whatever JSON the page returns
        """Run a script in the page and return its JSON value."""

    def network_events(self) -> Sequence[Event]:
        """Return the DevTools events since the last call."""


class BrowserUi(Ui, Instrumented, Protocol):
    """A browser."""


class AppUi(Ui, Protocol):
    """An app on Android."""

    def close_dialog(self, windows: Sequence[Node]) -> bool:
        """Close a known dialog if one is in front of `windows`, which are shown; return whether there was one."""


class BrowserFactory(Protocol):
    """Opens browsers, on the phone or on the desktop peer."""

    def __call__(self, *, switches: Sequence[str] = (), sound: str = "") -> AbstractContextManager[BrowserUi]:
        """Open a browser with a new profile and a cold cache, for as long as the context.

        Args:
            switches: further command line switches.
            sound: `SoundCard.server` that the browser plays to; "": it is muted.
        """
