"""The frame of every scenario that is done with an app of Android's."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mplab.base.errors import StepError
from mplab.drivers.ui import Ui
from mplab.drivers.ui.hierarchy import Node
from mplab.format.selector import Selector
from mplab.scenarios.base.protocol import Context, Parameters, Scenario
from mplab.userfiles.app import AndroidApp

OPEN_TIMEOUT_S = 30.0


@dataclass
class Visit:
    """What a cell has open.

    Attributes:
        stack: ends with it.
        ui: the phone's screen.
        app: what is opened on it.
    """

    stack: ExitStack
    ui: Ui
    app: AndroidApp

    def element(self, name: str) -> Selector:
        """How an element is found. Raises StepError when the app has none of this name."""
        found = self.app.elements.get(name)
        if found is None:
            raise StepError(f"{self.app.package}: its section in app.yaml has no element {name!r}")
        return found

    def elements(self, *names: str) -> dict[str, Selector]:
        """Those of some elements that the app has."""
        return {name: self.app.elements[name] for name in names if name in self.app.elements}

    def shows(self, name: str, *, timeout_s: float = 0.0) -> bool:
        """Whether an element is there."""
        try:
            self.ui.wait(self.element(name), timeout_s=timeout_s)
        except StepError:
            return False
        return True

    @property
    def watch(self) -> Callable[[Sequence[Node]], object]:
        """Closes dialogs that come up while it is looked at the screen."""
        closes: Callable[[Sequence[Node]], object] = getattr(self.ui, "close_dialog", lambda _windows: False)
        return closes


class AndroidScenario(ABC):
    """`Scenario`: the same as one of the virtual phone, done with an app of Android's.

    Args:
        virtual: the same, whose name, title, parameters, services and times this has.
    """

    needs_ui = True

    def __init__(self, virtual: Scenario) -> None:
        self._virtual = virtual
        self.name = virtual.name
        self.title = virtual.title
        self.parameters: type[Parameters] = virtual.parameters
        self.services: tuple[str, ...] = tuple(virtual.services)
        self._visits: dict[Path, Visit] = {}

    @abstractmethod
    def run(self, context: Context, parameters: Any) -> None:  # noqa: ANN401 - the scenario's own Parameters
        """What the user does; observations go to ``context.observe``."""

    def time_limit_s(self, parameters: Any) -> float:  # noqa: ANN401
        """As on the virtual phone."""
        return self._virtual.time_limit_s(parameters)

    def estimate_s(self, parameters: Any) -> float:  # noqa: ANN401
        """As on the virtual phone."""
        return self._virtual.estimate_s(parameters)

    def prepare(self, context: Context, parameters: Any) -> None:  # noqa: ANN401
        """Clear the app, unless somebody has signed in to it."""
        self.open(context)

    def clean_up(self, context: Context, parameters: Any) -> None:  # noqa: ANN401
        """End the app."""
        visit = self._visits.pop(context.cell_dir, None)
        if visit is not None:
            visit.stack.close()

    def open(self, context: Context) -> Visit:
        """A session with the lab's app; one that is open already ends. Raises StepError."""
        app = context.android
        if app is None:
            raise StepError(f"{self.name}: the lab has not chosen an app for it")
        before = self._visits.pop(context.cell_dir, None)
        if before is not None:
            before.stack.close()
        stack = ExitStack()
        visit = Visit(stack, stack.enter_context(context.open_app(app, fresh=not app.signed_in)), app)
        self._visits[context.cell_dir] = visit
        return visit

    def visit(self, context: Context) -> Visit:
        """What is open. Raises StepError when nothing is."""
        try:
            return self._visits[context.cell_dir]
        except KeyError:
            raise StepError(f"{self.name}: the app has not been started") from None
