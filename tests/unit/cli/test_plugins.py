"""``mplab plugins`` and ``--trace-plugins``."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mplab.base import plugintrace
from mplab.base.places import ROOT
from mplab.base.plugins import REGISTRIES
from mplab.cli.main import app
from tests.foreign import Foreign, installed

SCORES = """
from mplab.analysis.metric import Metric

METRICS = (Metric("m", "M", "s", "lower"),)


def score(observations, tables, folder):
    return []
"""


@pytest.fixture
def foreign(tmp_path: Path) -> Iterator[Foreign]:
    with installed(tmp_path / "site") as plugins:
        yield plugins


def test_every_plug_in_is_listed_and_can_be_imported() -> None:
    result = CliRunner().invoke(app, ["plugins", "--check", "--json"])
    assert result.exit_code == 0, result.output
    listed = json.loads(result.stdout)
    assert [(plugin["group"], plugin["name"]) for plugin in listed] == [
        (r.group, name) for r in REGISTRIES for name in r
    ]
    assert {plugin["distribution"].split()[0] for plugin in listed} == {"mplab"}
    assert {plugin["kind"] for plugin in listed} == {registry.what for registry in REGISTRIES}


def test_a_foreign_one_is_listed_with_its_distribution_and_its_problem(foreign: Foreign) -> None:
    foreign.scenario("whistle", SCORES)
    result = CliRunner().invoke(app, ["plugins", "--json"])
    assert result.exit_code == 0
    (own,) = (plugin for plugin in json.loads(result.stdout) if plugin["name"] == "whistle")
    assert (own["kind"], own["distribution"], own["problem"]) == ("scenario", "whistle 1.0", "")
    result = CliRunner().invoke(app, ["plugins", "--check"])
    assert result.exit_code == 3
    assert re.search(r"whistle +whistle 1\.0 +scenario whistle: .*scenario.* cannot be imported", result.stdout)


def test_calls_of_plug_ins_are_traced(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(
        "mplab: 1\nname: x\ntransports: [mptcp]\nlinks: [baseline]\nscenarios: [download: {sizes: [1 kB]}]\n"
    )
    argv = [sys.executable, "-m", "mplab", "--trace-plugins", "plan", str(tmp_path / "x.yaml")]
    result = subprocess.run(argv, capture_output=True, text=True, check=True, cwd=ROOT)
    traced = re.findall(r"(?m)^trace: \d+\.\d{3} s (.*) \((\w+)\.py:\d+\)$", result.stderr)
    assert ("scenario download: estimate_s", "scenario") in traced
    assert ("transport mptcp: missing_reason", "driver") in traced
    assert not [call for call, _ in traced if ": _" in call or "<" in call]
    assert "trace:" not in result.stdout


def test_nothing_is_traced_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(plugintrace.VARIABLE, raising=False)
    before = sys.getprofile()
    plugintrace.start_if_asked()
    assert sys.getprofile() is before


def test_a_plug_in_that_calls_itself_is_one_call(foreign: Foreign) -> None:
    folder = foreign.scenario("whistle", SCORES + "\n\ndef outer():\n    inner()\n\n\ndef inner():\n    pass\n")
    module: dict[str, object] = {}
    path = folder / "scores.py"
    exec(compile(path.read_text(), str(path), "exec"), module)  # noqa: S102
    lines: list[str] = []
    plugintrace.start(lines.append)
    try:
        module["outer"]()  # type: ignore[operator]
    finally:
        plugintrace.stop()
    assert [line.split(" s ", 1)[1].split(" (")[0] for line in lines] == ["scenario whistle: outer"]
