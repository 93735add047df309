"""What the processes of a run import when they start: nothing that only some verbs, labs or scenarios need."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from mplab.base.programs import CHECKOUT
from mplab.cli.main import app

SLOW = {
    "PIL", "adbutils", "appium", "cryptography", "dask", "distributed", "docker", "duckdb", "fsspec", "jinja2", "lxml",
    "matplotlib", "numpy", "paramiko", "polars", "requests", "scipy", "selenium", "tornado", "trustme", "uiautomator2",
}  # fmt: skip
PLAN = "from mplab.cli.main import app; app(['plan', 'experiments/demo.yaml'], standalone_mode=False)"


def imported_by(code: str) -> set[str]:
    """The packages that a new interpreter has imported after `code`."""
    code += "; import json, sys; print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=CHECKOUT)
    return {name.partition(".")[0] for name in json.loads(done.stderr.splitlines()[-1])}


@pytest.mark.parametrize("code", ["import mplab.cli.main", "import mplab.run.inside", PLAN])
def test_nothing_slow_is_imported_before_it_is_needed(code: str) -> None:
    found = imported_by(code)
    assert {"orchestrator", "pydantic"} <= found
    assert SLOW & found == set()


def test_what_is_slow_can_be_imported_here() -> None:
    """Else the other test proves nothing."""
    assert imported_by(f"import {', '.join(sorted(SLOW))}") >= SLOW


@pytest.mark.parametrize("verb", ["phone", "proxy", "router", "lab device"])
def test_verbs_that_are_imported_later_are_helped_alike(verb: str) -> None:
    *above, name = verb.split()
    shown = CliRunner().invoke(app, [*above, "--help"], env={"COLUMNS": "200"}).stdout
    said = next(line.strip("│ \n").partition(name)[2].strip() for line in shown.splitlines() if f"│ {name} " in line)
    done = CliRunner().invoke(app, [*verb.split(), "--help"], env={"COLUMNS": "200"})
    assert done.exit_code == 0
    assert said in done.stdout
    assert f"{verb} [OPTIONS]" in done.stdout
