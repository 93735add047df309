"""The base classes of scenarios: `Scenario`, its `Parameters`, and its `Session` in one cell."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from mplab.base.programs import Program
from mplab.scenarios.base.protocol import Context

DEFAULT_CPUS = 0.5
"""Default of `Scenario.cpus`: enough for curl, or for a page that is seldom busy."""


class Parameters(BaseModel):
    """Base class of a scenario's parameters. They are frozen, and unknown keys are refused.

    Quantities use the types of ``mplab.format.units`` (``SizeBytes``, ``DurationS``, …), which read ``"1 MB"``
    and ``"30 s"``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")


ParametersT = TypeVar("ParametersT", bound=BaseModel)


@dataclass
class Session(ABC, Generic[ParametersT]):
    """A scenario in one cell: holds its open resources and its state.

    Attributes:
        context: resources that the scenario may use.
        parameters: of the cell.
    """

    context: Context
    parameters: ParametersT

    @abstractmethod
    def run(self) -> None:
        """Do what the user does, while captures run. Report measurements by ``context.observe``.

        Raises:
            StepError: the app failed. This and any other CellError fail the cell.
            CheckError: the host, not the network, limited the measurement. The cell is invalid.
        """


class Scenario(ABC, Generic[ParametersT]):
    """Steps of a user in one app. One object serves many cells, one after the other.

    A subclass sets `name`, `title` and `parameters`, and implements `time_limit_s`, `estimate_s` and `open`. Everything
    else has a default.
    """

    name: str
    title: str
    parameters: type[ParametersT]
    needs_ui: bool = False
    """True when the scenario opens browsers or Android apps."""
    services: tuple[str, ...] = ()
    """Services of the origin that the scenario uses: names of folders in ``proxy-docker/mplab/services``."""
    browser: str = "chromium"
    """The browser that ``Context.open_ui`` opens: ``chromium`` or ``firefox``."""
    programs: tuple[Program, ...] = ()
    """Programs that must be installed, in addition to the browser and the programs of the services."""
    socks: bool = False
    """True when the scenario passes the proxy ``Context.app_proxy`` to the programs that it runs."""
    cpus: float = DEFAULT_CPUS
    """Number of processors that the scenario needs while it runs, lab and services included."""

    @abstractmethod
    def time_limit_s(self, parameters: ParametersT) -> float:
        """Return the longest time that `Session.run` may take, seconds."""

    @abstractmethod
    def estimate_s(self, parameters: ParametersT) -> float:
        """Return the usual duration of `Session.run` on a 7 Mbit/s path, seconds (for the plan's estimate)."""

    @property
    def checks(self) -> bool:
        """True when the scenario overrides `check`."""
        return type(self).check is not Scenario.check

    def check(self, context: Context, parameters: ParametersT) -> None:
        """Check that the host is fast enough to measure. By default nothing is checked.

        Called before `open`. During the call the transport is up, links are not shaped yet, and nothing is captured.

        Raises:
            CheckError: the scenario's measurements would be wrong on this host now; the cell is invalid.
        """

    @abstractmethod
    def open(self, context: Context, parameters: ParametersT) -> AbstractContextManager[Session[ParametersT]]:
        """Return a context manager that yields the session of one cell.

        Entry prepares the app: nothing is captured yet, and the transport is not up. Exit cleans up, even after an
        error. At exit the services' logs of the cell are in ``logs`` of the cell's folder. Captures have stopped,
        unless there was an error.
        """


AnyScenario = Scenario[BaseModel]
"""A scenario with parameters of any class."""
