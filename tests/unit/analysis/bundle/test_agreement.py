"""A run compared with a repetition of it: results that agree, differ, or are undecided."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mplab.analysis.bundle.agreement import Agreed, ContrastKey, ContrastPair, ContrastResult, agree
from mplab.analysis.pipeline import analyze
from mplab.analysis.record.run import Run, read_run
from mplab.analysis.statistics.effects import Interval
from tests.unit.analysis.synthetic import Synthetic

pytestmark = pytest.mark.long

Night = Callable[..., Run]


@pytest.fixture
def night(tmp_path: Path, no_figures: None) -> Night:
    def make(day: int, **changes: Any) -> Run:
        builder = Synthetic(tmp_path, day=day, labels=["1 MB"], **{"repetitions": 8, **changes})
        run = builder.build()
        analyze(run)
        return read_run(run)

    return make


def told(agreed: Agreed) -> dict[str, str]:
    """Return transports → agreement, for the headline contrasts."""
    return {f"{p.key.transport}/{p.key.reference}": p.agreement for p in agreed.contrasts if p.headline}


def test_the_same_experiment_has_the_same_results(night: Night) -> None:
    agreed = agree(night(1), night(2))
    assert agreed.agreement == "agrees"
    assert agreed.differing == ()
    assert set(told(agreed).values()) == {"agrees"}


def test_a_result_that_moved_differs(night: Night) -> None:
    agreed = agree(night(1), night(2, slower={"mptcp": 2.0}))
    assert agreed.agreement == "differs"
    names = {deviation.key.transport for deviation in agreed.differing}
    assert "mptcp" in names
    assert "differs" in told(agreed).values(), "Multipath TCP was the faster one, and is the slower one"


def test_of_two_repetitions_nothing_can_be_told(night: Night) -> None:
    agreed = agree(night(1, repetitions=2), night(2, repetitions=2, slower={"mptcp": 3.0}))
    assert agreed.agreement == "cannot be told"
    assert agreed.differing == ()


def test_what_is_no_longer_measured_differs(night: Night) -> None:
    def lte_fails(spec: Any) -> str:
        return "failed" if spec["transport"] == "sptcp-lte" else "ok"

    agreed = agree(night(1), night(2, outcome=lte_fails))
    assert agreed.agreement == "differs"
    assert {change.verdict for change in agreed.compared.changes if change.key.transport == "sptcp-lte"} == {"gone"}


def found(shift: float, reach: float, p: float | None, pairs: int = 8) -> ContrastResult:
    return ContrastResult(pairs, shift, Interval(shift - reach, shift + reach), p, "s", headline=True)


KEY = ContrastKey("web", "baseline", "page_load_time", "wiki", "mptcp", "sptcp-wifi")


@pytest.mark.parametrize(
    ("before", "after", "agreement"),
    [
        (found(-1.0, 0.2, 0.01), found(-0.9, 0.2, 0.03), "agrees"),
        (found(-1.0, 0.2, 0.01), found(0.4, 2.0, 0.03), "differs"),
        (found(-1.0, 0.2, 0.01), found(-0.2, 0.1, 0.03), "differs"),
        (found(-1.0, 0.2, 0.01), found(-0.8, 1.5, 0.30), "cannot be told"),
        (found(0.1, 0.2, 0.60), found(0.0, 0.2, 0.90), "cannot be told"),
        (found(-1.0, 0.2, None, 2), found(3.0, 0.1, None, 2), "cannot be told"),
        (found(-1.0, 0.1, 0.25, 3), found(-0.5, 0.1, 0.25, 3), "cannot be told"),
        (found(-1.0, 0.2, 0.01), None, "differs"),
        (None, found(-1.0, 0.2, 0.01), "cannot be told"),
    ],
)
def test_contrasts(before: ContrastResult | None, after: ContrastResult | None, agreement: str) -> None:
    assert ContrastPair(KEY, before, after).agreement == agreement


def test_contrasts_have_names() -> None:
    pair = ContrastPair(KEY, found(-1.0, 0.2, 0.01), None)
    assert pair.name == "web · baseline · page_load_time · wiki: mptcp against sptcp-wifi"
    assert pair.text == "−1.00 s (−1.20 … −0.800) → nothing"
