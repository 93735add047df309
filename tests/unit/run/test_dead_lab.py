"""A program of the lab that dies is named and started again; the cell is not lost."""

from collections.abc import Callable

import pytest

from mplab.base.errors import CheckError, DeviceError, LabNotReadyError, StepError, check_each
from tests.fakes.bench import RunBench

Planned = Callable[..., RunBench]

TIMED_OUT = StepError("curl: timed out")


def dies(run: RunBench, *programs: str, error: Exception | None = TIMED_OUT) -> Callable[[], None]:
    def deed() -> None:
        run.lab.dies(*programs)
        if error is not None:
            raise error

    return deed


def test_a_dead_program_is_started_again_and_costs_no_retry(planned: Planned) -> None:
    run = planned(repetitions=2)
    run.lab.script.at("scenario.run", dies(run, "linkem"))
    first, second = run.execute().values()
    assert (first.outcome, second.outcome) == ("ok", "ok")
    assert [attempt.outcome for attempt in first.attempts] == ["failed", "ok"]
    assert first.attempts[0].reason == "lab: linkem ended; curl: timed out"
    assert first.warnings == ("linkem had ended and was started again",)
    assert second.warnings == ()
    (event,) = run.events("lab_restored")
    assert (event["cell"], event["programs"]) == (first.id, list(first.warnings))


def test_an_invalid_attempt_in_a_dead_lab_costs_no_retry_either(planned: Planned) -> None:
    run = planned()
    run.lab.script.at("scenario.run", dies(run, "mpflex proxy", error=CheckError("no sound")))
    (cell,) = run.execute().values()
    assert [attempt.outcome for attempt in cell.attempts] == ["invalid", "ok"]


def test_retries_are_for_what_the_cell_does_itself(planned: Planned) -> None:
    run = planned(repetitions=2, retries=1)
    run.lab.script.at("scenario.run", TIMED_OUT, dies(run, "nginx"), TIMED_OUT)
    first, second = run.execute().values()
    assert [attempt.outcome for attempt in first.attempts] == ["failed", "failed", "failed"]
    assert (first.outcome, second.outcome) == ("failed", "ok")


def test_a_program_that_dies_between_cells_is_started_again_before_the_next(planned: Planned) -> None:
    run = planned(repetitions=2)
    run.lab.script.at("lab.check_alive", dies(run, "Appium", error=None))
    run.lab.script.always("lab.check_alive", None)
    first, second = run.execute().values()
    assert (first.attempt, second.attempt) == (2, 1)
    assert first.warnings == ("Appium had ended and was started again",)


def test_every_dead_program_is_restored_in_one_go(planned: Planned) -> None:
    run = planned()
    run.lab.script.at("scenario.run", dies(run, "linkem", "nginx", "dnsmasq"))
    (cell,) = run.execute().values()
    assert len(cell.warnings) == 3
    assert len(run.events("lab_restored")) == 1


@pytest.mark.parametrize("retries", [0, 5])
def test_a_program_that_dies_in_every_attempt_ends_the_run_and_leaves_its_cell_open(
    planned: Planned, retries: int
) -> None:
    run = planned(retries=retries, repetitions=2)
    run.lab.script.always("scenario.run", dies(run, "linkem"))
    error = run.fails()
    assert isinstance(error, LabNotReadyError)
    assert "programs of the lab ended in 3 attempts in a row: lab: linkem ended; curl: timed out" in str(error)
    assert run.cells == {}
    assert run.names().count("cell_started") == 3
    assert run.names()[-1] == "run_interrupted"


def test_losses_in_a_row_count_only(planned: Planned) -> None:
    run = planned(retries=1)
    loss = dies(run, "linkem")
    run.lab.script.at("scenario.run", loss, loss, TIMED_OUT, loss, loss)
    (cell,) = run.execute().values()
    assert [attempt.outcome for attempt in cell.attempts] == ["failed"] * 5 + ["ok"]


@pytest.mark.parametrize("before", [0, 1])
def test_a_lab_that_cannot_be_restored_ends_the_run_and_leaves_its_cells_open(planned: Planned, before: int) -> None:
    run = planned(retries=5, repetitions=2)

    def lost() -> None:
        run.lab.beyond_repair = True
        raise TIMED_OUT

    run.lab.script.at("scenario.run", *[None] * before, lost)
    error = run.fails()
    assert isinstance(error, LabNotReadyError)
    assert f"cannot be restored before 000{before + 1}-" in str(error)
    assert "phone: the emulated device has ended" in str(error)
    assert run.outcomes == ["ok"] * before
    assert run.names().count("cell_started") == before + 1
    (ended,) = run.events("run_interrupted")
    assert "cannot be restored" in ended["reason"]
    assert error.exit_code == 3


def test_a_run_that_gave_up_goes_on_in_a_new_lab(planned: Planned) -> None:
    run = planned(repetitions=2)
    run.lab.script.at("scenario.run", *[dies(run, "linkem")] * 3)
    run.fails()
    run.execute()
    assert run.outcomes == ["ok", "ok"]
    assert next(iter(run.cells.values())).attempt == 4


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
