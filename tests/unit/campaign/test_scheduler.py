"""When jobs start, how they end, and which are left out; `script` replaces ``mplab``."""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mplab.base.errors import InterruptedRunError, LabNotReadyError
from mplab.base.lock import resource_lock
from mplab.campaign.directory import CampaignDirectory, quarantined_before
from mplab.campaign.scheduler import Scheduler
from mplab.format.campaign import CampaignRecord, CampaignState, CellCounts, Job
from mplab.format.campaignevents import (
    CampaignContinued,
    CampaignPaused,
    CampaignPlanned,
    CampaignStarted,
    JobEnded,
    JobStarted,
    ResourceReleased,
)
from mplab.format.events import EventLog, read_events
from mplab.format.runevents import RunEvent
from mplab.run.control import request
from mplab.run.hostside import host
from mplab.run.run_directory import new_run_id

pytestmark = pytest.mark.long

SCRIPT = Path(__file__).with_name("script.py")


class Bench:
    """Campaigns in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.changed: set[str] = set()

    def plan(self, jobs: Mapping[str, Sequence[str]], **settings: Any) -> CampaignDirectory:
        """Return a campaign of jobs; `jobs`: name, which lists the outcomes → required resources."""
        record = CampaignRecord(
            campaign=new_run_id("night"),
            file=str(self.folder / "night.yaml"),
            runs=str(self.folder / "runs"),
            host=host.describe_host(),
            versions={},
            git=host.describe_git(),
            started="2026-11-23T00:00:00Z",
        )
        file = {"mplab_campaign": 1, "name": "night", "experiments": ["x.yaml"], "keep_free": "1 MB", **settings}
        jobs_planned = [
            self._job(name, tuple(f"{self.folder}/{need}" for need in needs)) for name, needs in jobs.items()
        ]
        planned = CampaignPlanned(name="night", title="Night", jobs=tuple(jobs_planned))
        return CampaignDirectory.create(self.folder / "campaigns", json.dumps(file).encode(), record, [planned])

    def _job(self, name: str, resources: tuple[str, ...]) -> Job:
        return Job(
            id=name,
            experiment=name,
            title=name,
            file=str(self.folder / f"{name}.yaml"),
            sha256="",
            lab="",
            phone="",
            resources=resources,
            cells=2,
            blocks=1,
            estimate_s=2.0,
        )

    def scheduler(
        self, directory: CampaignDirectory, on_state: Callable[[CampaignState], None] = lambda _: None
    ) -> Scheduler:
        program = (sys.executable, str(SCRIPT), str(self.folder))
        return Scheduler(directory, on_state, lambda job: job.id in self.changed, program)

    def run(self, jobs: Mapping[str, Sequence[str]], **settings: Any) -> CampaignState:
        return self.scheduler(self.plan(jobs, **settings)).execute()

    def calls(self, word: str = "begin") -> list[dict[str, Any]]:
        lines = (self.folder / "calls").read_text().splitlines()
        return [call for call in map(json.loads, lines) if call["word"] == word]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()))
    monkeypatch.setattr("mplab.campaign.scheduler._POLL_S", 0.05)
    return Bench(tmp_path)


def words(state: CampaignState) -> dict[str, str]:
    return {status.job.id: status.state for status in state.jobs}


def spans(bench: Bench) -> dict[str, tuple[float, float]]:
    begun = {call["run"].split("-", 1)[1][:-7]: call["t"] for call in bench.calls()}
    ended = {call["run"].split("-", 1)[1][:-7]: call["t"] for call in bench.calls("end")}
    return {name: (begun[name], ended[name]) for name in begun}


def test_what_shares_nothing_runs_side_by_side(bench: Bench) -> None:
    state = bench.run({"1-slow": ["a", "router"], "2-slow": ["b"], "3-ok": ["c", "router"]})
    assert state.good
    assert state.phase == "finished"
    times = spans(bench)
    assert times["2-slow"][0] < times["1-slow"][1], "side by side"
    assert times["3-ok"][0] > times["1-slow"][1], "both need the router"


def test_not_more_at_once_than_asked_for(bench: Bench) -> None:
    bench.run({"1-slow": ["a"], "2-ok": ["b"]}, at_once=1)
    assert spans(bench)["2-ok"][0] > spans(bench)["1-slow"][1]


def test_cells_that_are_not_ok_are_tried_again_in_the_same_run(bench: Bench) -> None:
    state = bench.run({"1-bad-ok": ["a"]})
    (status,) = state.jobs
    assert status.state == "done"
    assert [attempt.run for attempt in status.tries] == [status.run] * 2
    assert status.tries[0].reason == "1 of 2 cells are not ok"
    assert (status.cells.ok, status.cells.failed) == (2, 0)
    assert "--failed" in bench.calls()[1]["arguments"]


def test_a_job_is_not_tried_for_ever(bench: Bench) -> None:
    state = bench.run({"1-bad": ["a"], "2-ok": ["a"]}, tries=2)
    assert words(state) == {"1-bad": "failed", "2-ok": "done"}
    assert len(state.job("1-bad").tries) == 2
    assert not state.good


def test_a_run_that_was_killed_is_gone_on_with(bench: Bench) -> None:
    state = bench.run({"1-die-ok": ["a"]})
    (status,) = state.jobs
    assert status.state == "done"
    assert [attempt.reason for attempt in status.tries] == ["killed by SIGKILL", ""]
    assert "--failed" not in bench.calls()[1]["arguments"]


def test_bad_input_is_not_tried_again(bench: Bench) -> None:
    state = bench.run({"1-wrong": ["a"]})
    (status,) = state.jobs
    assert (status.state, len(status.tries)) == ("failed", 1)
    assert status.reason.endswith("1-wrong.yaml:1: wrong")
    assert state.resources[0].failures == 0, "the phone is not to blame"


def test_what_goes_wrong_again_and_again_rests_and_then_is_left_alone(bench: Bench) -> None:
    rules = {"failures": 2, "rest": "1 s", "rests": 1}
    state = bench.run({"1-lab": ["a"], "2-ok": ["a"], "3-ok": ["b"]}, breaker=rules, tries=10)
    assert words(state) == {"1-lab": "left out", "2-ok": "left out", "3-ok": "done"}
    resource = state.resources[0]
    assert resource.quarantined
    assert resource.rests == 1
    assert resource.failures == 3
    begun = [call["t"] for call in bench.calls() if "-lab" in call["run"]]
    assert len(begun) == 3
    assert begun[2] - begun[1] > 1.0, "it has rested"
    assert state.job("2-ok").reason.startswith(f"{resource.name} is in quarantine: 3 tries in a row")


def test_a_good_run_clears_the_name(bench: Bench) -> None:
    state = bench.run({"1-lab-ok": ["a"], "2-lab-ok": ["a"]}, breaker={"failures": 2, "rest": "1 h", "rests": 0})
    assert state.good
    assert state.resources[0].failures == 0


def test_somebody_releases_what_is_in_quarantine(bench: Bench) -> None:
    rules = {"failures": 1, "rest": "1 h", "rests": 0}
    directory = bench.plan({"1-worst-ok": ["a"]}, breaker=rules)
    state = bench.scheduler(directory).execute()
    assert words(state) == {"1-worst-ok": "left out"}
    (resource,) = state.resources
    campaigns = directory.path.parent
    assert quarantined_before(campaigns, [resource.name, "other"]) == {resource.name: resource.reason}
    with EventLog(directory.events_file) as events:
        events.append(ResourceReleased(resource=resource.name))
    assert quarantined_before(campaigns, [resource.name]) == {}
    assert bench.scheduler(directory).execute().good


def test_no_sign_of_life(bench: Bench) -> None:
    state = bench.run({"1-hang-ok": ["a"]}, stall="2 s")
    (status,) = state.jobs
    assert status.state == "done"
    assert status.tries[0].reason == "no sign of life for 2 s"


def test_what_a_comparison_finds_is_said(bench: Bench) -> None:
    state = bench.run({"1-worse-ok": ["a"], "2-ok": ["a"]}, compare={"window": 5})
    assert state.good
    assert state.job("1-worse-ok").worse
    assert state.job("1-worse-ok").compared == "1 of 3 checks failed: download time is worse"
    assert not state.job("2-ok").worse


def test_what_somebody_else_uses_is_waited_for(bench: Bench, tmp_path: Path) -> None:
    with resource_lock(f"{tmp_path}/a", run_id="other"):
        state = bench.run({"1-ok": ["a"], "2-ok": ["b"]}, max="3 s")
    assert words(state) == {"1-ok": "left out", "2-ok": "done"}
    assert state.cut


def test_a_pause(bench: Bench) -> None:
    directory = bench.plan({"1-slower": ["a"], "2-ok": ["b"]}, at_once=1)
    seen: list[str] = []

    def look(state: CampaignState) -> None:
        seen.append(state.phase)
        if state.jobs[0].state == "running" and "paused" not in seen:
            request(directory.events_file, CampaignPaused())
        logs = [path.read_text() for path in directory.runs.glob("*/events.jsonl")]
        if state.phase == "paused" and any('"run_paused"' in log for log in logs):
            request(directory.events_file, CampaignContinued())

    state = bench.scheduler(directory, look).execute()
    assert state.good
    events = [event.event for event in read_events(directory.runs / state.jobs[0].run / "events.jsonl", RunEvent)]
    assert events.index("pause_asked") < events.index("run_paused") < events.index("continue_asked")


def test_it_is_interrupted_and_gone_on_with(bench: Bench) -> None:
    directory = bench.plan({"1-hang-ok": ["a"], "2-ok": ["a"]})

    def stop(state: CampaignState) -> None:
        if state.jobs[0].state == "running" and list(directory.runs.glob("*/words")):
            os.kill(os.getpid(), signal.SIGINT)

    before = threading.active_count()
    with pytest.raises(InterruptedRunError, match="continue with: mplab campaign resume"):
        bench.scheduler(directory, stop).execute()
    state = directory.read_state()
    assert state.phase == "interrupted"
    assert not state.jobs[0].tries[0].blamed
    assert bench.scheduler(directory).execute().good
    assert threading.active_count() == before


def test_one_process_at_a_time(bench: Bench) -> None:
    directory = bench.plan({"1-ok": ["a"]})
    with resource_lock(directory.lock_name), pytest.raises(LabNotReadyError, match="in use"):
        bench.scheduler(directory).execute()


def test_too_little_space(bench: Bench) -> None:
    directory = bench.plan({"1-ok": ["a"]}, keep_free="1000 GB", stall="1 s")
    began = time.monotonic()
    with pytest.raises(LabNotReadyError, match=r"free for .*/runs, less than 1000\.0 GB \(keep_free\)"):
        bench.scheduler(directory).execute()
    assert time.monotonic() - began >= 1.0
    assert not (bench.folder / "calls").exists(), "nothing was begun"


def test_an_order_of_its_own_each_night(bench: Bench) -> None:
    jobs = {f"{number}-ok": ["a"] for number in range(1, 7)}
    bench.run(jobs, order="shuffled")
    first = [call["run"].split("-", 1)[1] for call in bench.calls()]
    assert sorted(name[0] for name in first) == list("123456")
    (bench.folder / "calls").unlink()
    bench.run(jobs, order="shuffled")
    second = [call["run"].split("-", 1)[1] for call in bench.calls()]
    assert [name[0] for name in first] != [name[0] for name in second]


def test_what_was_complete_when_it_was_killed_is_done(bench: Bench) -> None:
    directory = bench.plan({"1-ok": ["a"]}, max="1 s")
    with EventLog(directory.events_file) as events:
        events.append(CampaignStarted(ends_by=None))
        events.append(JobStarted(job="1-ok", run="x", number=1))
        cells = CellCounts(total=2, ok=2)
        events.append(JobEnded(job="1-ok", run="x", code=0, reason="", blamed=True, cells=cells, number=1))
    state = bench.scheduler(directory).execute()
    assert words(state) == {"1-ok": "done"}, "and not left out for want of time"
    assert not (bench.folder / "calls").exists()


def test_a_broken_budget_stays_said_when_there_is_nothing_to_compare_with(bench: Bench) -> None:
    directory = bench.plan({"1-ok": ["a"]}, compare={"window": 5})
    with EventLog(directory.events_file) as events:
        events.append(CampaignStarted(ends_by=None))
        events.append(JobStarted(job="1-ok", run="x", number=1))
        cells = CellCounts(total=2, ok=2)
        events.append(JobEnded(job="1-ok", run="x", code=4, reason="", blamed=True, cells=cells, number=1))
    (status,) = bench.scheduler(directory).execute().jobs
    assert (status.state, status.worse, status.compared) == ("done", True, "a budget is broken")


def test_a_comparison_that_cannot_be_made_is_not_passed(bench: Bench) -> None:
    state = bench.run({"1-damaged-ok": ["a"]}, compare={"window": 5})
    assert state.jobs[0].worse
    assert state.jobs[0].compared == "cannot be compared: a table is damaged"


def test_somebody_who_was_there_a_moment_earlier_is_waited_for(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mplab.campaign.scheduler._BUSY_S", 0.5)
    state = bench.run({"1-busy-ok": ["a"]}, breaker={"failures": 1, "rest": "1 h", "rests": 0}, tries=1)
    assert state.good
    assert [attempt.blamed for attempt in state.jobs[0].tries] == [False, True]
    assert state.resources[0].failures == 0


def test_what_has_changed_meanwhile_is_not_begun(bench: Bench) -> None:
    bench.changed.add("1-ok")
    state = bench.run({"1-ok": ["a"], "2-ok": ["a"]})
    assert words(state) == {"1-ok": "failed", "2-ok": "done"}
    assert "has changed since the campaign began" in state.job("1-ok").reason
    assert len(bench.calls()) == 1
