"""Claims of papers, compared with the results of a run."""

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from mplab.analysis.errors import NotARunError
from mplab.analysis.metric import Metric, Value
from mplab.analysis.record.run import read_run
from mplab.analysis.scores.scoring import CellScores
from mplab.analysis.statistics.summaries import Analysis, summarise
from mplab.analysis.verdicts.claims import Outcome, outcomes
from mplab.analysis.verdicts.judging import VERDICTS
from mplab.dashboard.watch import Watcher
from mplab.format.claim import Claim
from tests.unit.analysis.synthetic import Synthetic, summary_json

TIME = Metric("time", "Download time", "s", "lower", ("size",), headline=True)
RATE = Metric("time", "Rate", "Mbit/s", "higher", ("size",), headline=True)
CLAIM: dict[str, Any] = {
    "text": "Both paths are better than one",
    "source": "somebody2020 §1",
    "metric": "time",
    "transport": "mptcp",
    "against": ["sptcp-wifi", "sptcp-lte"],
    "kind": "gain",
    "claimed": {"low": 10.0, "high": 40.0, "unit": "%"},
}


def claimed(low: float | None, high: float | None, unit: str = "%", **more: Any) -> dict[str, Any]:
    return {"claimed": {"low": low, "high": high, "unit": unit, **more}}


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
    assert finding.estimate == pytest.approx(25.0)
    assert finding.against == "sptcp-lte"
    assert (finding.verdict, finding.certain) == ("as claimed", True)


def test_others_than_the_best_single_path_can_be_meant(outcome: Callable[..., Outcome]) -> None:
    result = outcome(STEADY, against=["sptcp-wifi"], transport="sptcp-lte", **claimed(10.0, 20.0))
    (finding,) = result.findings
    assert finding.estimate == pytest.approx(50.0)
    assert finding.against == "sptcp-wifi"
    assert (finding.verdict, finding.certain) == ("same direction", True)


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
    assert finding.estimate == pytest.approx(25.0)
    assert finding.against == "sptcp-lte"


SILENT = {"mptcp": [0.0] * 5, "sptcp-lte": [4.0, 5.0, 4.5, 4.2, 4.8]}
WORSE: dict[str, Any] = {"claimed": {"word": "worse"}, "transport": "sptcp-lte", "against": ["mptcp"]}


@pytest.mark.parametrize(
    ("values", "changes", "estimate", "verdict"),
    [
        (SILENT, {}, -4.5, "as claimed"),
        (SILENT | {"sptcp-lte": [0.0] * 5}, {}, 0.0, "not seen"),
        (SILENT, claimed(-90.0, -10.0), None, "no data"),
    ],
)
def test_a_direction_needs_no_relative_difference(
    outcome: Callable[..., Outcome],
    values: Mapping[str, Sequence[float]],
    changes: dict[str, Any],
    estimate: float | None,
    verdict: str,
) -> None:
    (finding,) = outcome(values, **WORSE | changes).findings
    assert (finding.estimate, finding.verdict) == (estimate, verdict)
    assert finding.unit == ("s" if estimate is not None else "")


@pytest.mark.parametrize(
    ("about", "findings"),
    [({"scenarios": ["files"], "links": ["baseline"]}, 1), ({"scenarios": ["web"]}, 0), ({"links": ["lossy"]}, 0)],
)
def test_a_claim_may_be_about_some_scenarios_and_links_alone(
    outcome: Callable[..., Outcome], about: dict[str, Any], findings: int
) -> None:
    verdicts = [finding.verdict for finding in outcome(STEADY, **about).findings]
    assert verdicts == ["as claimed" if findings else "no data"]


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
    assert finding.link == "far"
    assert finding.estimate == pytest.approx(25.0)
    assert finding.against == "sptcp-wifi"


@pytest.mark.parametrize(
    "changes",
    [
        {"against_link": "nowhere"},
        {"metric": "upload_time"},
        {"transport": "mpflex"},
        {"against": ["sptcp-wifi", "mpflex"]},
    ],
)
def test_a_claim_of_which_a_part_was_not_measured_says_what_is_missing(
    outcome: Callable[..., Outcome], changes: dict[str, Any]
) -> None:
    result = outcome(STEADY, **changes)
    (finding,) = result.findings
    assert (finding.verdict, result.verdict) == ("no data", "no data")
    assert any(str(value) in finding.missing or value == ["sptcp-wifi", "mpflex"] for value in changes.values())


def test_a_label_that_was_not_measured_is_named(outcome: Callable[..., Outcome]) -> None:
    result = outcome(STEADY, labels={"size": ["1 MB", "2 MB"]})
    first, second = result.findings
    assert (first.verdict, second.verdict, second.label_text) == ("as claimed", "no data", "2 MB")
    assert "2 MB" in second.missing
    assert result.verdict == "as claimed"


def test_sizes_may_be_spread_over_scenarios(synthetic: Callable[..., Synthetic]) -> None:
    sizes = {"short": "10 kB", "long": "2 MB", "other": "5 MB"}
    scenarios: list[dict[str, Any]] = [{"label": label, "name": "toy", "parameters": {}} for label in sizes]
    claim = CLAIM | {"labels": {"size": ["10 kB", "2 MB", "9 MB"]}}
    run = read_run(synthetic(repetitions=3, scenarios=scenarios, claims=[claim]).build())
    scores = [
        CellScores(cell.id, (Value("time", 1.0, {"size": sizes[cell.spec.scenario]}),))
        for cell in run.cells
        if cell.spec is not None
    ]
    (result,) = outcomes(Analysis(run, tuple(summarise(run, dict.fromkeys(sizes, (TIME,)), scores))))
    found = [(finding.scenario, finding.label_text, finding.verdict) for finding in result.findings]
    assert found == [("short", "10 kB", "not seen"), ("short", "9 MB", "no data"), ("long", "2 MB", "not seen")]


@pytest.mark.parametrize(("partly", "left_out"), [("short", ["short"]), ("other", [])])
def test_only_scenarios_that_the_claim_is_about_lack_conditions(
    synthetic: Callable[..., Synthetic], partly: str, left_out: list[str]
) -> None:
    sizes = {"short": "10 kB", "other": "5 MB"}
    scenarios: list[dict[str, Any]] = [{"label": label, "name": "toy", "parameters": {}} for label in sizes]
    exclude = [{"scenario": [partly], "link": ["loss-1"]}]
    claim = CLAIM | {"labels": {"size": ["10000 B"]}}  # another text of 10 kB
    built = synthetic(repetitions=2, scenarios=scenarios, links=("loss-0", "loss-1"), exclude=exclude, claims=[claim])
    run = read_run(built.build())
    scores = [
        CellScores(cell.id, (Value("time", 1.0, {"size": sizes[cell.spec.scenario]}),))
        for cell in run.cells
        if cell.spec is not None
    ]
    (result,) = outcomes(Analysis(run, tuple(summarise(run, dict.fromkeys(sizes, (TIME,)), scores))))
    assert [finding.scenario for finding in result.findings if finding.verdict == "no data"] == left_out


def test_a_claim_that_cannot_be_measured_gives_its_reason(outcome: Callable[..., Outcome]) -> None:
    result = outcome(STEADY, not_measurable="no radio energy", metric="", transport="")
    (finding,) = result.findings
    assert (finding.verdict, finding.missing, result.verdict) == (
        "not measurable here",
        "no radio energy",
        "not measurable here",
    )


@pytest.mark.parametrize(("level", "gain", "verdict"), [(2.6, -31.0, "as claimed"), (1.5, 24.0, "contradicted")])
def test_harm_can_be_claimed(outcome: Callable[..., Outcome], level: float, gain: float, verdict: str) -> None:
    values = STEADY | {"mptcp": [level + number / 100 for number in range(5)]}
    (finding,) = outcome(values, **claimed(-36.0, -5.0)).findings
    assert finding.estimate == pytest.approx(gain)
    assert (finding.verdict, finding.certain) == (verdict, True)


@pytest.mark.parametrize(
    ("mptcp", "verdict", "certain"),
    [
        ([2.0, 2.01, 2.02, 2.03, 2.04], "as claimed", True),
        ([1.6, 2.0, 2.05, 2.1, 2.4], "as claimed", False),
        ([3.0, 3.01, 3.02, 3.03, 3.04], "contradicted", True),
    ],
)
def test_no_difference_can_be_claimed(
    outcome: Callable[..., Outcome], mptcp: list[float], verdict: str, certain: bool
) -> None:
    values = STEADY | {"sptcp-lte": [2.0, 2.01, 2.02, 2.03, 2.04], "mptcp": mptcp}
    (finding,) = outcome(values, kind="no_difference", against=["sptcp-lte"], **claimed(-5.0, 5.0)).findings
    assert (finding.verdict, finding.certain) == (verdict, certain)
    assert finding.null == ("beyond the margin" if verdict == "as claimed" else "inside the range")


def test_a_value_is_converted_to_the_unit_of_the_claim(outcome: Callable[..., Outcome]) -> None:
    (finding,) = outcome(STEADY, kind="value", against=[], **claimed(1400.0, 1600.0, "ms")).findings
    assert finding.estimate == pytest.approx(1500.0)
    assert (finding.unit, finding.verdict) == ("ms", "as claimed")


@pytest.mark.parametrize(("cells", "confirmed"), [(4, False), (6, True)])
def test_as_claimed_is_confirmed_only_if_a_value_outside_the_range_is_rejected(
    outcome: Callable[..., Outcome], cells: int, confirmed: bool
) -> None:
    """The smallest p of four signs is 1/16."""
    values = {label: numbers[:1] * cells for label, numbers in STEADY.items()}
    (finding,) = outcome(values, kind="value", against=[], **claimed(1.4, 1.6, "s")).findings
    assert (finding.verdict, finding.certain, finding.null) == ("as claimed", True, "outside the range")
    assert (finding.p, finding.confirmed) == (0.5**cells, confirmed)


@pytest.mark.parametrize(("statistic", "verdict"), [("median", "not seen"), ("mean", "as claimed")])
def test_the_mean_sees_a_rare_loss_that_the_median_cannot_see(
    outcome: Callable[..., Outcome], statistic: str, verdict: str
) -> None:
    values = {"sptcp-wifi": [1.0] * 12, "mptcp": [1.0] * 8 + [3.0] * 4}
    changes = {"transport": "sptcp-wifi", "against": ["mptcp"], **claimed(5.0, None), "statistic": statistic}
    (finding,) = outcome(values, **changes).findings
    assert finding.verdict == verdict


SWEEP = tuple(f"loss-{percent}" for percent in range(5))


@pytest.fixture
def swept(synthetic: Callable[..., Synthetic]) -> Callable[..., Outcome]:
    """Return the outcome of a claim on a run over five links; ``level`` gives the value of a transport under a link."""

    def make(level: Callable[[str, int], float], **changes: Any) -> Outcome:
        claim = CLAIM | {"links": SWEEP, "against": []} | changes
        run = read_run(synthetic(repetitions=6, links=SWEEP, claims=[claim]).build())
        scores = [
            CellScores(
                cell.id,
                (
                    Value("time", level(spec.transport, SWEEP.index(spec.link)) + 0.001 * spec.repetition),
                    Value("other", 5.0 - level(spec.transport, SWEEP.index(spec.link)) - 0.01 * (spec.repetition % 2)),
                ),
            )
            for cell in run.cells
            if (spec := cell.spec) is not None
        ]
        metrics = (Metric("time", "Time", "s", "lower"), Metric("other", "Other", "s", "neither"))
        (result,) = outcomes(Analysis(run, tuple(summarise(run, {"files": metrics}, scores))))
        return result

    return make


@pytest.mark.parametrize(
    ("step", "word", "verdict"),
    [
        (0.1, "rising", "as claimed"),
        (-0.1, "rising", "contradicted"),
        (-0.1, "falling", "as claimed"),
        (0.001, "rising", "not seen"),
    ],
)
def test_a_trend_over_links(swept: Callable[..., Outcome], step: float, word: str, verdict: str) -> None:
    trend = {"kind": "trend", "trend": {"form": "change"}, "claimed": {"word": word}}
    (finding,) = swept(lambda _, point: 1.0 + step * point, **trend).findings
    assert (finding.verdict, finding.link) == (verdict, "")
    assert finding.estimate == pytest.approx(100 * 4 * step, rel=0.02)


@pytest.mark.parametrize(("step", "verdict"), [(0.002, "as claimed"), (0.2, "contradicted")])
def test_a_flat_trend(swept: Callable[..., Outcome], step: float, verdict: str) -> None:
    flat = {"kind": "trend", "trend": {"form": "flat"}, **claimed(-5.0, 5.0)}
    (finding,) = swept(lambda _, point: 1.0 + step * point, **flat).findings
    assert (finding.verdict, finding.certain) == (verdict, True)


@pytest.mark.parametrize(
    ("slope", "verdict", "position"),
    [(0.3, "as claimed", 6.67), (0.9, "same direction", 2.22), (0.1, "not seen", None)],
)
def test_a_crossover(swept: Callable[..., Outcome], slope: float, verdict: str, position: float | None) -> None:
    """MPTCP takes 1 s + slope for each point; TCP 2 s. The points are 0, 2, 4, 6, 8 %."""
    crossing = {
        "kind": "trend",
        "trend": {"form": "crossover", "at": [0.0, 2.0, 4.0, 6.0, 8.0]},
        "against": ["sptcp-wifi"],
        **claimed(6.0, 7.0, ""),
    }
    result = swept(lambda name, point: 1.0 + slope * point if name == "mptcp" else 2.0, **crossing)
    (finding,) = result.findings
    assert finding.verdict == verdict
    assert finding.estimate == (pytest.approx(position, abs=0.1) if position else None)


def test_a_crossover_keeps_its_positions_if_points_are_not_run(synthetic: Callable[..., Synthetic]) -> None:
    """MPTCP takes 1 s + 0.15 s per point, TCP 1.5 s: the lines cross at point 3.3, or 6.7 %."""
    crossing = {
        "kind": "trend",
        "trend": {"form": "crossover", "at": [0.0, 2.0, 4.0, 6.0, 8.0]},
        "against": ["sptcp-wifi"],
        **claimed(6.0, 7.0, ""),
    }
    exclude = [{"link": ["loss-[123]"]}]
    run = read_run(synthetic(repetitions=4, links=SWEEP, exclude=exclude, claims=[CLAIM | crossing]).build())
    levels = {"mptcp": 0.15, "sptcp-wifi": 0.0}
    scores = [
        CellScores(cell.id, (Value("time", start + slope * SWEEP.index(spec.link)),))
        for cell in run.cells
        if (spec := cell.spec) is not None and (slope := levels.get(spec.transport)) is not None
        for start in [1.0 if spec.transport == "mptcp" else 1.5]
    ]
    metric = Metric("time", "Time", "s", "lower")
    (result,) = outcomes(Analysis(run, tuple(summarise(run, {"files": (metric,)}, scores))))
    crossed, left_out = result.findings
    assert crossed.estimate == pytest.approx(20 / 3)
    assert (crossed.verdict, left_out.verdict) == ("as claimed", "no data")
    assert left_out.missing == "3 of 5 link conditions are not in this run: loss-1, loss-2, loss-3"


def test_positions_that_do_not_fit_the_points_are_no_data(swept: Callable[..., Outcome]) -> None:
    trend = {"kind": "trend", "trend": {"form": "change", "at": [0.0, 1.0]}, "claimed": {"word": "rising"}}
    (finding,) = swept(lambda _, point: 1.0 + point, **trend).findings
    assert finding.verdict == "no data"
    assert "2 positions for 5 points" in finding.missing


@pytest.mark.parametrize(("excluded", "confirmed"), [((), True), (("loss-4",), False)])
def test_all_groups_are_not_confirmed_if_the_run_leaves_out_a_condition(
    synthetic: Callable[..., Synthetic], excluded: Sequence[str], confirmed: bool
) -> None:
    exclude = [{"link": [*excluded]}] if excluded else []
    claim = CLAIM | {"groups": "all"}
    run = read_run(synthetic(repetitions=6, links=SWEEP, exclude=exclude, claims=[claim]).build())
    scores = [
        CellScores(cell.id, (Value("time", 1.5 if spec.transport == "mptcp" else 2.0, {"size": "1 MB"}),))
        for cell in run.cells
        if (spec := cell.spec) is not None
    ]
    (result,) = outcomes(Analysis(run, tuple(summarise(run, {"files": (TIME,)}, scores))))
    assert (result.verdict, result.confirmed) == ("as claimed", confirmed)
    assert [one.missing for one in result.findings if one.verdict == "no data"] == [
        f"1 of 5 link conditions are not in this run: {link}" for link in excluded
    ]


def test_the_opposite_crossover_contradicts(swept: Callable[..., Outcome]) -> None:
    crossing = {
        "kind": "trend",
        "trend": {"form": "crossover"},
        "transport": "sptcp-wifi",
        "against": ["mptcp"],
        **claimed(2.0, 3.0, ""),
    }
    (finding,) = swept(lambda name, point: 1.0 + 0.3 * point if name == "mptcp" else 1.5, **crossing).findings
    assert finding.verdict == "contradicted"


def test_a_point_without_values_is_named(swept: Callable[..., Outcome]) -> None:
    trend = {"kind": "trend", "trend": {"form": "change"}, "claimed": {"word": "rising"}, "links": [*SWEEP, "loss-9"]}
    (finding,) = swept(lambda _, point: 1.0 + point, **trend).findings
    assert finding.verdict == "no data"
    assert "loss-9" in finding.missing


def test_a_correlation(swept: Callable[..., Outcome]) -> None:
    related = {"kind": "correlation", "other_metric": "other", **claimed(-1.0, -0.7, "")}
    (finding,) = swept(lambda _, point: 1.0 + 0.1 * point, **related).findings
    assert finding.estimate is not None
    assert finding.estimate < -0.95
    assert (finding.verdict, finding.certain, finding.cells) == ("as claimed", True, (30,))


@pytest.mark.parametrize(
    ("others", "coefficient", "cells", "verdict"), [([], 0.0, 4, "not seen"), (["sptcp-wifi"], 0.98, 8, "as claimed")]
)
def test_a_correlation_over_the_cells_of_several_transports(
    synthetic: Callable[..., Synthetic], others: list[str], coefficient: float, cells: int, verdict: str
) -> None:
    """Within MPTCP there is no correlation: 1, 2, 1, 2 with 3, 3, 4, 4. The values over WiFi are larger by 10."""
    related = {"kind": "correlation", "other_metric": "other", "other_transports": others, **claimed(0.9, 1.0, "")}
    run = read_run(synthetic(repetitions=4, claims=[CLAIM | related | {"against": []}]).build())
    base = {"mptcp": 0, "sptcp-wifi": 10, "sptcp-lte": -99}
    scores = [
        CellScores(cell.id, (Value("time", own + 1 + turn % 2), Value("other", own + 3 + turn // 2)))
        for cell in run.cells
        if (spec := cell.spec) is not None
        for own, turn in [(base[spec.transport], spec.repetition - 1)]
    ]
    metrics = (Metric("time", "Time", "s", "lower"), Metric("other", "Other", "s", "neither"))
    (result,) = outcomes(Analysis(run, tuple(summarise(run, {"files": metrics}, scores))))
    (finding,) = result.findings
    assert finding.estimate == pytest.approx(coefficient, abs=0.02)
    assert (finding.cells, finding.verdict) == ((cells,), verdict)


SHARE = {"kind": "share", "transport": "sptcp-wifi", "against": ["mptcp"]}
TENTHS = {"sptcp-wifi": [1.0] * 10, "mptcp": [1.5] * 2 + [0.9] * 8}


@pytest.mark.parametrize(
    ("low", "high", "verdict", "certain"),
    [
        (10.0, 30.0, "as claimed", False),
        (0.1, 99.0, "as claimed", True),
        (40.0, None, "not seen", False),
        (90.0, None, "contradicted", True),
    ],
)
def test_the_share_of_better_pairs(
    outcome: Callable[..., Outcome], low: float, high: float | None, verdict: str, certain: bool
) -> None:
    """WiFi is faster in two of ten blocks, although its median is higher."""
    (finding,) = outcome(TENTHS, **SHARE, **claimed(low, high)).findings
    assert (finding.estimate, finding.unit, finding.cells) == (20.0, "%", (10, 10))
    assert (finding.against, finding.verdict, finding.certain) == ("mptcp", verdict, certain)
    assert finding.p is not None


@pytest.mark.parametrize(("low", "high", "verdict"), [(15.0, 30.0, "not seen"), (60.0, None, "contradicted")])
def test_pairs_that_all_agree_do_not_exclude_a_share_that_ten_pairs_allow(
    outcome: Callable[..., Outcome], low: float, high: float | None, verdict: str
) -> None:
    """If the share is 20 %, none of ten pairs is better in 0.8^10 = 11 % of the runs; if it is 60 %, in 0.01 %."""
    (finding,) = outcome(TENTHS | {"mptcp": [0.5] * 10}, **SHARE, **claimed(low, high)).findings
    assert (finding.estimate, finding.verdict) == (0.0, verdict)
    assert finding.interval is not None and finding.p is not None  # noqa: PT018
    ends = [end for end in finding.interval if end is not None]
    assert [ends[0] < 0.5, ends[1] > 20] == [True, True]
    assert (finding.p < 0.01) is (verdict == "contradicted")


def test_of_a_tie_no_transport_is_better(outcome: Callable[..., Outcome]) -> None:
    values = {"sptcp-wifi": [1.0] * 4, "mptcp": [1.0, 1.0, 1.0, 2.0]}
    (finding,) = outcome(values, **SHARE, **claimed(10.0, 30.0)).findings
    assert finding.estimate == 25.0


DIFFERENCE = {"kind": "value", "against": ["sptcp-wifi"]}


@pytest.mark.parametrize(("statistic", "estimate"), [("median", 50.0), ("mean", 70.0)])
def test_the_median_of_relative_differences_is_not_the_difference_of_the_medians(
    outcome: Callable[..., Outcome], statistic: str, estimate: float
) -> None:
    """The medians of both transports are 2 s; in each block, they differ by half or by all of the reference."""
    values = {"sptcp-wifi": [1.0, 1.0, 2.0, 4.0, 4.0], "mptcp": [2.0, 2.0, 3.0, 2.0, 2.0]}
    about = claimed(estimate - 0.5, estimate + 0.5, number=estimate)
    (finding,) = outcome(values, **DIFFERENCE, **about, statistic=statistic).findings
    assert finding.estimate == pytest.approx(estimate)
    assert (finding.unit, finding.verdict) == ("%", "as claimed")
    assert finding.interval is not None
    assert finding.interval[0] == 50.0


def test_pairs_of_all_links_count_together(synthetic: Callable[..., Synthetic]) -> None:
    """The differences are 10, 20 and 90 % under the three links: their median is that of all pairs."""
    differences, links = {"near": 0.1, "far": 0.2, "lossy": 0.9}, ("near", "far", "lossy")
    claim = CLAIM | DIFFERENCE | claimed(15.0, 25.0)
    run = read_run(synthetic(repetitions=4, links=links, claims=[claim]).build())
    scores = [
        CellScores(cell.id, (Value("time", 1 + (spec.transport == "mptcp") * differences[spec.link]),))
        for cell in run.cells
        if (spec := cell.spec) is not None and (spec.transport, spec.repetition) != ("sptcp-wifi", 1)
    ]
    (result,) = outcomes(Analysis(run, tuple(summarise(run, {"files": (TIME,)}, scores))))
    (finding,) = result.findings
    assert finding.estimate == pytest.approx(20.0)
    assert (finding.link, finding.cells) == ("", (9, 9))


def test_a_link_without_pairs_is_named(synthetic: Callable[..., Synthetic]) -> None:
    claim = CLAIM | DIFFERENCE | claimed(15.0, 25.0)
    run = read_run(synthetic(repetitions=4, links=("near", "far"), claims=[claim]).build())
    scores = [
        CellScores(cell.id, (Value("time", 1.0),))
        for cell in run.cells
        if (spec := cell.spec) is not None and (spec.link, spec.transport) != ("far", "mptcp")
    ]
    (result,) = outcomes(Analysis(run, tuple(summarise(run, {"files": (TIME,)}, scores))))
    (finding,) = result.findings
    assert (finding.verdict, finding.missing) == (
        "no data",
        "no block has values of mptcp and sptcp-wifi (files · far)",
    )


def test_repetitions_inside_a_cell_form_pairs_by_their_number(synthetic: Callable[..., Synthetic]) -> None:
    """The second repetition of WiFi has failed: of three repetitions two are pairs, of which MPTCP wins one."""
    claim = CLAIM | {"kind": "share", "against": ["sptcp-wifi"], **claimed(45.0, 55.0)}
    run = read_run(synthetic(repetitions=3, claims=[claim]).build())
    times = {"sptcp-wifi": {1: 1.0, 3: 3.0}, "mptcp": {1: 2.0, 2: 9.0, 3: 2.0}}
    scores = [
        CellScores(cell.id, tuple(Value("time", time, repeat=repeat) for repeat, time in own.items()))
        for cell in run.cells
        if (spec := cell.spec) is not None and (own := times.get(spec.transport)) is not None
    ]
    (result,) = outcomes(Analysis(run, tuple(summarise(run, {"files": (TIME,)}, scores))))
    (finding,) = result.findings
    assert (finding.estimate, finding.values, finding.cells) == (50.0, 6, (3, 3))


def test_another_scenario_can_be_the_reference(synthetic: Callable[..., Synthetic]) -> None:
    scenarios: list[dict[str, Any]] = [
        {"label": label, "name": "toy", "parameters": {}} for label in ("web-h1", "web-h2")
    ]
    claim = CLAIM | {
        "transport": "sptcp-wifi",
        "against": ["sptcp-wifi"],
        "scenarios": ["web-h1"],
        "against_scenario": "web-h2",
        "pooled_labels": ["site"],
        "statistic": "pooled",
    }
    run = read_run(synthetic(repetitions=4, scenarios=scenarios, claims=[claim]).build())
    base = {"web-h1": 1.5, "web-h2": 2.0}
    scores = [
        CellScores(
            cell.id, tuple(Value("time", base[spec.scenario] * factor, {"site": site}) for site, factor in SITES)
        )
        for cell in run.cells
        if (spec := cell.spec) is not None
    ]
    metric = Metric("time", "Page load time", "s", "lower", ("site",))
    (result,) = outcomes(Analysis(run, tuple(summarise(run, dict.fromkeys(base, (metric,)), scores))))
    (finding,) = result.findings
    assert finding.estimate == pytest.approx(25.0)
    assert (finding.labels, finding.values, finding.verdict) == ({}, 12, "as claimed")


SITES = (("a", 0.5), ("b", 1.0), ("c", 4.0))


@pytest.mark.parametrize(("groups", "verdict"), [("most", "as claimed"), ("all", "contradicted")])
def test_most_or_all_groups_must_agree(synthetic: Callable[..., Synthetic], groups: str, verdict: str) -> None:
    run = read_run(synthetic(repetitions=4, claims=[CLAIM | {"groups": groups}]).build())
    gains = {"10 kB": -0.5, "1 MB": 0.25, "10 MB": 0.3}
    scores = [
        CellScores(
            cell.id,
            tuple(
                Value("time", 2.0 * (1 - gain) if spec.transport == "mptcp" else 2.0, {"size": size})
                for size, gain in gains.items()
            ),
        )
        for cell in run.cells
        if (spec := cell.spec) is not None
    ]
    (result,) = outcomes(Analysis(run, tuple(summarise(run, {"files": (TIME,)}, scores))))
    assert [finding.verdict for finding in result.findings] == ["contradicted", "as claimed", "as claimed"]
    assert (result.verdict, result.confirmed) == (verdict, True)


ADAPTER = TypeAdapter(Claim)


def test_a_record_of_an_older_version_is_a_gain() -> None:
    old = {key: value for key, value in CLAIM.items() if key not in ("kind", "claimed")}
    assert ADAPTER.validate_python(old | {"gain_percent": [10.0, 40.0]}) == ADAPTER.validate_python(CLAIM)


@pytest.mark.parametrize("value", [5, None, "ab", [1], [1, 2, 3], {"low": 1, "high": 2}, [None, {}]])
def test_a_wrong_record_of_an_older_version_makes_the_run_unreadable_and_no_other(
    synthetic: Callable[..., Synthetic], value: object
) -> None:
    old = {key: content for key, content in CLAIM.items() if key not in ("kind", "claimed")}
    run = synthetic(claims=[old | {"gain_percent": value}]).build()
    with pytest.raises(NotARunError, match=r"claims.0"):
        read_run(run)
    (shown,) = Watcher([run.parent]).snapshot().runs
    assert (shown.name, shown.state) == (run.name, "unreadable")


def test_claims_are_on_the_page_and_in_the_data(answered: Callable[..., Path]) -> None:
    claims = [
        CLAIM,
        CLAIM | {"text": "Nobody measured it", "metric": "upload_time", "figure": "somebody2020-fig3"},
        CLAIM | {"text": "It takes energy", "not_measurable": "there is no meter"},
    ]
    run = answered(repetitions=4, claims=claims)
    first, second, third = summary_json(run)["claims"]
    assert first["text"] == CLAIM["text"]
    assert {finding["verdict"] for finding in first["found"]} <= {*VERDICTS}
    assert all(0 < finding["p"] <= finding["p_corrected"] <= 1 for finding in first["found"])
    assert (second["verdict"], second["figure"]) == ("no data", "somebody2020-fig3")
    assert third["verdict"] == "not measurable here"
    page = (run / "report" / "index.html").read_text()
    for words in ("Both paths are better than one", "somebody2020 §1", "Nobody measured it", "no data", "no meter"):
        assert words in page
    with (run / "report" / "data" / "claims.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    estimates = [finding["estimate"] for claim in (first, second, third) for finding in claim["found"]]
    assert [float(row["estimate"]) if row["estimate"] else None for row in rows] == pytest.approx(estimates)
    assert {row["claimed"] for row in rows} == {"gain 10 to 40 %"}


def test_the_metrics_of_the_traces_are_data_but_not_on_top_of_the_page(answered: Callable[..., Path]) -> None:
    run = answered(repetitions=3)
    summary = summary_json(run)
    shares = [group for group in summary["metrics"] if group["metric"] == "network_share"]
    assert {group["labels"]["network"] for group in shares} == {"wifi", "cellular"}
    assert all(group["traced"] and not group["contrasts"] for group in shares)
    assert not any("Share of a network" in answer["sentence"] for answer in summary["answers"])
    page = (run / "report" / "index.html").read_text()
    assert page.index("Metrics of the traces") > page.index('id="answer"')
    assert not list((run / "report" / "figures").glob("*network-share*"))


def test_without_claims_there_is_no_section(answered: Callable[..., Path]) -> None:
    page = (answered(repetitions=1) / "report" / "index.html").read_text()
    assert 'id="claims"' not in page
