"""``mplab plan`` accepts the defaults of every scenario with every transport."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mplab.cli.main import app
from mplab.drivers.transport import names
from mplab.lab.catalog import scenario_names


@pytest.mark.parametrize("scenario", scenario_names())
def test_every_scenario_plans_with_its_defaults_over_every_transport(scenario: str, tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(
        f"mplab: 1\nname: x\ntransports: [{', '.join(names())}]\nlinks: [baseline]\nscenarios:\n  - {scenario}\n"
    )
    result = CliRunner().invoke(app, ["plan", str(file), "--json"])
    assert result.exit_code == 0, result.exception
    plan = json.loads(result.stdout)["plan"]
    assert len(plan["cells"]) + len(plan["skipped"]) == len(names())
