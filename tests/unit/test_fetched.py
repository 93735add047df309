"""Node packages that `mplab setup` fetches; a stand-in for npm takes the place of the registry."""

import json
import os
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mplab.base import fetched
from mplab.base.errors import LabNotReadyError
from mplab.cli.main import app

NPM = """#!{python}
import json, pathlib, sys
if {code}:
    sys.exit("registry: not found")
for name, version in json.load(open("package.json"))["dependencies"].items():
    folder = pathlib.Path("node_modules", name)
    folder.mkdir(parents=True)
    (folder / "package.json").write_text(json.dumps({{"version": version}}))
"""


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let mplab fetch into a new folder, as in a wheel, with Node.js 24 and a stand-in for npm."""
    target = tmp_path / "data" / "appium"
    monkeypatch.setattr(fetched, "APPIUM_DIR", target)
    monkeypatch.setattr("mplab.cli.verbs.lab.setup.APPIUM_DIR", target)
    # Other tests on this host run Node.js and hold the lab.
    monkeypatch.setattr("mplab.cli.verbs.lab.setup.running_nodes", lambda: ())
    monkeypatch.setattr("mplab.base.lock.default_lock_directory", lambda: tmp_path / "locks")
    tool(tmp_path / "bin" / "node", "echo v24.1.0")
    monkeypatch.setenv("MPLAB_NODE", str(tmp_path / "bin" / "node"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    npm(tmp_path, code=0)
    return target


def tool(path: Path, script: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(script if script.startswith("#!") else f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def npm(folder: Path, *, code: int) -> None:
    tool(folder / "bin" / "npm", NPM.format(python=sys.executable, code=code))


def test_what_is_missing_is_fetched_and_removed(target: Path) -> None:
    assert len(fetched.wrong()) == 6
    shown = CliRunner().invoke(app, ["setup", "--dry-run"])
    assert "MB to download" in shown.stderr
    assert not target.exists()
    result = CliRunner().invoke(app, ["setup"])
    assert result.exit_code == 0
    assert "undo: mplab setup --remove" in result.stderr
    assert fetched.wrong() == []
    assert sorted(path.name for path in target.iterdir()) == [
        "har.mjs",
        "node_modules",
        "package-lock.json",
        "package.json",
    ]
    assert CliRunner().invoke(app, ["setup"]).stderr == ""
    assert CliRunner().invoke(app, ["setup", "--remove"]).exit_code == 0
    assert not target.exists()


def test_packages_of_another_lock_file_are_replaced(target: Path) -> None:
    fetched.fetch()
    (target / "node_modules" / ".mplab").write_text("that of an older lock file")
    assert fetched.wrong() == ["package-lock.json"]
    fetched.fetch()
    assert fetched.wrong() == []


def test_another_version_is_replaced(target: Path) -> None:
    fetched.fetch()
    old = target / "node_modules" / "appium" / "package.json"
    old.write_text(json.dumps({"version": "2.0.0"}))
    assert [name.split()[0] for name in fetched.wrong()] == ["appium"]
    fetched.fetch()
    assert fetched.wrong() == []


def test_what_was_there_stays_when_npm_fails(target: Path, tmp_path: Path) -> None:
    fetched.fetch()
    npm(tmp_path, code=1)
    with pytest.raises(LabNotReadyError, match=r"npm failed \(1\): registry: not found"):
        fetched.fetch()
    assert fetched.wrong() == []
    assert not list(target.glob("*.partial"))


def test_an_old_node_is_refused(target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(tmp_path / "old" / "node", "echo v18.19.0")
    monkeypatch.setenv("MPLAB_NODE", str(tmp_path / "old" / "node"))
    with pytest.raises(LabNotReadyError, match=r"node 18\.19\.0 is too old: Appium needs 20\.19 or later"):
        fetched.fetch()
    assert not target.exists()
