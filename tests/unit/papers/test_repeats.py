"""Comparison of further runs with recorded results."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mplab.base.errors import InputError
from mplab.cli.main import app
from mplab.format.finding import ClaimFinding, Ends
from mplab.papers.collect import collect, measure, write
from mplab.papers.repeats import Repeat, repeats
from mplab.userfiles.papers.paper import Catalogue
from tests.unit.papers.conftest import CLAIM

Build = Callable[..., Path]


def finding(estimate: float | None, interval: Ends | None = None) -> ClaimFinding:
    return ClaimFinding(estimate=estimate, interval=interval, verdict="as claimed")


@pytest.mark.parametrize(
    ("recorded", "again", "agrees"),
    [
        (finding(1.0, (0.0, 2.0)), finding(3.0, (1.9, 4.0)), True),
        (finding(1.0, (0.0, 2.0)), finding(3.0, (2.1, 4.0)), False),
        (finding(1.0, (0.0, None)), finding(30.0), True),
        (finding(1.0), finding(3.0, (2.0, 4.0)), False),
        (finding(1.0), finding(1.0), None),
        (finding(1.0, (0.0, 2.0)), finding(None), None),
        (finding(1.0, (0.0, 2.0)), None, None),
    ],
)
def test_findings_agree_within_intervals(
    recorded: ClaimFinding, again: ClaimFinding | None, agrees: bool | None
) -> None:
    assert Repeat("figure", "text", recorded, again).agrees is agrees


def test_a_further_run_is_compared_group_by_group(synthetic: Build, catalogue: Catalogue, tmp_path: Path) -> None:
    run = synthetic()
    recorded = measure(run, catalogue)
    one, *_ = recorded.claims
    without_one = recorded.model_copy(update={"claims": (one.model_copy(update={"found": one.found[1:]}),)})
    compared = list(repeats(recorded, without_one))
    assert [repeat.figure for repeat in compared] == ["some2020-fig1"] * 3
    assert [repeat.agrees for repeat in compared] == [None, True, True]
    assert compared[0].again is None


def test_a_finding_without_data_hides_no_other_one(synthetic: Build, catalogue: Catalogue) -> None:
    recorded = measure(synthetic(), catalogue)
    one, *_ = recorded.claims
    blank = one.found[0].model_copy(update={"estimate": None, "interval": None, "verdict": "no data"})
    both = recorded.model_copy(update={"claims": (one.model_copy(update={"found": (*one.found, blank)}),)})
    assert [repeat.again for repeat in repeats(both, both)] == list(one.found)


def test_verdicts_are_compared() -> None:
    recorded, other = finding(1.0), finding(1.0).model_copy(update={"verdict": "not seen"})
    pairs = [Repeat("figure", "text", recorded, again) for again in (recorded, other, None)]
    assert [pair.same_verdict for pair in pairs] == [True, False, None]


def test_claims_with_the_same_text_are_distinguished(synthetic: Build, catalogue: Catalogue) -> None:
    recorded = measure(synthetic(claims=[CLAIM]), catalogue)
    (one,) = recorded.claims
    other = one.model_copy(update={"found": tuple(f.model_copy(update={"estimate": -1.0}) for f in one.found)})
    twice = recorded.model_copy(update={"claims": (one, other)})
    for repeat in repeats(twice, twice):
        assert repeat.again is repeat.recorded


def test_the_command_lists_findings(
    synthetic: Build, catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mplab.cli.verbs.experiments.papers.load_catalogue", lambda: catalogue)
    run = synthetic(claims=[CLAIM])
    results = tmp_path / "results"
    arguments = ["papers", "compare", str(run), "--results", str(results)]
    with pytest.raises(InputError, match="'toy' has no recorded result"):
        CliRunner().invoke(app, arguments, catch_exceptions=False)
    collected = collect(run, catalogue)
    write(collected, results)
    with pytest.raises(InputError, match="is the recorded run itself"):
        CliRunner().invoke(app, arguments, catch_exceptions=False)
    (file,) = (results / "results").iterdir()
    file.write_text(file.read_text().replace(run.name, "20260101T000000Z-toy-000000"))
    shown = CliRunner().invoke(app, arguments, catch_exceptions=False)
    words = "3 findings: 3 agree, 0 differ, 0 without an interval; 3 with the same verdict, 0 with another one"
    assert words in " ".join(shown.stdout.split())
    rows = json.loads(CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False).stdout)
    assert [(row["figure"], row["agrees"]) for row in rows] == [("some2020-fig1", True)] * 3
