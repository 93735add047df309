"""Rules that end a run before its plan is done."""

from collections.abc import Callable

import pytest

from mplab.analysis.record.run import read_run
from mplab.base.errors import MplabError, StepError
from tests.fakes.bench import RunBench

Planned = Callable[..., RunBench]

INTERVAL = "stop: {interval: {metric: fake_time, within: 10 %, of: medians, after: 3}}\n"


def cut(run: RunBench) -> str:
    (event,) = run.events("run_cut")
    return str(event["reason"])


def test_a_run_whose_time_is_over_has_whole_blocks(planned: Planned) -> None:
    run = planned(transports="sptcp-wifi, mptcp", repetitions=3, more="max: 60 s\n")
    run.lab.script.at("scenario.run", None, lambda: run.lab.clock.jump(58.0))
    run.execute()
    assert run.outcomes == ["ok", "ok"]
    assert cut(run).startswith("block 2 takes about ")
    assert len(run.events("run_cut")[0]["cells"]) == 4
    assert run.names()[-2:] == ["run_cut", "run_finished"]


def test_the_first_block_is_always_begun(planned: Planned) -> None:
    run = planned(transports="sptcp-wifi, mptcp", more="max: 1 s\n", repetitions=2)
    run.lab.script.at("scenario.run", lambda: run.lab.clock.jump(5.0))
    run.execute()
    assert run.outcomes == ["ok", "ok"]


def test_a_run_that_was_cut_goes_on(planned: Planned) -> None:
    run = planned(repetitions=2, more="max: 1 s\n")
    run.lab.script.at("scenario.run", lambda: run.lab.clock.jump(5.0))
    first = run.execute()
    assert read_run(run.directory.path).cut is not None
    run.execute()
    assert run.outcomes == ["ok", "ok"]
    assert read_run(run.directory.path).cut is None, "the report no longer says so"
    assert next(iter(run.cells.values())) == next(iter(first.values()))


@pytest.mark.parametrize(("limit", "outcomes"), [(1, ["failed"]), (2, ["failed", "failed"])])
def test_failures_in_a_row_end_a_run(planned: Planned, limit: int, outcomes: list[str]) -> None:
    run = planned(repetitions=4, more=f"stop: {{failures: {limit}}}\n")
    run.lab.script.always("scenario.run", StepError("no button"))
    run.execute()
    assert run.outcomes == outcomes
    assert cut(run) == f"{limit} cells in a row were not ok (stop: failures: {limit})"


def test_failures_that_are_not_in_a_row_do_not(planned: Planned) -> None:
    run = planned(repetitions=4, more="stop: {failures: 2}\n")
    run.lab.script.at("scenario.run", StepError("no"), None, StepError("no"))
    run.execute()
    assert run.outcomes == ["failed", "ok", "failed", "ok"]
    assert run.events("run_cut") == []


def test_narrow_intervals_end_a_run(planned: Planned) -> None:
    run = planned(repetitions=5, more=INTERVAL)
    numbers = {"enough": True, "widths": [], "missing": []}
    run.outside.answers["enough"] = [
        {"enough": False, "text": "wide", "numbers": {}},
        {"enough": True, "text": "all intervals are narrow", "numbers": numbers},
    ]
    run.execute()
    assert len(run.outcomes) == 4
    assert cut(run) == "all intervals are narrow, after 4 blocks (stop: interval)"
    assert run.events("run_cut")[0]["interval"] == numbers
    looks = run.events("interval_checked")
    assert [(look["blocks"], look["enough"], look["text"]) for look in looks] == [
        (3, False, "wide"),
        (4, True, "all intervals are narrow"),
    ]


def test_intervals_are_not_looked_at_before_the_rule_says(planned: Planned) -> None:
    run = planned(repetitions=4, more=INTERVAL)
    run.execute()
    assert [look["blocks"] for look in run.events("interval_checked")] == [3]
    assert len(run.outside.asked) == 1


def test_intervals_that_cannot_be_computed_do_not_end_a_run(planned: Planned) -> None:
    run = planned(repetitions=4, more=INTERVAL)
    run.outside.answers["enough"] = [MplabError("not analysable")]
    run.execute()
    assert len(run.outcomes) == 4
    (look,) = run.events("interval_checked")
    assert (look["enough"], look["text"]) == (False, "not analysable")
