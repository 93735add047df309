"""The scenario `first-byte`, with a phone whose answers the test sets."""

import pytest
from mplab_example.scenarios.first_byte.scenario import SCENARIO, FirstByteParameters

from mplab.base.errors import StepError
from mplab.base.machine import CommandResult


def answer(output: str, error: str = ""):
    return lambda argv: CommandResult(0, output if argv[0].endswith("curl") else "", error)


def test_every_request_is_observed_and_scored(mplab_cell) -> None:
    cell = mplab_cell(reply=answer("200 0.125"))
    cell.run(SCENARIO, FirstByteParameters(requests=3))
    assert [observation["request"] for observation in cell.observations] == [1, 2, 3]
    assert [(value.metric, value.value) for value in cell.scores("first-byte")] == [("first_byte", 0.125)]


def test_a_request_that_fails_fails_the_cell(mplab_cell) -> None:
    cell = mplab_cell(reply=answer("000 0.0", "connection refused"))
    with pytest.raises(StepError, match="request 1: connection refused"):
        cell.run(SCENARIO, FirstByteParameters())


def test_parameters_that_cannot_be_are_refused(mplab_problems) -> None:
    assert mplab_problems(SCENARIO, "requests: 3") == []
    assert "requests" in mplab_problems(SCENARIO, "requests: 0")[0]
