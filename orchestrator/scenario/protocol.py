"""The ``Scenario`` protocol and what a scenario is given."""

from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict

from orchestrator.phone import Phone
from orchestrator.ui import UiFactory


class Parameters(BaseModel):
    """Base of a scenario's parameters: strict, frozen, unknown keys refused.

    Quantities use the types of ``orchestrator.spec.units`` (``SizeBytes``, ``DurationS``, …), which read ``"1 MB"``
    and ``"30 s"``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")


class Observer(Protocol):
    """Writes observations to the cell's ``scenario.jsonl``."""

    def __call__(self, event: str, **fields: Any) -> None:  # noqa: ANN401 - any JSON value
        """Record `event` with the wall-clock time and `fields`."""


@dataclass(frozen=True)
class Tools:
    """Host programs a scenario may use, by absolute path."""

    node: Path
    node_modules: Path


@dataclass(frozen=True)
class Context:
    """What a scenario may touch while it runs."""

    phone: Phone
    open_ui: UiFactory
    observe: Observer
    rng: Random
    cell_dir: Path
    scratch_dir: Path
    """A folder that is removed after the cell."""
    time_limit_s: float
    tools: Tools


class Scenario(Protocol):
    """What a user does in one app. ``run`` raises StepError (or any CellError) when the app does not do its part."""

    name: str
    title: str
    parameters: type[Parameters]
    needs_ui: bool

    def time_limit_s(self, parameters: Any) -> float:  # noqa: ANN401 - the scenario's own Parameters
        """Longest time that ``run`` may take, seconds."""

    def estimate_s(self, parameters: Any) -> float:  # noqa: ANN401
        """Usual time that ``run`` takes on a 7 Mbit/s path, seconds (for the plan's estimate)."""

    def prepare(self, context: Context, parameters: Any) -> None:  # noqa: ANN401
        """Before captures start: clean the app."""

    def run(self, context: Context, parameters: Any) -> None:  # noqa: ANN401
        """While captures run: what the user does; observations go to ``context.observe``."""

    def clean_up(self, context: Context, parameters: Any) -> None:  # noqa: ANN401
        """After captures have stopped, also after an error."""
