"""A program of the lab that dies is named and started again; a cell pays for it with nothing."""

import signal
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import mplab.run.run as module
from mplab.base.errors import DeviceError, LabNotReadyError, StepError, check_each
from mplab.base.undo import UndoStack
from mplab.cell.cell import Cell, CellJob, CellReport
from mplab.format.cell import CellRecord
from mplab.format.events import read_events
from mplab.format.plan import Plan
from mplab.run.blocks import make_plan
from mplab.run.run import Run
from mplab.run.run_directory import RunDirectory
from tests.unit.test_plan import experiment


class FakeLab:
    """Names of the programs that have ended. Each test scripts them."""

    android: Any = None
    directory: RunDirectory

    def __init__(self) -> None:
        self.ended: list[str] = []
        self.lost_for_good = False
        self.revived: list[list[str]] = []

    def __enter__(self) -> "FakeLab":
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def describe(self) -> dict[str, Any]:
        return {"nodes": []}

    def check_alive(self) -> None:
        if self.ended:
            raise DeviceError("lab", f"{' and '.join(self.ended)} ended")

    def revive(self) -> list[str]:
        if self.lost_for_good:
            raise DeviceError("phone", "the emulated device has ended by itself")
        found = [f"{name} had ended and was started again" for name in self.ended]
        self.ended.clear()
        if found:
            self.revived.append(found)
        return found


Scripted = Callable[[FakeLab, CellReport], None]


@pytest.fixture
def execute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[FakeLab, RunDirectory]]:
    """Runs a plan of two cells. The attempts follow the given scripts, in order; further ones are ok."""

    def go(*attempts: Scripted, retries: int = 0, given: FakeLab | None = None) -> tuple[FakeLab, RunDirectory]:
        lab = given or FakeLab()
        scripts = iter(attempts)

        class FakeCell:
            def __init__(self, _lab: FakeLab, job: CellJob) -> None:
                self._job = job

            def run(self) -> CellReport:
                report = CellReport(self._job.spec, self._job.attempt, datetime.now(UTC), outcome="ok")
                next(scripts, lambda _lab, _report: None)(lab, report)
                return report

        monkeypatch.setattr(module, "Cell", FakeCell)
        monkeypatch.setattr(module, "make_lab", lambda *_args, **_more: lab)
        monkeypatch.setattr(module, "services_of", lambda _experiment: [])
        monkeypatch.setattr(module, "catalog", lambda: SimpleNamespace(on=lambda _lab: {"web": None}))
        monkeypatch.setattr(module, "android_app", lambda *_args: None)
        monkeypatch.setattr(signal, "signal", lambda *_args: None)
        directory = RunDirectory.create(tmp_path / "runs", "demo", b"")
        plan: Plan = make_plan(made := experiment(scenarios=1, transports=1, links=2, repetitions=1))
        run: Any = Run.__new__(Run)
        run._directory, run._plan, run._stopping, run._outside = directory, plan, False, cast(Any, None)
        run._experiment = SimpleNamespace(
            lab=made.lab, seed=1, congestion_control="cubic", retries=retries, ending=made.ending, hooks=made.hooks,
            scenario=lambda _label: SimpleNamespace(name="web"),
        )  # fmt: skip
        try:
            run.execute()
        finally:
            lab.directory = directory
        return lab, directory

    return go


def dies(*programs: str, outcome: str = "failed") -> Scripted:
    def script(lab: FakeLab, report: CellReport) -> None:
        lab.ended += programs
        report.outcome, report.reasons = cast(Any, outcome), ["curl: timed out"] if outcome != "ok" else []

    return script


def fails(lab: FakeLab, report: CellReport) -> None:
    report.outcome, report.reasons = "failed", ["button is not there"]


def cells(directory: RunDirectory) -> list[CellRecord]:
    return list(directory.complete_cells().values())


def names(directory: RunDirectory) -> list[str]:
    return [event["event"] for event in read_events(directory.events_file)]


def test_a_dead_program_is_started_again_and_costs_no_retry(execute: Any) -> None:
    lab, directory = execute(dies("linkem"))
    first, second = cells(directory)
    assert (first.outcome, second.outcome) == ("ok", "ok")
    assert [attempt.outcome for attempt in first.attempts] == ["failed", "ok"]
    assert first.warnings == ("linkem had ended and was started again",)
    assert second.warnings == ()
    assert lab.revived == [["linkem had ended and was started again"]]
    (event,) = (event for event in read_events(directory.events_file) if event["event"] == "lab_restored")
    assert (event["cell"], event["programs"]) == (first.id, list(first.warnings))


def test_an_invalid_attempt_in_a_dead_lab_costs_no_retry_either(execute: Any) -> None:
    _, directory = execute(dies("mpflex proxy", outcome="invalid"))
    assert [cell.outcome for cell in cells(directory)] == ["ok", "ok"]


def test_retries_are_for_what_the_cell_does_itself(execute: Any) -> None:
    _, directory = execute(fails, dies("nginx"), fails, retries=1)
    first, second = cells(directory)
    assert [attempt.outcome for attempt in first.attempts] == ["failed", "failed", "failed"]
    assert (first.outcome, second.outcome) == ("failed", "ok")


def test_a_program_that_dies_between_cells_is_started_again_before_the_next(execute: Any) -> None:
    _, directory = execute(dies("Appium", outcome="ok"))
    first, second = cells(directory)
    assert (first.attempt, first.outcome, first.warnings) == (1, "ok", ())
    assert (second.attempt, second.outcome) == (1, "ok")
    assert second.warnings == ("Appium had ended and was started again",)


def test_a_program_that_dies_in_every_attempt_ends_the_run_and_leaves_its_cell_open(execute: Any) -> None:
    lab = FakeLab()
    with pytest.raises(LabNotReadyError, match=r"0001-.*: programs of the lab ended in 3 attempts in a row: curl"):
        execute(*[dies("linkem")] * 9, retries=5, given=lab)
    directory = lab.directory
    assert cells(directory) == []
    assert names(directory).count("cell_started") == 3
    assert names(directory)[-1] == "run_interrupted"


def test_a_lab_that_cannot_be_restored_ends_the_run_and_leaves_its_cells_open(execute: Any) -> None:
    lab = FakeLab()

    def lost(lab: FakeLab, report: CellReport) -> None:
        fails(lab, report)
        lab.lost_for_good = True

    with pytest.raises(
        LabNotReadyError, match=r"cannot be restored before 0001-.*: phone: the emulated device has end"
    ):
        execute(lost, retries=5, given=lab)
    directory = lab.directory
    assert cells(directory) == []
    assert names(directory).count("cell_started") == 1
    ended = list(read_events(directory.events_file))[-1]
    assert ended["event"] == "run_interrupted"
    assert "cannot be restored" in ended["reason"]
    assert LabNotReadyError.exit_code == 3


def test_everything_that_has_ended_is_named() -> None:
    def ended(name: str) -> Callable[[], None]:
        def check() -> None:
            raise DeviceError(name, "has ended (-9)", stderr="last words\n")

        return check

    check_each([lambda: None])
    with pytest.raises(DeviceError) as caught:
        check_each([ended("nginx"), lambda: None, ended("dnsmasq")])
    assert str(caught.value) == "nginx: has ended (-9): last words; dnsmasq: has ended (-9): last words"
    assert caught.value.device == "nginx"


def test_an_agent_that_has_ended_is_named_before_what_the_cell_met() -> None:
    def ended() -> None:
        raise DeviceError("mpflex agent", "has ended by itself (-9)")

    cell: Any = Cell.__new__(Cell)
    cell.report = CellReport(spec=cast(Any, None), attempt=1, started=datetime.now(UTC))
    cell._undo, cell._causes, cell._lab = UndoStack(), [], FakeLab()
    cell._agent = SimpleNamespace(check_alive=ended)

    def steps() -> None:
        raise StepError("curl failed (18): transfer closed")

    cell._run_steps = steps
    report = cell.run()
    assert report.reasons == ["mpflex agent: has ended by itself (-9)", "curl failed (18): transfer closed"]
