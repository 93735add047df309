"""Protocols of user interfaces: `Ui` for all apps, `BrowserUi` for browsers, `AppUi` for Android apps."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from mplab.base.browser import Event
from mplab.base.hierarchy import UiNode
from mplab.format.selector import Selector


@dataclass(frozen=True)
class AppState:
    """Stored state of an app.

    Attributes:
        cookies: number of cookies of all origins.
        cached_objects: number of objects in the HTTP cache.
        service_workers: number of service workers, registered or running.
        storage_origins: number of origins with local storage, IndexedDB, Cache Storage or files.
        storage_bytes: size of the storage of these origins, bytes, as far as the app reports it.
    """

    cookies: int
    cached_objects: int
    service_workers: int
    storage_origins: int
    storage_bytes: int

    @property
    def clean(self) -> bool:
        """True when the app has stored nothing."""
        return not any(asdict(self).values())

    def __str__(self) -> str:
        """Return the counts that are not 0, as text: ``2 cookies, 1 service workers``."""
        return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in asdict(self).items() if count)


class Ui(Protocol):
    """One app on the screen of a phone.

    Every method raises StepError when it fails, unless its docstring says otherwise.
    """

    def open(self, target: str, *, timeout_s: float = 60.0) -> None:
        """Open a URL (browser) or an activity (Android) and wait until it has loaded."""

    def tap(self, selector: Selector, *, timeout_s: float = 10.0) -> None:
        """Wait until an element exists, and tap it."""

    def type(self, selector: Selector, text: str, *, timeout_s: float = 10.0, secret: bool = False) -> None:
        """Type text into an element.

        Args:
            selector: the element.
            text: text to type.
            timeout_s: maximum time until the element exists, s.
            secret: `text` is a password, which is not logged.
        """

    def swipe(self, x_from: int, y_from: int, x_to: int, y_to: int, *, duration_s: float = 0.3) -> None:
        """Swipe from one point to another (pixels)."""

    def wait(self, selector: Selector, *, timeout_s: float = 10.0) -> None:
        """Wait until an element exists."""

    def read(self, selector: Selector, *, timeout_s: float = 10.0) -> str:
        """Return the text of an element."""

    def back(self) -> None:
        """Go back one screen."""

    def screenshot(self, path: Path) -> None:
        """Save the screen as PNG file `path`."""

    def hierarchy(self) -> str:
        """Return the element tree of the screen: HTML source of the page (browser) or XML (Android)."""

    def keep_evidence(self, path: Path) -> bool:
        """Save the screen as `path` (PNG), and the element tree next to it; return True on success.

        It ends within seconds and raises nothing, because it is called after an error.
        """

    def state(self) -> AppState:
        """Return the app's stored state: cookies, cached objects, service workers, storage."""


class Instrumented(Protocol):
    """A page that reports its network requests."""

    def open(self, target: str, *, timeout_s: float = 60.0) -> None:
        """Open a URL and wait until it has loaded."""

    def evaluate(self, script: str) -> Any:  # noqa: ANN401 - whatever JSON the page returns
        """Run a script in the page and return its value, converted from JSON."""

    def network_events(self) -> Sequence[Event]:
        """Return the DevTools network events that arrived since the last call of this method."""


class BrowserUi(Ui, Instrumented, Protocol):
    """User interface of a browser: the actions of `Ui`, and the scripts and network events of `Instrumented`."""


class AppUi(Ui, Protocol):
    """User interface of an app on Android: the actions of `Ui`, and the closing of dialogs."""

    def close_dialog(self, windows: Sequence[UiNode]) -> bool:
        """Close a known dialog if it is in front in `windows`, the screen's content; return True if one was closed."""


class BrowserFactory(Protocol):
    """Opens browsers on the phone, or on the desktop computer that is the other side of a call."""

    def __call__(self, *, switches: Sequence[str] = (), sound: str = "") -> AbstractContextManager[BrowserUi]:
        """Return a context that yields a browser with a new profile and an empty cache.

        Args:
            switches: additional command line switches.
            sound: sound server to which the browser plays, see `SoundCard.server`; "": muted.
        """
