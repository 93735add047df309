"""The base classes of scenarios: `Scenario`, its `Parameters`, and its `Session` in one cell."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer

from mplab.base.programs import Program
from mplab.scenarios.base.protocol import Context

DEFAULT_CPUS = 0.5
"""Default of `Scenario.cpus`: enough for curl, or for a page that is seldom busy."""


class Parameters(BaseModel):
    """Base class of a scenario's parameters. They are frozen, and unknown keys are refused.

    Quantities use the types of ``mplab.format.units`` (``SizeBytes``, ``DurationS``, …), which read ``"1 MB"``
    and ``"30 s"``.

    Attributes:
        later: names of parameters that were added after the first version of the scenario. Manifests and hashes of
            cells leave them out if they have their defaults, so that cells of older runs keep their hashes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    later: ClassVar[frozenset[str]] = frozenset()

    @model_serializer(mode="wrap")
    def _as_recorded(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        defaults = {name: item.default for name, item in type(self).model_fields.items() if name in self.later}
        return {name: value for name, value in dump(self).items() if name not in defaults or value != defaults[name]}


ParametersT = TypeVar("ParametersT", bound=BaseModel)


@dataclass
class Session(ABC, Generic[ParametersT]):
    """The run of a scenario in one cell, with its open resources and its state.

    Attributes:
        context: resources that the cell gives to the scenario.
        parameters: the cell's values of the scenario's parameters.
    """

    context: Context
    parameters: ParametersT

    @abstractmethod
    def run(self) -> None:
        """Carry out the user's actions while packets are captured. Write measurements with ``context.observe``.

        Raises:
            StepError: the app failed. This and any other CellError fail the cell.
            CheckError: the host, not the network, limited the measurement. The cell is invalid.
        """


class Scenario(ABC, Generic[ParametersT]):
    """The actions of a user in one app. One object is used for many cells, one after the other.

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
        """Return the longest time that `Session.run` may take, s."""

    @abstractmethod
    def estimate_s(self, parameters: ParametersT) -> float:
        """Return the usual duration of `Session.run` on a path of 7 Mbit/s, s. The estimate of a run uses it."""

    def browser_of(self, parameters: ParametersT) -> str:
        """Return the browser that ``Context.open_ui`` opens in a cell with these parameters: `browser`."""
        return self.browser

    @property
    def checks(self) -> bool:
        """Return whether the scenario overrides `check`."""
        return type(self).check is not Scenario.check

    def check(self, context: Context, parameters: ParametersT) -> None:
        """Check that the host is fast enough for this scenario. The base class checks nothing.

        It is called before `open`, when the transport is up, links are not shaped yet, and no packets are captured.

        Raises:
            CheckError: the scenario's measurements would be wrong on this host now; the cell is invalid.
        """

    @abstractmethod
    def open(self, context: Context, parameters: ParametersT) -> AbstractContextManager[Session[ParametersT]]:
        """Return a context manager that yields the session of one cell.

        On entry it prepares the app; no packets are captured yet, and the transport is not up. On exit it cleans up,
        even after an error. At that time the services' logs are in the subfolder ``logs`` of the cell's folder, and the
        captures have stopped, unless there was an error.
        """


AnyScenario = Scenario[BaseModel]
"""A scenario with parameters of any class."""
