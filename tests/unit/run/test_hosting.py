"""Events that the process outside the lab passes on."""

import json
import sys
from contextlib import ExitStack

import pytest

from mplab.format.runevents import RunEvent
from mplab.run.hostside import hosting
from mplab.run.progress import RunCallbacks
from tests.fakes.bench import catalog_with
from tests.unit.run.conftest import Planned

FAILS = [sys.executable, "-c", "raise SystemExit(1)"]


def test_events_before_and_after_the_process_inside_are_passed_on(
    planned: Planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = planned(more=f"hooks: {json.dumps({'after_run': [FAILS]})}\n")
    events: list[RunEvent] = []
    seen_before: list[str] = []

    def inside(*_arguments: object) -> tuple[int, str]:
        seen_before.extend(event.event for event in events)
        return 0, ""

    monkeypatch.setattr(hosting, "_run_inside", inside)
    experiment = run.directory.load_experiment(catalog_with(run.scenario))
    hosting.run_cells(run.directory, experiment, ExitStack(), watch=RunCallbacks(event=events.append))
    assert seen_before == ["run_planned"]
    assert [event.event for event in events] == ["run_planned", "hook_failed"]
