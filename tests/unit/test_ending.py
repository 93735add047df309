"""When a run ends before its plan: at a time of day, after a duration, after failures; only in whole blocks."""

from dataclasses import replace
from datetime import datetime, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mplab.format.experiment import Ending, IntervalRule, parse_time_of_day
from mplab.format.runevents import CellFinished, RunCut, RunEvent, RunFinished, RunResumed, RunStarted, planned_event
from mplab.run.blocks import make_plan
from mplab.run.labside.ending import Cut, EndingWatch, IntervalCheck
from mplab.run.progress import RunProgress
from tests.unit.test_plan import experiment

BEGUN = datetime(2026, 3, 1, 22, 30).astimezone()


@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        (Ending(), None),
        (Ending(max_s=3600), BEGUN + timedelta(hours=1)),
        (Ending(until=time(23, 0)), BEGUN + timedelta(minutes=30)),
        (Ending(until=time(6, 0)), BEGUN + timedelta(hours=7, minutes=30)),
        (Ending(until=time(22, 30)), BEGUN + timedelta(days=1)),
        (Ending(max_s=3600, until=time(6, 0)), BEGUN + timedelta(hours=1)),
        (Ending(max_s=36_000, until=time(6, 0)), BEGUN + timedelta(hours=7, minutes=30)),
    ],
)
def test_deadline(ending: Ending, expected: datetime | None) -> None:
    assert ending.deadline(BEGUN) == expected


@given(st.times())
def test_times_of_day(at: time) -> None:
    assert parse_time_of_day(at.strftime("%H:%M")) == at.replace(second=0, microsecond=0)


@pytest.mark.parametrize("found", ["6", "24:00", "06:60", 360, True, None, "06:00:00", ""])
def test_no_time_of_day(found: object) -> None:
    with pytest.raises(ValueError, match="a time of day is needed"):
        parse_time_of_day(found)


def play(ending: Ending, outcomes: str, *, duration_s: float = 1.0, first: int = 0) -> tuple[int, Cut | None]:
    """Run two blocks of four cells, ``.`` ok and ``F`` failed; return the number of cells and the cause of the end."""
    plan = make_plan(experiment(scenarios=2, transports=2, links=1, repetitions=2))
    todo = plan.cells[first:]
    watch = EndingWatch(ending, plan, todo)
    for completed, (spec, outcome) in enumerate(zip(todo, outcomes, strict=True)):
        if cut := watch.before(spec):
            assert cut.cells == [cell.id for cell in todo[completed:]]
            return completed, cut
        watch.finished(spec, {".": "ok", "F": "failed"}[outcome], duration_s)
    return len(todo), None


def test_failures_in_a_row_end_a_run() -> None:
    completed, cut = play(Ending(failures=3), "F.FFF...")
    assert (completed, cut.reason if cut else "") == (5, "3 cells in a row were not ok (stop: failures: 3)")
    assert play(Ending(failures=3), "FF.FF.FF") == (8, None)
    assert play(Ending(), "FFFFFFFF") == (8, None)


def test_a_block_that_would_not_end_in_time_is_not_begun() -> None:
    completed, cut = play(Ending(max_s=60), "........", duration_s=20)
    assert completed == 4
    assert cut is not None
    assert cut.reason.startswith("block 2 takes about 80 s, and ")
    assert play(Ending(max_s=600), "........", duration_s=20) == (8, None)


def test_the_first_block_is_always_run_and_so_is_what_is_left_of_one() -> None:
    assert play(Ending(max_s=1), "........", duration_s=20)[0] == 4
    assert play(Ending(max_s=1), "......", duration_s=20, first=2)[0] == 2
    assert play(Ending(max_s=1), "...", duration_s=20, first=5) == (3, None)


def looked(ending: Ending, enough_after: int, *, first: int = 0) -> tuple[list[int], int, Cut | None]:
    """Run five blocks of two cells; return the blocks at each `look`, the number of cells and the cause of the end."""
    plan = make_plan(experiment(scenarios=1, transports=2, links=1, repetitions=5))
    checked: list[int] = []

    def look(blocks: int) -> IntervalCheck:
        checked.append(blocks)
        return IntervalCheck(blocks >= enough_after, f"± {blocks} %", {"widths": [blocks]})

    todo = plan.cells[first:]
    watch = EndingWatch(ending, plan, todo, look)
    for completed, spec in enumerate(todo):
        if cut := watch.before(spec):
            return checked, completed, cut
        watch.finished(spec, "ok", 1.0)
    return checked, len(todo), None


def test_a_run_that_has_told_enough_ends_between_blocks() -> None:
    ending = Ending(interval=IntervalRule("time", 5.0, "medians", 3, (), ()))
    checked, completed, cut = looked(ending, enough_after=4)
    assert (checked, completed) == ([3, 4], 8), "from the third block on, between blocks alone"
    assert cut is not None
    assert cut.reason == "± 4 %, after 4 blocks (stop: interval)"
    assert (len(cut.cells), cut.interval) == (2, {"widths": [4]})
    assert looked(ending, enough_after=9) == ([3, 4], 10, None)
    assert looked(Ending(), enough_after=0) == ([], 10, None), "nobody asked"
    assert looked(ending, enough_after=1, first=5)[:2] == ([3], 1), "blocks of before an interruption count"


def events(cut: bool) -> list[RunEvent]:
    plan = make_plan(replace(experiment(scenarios=1, transports=1, links=1, repetitions=2)))
    first, second = plan.cells
    ended = [RunCut(reason="time", cells=(second.id,))] if cut else []
    return [planned_event(plan), RunStarted(), CellFinished(cell=first.id, outcome="ok"), *ended, RunFinished()]


def test_what_was_left_out_by_the_runs_own_rules_is_no_failure() -> None:
    progress = RunProgress.from_events(events(cut=True))
    assert (progress.good, progress.cut, progress.left_out, progress.remaining) == (True, "time", 1, 1)
    assert not RunProgress.from_events(events(cut=False)).good
    resumed = RunProgress.from_events([*events(cut=True), RunResumed()])
    assert (resumed.cut, resumed.left_out) == ("", 0)


def test_others_may_want_it_to_end_earlier() -> None:
    plan = make_plan(experiment(scenarios=1, transports=1, links=1, repetitions=3))
    watch = EndingWatch(Ending(max_s=3600), plan, plan.cells)
    for spec in plan.cells[:2]:
        assert watch.before(spec) is None
        watch.finished(spec, "ok", 100.0)
    cut = watch.before(plan.cells[2], datetime.now().astimezone() + timedelta(seconds=50))
    assert cut is not None
    assert cut.cells == [plan.cells[2].id]
    assert "block 3 takes about 100 s" in cut.reason
