"""Implement `AppUi` on Android by an `Automation`, the protocol that hides whether uiautomator2 or Appium is used."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Protocol

from mplab.base.errors import StepError
from mplab.base.hierarchy import UiNode, parse_hierarchy
from mplab.drivers.ui.dialogs import Dialog
from mplab.drivers.ui.evidence import keep_step
from mplab.drivers.ui.matching import find_node, package_of, selector_name, title_of
from mplab.drivers.ui.protocol import AppState
from mplab.format.selector import Selector

_POLL_S = 0.1
_FOCUS_TIMEOUT_S = 5.0


class AutomationError(Exception):
    """The automation or the phone's screen did not respond as expected."""


class Automation(Protocol):
    """Low-level control of one phone's screen. Methods raise AutomationError on failure, except `close`."""

    @property
    def device(self) -> str:
        """Name of the phone in messages."""

    def hierarchy(self) -> str:
        """Return the element tree as XML for `parse_hierarchy`."""

    def screenshot(self) -> bytes:
        """Return the screen as PNG."""

    def tap(self, x: int, y: int) -> None:
        """Tap a point of the screen; `x` and `y` are pixels."""

    def swipe(self, x_from: int, y_from: int, x_to: int, y_to: int, duration_s: float) -> None:
        """Swipe from one point of the screen to another; coordinates are pixels."""

    def type_focused(self, text: str, *, secret: bool) -> None:
        """Replace the text of the field that has the focus; with `secret`, the text is not logged."""

    def press(self, key: str) -> None:
        """Press a key: ``back``, ``home`` or ``enter``."""

    def start(self, package: str, activity: str) -> None:
        """Start an app; `activity` "": the activity that a launcher starts."""

    def open_link(self, url: str, package: str) -> None:
        """Open a link in an app; `package` "": the phone chooses the app."""

    def stop(self, package: str) -> None:
        """Stop the app `package`."""

    def clear(self, package: str) -> None:
        """Delete the stored data of the app `package`."""

    def close(self) -> None:
        """Stop the automation's server on the phone. Raises nothing."""


@dataclass(frozen=True)
class AndroidSettings:
    """Settings of one session that controls apps on a phone, for any automation.

    Attributes:
        packages: packages of the apps in use. The app of the first package opens links. Error messages name the app in
            front if its package is not in this list.
        fresh: delete the stored data of these apps at the start; False for apps with a signed-in user.
        dialogs: dialogs to close when they appear.
        observe: function called for each closed dialog: ``observe("dialog", name=…, package=…)``.
        screenshots: folder for ``step-NN.png`` and ``step-NN.xml`` of a failed step; None: not saved.
    """

    packages: Sequence[str] = ()
    fresh: bool = True
    dialogs: Sequence[Dialog] = ()
    observe: Callable[..., object] = lambda *_arguments, **_fields: None
    screenshots: Path | None = None


@contextlib.contextmanager
def android_session(device: str, make: Callable[[], Automation], settings: AndroidSettings) -> Iterator["AndroidUi"]:
    """Yield the user interface of a phone for the context; at its end, stop the apps that were opened.

    Args:
        device: name of the phone.
        make: function that starts and returns the automation.
        settings: settings of the session.

    Raises:
        StepError: the automation did not start, or the stored data of an app could not be deleted.
    """
    try:
        automation = make()
    except AutomationError as error:
        raise StepError(f"{device}: {error}") from error
    try:
        ui = AndroidUi(automation, settings)
        try:
            for package in settings.packages if settings.fresh else ():
                automation.clear(package)
        except AutomationError as error:
            raise StepError(f"{device}: {error}") from error
        try:
            yield ui
        finally:
            with contextlib.suppress(AutomationError):
                for package in dict.fromkeys(ui.opened):
                    automation.stop(package)
    finally:
        automation.close()


class AndroidUi:
    """`AppUi` for the apps of one phone.

    Args:
        automation: control of the phone's screen.
        settings: settings of the session.
    """

    def __init__(self, automation: Automation, settings: AndroidSettings) -> None:
        self._automation = automation
        self._settings = settings
        self._step_number = 0
        self.opened: list[str] = []
        """Apps started by `open`."""

    def open(self, target: str, *, timeout_s: float = 60.0) -> None:
        """Open ``package``, ``package/activity`` or a URL, and wait until its app is in front.

        A URL is opened by the first app of `AndroidSettings.packages` or, if there is none, by an app that the phone
        chooses.
        """
        link = "://" in target
        package, _, activity = target.partition("/")
        if link:
            package = self._settings.packages[0] if self._settings.packages else ""
        with self._step(f"opening {target}"):
            if package:
                self.opened.append(package)
            if link:
                self._automation.open_link(target, package)
            else:
                self._automation.start(package, activity)
            self._until(
                lambda windows: not package or package_of(windows) == package, timeout_s, f"{package} is not in front"
            )

    def tap(self, selector: Selector, *, timeout_s: float = 10.0) -> None:
        """Tap the centre of an element as soon as the element exists and is enabled."""
        with self._step(f"tapping {selector_name(selector)}"):
            node = self._find(selector, timeout_s, enabled=True)
            self._automation.tap(*node.bounds.center)

    def type(self, selector: Selector, text: str, *, timeout_s: float = 10.0, secret: bool = False) -> None:
        """Replace the text of a field; a line break at the end of `text` presses ENTER."""
        with self._step(f"typing into {selector_name(selector)}"):
            node = self._find(selector, timeout_s, enabled=True)
            if "focused" not in node.flags:
                self._automation.tap(*node.bounds.center)
                self._until(_has_focus, _FOCUS_TIMEOUT_S, "no field has taken the focus")
            self._automation.type_focused(text.removesuffix("\n"), secret=secret)
            if text.endswith("\n"):
                self._automation.press("enter")

    def swipe(self, x_from: int, y_from: int, x_to: int, y_to: int, *, duration_s: float = 0.3) -> None:
        """Swipe from one point of the screen to another (pixels)."""
        with self._step(f"swiping from {x_from},{y_from} to {x_to},{y_to}"):
            self._automation.swipe(x_from, y_from, x_to, y_to, duration_s)

    def wait(self, selector: Selector, *, timeout_s: float = 10.0) -> None:
        """Wait until an element exists."""
        with self._step(f"waiting for {selector_name(selector)}"):
            self._find(selector, timeout_s)

    def read(self, selector: Selector, *, timeout_s: float = 10.0) -> str:
        """Return the text of an element, or its description if it has no text."""
        with self._step(f"reading {selector_name(selector)}"):
            return self._find(selector, timeout_s).label

    def back(self) -> None:
        """Press the key BACK."""
        with self._step("going back"):
            self._automation.press("back")

    def screenshot(self, path: Path) -> None:
        """Save the screen as PNG file `path`."""
        with self._step("taking a screenshot"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self._automation.screenshot())

    def hierarchy(self) -> str:
        """Return the element tree as XML."""
        with self._step("reading the element tree"):
            return self._automation.hierarchy()

    def keep_evidence(self, path: Path) -> bool:
        """Save the screen as `path`, and the element tree next to it as ``.xml``; return True on success."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.with_suffix(".xml").write_text(self._automation.hierarchy())
            path.write_bytes(self._automation.screenshot())
        except (AutomationError, OSError):
            return False
        return True

    def state(self) -> AppState:
        """Return an empty state if the apps' data was deleted at the start and no app was opened afterwards.

        Raises:
            StepError: the state is unknown, because the apps' data was not deleted, or an app was opened.
        """
        if not self._settings.fresh or self.opened:
            problem = "the stored state of the app is unknown: the app was not cleared, or was opened since"
            raise StepError(f"{self._automation.device}: {problem}")
        return AppState(0, 0, 0, 0, 0)

    def _find(self, selector: Selector, timeout_s: float, *, enabled: bool = False) -> UiNode:
        matches: list[UiNode] = []

        def there(windows: Sequence[UiNode]) -> bool:
            node = find_node(windows, selector)
            matches[:] = [node] if node else []
            return node is not None and (not enabled or "enabled" in node.flags)

        self._until(there, timeout_s, lambda: "there, but not enabled" if matches else "not there")
        return matches[0]

    def _until(
        self, holds: Callable[[Sequence[UiNode]], bool], timeout_s: float, problem: str | Callable[[], str]
    ) -> None:
        deadline = time.monotonic() + timeout_s
        while True:
            windows = self._windows()
            if holds(windows):
                return
            if time.monotonic() > deadline:
                text = problem if isinstance(problem, str) else problem()
                raise AutomationError(f"{text} after {timeout_s:g} s{self._stranger(windows)}")
            if not self.close_dialog(windows):
                time.sleep(_POLL_S)

    def _windows(self) -> Sequence[UiNode]:
        try:
            return parse_hierarchy(self._automation.hierarchy())
        except ValueError as error:
            raise AutomationError(str(error)) from error

    def close_dialog(self, windows: Sequence[UiNode]) -> bool:
        """Close a known dialog (`AndroidSettings.dialogs`) if one is in front; return True if a dialog was closed."""
        for dialog in self._settings.dialogs:
            button = dialog.way_out(windows)
            if button is not None:
                self._automation.tap(*button.bounds.center)
                self._settings.observe("dialog", name=dialog.name, package=package_of(windows))
                return True
        return False

    def _stranger(self, windows: Sequence[UiNode]) -> str:
        """Return a remark for error messages if another app or a dialog is in front; otherwise ""."""
        package = package_of(windows)
        dialog = any(node.resource_id == "android:id/alertTitle" for window in windows for node in window.walk())
        if package in self._settings.packages and not dialog:
            return ""
        return f"; in front is {package or 'nothing'}: {title_of(windows)!r}"

    @contextlib.contextmanager
    def _step(self, action: str) -> Iterator[None]:
        self._step_number += 1
        try:
            yield
        except AutomationError as error:
            self._fail(action, error)

    def _fail(self, action: str, error: AutomationError) -> NoReturn:
        remark = keep_step(self, self._settings.screenshots, self._step_number)
        raise StepError(f"{self._automation.device}: {action}: {error}{remark}") from error


def _has_focus(windows: Sequence[UiNode]) -> bool:
    return any("focused" in node.flags for window in windows for node in window.walk())
