"""A run compared with other runs: verdicts, budgets, and the reasons for which a gate fails."""

import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mplab.analysis.errors import BudgetError, NotAnalysedError
from mplab.analysis.pipeline import analyze
from mplab.analysis.record.run import Run, read_run
from mplab.analysis.report.chart import report_links
from mplab.analysis.report.comparepage import compare_page, forest_axis
from mplab.analysis.report.trendpage import trend_page
from mplab.analysis.results.frames import Results, load
from mplab.analysis.verdicts.compare import ComparedRuns, MetricChange, compare, usual_range
from mplab.analysis.verdicts.gate import GateCheck, change_text, checks
from mplab.analysis.verdicts.trend import experiments, histories, shifts
from tests.unit.analysis.report.test_report import Page
from tests.unit.analysis.synthetic import TRANSPORTS, Synthetic, summary_json

Nights = Callable[..., list[Run]]
AT_MOST_1S = {"metric": "time", "transport": "mptcp", "at_most": {"value": 1000, "unit": "ms"}}


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Nights:
    """Build analysed runs of one experiment, one for each night; `slower` is night → factor.

    The runs are copies: each is analysed once for all tests.
    """
    analysed: dict[str, Path] = {}

    def analysed_run(options: Mapping[str, Any]) -> Path:
        key = json.dumps(options, sort_keys=True)
        if key not in analysed:
            run = Synthetic(tmp_path_factory.mktemp("analysed"), **options).build()
            for tables in run.glob("cells/*/tables"):
                shutil.rmtree(tables)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("mplab.analysis.pipeline.draw_all", lambda _: iter(()))
                analyze(run)
            analysed[key] = run
        return analysed[key]

    def make(
        count: int, slower: Mapping[int, float] | None = None, budgets: Sequence[Mapping[str, Any]] = (), **more: Any
    ) -> list[Run]:
        folder = tmp_path_factory.mktemp("nights")
        runs = []
        for day in range(1, count + 1):
            own = {"mptcp": (slower or {}).get(day, 1.0)}
            options: dict[str, Any] = {"repetitions": 6, "labels": ["1 MB"], "budgets": list(budgets), **more}
            run = analysed_run({**options, "day": day, "slower": own})
            runs.append(read_run(Path(shutil.copytree(run, folder / run.name))))
        return runs

    return make


def of(compared: ComparedRuns, transport: str, metric: str = "time") -> MetricChange:
    return next(c for c in compared.changes if (c.key.transport, c.key.metric) == (transport, metric))


def states(found: Sequence[GateCheck]) -> dict[tuple[str, str], str]:
    return {(check.kind, check.about.split(" · ")[1]): check.state for check in found if " · " in check.about}


def test_what_got_slower_is_worse_and_the_rest_is_not(nights: Nights) -> None:
    before, after = nights(2, {2: 1.3})
    compared = compare([before], after)
    slower = of(compared, "mptcp")
    assert slower.verdict == "worse"
    assert slower.relative == pytest.approx(0.3, abs=0.12)
    assert slower.relative_interval is not None
    assert slower.relative_interval.low > 0.1
    assert of(compared, "mptcp", "goodput").verdict == "worse", "more is better there"
    assert of(compared, "sptcp-lte").verdict == "no difference seen"
    assert of(compared, "mptcp", "flows").verdict == "no difference seen"
    assert compared.changes[0].metric.headline
    assert compared.warnings == ()
    assert re.fullmatch(
        r"[01]\.\d+ → [01]\.\d+\xa0s, \+\d\d\.\d\xa0% "
        r"\(95 % interval \+\d+\.\d to \+\d+\.\d\xa0%\), p = 0\.0\d\d",
        change_text(slower),
    )
    back = compare([after], before)
    assert of(back, "mptcp").verdict == "better"
    assert {check.state for check in checks(back)} == {"passed"}
    assert states(checks(compared))["change", "mptcp"] == "failed"


def test_three_values_are_too_few_unless_all_are_equal(nights: Nights) -> None:
    before, after = nights(2, {2: 3.0}, repetitions=3)
    compared = compare([before], after)
    assert of(compared, "mptcp").verdict == "too few"
    assert of(compared, "mptcp", "flows").verdict == "no difference seen"
    assert states(checks(compared))["change", "mptcp"] == "not judged"


def test_corrections_only_make_p_larger(nights: Nights) -> None:
    before, after = nights(2, {2: 1.3})
    alone, bh, holm = (of(compare([before], after, c), "mptcp") for c in ("none", "bh", "holm"))
    assert alone.p_corrected == alone.p
    assert alone.p_corrected is not None
    assert bh.p_corrected is not None
    assert holm.p_corrected is not None
    assert alone.p_corrected <= bh.p_corrected <= holm.p_corrected


def test_nights_differ_and_a_change_must_be_larger_than_that(nights: Nights) -> None:
    restless = nights(6, {1: 1.0, 2: 1.3, 3: 0.8, 4: 1.25, 5: 0.85, 6: 1.3})
    compared = compare(restless[:-1], restless[-1], "none")
    change = of(compared, "mptcp")
    assert change.p is not None
    assert change.p < 0.05
    assert change.usual is not None
    assert change.verdict == "no difference seen"
    calm = nights(6, {6: 1.3})
    assert of(compare(calm[:-1], calm[-1]), "mptcp").verdict == "worse"


def test_the_usual_range_is_students_prediction_interval() -> None:
    assert usual_range([1.0, 2.0]) is None
    # t(0.975, 3) = 3.1824, sd of 1, 2, 3, 4 is 1.29099.
    interval = usual_range([1.0, 2.0, 3.0, 4.0])
    assert interval is not None
    reach = 3.182446 * 1.290994 * (1 + 1 / 4) ** 0.5
    assert (interval.low, interval.high) == pytest.approx((2.5 - reach, 2.5 + reach))


def test_what_is_no_longer_measured_fails(nights: Nights) -> None:
    before, after = nights(2)
    for cell in (after.directory / "cells").glob("*-mptcp-*"):
        (cell / "scores.json").unlink()
    compared = compare([before], after)
    assert of(compared, "mptcp").verdict == "gone"
    assert states(checks(compared))["change", "mptcp"] == "failed"
    first, second, *_ = checks(compared)
    assert (first.kind, first.about, first.text) == (
        "series", "files · mptcp · baseline", "measured in the baseline; this run has no value"
    )  # fmt: skip
    assert (second.kind, second.about) == ("change", "files · mptcp · baseline · time · 1 MB")
    assert of(compare([after], before), "mptcp").verdict == "new"


def test_limits_are_judged_in_the_run_and_in_the_comparison(nights: Nights) -> None:
    within, broken = nights(2, {2: 1.3}, budgets=[AT_MOST_1S])
    (good,) = summary_json(within.directory)["budgets"]
    (bad,) = summary_json(broken.directory)["budgets"]
    assert (good["verdict"], bad["verdict"]) == ("kept", "broken")
    assert (bad["limit"], bad["unit"]) == (1.0, "s")
    assert bad["text"].endswith("allowed: at most 1 s (n = 6)")
    page = Page((broken.directory / "report" / "index.html").read_text()).text
    assert "files · mptcp · baseline · time · 1 MB" in page
    assert states(checks(compare([within], broken)))["limit", "mptcp"] == "failed"


@pytest.mark.parametrize(("allowed", "state"), [(10.0, "failed"), (60.0, "passed")])
def test_no_worse_than_allows_so_much(nights: Nights, allowed: float, state: str) -> None:
    budget = {"metric": "time", "no_worse_than_percent": allowed, "labels": {"size": "1 MB"}}
    before, after = nights(2, {2: 1.3}, budgets=[budget])
    result = states(checks(compare([before], after)))
    assert result["no worse than", "mptcp"] == state
    assert result["no worse than", "sptcp-lte"] == "passed"
    assert ("change", "mptcp") not in result, "the budget decides instead"


def test_a_budget_of_what_was_not_measured_is_broken(nights: Nights) -> None:
    budgets = [{**AT_MOST_1S, "transport": "mpflex"}, {"metric": "nothing", "no_worse_than_percent": 5}]
    before, after = nights(2, budgets=budgets)
    (verdict,) = summary_json(after.directory)["budgets"]
    assert verdict["text"] == "time: not measured"
    failed = [check for check in checks(compare([before], after)) if check.state == "failed"]
    assert [check.kind for check in failed] == ["limit", "no worse than"]


def test_a_limit_in_a_foreign_unit_is_refused(synthetic: Callable[..., Synthetic]) -> None:
    wrong = {"metric": "time", "at_most": {"value": 2, "unit": "kB"}}
    builder = synthetic(repetitions=1, budgets=[wrong])
    with pytest.raises(BudgetError, match="found '2 kB', allowed: ms, s, min, h"):
        analyze(builder.build())


def test_what_was_asked_otherwise_is_said(nights: Nights) -> None:
    before, after = nights(2)
    manifest = after.directory / "manifest.json"
    content = json.loads(manifest.read_text())
    content["experiment"]["links"][0]["paths"]["wlan0"]["down"]["rate_kbps"] = 1
    content["experiment"]["congestion_control"] = "bbr"
    manifest.write_text(json.dumps(content))
    warnings = compare([before], read_run(after.directory)).warnings
    assert [warning.split(" differs from")[0] for warning in warnings] == ["congestion control", "link baseline"]


def test_runs_without_a_common_series_fail_the_gate_and_say_so_first(nights: Nights) -> None:
    (before,) = nights(1, labels=["10 kB"])
    (after,) = nights(1, links=["renamed"], name="other")
    compared = compare([before], after)
    first, *rest = checks(compared)
    assert (first.kind, first.state) == ("series", "failed")
    assert "no common series" in first.text
    page = Page(compare_page(compared, checks(compared))).text
    assert page.index("Nothing was compared") < page.index("Changes" if "Changes" in page else "Before")
    assert {check.kind for check in rest} == {"change"}
    assert compared.warnings[0] == "different experiments: the run is of other, the baseline of demo"
    (renamed_label,) = nights(1, labels=["1 MB"])
    renamed = [check for check in checks(compare([before], renamed_label)) if check.state == "failed"]
    assert len(renamed) == 3, "the 10 kB of each transport are gone"


def test_a_series_of_the_baseline_that_the_run_did_not_plan_fails_first(nights: Nights) -> None:
    (before,) = nights(1)
    (after,) = nights(1, transports=TRANSPORTS[1:])
    compared = compare([before], after)
    (missing,) = compared.missing
    assert missing.transport == "sptcp-wifi"
    first, *rest = checks(compared)
    assert (first.kind, first.about, first.state) == ("series", "files · sptcp-wifi · baseline", "failed")
    assert {check.state for check in rest} == {"passed"}
    page = Page(compare_page(compared, checks(compared))).text
    assert page.index("not in this run's plan") < page.index("Changes now compared with before")
    assert checks(compare([after], before))[0].kind != "series", "a series that is new is no failure"


def test_changes_are_listed_by_the_size_of_their_labels(nights: Nights) -> None:
    before, after = nights(2, labels=["1 MB", "10 MB", "10 kB"])
    listed = dict.fromkeys(change.key.labels for change in compare([before], after).changes if change.metric.headline)
    assert list(listed) == ["10 kB", "1 MB", "10 MB"]


def test_the_page_of_a_comparison_is_whole_and_loads_nothing(nights: Nights) -> None:
    before, after = nights(2, {2: 1.3}, transports=TRANSPORTS, labels=["10 kB", "1 MB"])
    compared = compare([before], after)
    links = report_links(after.directory.parent / "compare.html", [before, after])
    text = compare_page(compared, checks(compared), (), links)
    page = Page(text)
    assert page.open == []
    assert page.loaded == []
    assert text.count('<tr><th scope="row" class="label">') == 12, "time and goodput"
    assert text.count('<line class="reach"') == 12, "no subflow in any cell: there is no relative change"
    targets = {link for link in page.links if not link.startswith("#")}
    assert targets == set(links.values())
    assert all((after.directory.parent / link).is_file() for link in targets)
    assert "2 checks failed" in page.text
    assert "the smallest effect: 2 %, for times at least 5 ms" in page.text
    assert "settings, host and programs of all runs are the same" in page.text
    assert text == compare_page(compared, checks(compared), (), links)


def test_the_axis_of_changes_is_symmetrical_and_bounded(nights: Nights) -> None:
    before, after = nights(2, {2: 9.0})
    axis = forest_axis(compare([before], after).changes)
    assert (axis.low, axis.high, axis.at(0)) == (-1.0, 1.0, 50.0)
    assert [tick.label for tick in axis.ticks] == ["−100 %", "−50 %", "0 %", "+50 %", "+100 %"]
    text = compare_page(compare([before], after), ())
    assert 'd="M0,-5L8,0L0,5Z"' in text, "an interval beyond the axis"


def test_circumstances_that_differ_have_both_values(nights: Nights) -> None:
    before, after = nights(2)
    manifest = after.directory / "manifest.json"
    content = json.loads(manifest.read_text())
    content["experiment"]["links"][0]["paths"]["wlan0"]["down"]["rate_kbps"] = 1
    content["host"]["kernel"] = "6.9.0"
    manifest.write_text(json.dumps(content))
    compared = compare([before], read_run(after.directory))
    found = {item.name: (item.before, item.after, item.planned) for item in compared.circumstances}
    assert found["kernel"] == ("6.8.0", "6.9.0", False)
    (link,) = [name for name in found if name.startswith("link baseline")]
    assert found[link][2]
    page = Page(compare_page(compared, checks(compared))).text
    assert "kernel6.8.06.9.0" in page


def test_changes_smaller_than_the_smallest_effect_are_in_the_zone(nights: Nights) -> None:
    before, after = nights(2)
    compared = compare([before], after)
    time = of(compared, "mptcp")
    assert time.before.median is not None
    assert compared.zone(time) == pytest.approx(max(0.02, 0.005 / time.before.median))
    assert compared.zone(of(compared, "mptcp", "goodput")) == 0.02
    assert compared.zone(of(compared, "mptcp", "flows")) is None, "the median is 0"
    assert "too small to matter" not in Page(compare_page(compared, ())).text
    manifest = after.directory / "manifest.json"
    content = json.loads(manifest.read_text())
    content["experiment"]["smallest_effect"] = {"relative_percent": 40.0, "time_s": 0.0}
    manifest.write_text(json.dumps(content))
    compared = compare([before], read_run(after.directory))
    assert compared.zone(of(compared, "mptcp")) == 0.4
    assert "too small to matter" in Page(compare_page(compared, ())).text


def test_runs_without_a_report_cannot_be_compared(nights: Nights, synthetic: Callable[..., Synthetic]) -> None:
    (analysed,) = nights(1)
    raw = read_run(synthetic(repetitions=1).build())
    with pytest.raises(NotAnalysedError, match="20260922T101500Z-demo-abc123: no report"):
        compare([analysed], raw)
    with pytest.raises(NotAnalysedError, match="the baseline: no report"):
        compare([raw], analysed)


@pytest.fixture(scope="module")
def season(nights: Nights) -> list[Run]:
    """Twelve nights; Multipath TCP is slower from the ninth on."""
    return nights(12, dict.fromkeys(range(9, 13), 1.3))


def test_a_level_that_stays_worse_keeps_failing(season: list[Run]) -> None:
    compared = compare(season[1:-1], season[-1])
    assert of(compared, "mptcp").verdict == "no difference seen", "three nights of the baseline are like it"
    past = histories(Results(tuple(season[1:])), "demo")
    result = states(checks(compared, past))
    assert result["level", "mptcp"] == "failed"
    assert ("level", "sptcp-lte") not in result


def test_the_trend_dates_the_change(season: list[Run]) -> None:
    results = load(season[0].directory.parent)
    assert experiments(results) == ["demo"]
    past = histories(results, "demo", headline_only=False)
    assert {history.metric.name for history in past} == {"time", "goodput", "flows"}
    changed = {(h.transport, h.metric.name) for h in past if h.changes}
    assert changed == {("mptcp", "time"), ("mptcp", "goodput")}
    listed = list(shifts(past))
    assert {shift.run_id for shift in listed} == {season[8].manifest.run_id}
    assert {shift.word for shift in listed} == {"worse"}


def test_the_trend_page_is_whole_and_loads_nothing(season: list[Run], tmp_path: Path) -> None:
    past = histories(load(season[0].directory.parent), "demo")
    links = report_links(tmp_path / "runs" / "trend.html", season[:-1])
    text = trend_page("a <demo>", past, season[-1].manifest.transports, links)
    page = Page(text)
    assert page.open == []
    assert page.loaded == []
    assert "a <demo>" in page.text
    assert "worse since 2026-09-09" in page.text
    assert "8 runs before, 4 after; standardised difference" in page.text
    assert "1 Sep 2026" in page.text
    assert text.count('<g class="dot">') == 3 * 12
    assert trend_page("a <demo>", past, ()).count('<g class="dot">') == 3 * 12
    assert text == trend_page("a <demo>", past, season[-1].manifest.transports, links)


def test_marks_of_the_trend_lead_to_the_reports_of_their_runs(season: list[Run]) -> None:
    folder = season[0].directory.parent
    (season[0].directory / "report" / "index.html").unlink()
    links = report_links(folder / "trend.html", season)
    assert len(links) == 11
    page = Page(trend_page("demo", histories(load(folder), "demo"), (), links))
    targets = [link for link in page.links if not link.startswith("#")]
    assert all((folder / link).is_file() for link in targets)
    assert set(targets) == set(links.values())


def test_few_runs_are_no_evidence_of_a_steady_level(nights: Nights) -> None:
    runs = nights(4, {3: 2.0, 4: 2.0})
    past = histories(Results(tuple(runs)), "demo")
    assert {history.verdict for history in past} == {"too few runs (4; at least 10)"}
    text = Page(trend_page("demo", past, ())).text
    assert "Too few runs in 3 of 3 series" in text
    assert "No change of level" not in text
