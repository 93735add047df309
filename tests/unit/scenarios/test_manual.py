"""The example in the manual is a scenario that works."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mplab.base.places import ROOT


@pytest.fixture
def example() -> tuple[ModuleType, ModuleType]:
    """Return scenario and scores of the example in the manual."""
    text = (ROOT / "docs" / "how-to" / "add-a-scenario.md").read_text()
    modules = []
    for name, source in zip(("scenario", "scores"), re.findall(r"```python\n(.*?)```", text, re.DOTALL), strict=True):
        module = ModuleType(f"manual_{name}")
        exec(compile(source, f"docs/how-to/add-a-scenario.md ({name})", "exec"), module.__dict__)  # noqa: S102 - our own manual
        modules.append(module)
    return modules[0], modules[1]


class HeadingUi:
    def open(self, target: str, *, timeout_s: float) -> None:
        assert target == "https://www.search.lab/"

    def read(self, _selector: Any) -> str:
        return "Search"


def test_the_example(
    example: tuple[ModuleType, ModuleType],
    make_cell: Callable[..., Any],
    problems: Callable[[Any, str], list[str]],
) -> None:
    scenario, scores = example[0].SCENARIO, example[1]
    assert problems(scenario, "patience: 3 s") == []
    assert "unknown key 'sites'" in problems(scenario, "sites: wiki")[0]
    cell = make_cell(ui=HeadingUi())
    cell.run(scenario, scenario.parameters(site="search"))
    values = scores.score(cell.observations, {}, Path())
    assert [(value.metric, dict(value.labels)) for value in values] == [("heading_time", {"site": "search"})]
    assert {metric.name for metric in scores.METRICS} == {"heading_time"}
    assert "manual_scenario" not in sys.modules
