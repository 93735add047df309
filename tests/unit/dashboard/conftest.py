"""Folders of a lab for the dashboard, in the test's own folder."""

from pathlib import Path

import pytest

from tests.unit.dashboard.lab import Folders


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    """Return empty folders of runs and campaigns."""
    folders = Folders(tmp_path / "lab")
    folders.runs.mkdir(parents=True)
    folders.campaigns.mkdir()
    return folders


@pytest.fixture(autouse=True)
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep locks and phones in quarantine in the test's own folder, since the tests use the same names of runs."""
    monkeypatch.setattr("mplab.base.lock.default_lock_directory", lambda: tmp_path / "locks")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
