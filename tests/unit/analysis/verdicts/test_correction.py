"""Correction of the findings on claims for their number."""

from dataclasses import dataclass

import numpy as np
import pytest

from mplab.analysis.verdicts.correction import correct
from mplab.format.finding import ClaimFinding


@dataclass(frozen=True)
class Finding:
    verdict: str
    p: float | None
    null: str = "no effect"
    certain: bool = True


def test_p_is_corrected_for_all_tests() -> None:
    found = correct([Finding("as claimed", 0.01), Finding("no data", None, ""), Finding("as claimed", 0.04)])
    assert [one.p for one in found] == [0.02, None, 0.04]
    assert [one.confirmed for one in found] == [True, False, True]


def test_a_verdict_loses_its_certainty_among_many_tests() -> None:
    assert correct([Finding("as claimed", 0.03)])[0].confirmed
    assert not correct([Finding("as claimed", 0.03), *[Finding("not seen", 0.9)] * 20])[0].confirmed


@pytest.mark.parametrize("verdict", ["as claimed", "same direction", "not seen", "contradicted"])
def test_each_certain_verdict_needs_a_rejected_hypothesis(verdict: str) -> None:
    assert correct([Finding(verdict, 0.04, "inside the range")])[0].confirmed
    assert not correct([Finding(verdict, 0.2, "inside the range")])[0].confirmed


def test_an_uncertain_verdict_stays_uncertain() -> None:
    assert not correct([Finding("as claimed", 0.001, certain=False)])[0].confirmed


def test_entries_of_summaries_of_several_runs_can_be_corrected() -> None:
    entries = [ClaimFinding(verdict="contradicted", certain=True, p=p, null="inside the range") for p in (0.001, 0.2)]
    assert [one.confirmed for one in correct(entries)] == [True, False]


def test_few_of_the_confirmed_findings_are_wrong() -> None:
    """Of 200 findings, 150 have no effect: p is uniform. At most about 5 % of the confirmed ones may be of these."""
    rng = np.random.default_rng(1)
    false = total = 0
    for _ in range(50):
        values = [*rng.uniform(size=150), *rng.uniform(high=0.001, size=50)]
        confirmed = [one.confirmed for one in correct([Finding("as claimed", float(p)) for p in values])]
        false, total = false + sum(confirmed[:150]), total + sum(confirmed)
    assert total >= 50 * 50
    assert false / total < 0.06
