"""Runs that are planned, executed and resumed from Python, in a fake lab."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

import mplab.run
from mplab.analysis.results import reported
from mplab.base.errors import InputError, InterruptedRunError, LabNotReadyError, MplabError, StepError
from mplab.base.lock import resource_lock
from mplab.format.events import read_events
from mplab.format.manifest import GitRecord
from mplab.format.runevents import ContinueAsked, PauseAsked, RunEvent
from mplab.run import planning, resuming, run_directory
from mplab.run.hostside import concluding, hosting, metrics, ready
from mplab.run.hostside.hooks import HookRunner
from mplab.run.hostside.hosting import _Follower
from mplab.run.labside.run import RunLoop
from mplab.run.run_directory import RunDirectory
from mplab.userfiles.experiments import resolve
from mplab.userfiles.experiments.experiment import Experiment
from tests.fakes.bench import FakeOutside, catalog_with, experiment_text
from tests.fakes.lab import FakeLab
from tests.fakes.scenario import FakeScenario


@dataclass
class Desk:
    """A folder with an experiment file, and a fake lab.

    Attributes:
        folder: with the experiment file and the runs.
        lab: the fake lab.
        scenario: the scenario of all cells.
        read: experiment files that were read, in order.
    """

    folder: Path
    lab: FakeLab
    scenario: FakeScenario
    read: list[str] = field(default_factory=list)

    def plan(self, text: str, **options: Any) -> mplab.run.PlannedRun:
        """Write an experiment file and plan it."""
        file = self.folder / "fake.yaml"
        file.write_text(text)
        return mplab.run.plan(file, runs=self.folder / "runs", **options)

    def inside(
        self, directory: RunDirectory, _experiment: Experiment, _hooks: HookRunner, follower: _Follower, _log: Path
    ) -> tuple[int, str]:
        """Act as the process inside a lab."""
        try:
            RunLoop(
                directory.path,
                FakeOutside(),
                catalog=catalog_with(self.scenario),
                open_lab=lambda *_: self.lab,
                instruments=self.lab.instruments,
            ).execute()
        except MplabError as error:
            follower.poll()
            return error.exit_code, json.dumps({"event": "error", "error": str(error)})
        follower.poll()
        return 0, ""


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    lab = FakeLab(tmp_path / "lab")
    harness = Desk(tmp_path, lab, FakeScenario(lab.script))
    monkeypatch.setattr("mplab.base.lock.default_lock_directory", lambda: tmp_path / "locks")
    monkeypatch.setattr(ready, "check_ready_for", lambda _experiment: None)
    monkeypatch.setattr("mplab.run.hostside.host.describe_versions", lambda _programs: {})
    monkeypatch.setattr("mplab.run.hostside.host.describe_git", lambda: GitRecord(commit=None, dirty=False))
    monkeypatch.setattr(hosting, "_run_inside", harness.inside)
    for module in ("mplab.lab.catalog", "mplab.run.planning", "mplab.run.resuming", "mplab.run.hostside.ready"):
        monkeypatch.setattr(f"{module}.catalog", lambda: catalog_with(harness.scenario))
    read = resolve.load_experiment

    def counted(path: Path, **options: Any) -> Experiment:
        harness.read.append(path.name)
        return read(path, **options)

    monkeypatch.setattr(planning, "load_experiment", counted)
    monkeypatch.setattr(run_directory, "load_experiment", counted)
    return harness


@pytest.fixture
def summary(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the analysis make a report with two budgets, one of them broken; return the list of calls."""
    calls: list[str] = []
    limits = [{"about": "web", "text": "3 s, allowed: at most 2 s", "verdict": "broken"}]
    limits.append({"about": "download", "text": "1 s, allowed: at most 2 s", "verdict": "kept"})
    content = {"answers": [{"sentence": "mptcp was best."}], "warnings": ["few cells"], "budgets": limits}

    def analyze(run: Path, _progress: object) -> None:
        calls.append("analysed")
        (run / "report").mkdir()
        (run / "report" / "index.html").write_text("")
        (run / "report" / "summary.json").write_text(json.dumps(content))

    read = reported.read_summary

    def counted(run: Path) -> reported.Summary:
        calls.append("read")
        return read(run)

    monkeypatch.setattr(concluding, "analyze", analyze)
    monkeypatch.setattr(concluding, "read_summary", counted)
    return calls


NO_BUTTON = StepError("no button")


def tree(path: Path) -> Mapping[str, bytes]:
    return {str(file): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_a_plan_runs_and_writes_nothing(desk: Desk) -> None:
    planned = desk.plan(experiment_text(transports="sptcp-wifi, sptcp-lte", repetitions=2))
    assert [cell.transport for cell in planned.cells[:2]] == ["sptcp-lte", "sptcp-wifi"]
    assert planned.estimate_s > 0
    assert planned.experiment.name == "fake"
    assert not planned.runs.exists()
    assert desk.lab.script.calls == []


def test_a_wrong_file_is_an_input_error(desk: Desk) -> None:
    with pytest.raises(InputError, match=r"fake\.yaml:9: retries: "):
        desk.plan(experiment_text().replace("retries: 0", "retries: many"))
    with pytest.raises(InputError, match=r"nosuch\.yaml: "):
        mplab.run.plan(desk.folder / "nosuch.yaml")
    with pytest.raises(InputError, match="name"):
        desk.plan("mplab: 1\n", repetitions=2)


def test_a_run_gives_its_directory_outcomes_and_progress(desk: Desk, capfd: pytest.CaptureFixture[str]) -> None:
    result = mplab.run.execute(desk.plan(experiment_text(repetitions=2)), report=False)
    assert result.path.parent == desk.folder / "runs"
    assert list(result.outcomes.values()) == ["ok", "ok"]
    assert (result.progress.total, result.progress.state) == (2, "finished")
    assert (result.good, result.resumed) == (True, True)
    assert (result.summary, result.report, result.broken_budgets) == (None, None, ())
    assert (result.path / "junit.xml").is_file()
    assert capfd.readouterr() == ("", "")


def test_events_are_told_as_they_are_appended(desk: Desk) -> None:
    calls: list[Any] = []
    watch = mplab.run.RunCallbacks(
        begun=lambda path, complete: calls.append((path, complete)), event=lambda event: calls.append(event.event)
    )
    result = mplab.run.execute(desk.plan(experiment_text()), report=False, run_id="first", watch=watch)
    assert result.path.name == "first"
    assert calls[0] == (result.path, 0)
    assert [name for name in calls[1:] if name != "cell_step"] == [
        "run_planned",
        "run_started",
        "lab_up",
        "cell_started",
        "cell_finished",
        "run_finished",
    ]


def test_a_run_with_failed_cells_is_not_good(desk: Desk) -> None:
    desk.lab.script.at("scenario.run", NO_BUTTON)
    result = mplab.run.execute(desk.plan(experiment_text(repetitions=2)), report=False)
    assert sorted(result.outcomes.values()) == ["failed", "ok"]
    assert not result.good


def test_failed_cells_are_tried_again_when_that_is_asked_for(desk: Desk) -> None:
    desk.lab.script.at("scenario.run", NO_BUTTON)
    first = mplab.run.execute(desk.plan(experiment_text(repetitions=2)), report=False)
    begun: list[int] = []
    watch = mplab.run.RunCallbacks(begun=lambda _path, complete: begun.append(complete))
    again = mplab.run.resume(first.path, failed=True, report=False, watch=watch)
    assert list(again.outcomes.values()) == ["ok", "ok"]
    assert (begun, again.resumed, again.path) == ([1], True, first.path)


def test_an_interrupted_run_is_resumed(desk: Desk) -> None:
    desk.lab.script.at("scenario.run", None, KeyboardInterrupt())
    paths: list[Path] = []
    watch = mplab.run.RunCallbacks(begun=lambda path, _complete: paths.append(path))
    with pytest.raises(InterruptedRunError, match="stopped after 1 of 3 cells"):
        mplab.run.execute(desk.plan(experiment_text(repetitions=3)), report=False, watch=watch)
    assert len(mplab.run.plan_rest(paths[0]).cells) == 2
    events: list[RunEvent] = []
    result = mplab.run.resume(paths[0], report=False, watch=mplab.run.RunCallbacks(event=events.append))
    assert list(result.outcomes.values()) == ["ok"] * 3
    assert [event.event for event in events if event.event.startswith("run_")] == [
        "run_planned", "run_started", "run_interrupted", "run_resumed", "run_started", "run_finished",
    ]  # fmt: skip


def test_a_complete_run_is_not_touched(desk: Desk) -> None:
    first = mplab.run.execute(desk.plan(experiment_text()), report=False)
    before = tree(first.path)
    again = mplab.run.resume(first.path, report=False)
    assert (again.resumed, again.outcomes) == (False, first.outcomes)
    assert tree(first.path) == before


def test_an_error_inside_the_lab_keeps_its_kind(desk: Desk) -> None:
    desk.lab.script.at("lab.up", LabNotReadyError("no such link"))
    with pytest.raises(LabNotReadyError, match="no such link"):
        mplab.run.execute(desk.plan(experiment_text()), report=False)


@pytest.mark.parametrize("ends_by", [None, 1.0])
def test_a_run_that_must_end_begins_no_further_block(desk: Desk, ends_by: float | None) -> None:
    result = mplab.run.execute(desk.plan(experiment_text(repetitions=2)), report=False, ends_by=ends_by)
    assert len(result.outcomes) == (2 if ends_by is None else 1)
    assert bool(result.progress.cut) == (ends_by is not None)
    assert result.good


def test_the_number_of_repetitions_can_be_given(desk: Desk) -> None:
    text = experiment_text(repetitions=2)
    as_written, more = desk.plan(text), desk.plan(text, repetitions=3)
    assert more.cells[:2] == as_written.cells
    assert len(more.cells) == 3
    assert more.experiment.path == as_written.experiment.path
    result = mplab.run.execute(more, report=False)
    assert len(result.outcomes) == 3
    (desk.folder / "fake.yaml").unlink()
    assert mplab.run.plan_rest(result.path).experiment.repetitions == 3, "the run directory has all that it needs"


def test_the_experiment_is_read_once_in_each_process(desk: Desk) -> None:
    result = mplab.run.execute(desk.plan(experiment_text(repetitions=2)), report=False)
    assert desk.read == ["fake.yaml", "experiment.yaml"], "outside, inside"
    desk.read.clear()
    resuming.resume(result.path, report=False)
    assert desk.read == [], "nothing is left to be run"
    cell = next(iter(result.outcomes))
    (result.path / "cells" / cell / "cell.json").write_text("{")
    resuming.resume(result.path, report=False)
    assert desk.read == ["experiment.yaml"] * 2, "outside, inside"


def test_a_report_gives_answers_and_broken_budgets(desk: Desk, summary: list[str]) -> None:
    result = mplab.run.execute(desk.plan(experiment_text()))
    assert summary == ["analysed", "read"], "once each"
    assert result.summary is not None
    assert result.summary.answers == ("mptcp was best.",)
    assert result.summary.warnings == ("few cells",)
    assert result.broken_budgets == ("web: 3 s, allowed: at most 2 s",)
    assert result.progress.good
    assert not result.good
    assert result.report == result.path / "report" / "index.html"
    cases = ET.parse(result.path / "junit.xml").iter("testcase")  # noqa: S314 - our own
    assert [case.get("name") for case in cases if case.get("classname") == "budget"] == ["web", "download"]
    again = mplab.run.resume(result.path)
    assert summary == ["analysed", "read", "read"]
    assert again.broken_budgets == result.broken_budgets


def test_metrics_are_looked_up_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    lookups: list[Mapping[str, str]] = []

    def metrics_of(scenarios: Mapping[str, str]) -> dict[str, Any]:
        lookups.append(scenarios)
        return {"fake": []}

    monkeypatch.setattr(metrics, "metrics_of", metrics_of)
    more = "stop: {interval: {metric: speed, within: 5 %, of: medians}}\nbudgets: {speed: {at_most: 2 s}}\n"
    with pytest.raises(InputError) as caught:
        desk.plan(experiment_text(repetitions=9, more=more))
    assert str(caught.value).count("unknown metric 'speed'") == 2, "of the budget and of the stop rule"
    assert lookups == [{"fake": "fake"}]


def test_a_run_is_paused_and_goes_on(desk: Desk) -> None:
    result = mplab.run.execute(desk.plan(experiment_text()), report=False)
    with pytest.raises(InputError, match="is complete: all of its 1 cells have been run"):
        mplab.run.pause(result.path)
    directory = RunDirectory(result.path)
    log = directory.events_file.read_text()
    directory.events_file.write_text("".join(log.splitlines(keepends=True)[:2]))
    with pytest.raises(InputError, match="is not running"):
        mplab.run.go_on(result.path)
    with resource_lock(directory.lock_name):
        mplab.run.pause(result.path)
        mplab.run.go_on(str(result.path))
    events = list(read_events(directory.events_file, RunEvent))
    assert [type(event) for event in events[2:]] == [PauseAsked, ContinueAsked]


def test_the_status_of_a_run(desk: Desk) -> None:
    result = mplab.run.execute(desk.plan(experiment_text(repetitions=2)), report=False)
    status = mplab.run.status(result.path)
    assert (status.path, status.state, status.damaged, status.can_resume) == (result.path, "finished", {}, False)
    assert status.progress == result.progress
    lost = sorted(result.outcomes)[0]
    shutil.rmtree(RunDirectory(result.path).cell_dir(lost))
    status = mplab.run.status(str(result.path))
    assert status.can_resume
    assert list(status.damaged) == [lost]
    assert "no such directory" in status.damaged[lost]
    assert (status.progress.done, status.progress.total) == (1, 2)


def test_a_run_without_a_process_was_killed(desk: Desk) -> None:
    result = mplab.run.execute(desk.plan(experiment_text(repetitions=2)), report=False)
    directory = RunDirectory(result.path)
    lines = directory.events_file.read_text().splitlines(keepends=True)
    directory.events_file.write_text("".join(line for line in lines if "run_finished" not in line))
    assert mplab.run.status(result.path).state == "killed"
    with resource_lock(directory.lock_name):
        assert mplab.run.status(result.path).state == "running"


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nosuch'"):
        getattr(mplab.run, "nosuch")  # noqa: B009 - the attribute is not there


@pytest.mark.parametrize("name", mplab.run.__all__)
def test_all_names_are_there(name: str) -> None:
    assert getattr(mplab.run, name).__doc__
