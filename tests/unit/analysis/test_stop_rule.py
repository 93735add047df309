"""When a run has enough data: all intervals are narrow and nothing is missing. Checks do not change the report."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mplab.analysis.metric import Metric
from mplab.analysis.pipeline import analyze
from mplab.analysis.record.run import read_run
from mplab.analysis.scores.scoring import read_cell_scores
from mplab.analysis.statistics.effects import Interval
from mplab.analysis.statistics.paired import differences, hodges_lehmann, signed_rank_interval
from mplab.analysis.statistics.summaries import CellValue, Series
from mplab.analysis.stop_rule import DIFFERENCES, MEDIANS, _width, check_rule, look
from mplab.format.experiment import IntervalRule, TransportRecord
from tests.unit.analysis.synthetic import Synthetic

pytestmark = pytest.mark.long

Make = Callable[..., Synthetic]


def rule(**keys: Any) -> IntervalRule:
    return IntervalRule(**{"metric": "time", "within_percent": 20.0, **keys})


def tree(run: Path) -> dict[str, bytes]:
    return {str(path.relative_to(run)): path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("of", [DIFFERENCES, MEDIANS])
def test_narrow_intervals_are_enough_and_wide_ones_are_not(synthetic: Make, of: str) -> None:
    builder = synthetic(repetitions=8)
    run = read_run(builder.build())
    wide = look(run, rule(of=of, within_percent=30))
    assert wide.enough
    # Three sizes; two transports against the best single path, or three separately.
    assert len(wide.widths) == 3 * (2 if of == DIFFERENCES else 3)
    percents = [width.percent or 0.0 for width in wide.widths]
    assert percents == sorted(percents, reverse=True)
    for within, enough in ((percents[0] * 1.001, True), (percents[0] * 0.999, False)):
        again = look(run, rule(of=of, within_percent=within))
        assert again.enough is enough, "the widest one decides"
    assert f"is ± {percents[0]:.3g} % ({wide.widths[0].what}, n = 8); requested: ± 30 %" in wide.text


def test_widths_are_those_of_the_paired_differences(synthetic: Make) -> None:
    builder = synthetic(repetitions=8, labels=["1 MB"])
    run = read_run(builder.build())
    report = look(run, rule())
    values: dict[str, dict[int, float]] = {}
    for cell in run.cells:
        assert cell.directory is not None
        assert cell.spec is not None
        (time,) = [value.value for value in read_cell_scores(cell.directory) if value.metric == "time"]
        values.setdefault(cell.spec.transport, {})[cell.spec.block] = time
    best = min(("sptcp-wifi", "sptcp-lte"), key=lambda label: np.median(list(values[label].values())))
    for width in report.widths:
        transport = width.what.split(": ")[1].split(" − ")[0]
        pairs = [(values[transport][block], values[best][block]) for block in values[best]]
        gaps = differences(*zip(*pairs, strict=True))
        interval = signed_rank_interval(gaps)
        assert interval is not None
        assert hodges_lehmann(gaps) in interval
        assert (width.low, width.high) == (interval.low, interval.high)
        median = np.median(list(values[best].values()))
        assert width.percent == pytest.approx(100 * (interval.high - interval.low) / 2 / median)
        assert width.what == f"files · baseline · 1 MB: {transport} − {best}"


def test_more_blocks_make_narrower_intervals(synthetic: Make, tmp_path: Path) -> None:
    widest = []
    for blocks in (4, 12, 36):
        builder = Synthetic(tmp_path / str(blocks), repetitions=blocks, labels=["1 MB"])
        report = look(read_run(builder.build()), rule())
        widest.append(report.widths[0].percent or 0.0)
    assert widest[0] > widest[1] > widest[2] > 0


def test_what_is_missing_is_not_enough(synthetic: Make) -> None:
    builder = synthetic(repetitions=8, outcome=lambda spec: "failed" if spec["transport"] == "mptcp" else "ok")
    report = look(read_run(builder.build()), rule(within_percent=100))
    assert not report.enough
    assert report.text == "no values of time: files · baseline · mptcp"
    few = synthetic(repetitions=2, name="few")
    report = look(read_run(few.build()), rule(within_percent=100))
    assert not report.enough
    assert "is no interval yet" in report.text
    nothing = synthetic(repetitions=3, name="nothing", outcome=lambda _: "failed")
    report = look(read_run(nothing.build()), rule())
    assert not report.enough


def test_equal_values_are_enough_and_zeros_are_no_measure() -> None:
    def series(value: float) -> Series:
        transport = TransportRecord(label="mptcp", name="mptcp")
        return Series(transport, 3, tuple(CellValue("c", n, value, n) for n in range(3)), None)

    assert _width("x", 3, Interval(2.0, 2.0), series(2.0)).percent == 0
    assert _width("x", 3, Interval(0.0, 0.0), series(0.0)).percent == 0
    assert _width("x", 3, Interval(-1.0, 1.0), series(0.0)).percent is None
    assert _width("x", 3, Interval(-1.0, 1.0), series(-4.0)).percent == 25


def test_only_what_the_rule_is_about_is_looked_at(synthetic: Make) -> None:
    builder = synthetic(repetitions=6, links=("baseline", "slow"))
    run = read_run(builder.build())
    report = look(run, rule(links=("slow",)))
    assert all(width.what.startswith("files · slow · ") for width in report.widths)
    assert len(report.widths) == 6
    assert look(run, rule(scenarios=("others",))).widths == ()


def test_looking_changes_nothing_of_the_report(synthetic: Make, tmp_path: Path) -> None:
    """Score again at the end what was scored between blocks: the bytes must be the same."""
    builder = synthetic(repetitions=3)
    run = builder.build()
    other = tmp_path / "other" / run.name
    shutil.copytree(run, other)
    first = look(read_run(run), rule())
    scored = tree(run)
    assert look(read_run(run), rule()) == first
    assert tree(run) == scored, "what has scores is not scored again"
    for path in (run, other):
        analyze(path)
    assert tree(run) == tree(other)


def test_numbers_for_the_events(synthetic: Make) -> None:
    builder = synthetic(repetitions=6, labels=["1 MB"])
    report = look(read_run(builder.build()), rule())
    content = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert content["enough"] is report.enough
    assert content["widths"][0].keys() == {"what", "n", "low", "high", "percent"}


TIME = Metric("time", "Time", "s", "lower", ("size",))
FLOWS = Metric("flows", "Flows", "", "neither")


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        (rule(), ""),
        (rule(metric="tim"), "unknown metric 'tim'. Allowed: flows, time"),
        (rule(scenarios=("web",)), "unknown metric 'time'. Allowed: flows"),
        (rule(metric="flows", of=MEDIANS), ""),
        (
            rule(metric="flows"),
            "flows has no better side, so transports are not compared. Use 'of: medians'",
        ),
    ],
)
def test_rules_that_can_never_be_kept(asked: IntervalRule, problem: str) -> None:
    assert check_rule(asked, {"files": [TIME, FLOWS], "web": [FLOWS]}) == problem
