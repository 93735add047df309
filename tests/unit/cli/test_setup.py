"""``mplab setup --remove``: refused while a lab may use the packages."""

import pytest
from typer.testing import CliRunner

from mplab.base import fetched
from mplab.base.errors import LabNotReadyError
from mplab.base.lock import resource_lock
from mplab.cli.main import app
from mplab.cli.verbs.lab import setup
from mplab.lab.find import RunningNode
from mplab.lab.resources import VIRTUAL_LAB


@pytest.fixture
def removals(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Removals of the packages, which do nothing; no lab is running."""
    done: list[str] = []

    def remove() -> bool:
        done.append("removed")
        return True

    monkeypatch.setattr(fetched, "remove", remove)
    monkeypatch.setattr(setup, "running_nodes", lambda: iter(()))
    return done


@pytest.fixture
def locks(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A separate folder of locks, so that labs of this machine do not matter."""
    folder = tmp_path_factory.mktemp("locks")
    folder.chmod(0o700)
    monkeypatch.setattr("mplab.base.lock.default_lock_directory", lambda: folder)


@pytest.mark.usefixtures("locks")
def test_packages_are_removed_when_no_lab_is_running(removals: list[str]) -> None:
    assert CliRunner().invoke(app, ["setup", "--remove"]).exit_code == 0
    assert removals == ["removed"]


@pytest.mark.usefixtures("locks")
def test_a_running_lab_keeps_them(removals: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "running_nodes", lambda: iter([RunningNode("a1b2", "phone", 1, 0.0)]))
    result = CliRunner().invoke(app, ["setup", "--remove"])
    assert isinstance(result.exception, LabNotReadyError)
    assert "in use by a running lab (a1b2). End it first" in str(result.exception)
    assert removals == []


@pytest.mark.usefixtures("locks")
def test_a_run_that_holds_the_lab_keeps_them(removals: list[str]) -> None:
    with resource_lock(VIRTUAL_LAB, run_id="20260101T000000Z-x-aaaaaa"):
        result = CliRunner().invoke(app, ["setup", "--remove"])
    assert isinstance(result.exception, LabNotReadyError)
    assert removals == []
