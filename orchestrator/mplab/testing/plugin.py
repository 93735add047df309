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
    """Make a cell without a lab; takes the arguments of `mplab.testing.scenarios.ScenarioCell`, except the folder."""
    with deferred(_WHY):
        from mplab.testing.scenarios import ScenarioCell

    def make(**settings: "Unpack[CellSettings]") -> ScenarioCell:
        return ScenarioCell(tmp_path, **settings)

    return make


@pytest.fixture
def mplab_problems() -> "Callable[[AnyScenario, str], list[str]]":
    """Check a scenario's parameters: `mplab.testing.scenarios.parameter_problems`."""
    with deferred(_WHY):
        from mplab.testing.scenarios import parameter_problems
    return parameter_problems


@pytest.fixture
def mplab_transport() -> "Callable[[str], Transport]":
    """Open a registered transport for a phone: `mplab.testing.transports.transport_on_phone`."""
    with deferred(_WHY):
        from mplab.testing.transports import transport_on_phone
    return transport_on_phone


@pytest.fixture
def mplab_left_by() -> "Callable[[Transport], list[str]]":
    """List the changes that a transport leaves on a phone: `mplab.testing.transports.left_by`."""
    with deferred(_WHY):
        from mplab.testing.transports import left_by
    return left_by
