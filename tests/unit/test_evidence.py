"""Evidence of a failed cell, and disturbances of a cell that did not fail."""

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from mplab.base.errors import StepError
from mplab.cell.attempt import ObservationLog
from mplab.drivers.ui.evidence import OpenApps


class App:
    """An app that can only be looked at."""

    looks = 0

    def keep_evidence(self, path: Path) -> bool:
        App.looks += 1
        path.parent.mkdir(exist_ok=True)
        path.write_text("seen")
        return True


@pytest.fixture
def apps() -> OpenApps:
    App.looks = 0
    return OpenApps()


@pytest.fixture
def open_app(apps: OpenApps, tmp_path: Path) -> Callable[[str], Any]:
    ui: Any = App()
    return lambda device: apps.watched(ui, tmp_path / device)


def seen(tmp_path: Path) -> set[str]:
    return {str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/*")}


def test_every_app_that_is_open_at_a_failure_is_looked_at(
    apps: OpenApps, open_app: Callable[[str], Any], tmp_path: Path
) -> None:
    with ExitStack() as stack:
        stack.enter_context(open_app("phone"))
        stack.enter_context(open_app("peer"))
        with open_app("closed"):
            pass
        with pytest.raises(StepError, match="no picture"), apps.kept_on_failure():
            raise StepError("no picture")
        assert seen(tmp_path) == {"phone/end.png", "peer/end.png"}


def test_an_app_that_the_failure_closes_is_looked_at_before(
    apps: OpenApps, open_app: Callable[[str], Any], tmp_path: Path
) -> None:
    with pytest.raises(StepError), apps.kept_on_failure(), open_app("phone"):
        raise StepError("no picture")
    assert seen(tmp_path) == {"phone/end.png"}


def test_an_error_that_closes_one_app_after_the_other_is_looked_at_once(
    apps: OpenApps, open_app: Callable[[str], Any], tmp_path: Path
) -> None:
    with pytest.raises(StepError), apps.kept_on_failure(), open_app("peer"), apps.kept_on_failure(), open_app("phone"):
        raise StepError("no picture")
    assert seen(tmp_path) == {"phone/end.png", "peer/end.png"}
    assert App.looks == 2


def test_nothing_is_kept_of_what_went_well(apps: OpenApps, open_app: Callable[[str], Any], tmp_path: Path) -> None:
    with apps.kept_on_failure(), open_app("phone"):
        pass
    assert seen(tmp_path) == set()


def test_a_warning_is_an_observation_and_counts_once(tmp_path: Path) -> None:
    with ObservationLog(tmp_path / "scenario.jsonl") as observe:
        for text in ("the host was busy", "the host was busy", "the phone was hot"):
            observe("warning", text=text)
        observe("tapped")
    assert observe.warnings == ["the host was busy", "the phone was hot"]
    lines = (tmp_path / "scenario.jsonl").read_text().splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["warning"] * 3 + ["tapped"]
