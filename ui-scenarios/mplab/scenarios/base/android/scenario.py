"""Base class of scenarios that drive an Android app, and steps to put files on the phone and to choose them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from mplab.base.errors import StepError
from mplab.base.hierarchy import UiNode
from mplab.drivers.ui import AppUi
from mplab.format.selector import Selector
from mplab.scenarios.base.protocol import Context
from mplab.scenarios.base.scenario import ParametersT, Scenario
from mplab.userfiles.experiments.app import AndroidApp

OPEN_TIMEOUT_S = 30.0
FOLDER = "/sdcard/Download"
"""Folder on the phone to which `put_file` copies files."""
_CHOOSER_S = 15.0
_SCAN = "android.intent.action.MEDIA_SCANNER_SCAN_FILE"


@dataclass
class Visit:
    """The use of one Android app in one cell.

    Attributes:
        stack: callbacks and contexts that are closed when the visit ends.
        ui: the phone's screen.
        app: the app's section of ``app.yaml``.
    """

    stack: ExitStack
    ui: AppUi
    app: AndroidApp

    def element(self, name: str) -> Selector:
        """Return the selector of the element `name` in the app's section of ``app.yaml``. Raises StepError."""
        selector = self.app.elements.get(name)
        if selector is None:
            raise StepError(f"{self.app.package}: its section in app.yaml has no element {name!r}")
        return selector

    def elements(self, *names: str) -> dict[str, Selector]:
        """Return name → selector of those elements in `names` that the app's section of ``app.yaml`` has."""
        return {name: self.app.elements[name] for name in names if name in self.app.elements}

    def shows(self, name: str, *, timeout_s: float = 0.0) -> bool:
        """Wait up to `timeout_s` for the element `name`. Return whether it was shown."""
        try:
            self.ui.wait(self.element(name), timeout_s=timeout_s)
        except StepError:
            return False
        return True

    @property
    def watch(self) -> Callable[[Sequence[UiNode]], object]:
        """Return a function for the argument `watch` of `sample`: it closes dialogs that cover the app."""
        return self.ui.close_dialog


class AndroidScenario(Scenario[ParametersT]):
    """Base class of scenarios that carry out a scenario of the virtual phone with an Android app.

    Args:
        virtual: the same scenario for the virtual phone. Name, title, parameters, services and times are taken from it.
    """

    needs_ui = True

    def __init__(self, virtual: Scenario[ParametersT]) -> None:
        self._virtual = virtual
        self.name = virtual.name
        self.title = virtual.title
        self.parameters = virtual.parameters
        self.services = virtual.services

    def time_limit_s(self, parameters: ParametersT) -> float:
        """Return the same time limit as on the virtual phone, s."""
        return self._virtual.time_limit_s(parameters)

    def estimate_s(self, parameters: ParametersT) -> float:
        """Return the same estimated duration as on the virtual phone, s."""
        return self._virtual.estimate_s(parameters)

    @contextmanager
    def visit(self, context: Context) -> Iterator[Visit]:
        """Prepare the Android app that the lab uses for this scenario; yield it as a `Visit`. Release it at exit.

        Raises:
            StepError: the lab has no app for the scenario, or the app cannot be prepared.
        """
        app = context.android
        if app is None:
            raise StepError(f"{self.name}: the lab has not chosen an app for it")
        with ExitStack() as stack:
            yield Visit(stack, stack.enter_context(context.open_app(app)), app)


def put_file(context: Context, path: Path) -> str:
    """Copy a file to `FOLDER` on the phone, and let Android index it. Return its path there. Raises DeviceError."""
    target = f"{FOLDER}/{path.name}"
    context.phone.push(path, target)
    context.phone.shell(["am", "broadcast", "-a", _SCAN, "-d", f"file://{target}"], check=False)
    return target


def remove_files(context: Context, targets: Iterable[str]) -> None:
    """Delete files from the phone; `targets` are paths that `put_file` has returned."""
    context.phone.shell(["rm", "-f", *targets], check=False)


def choose_file(visit: Visit, name: str) -> None:
    """Tap the file `name` in Android's file chooser. Raises StepError if the chooser does not open or list the file."""
    if "file chooser" in visit.app.elements:
        visit.ui.wait(visit.element("file chooser"), timeout_s=_CHOOSER_S)
    visit.ui.tap(Selector("text", name), timeout_s=_CHOOSER_S)
