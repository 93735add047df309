"""Base class of scenarios that drive an Android app; files on the phone, and Android's file chooser."""

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
from mplab.userfiles.app import AndroidApp

OPEN_TIMEOUT_S = 30.0
FOLDER = "/sdcard/Download"
"""Folder of the files that `put_file` copies to the phone."""
_CHOOSER_S = 15.0
_SCAN = "android.intent.action.MEDIA_SCANNER_SCAN_FILE"


@dataclass
class Visit:
    """An app of the phone that is prepared for one cell.

    Attributes:
        stack: callbacks and contexts that end with the visit.
        ui: the phone's screen.
        app: the app.
    """

    stack: ExitStack
    ui: AppUi
    app: AndroidApp

    def element(self, name: str) -> Selector:
        """Return the selector of an element. Raises StepError when the app's section has no element of this name."""
        selector = self.app.elements.get(name)
        if selector is None:
            raise StepError(f"{self.app.package}: its section in app.yaml has no element {name!r}")
        return selector

    def elements(self, *names: str) -> dict[str, Selector]:
        """Return name → selector of those elements in `names` that the app's section of ``app.yaml`` has."""
        return {name: self.app.elements[name] for name in names if name in self.app.elements}

    def shows(self, name: str, *, timeout_s: float = 0.0) -> bool:
        """Wait for an element; return whether it is shown within `timeout_s`."""
        try:
            self.ui.wait(self.element(name), timeout_s=timeout_s)
        except StepError:
            return False
        return True

    @property
    def watch(self) -> Callable[[Sequence[UiNode]], object]:
        """Callback for `sample` that closes dialogs which cover the app."""
        return self.ui.close_dialog


class AndroidScenario(Scenario[ParametersT]):
    """A scenario of the virtual phone, done with an Android app.

    Args:
        virtual: the scenario of the virtual phone; gives name, title, parameters, services and times.
    """

    needs_ui = True

    def __init__(self, virtual: Scenario[ParametersT]) -> None:
        self._virtual = virtual
        self.name = virtual.name
        self.title = virtual.title
        self.parameters = virtual.parameters
        self.services = virtual.services

    def time_limit_s(self, parameters: ParametersT) -> float:
        """Return the time limit of the virtual phone's scenario, s."""
        return self._virtual.time_limit_s(parameters)

    def estimate_s(self, parameters: ParametersT) -> float:
        """Return the estimated time of the virtual phone's scenario, s."""
        return self._virtual.estimate_s(parameters)

    @contextmanager
    def visit(self, context: Context) -> Iterator[Visit]:
        """Open the app that the lab has chosen, for as long as the context. Raises StepError."""
        app = context.android
        if app is None:
            raise StepError(f"{self.name}: the lab has not chosen an app for it")
        with ExitStack() as stack:
            yield Visit(stack, stack.enter_context(context.open_app(app)), app)


def put_file(context: Context, path: Path) -> str:
    """Copy a file to the phone's downloads; have Android index it. Return its path there. Raises DeviceError."""
    target = f"{FOLDER}/{path.name}"
    context.phone.push(path, target)
    context.phone.shell(["am", "broadcast", "-a", _SCAN, "-d", f"file://{target}"], check=False)
    return target


def remove_files(context: Context, targets: Iterable[str]) -> None:
    """Remove files that `put_file` has copied."""
    context.phone.shell(["rm", "-f", *targets], check=False)


def choose_file(visit: Visit, name: str) -> None:
    """Choose a file by its name. Raises StepError when the chooser does not open or does not list the file."""
    if "file chooser" in visit.app.elements:
        visit.ui.wait(visit.element("file chooser"), timeout_s=_CHOOSER_S)
    visit.ui.tap(Selector("text", name), timeout_s=_CHOOSER_S)
