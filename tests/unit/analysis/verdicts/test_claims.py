"""Claims of papers, compared with the results of a run."""

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mplab.analysis.metric import Metric, Value
from mplab.analysis.record.run import read_run
from mplab.analysis.scores.scoring import CellScores
from mplab.analysis.statistics.effects import Interval
from mplab.analysis.statistics.summaries import Analysis, summarise
from mplab.analysis.verdicts.claims import Outcome, judge, outcomes
from tests.unit.analysis.synthetic import Synthetic, summary_json

TIME = Metric("time", "Download time", "s", "lower", headline=True)
RATE = Metric("time", "Rate", "Mbit/s", "higher", headline=True)
CLAIM: dict[str, Any] = {
    "text": "Both paths are better than one",
    "source": "somebody2020 §1",
    "metric": "time",
    "transport": "mptcp",
    "against": ["sptcp-wifi", "sptcp-lte"],
    "gain_percent": [10.0, 40.0],
}


@pytest.mark.parametrize(
    ("found", "verdict"),
    [(-0.2, "not seen"), (0.0, "not seen"), (0.05, "less"), (0.1, "as claimed"), (0.4, "as claimed"), (0.41, "more")],
)
def test_a_gain_is_judged_by_the_range(found: float, verdict: str) -> None:
    assert judge(found, Interval(0.1, 0.4)) == verdict


def test_a_claim_of_being_never_worse_is_judged_by_its_least() -> None:
    assert judge(0.0, Interval(0.0, 1.0)) == "as claimed"
    assert judge(-0.01, Interval(0.0, 1.0)) == "not seen"


@pytest.fixture
def outcome(synthetic: Callable[..., Synthetic]) -> Callable[..., Outcome]:
    """Return the outcome of a claim for given values of each transport."""

    def make(values: Mapping[str, Sequence[float]], measured: Metric = TIME, **changes: Any) -> Outcome:
        (repetitions,) = {len(numbers) for numbers in values.values()}
        run = read_run(synthetic(repetitions=repetitions, claims=[CLAIM | changes]).build())
        scores = [
            CellScores(cell.id, (Value(measured.name, values[spec.transport][spec.repetition - 1], {"size": "1 MB"}),))
            for cell in run.cells
            if (spec := cell.spec) is not None and spec.transport in values
        ]
        (result,) = outcomes(Analysis(run, tuple(summarise(run, {"files": (measured,)}, scores))))
        return result

    return make


STEADY = {"sptcp-wifi": [4.0] * 5, "sptcp-lte": [2.0] * 5, "mptcp": [1.5] * 5}


def test_the_gain_is_against_the_best_that_the_claim_names(outcome: Callable[..., Outcome]) -> None:
    (finding,) = outcome(STEADY).findings
    assert finding.gain == pytest.approx(0.25)
    assert finding.baseline.transport.label == "sptcp-lte"
    assert (finding.verdict, finding.certain) == ("as claimed", True)


def test_others_than_the_best_single_path_can_be_meant(outcome: Callable[..., Outcome]) -> None:
    result = outcome(STEADY, against=["sptcp-wifi"], transport="sptcp-lte", gain_percent=[10.0, 20.0])
    (finding,) = result.findings
    assert finding.gain == pytest.approx(0.5)
    assert finding.baseline.transport.label == "sptcp-wifi"
    assert (finding.verdict, finding.certain) == ("more", True)


def test_a_verdict_is_uncertain_when_the_interval_has_another(outcome: Callable[..., Outcome]) -> None:
    (finding,) = outcome({**STEADY, "mptcp": [0.1, 1.4, 1.5, 1.6, 3.0]}).findings
    assert finding.interval is not None
    assert (finding.verdict, finding.certain) == ("as claimed", False)


def test_with_too_few_repetitions_no_verdict_is_certain(outcome: Callable[..., Outcome]) -> None:
    (few,) = outcome({label: numbers[:2] for label, numbers in STEADY.items()}).findings
    assert few.interval is None
    assert not few.certain


def test_where_more_is_better(outcome: Callable[..., Outcome]) -> None:
    values = {"sptcp-wifi": [4.0] * 3, "sptcp-lte": [8.0] * 3, "mptcp": [10.0] * 3}
    (finding,) = outcome(values, RATE).findings
    assert finding.gain == pytest.approx(0.25)
    assert finding.baseline.transport.label == "sptcp-lte"


@pytest.mark.parametrize(
    ("about", "findings"),
    [({"scenarios": ["files"], "links": ["baseline"]}, 1), ({"scenarios": ["web"]}, 0), ({"links": ["lossy"]}, 0)],
)
def test_a_claim_may_be_about_some_scenarios_and_links_alone(
    outcome: Callable[..., Outcome], about: dict[str, Any], findings: int
) -> None:
    assert len(outcome(STEADY, **about).findings) == findings


def test_the_others_may_be_meant_under_another_condition(synthetic: Callable[..., Synthetic]) -> None:
    claim = CLAIM | {"links": ["far"], "against_link": "near", "against": ["sptcp-wifi"]}
    run = read_run(synthetic(repetitions=3, links=("near", "far"), claims=[claim]).build())
    times = {("sptcp-wifi", "near"): 2.0, ("sptcp-wifi", "far"): 8.0, ("mptcp", "near"): 1.0, ("mptcp", "far"): 1.5}
    scores = [
        CellScores(cell.id, (Value("time", time, {"size": "1 MB"}),))
        for cell in run.cells
        if (spec := cell.spec) is not None and (time := times.get((spec.transport, spec.link)))
    ]
    (result,) = outcomes(Analysis(run, tuple(summarise(run, {"files": (TIME,)}, scores))))
    (finding,) = result.findings
    assert finding.group.link == "far"
    assert finding.gain == pytest.approx(0.25)
    assert finding.baseline.numbers == [2.0] * 3


@pytest.mark.parametrize(
    "changes",
    [
        {"against_link": "nowhere"},
        {"metric": "upload_time"},
        {"transport": "mpflex"},
        {"against": ["sptcp-wifi", "mpflex"]},
    ],
)
def test_a_claim_of_which_a_part_was_not_measured_has_no_finding(
    outcome: Callable[..., Outcome], changes: dict[str, Any]
) -> None:
    result = outcome(STEADY, **changes)
    assert result.findings == ()
    assert result.spread is None


def test_claims_are_on_the_page_and_in_the_data(answered: Callable[..., Path]) -> None:
    run = answered(repetitions=4, claims=[CLAIM, CLAIM | {"text": "Nobody measured it", "metric": "upload_time"}])
    first, second = summary_json(run)["claims"]
    assert first["text"] == CLAIM["text"]
    assert {finding["verdict"] for finding in first["found"]} <= {"as claimed", "more", "less", "not seen"}
    assert second["found"] == []
    page = (run / "report" / "index.html").read_text()
    for words in ("Both paths are better than one", "somebody2020 §1", "Nobody measured it", "not measured"):
        assert words in page
    with (run / "report" / "data" / "claims.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["gain"]) for row in rows] == pytest.approx([finding["gain"] for finding in first["found"]])
    assert {row["claimed_low"] for row in rows} == {"0.1"}


def test_without_claims_there_is_no_section(answered: Callable[..., Path]) -> None:
    page = (answered(repetitions=1) / "report" / "index.html").read_text()
    assert 'id="claims"' not in page
