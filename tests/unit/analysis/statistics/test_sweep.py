"""Which link conditions are a sweep."""

from dataclasses import replace

import pytest

from mplab.analysis.statistics.sweep import sweep_of
from mplab.format.direction import Queue
from mplab.format.link import LinkCondition
from mplab.format.path import PathCondition

BASE = PathCondition.of(7040, 2020, 50)


def links(*lte: PathCondition, **common: object) -> list[LinkCondition]:
    return [LinkCondition(name=f"c{i}", wifi=BASE, lte=path, **common) for i, path in enumerate(lte)]  # type: ignore[arg-type]


def test_loss_in_both_directions_is_one_quantity() -> None:
    sweep = sweep_of(links(*(PathCondition.of(9000, 2000, 70, loss) for loss in (2.0, 0.0, 0.5))))
    assert sweep is not None
    assert (sweep.title, sweep.unit) == ("Loss on LTE", "%")
    assert list(sweep.positions.items()) == [("c1", 0.0), ("c2", 0.5), ("c0", 2.0)]


def test_loss_in_one_direction_names_it() -> None:
    path = PathCondition.of(9000, 2000, 70)
    sweep = sweep_of(links(*(replace(path, down=replace(path.down, loss=loss)) for loss in (0.0, 1.0, 2.0))))
    assert sweep is not None
    assert sweep.title == "Loss on LTE (down)"
    assert list(sweep.positions.values()) == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("ways", [("down",), ("up", "down")])
def test_round_trips_are_the_sum_of_both_delays(ways: tuple[str, ...]) -> None:
    path = PathCondition.of(9000, 2000, 70)
    swept = [replace(path, **{w: replace(path.way(w), delay_ms=d) for w in ways}) for d in (35.0, 45.0, 85.0)]  # type: ignore[arg-type]
    sweep = sweep_of(links(*swept))
    assert sweep is not None
    assert (sweep.title, sweep.unit) == ("Round trip over LTE", "ms")
    assert list(sweep.positions.values()) == ([70.0, 80.0, 120.0] if len(ways) == 1 else [70.0, 90.0, 170.0])


def test_rates_and_queues_have_the_units_of_people() -> None:
    sweep = sweep_of(links(*(PathCondition.of(rate, 2000, 70) for rate in (1000, 2000, 8000))))
    assert sweep is not None
    assert (sweep.title, sweep.unit, list(sweep.positions.values())) == (
        "Rate of LTE (down)",
        "Mbit/s",
        [1.0, 2.0, 8.0],
    )
    queued = links(*(PathCondition.of(9000, 2000, 70, queue=Queue(length=n)) for n in (15_000, 75_000, 150_000)))
    sweep = sweep_of(queued)
    assert sweep is not None
    assert (sweep.title, sweep.unit, list(sweep.positions.values())) == ("Queue of LTE", "kB", [15.0, 75.0, 150.0])


def test_the_round_trip_behind_the_proxy() -> None:
    conditions = [LinkCondition(name=f"c{i}", wifi=BASE, lte=BASE, core_rtt_ms=ms) for i, ms in enumerate((0, 20, 60))]
    sweep = sweep_of(conditions)
    assert sweep is not None
    assert list(sweep.positions.values()) == [0.0, 20.0, 60.0]


@pytest.mark.parametrize(
    "conditions",
    [
        links(PathCondition.of(9000, 2000, 70), PathCondition.of(9000, 2000, 80)),
        links(*(PathCondition.of(9000, 2000, 70 + i, float(i)) for i in range(3))),
        links(*(PathCondition.of(9000, 2000, 70, loss) for loss in (0.0, 1.0, 1.0))),
        links(*(PathCondition.of(rate, 2000, 70) for rate in (1000, 2000, None))),
        [*links(BASE, PathCondition.of(7040, 2020, 60)), LinkCondition(name="w", wifi=PathCondition.of(1, 1, 1))],
    ],
    ids=["two", "two quantities", "a value twice", "an unlimited rate", "both paths"],
)
def test_other_conditions_are_none(conditions: list[LinkCondition]) -> None:
    assert sweep_of(conditions) is None
