"""When a resource is used, when it rests, and when it is quarantined."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mplab.campaign.judge import Breaker, judge
from mplab.format.campaign import CellCounts, ResourceStatus

PHONE = ResourceStatus("phone 1")


@given(st.lists(st.booleans(), max_size=60), st.integers(1, 4), st.integers(0, 3))
def test_it_rests_so_often_in_a_row_and_no_more(tries: list[bool], failures: int, rests: int) -> None:
    breaker = Breaker(failures, 60.0, rests)
    status, in_a_row = PHONE, 0
    for good in tries:
        if status.quarantined:
            assert in_a_row == failures + rests, "a try each after the rests"
            break
        in_a_row = 0 if good else in_a_row + 1
        if good:
            status = replace(status, failures=0, rests=0)
            continue
        status = replace(status, failures=status.failures + 1)
        match breaker.judge(status):
            case "use":
                assert in_a_row < failures
            case "rest":
                assert in_a_row >= failures
                status = replace(status, rests=status.rests + 1)
            case "quarantine":
                status = replace(status, quarantined=True)


def test_what_may_be_used() -> None:
    assert Breaker.usable(PHONE, 100.0)
    assert not Breaker.usable(replace(PHONE, job="01-x"), 100.0)
    assert not Breaker.usable(replace(PHONE, quarantined=True), 100.0)
    assert not Breaker.usable(replace(PHONE, rests_until=100.1), 100.0)
    assert Breaker.usable(replace(PHONE, rests_until=99.9), 100.0)


@pytest.mark.parametrize(
    ("before", "after", "resources"),
    [
        (CellCounts(), CellCounts(3, 2, 1), "good"),
        (CellCounts(3, 2, 1), CellCounts(3, 2, 1), "unknown"),
        (CellCounts(3, 1, 2), CellCounts(3, 1, 2), "bad"),
        (CellCounts(3, 2, 0), CellCounts(3, 2, 1), "bad"),
        (CellCounts(), CellCounts(3, 0, 3), "bad"),
        (CellCounts(), CellCounts(), "bad"),
    ],
)
def test_few_cells_that_fail_again_speak_against_the_experiment(
    before: CellCounts, after: CellCounts, resources: str
) -> None:
    assert judge(1, "", before, after).resources == resources
