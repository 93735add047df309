"""Each event of a run has one model, which the run writes and which progress, report and display read."""

from pathlib import Path

import pytest

from mplab.base.errors import InputError
from mplab.format.events import kinds_of, read_events
from mplab.format.runevents import CellFinished, RunEvent, RunResumed
from tests.fakes.bench import RunBench, experiment_text


def test_what_a_run_writes_is_read_as_models(tmp_path: Path) -> None:
    run = RunBench.planned(tmp_path, experiment_text())
    cells = run.execute()
    events = list(read_events(run.directory.events_file, RunEvent))
    assert {"run_planned", "run_started", "cell_started", "cell_step", "cell_finished", "run_finished"} <= {
        event.event for event in events
    }
    assert all(type(event) is kinds_of(RunEvent)[event.event] for event in events)
    assert [event.cell for event in events if isinstance(event, CellFinished)] == list(cells)


def test_an_event_of_a_later_version_is_kept_without_its_fields() -> None:
    assert RunEvent.parse({"t": 1, "event": "from_the_future", "x": 1}) == RunEvent(t=1.0, event="from_the_future")


def test_a_resumed_run_takes_cells_back() -> None:
    assert RunEvent.parse({"t": 1, "event": "run_resumed", "again": ["a"]}) == RunResumed(t=1.0, again=("a",))


@pytest.mark.parametrize(
    ("event", "problem"),
    [
        ({"t": 1, "event": "cell_finished", "cell": "a"}, "event cell_finished: outcome: Field required"),
        ({"t": "soon", "event": "run_started"}, "event run_started: t: "),
        ({"t": 1e300, "event": "run_started"}, "event run_started: t: "),
    ],
)
def test_an_event_without_its_fields_is_refused(event: dict[str, object], problem: str) -> None:
    with pytest.raises(InputError) as refused:
        RunEvent.parse(event)
    assert str(refused.value).startswith(problem)
