"""Provide pytest fixtures for tests of scenarios and transports. docs/plugins.md shows their use."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import pytest

from mplab.base.deferred import deferred

if TYPE_CHECKING:
    from mplab.drivers.transport import Transport
    from mplab.scenarios.base import AnyScenario
    from mplab.testing.scenarios import CellSettings, ScenarioCell

_WHY = "tests that use no fixture of mplab need not wait for it"


@pytest.fixture
def mplab_cell(tmp_path: Path) -> "Callable[..., ScenarioCell]":
    """Return a function that makes a `mplab.testing.scenarios.ScenarioCell` in a temporary folder.

    The function takes the arguments of this class, except `folder`.
    """
    with deferred(_WHY):
        from mplab.testing.scenarios import ScenarioCell

    def make(**settings: "Unpack[CellSettings]") -> ScenarioCell:
        return ScenarioCell(tmp_path, **settings)

    return make


@pytest.fixture
def mplab_problems() -> "Callable[[AnyScenario, str], list[str]]":
    """Return the function `mplab.testing.scenarios.parameter_problems`, which checks parameters of a scenario."""
    with deferred(_WHY):
        from mplab.testing.scenarios import parameter_problems
    return parameter_problems


@pytest.fixture
def mplab_transport() -> "Callable[[str], Transport]":
    """Return the function `mplab.testing.transports.transport_on_phone`, which returns a transport by its name."""
    with deferred(_WHY):
        from mplab.testing.transports import transport_on_phone
    return transport_on_phone


@pytest.fixture
def mplab_left_by() -> "Callable[[Transport], list[str]]":
    """Return the function `mplab.testing.transports.left_by`, which lists changes that a transport fails to undo."""
    with deferred(_WHY):
        from mplab.testing.transports import left_by
    return left_by
