"""The page of the papers: its states, verdicts and corrections; the committed page is up to date."""

from pathlib import Path
from typing import Any

import pytest

from mplab.base.errors import InputError
from mplab.base.places import ROOT
from mplab.format.paperresult import PaperResult
from mplab.papers.page import judge, page, read_results
from mplab.userfiles.papers.paper import Catalogue, Paper, RowFile, load_catalogue


def finding(**changes: Any) -> dict[str, Any]:
    found = {"scenario": "files", "link": "baseline", "labels": {"size": "1 MB"}, "against": "sptcp-lte", "unit": "%"}
    measured = {"estimate": 25.0, "interval": [20.0, 30.0], "cells": [5, 5], "verdict": "as claimed", "certain": True}
    return {**found, **measured, "p": 0.01, "null": "no effect", **changes}


def result(*findings: dict[str, Any], **changes: Any) -> PaperResult:
    claim = {"figure": "some2020-fig1", "text": "Both are better", "claimed": "gain 10 to 40 %", "found": findings}
    figures = [{"name": "box", "drawing": "strip-time", "title": "Time", "file": "toy.quick.strip-time.svg"}]
    about = {"experiment": "toy", "form": "quick", "run": "20261128T000000Z-toy-abc123", "seed": 7, "repetitions": 5}
    return PaperResult.model_validate({**about, "claims": [claim], "figures": figures, "cells": {"ok": 10}, **changes})


def test_each_row_has_a_state(catalogue: Catalogue) -> None:
    states = [judged.state for judged in judge(catalogue, {"toy": result(finding())})]
    assert states == ["verdict", "data", "piece missing", "not in a lab", "not run yet"]
    assert [judged.state for judged in judge(catalogue, {})][:2] == ["not run yet"] * 2


def test_a_row_that_needs_no_run_has_data(catalogue: Catalogue) -> None:
    texts = {"place": "table 1", "shows": "lines", "numbers": "70", "answer": "4 lines"}
    row = RowFile.model_validate({"id": "some2020-table1", **texts})
    answered = Catalogue((Paper("some2020", (row,)),), catalogue.forms)
    assert [judged.state for judged in judge(answered, {})] == ["data"]
    assert "- Ours: 4 lines\n- State: data\n" in page(answered, {}, "papers")


def test_states_are_counted_at_the_top(catalogue: Catalogue) -> None:
    assert "| some2020 | 5 | 1 | 1 | 1 | 1 | 1 |" in page(catalogue, {"toy": result(finding())}, "papers").splitlines()
    assert "| all | 5 | 0 | 0 | 3 | 1 | 1 |" in page(catalogue, {}, "papers").splitlines()


def test_a_claim_without_values_is_no_verdict_but_is_shown(catalogue: Catalogue) -> None:
    empty = finding(estimate=None, interval=None, verdict="no data", certain=False, p=None, missing="no cell is ok")
    text = page(catalogue, {"toy": result(empty)}, "papers")
    assert judge(catalogue, {"toy": result(empty)})[0].state == "data"
    assert "1 group with no data: no cell is ok." in text
    assert "| no data | 1 | 0 |" in text


def test_a_row_shows_paper_ours_run_and_command(catalogue: Catalogue) -> None:
    text = page(catalogue, {"toy": result(finding())}, "papers")
    row = text.partition("### some2020-fig1")[2].partition("### some2020-fig2")[0]
    for part in (
        "- Paper: 10 to 40 %",
        "- State: **as claimed**",
        "- Why: our links are faster",
        "`20261128T000000Z-toy-abc123`, quick form, seed 7, 5 repetitions, [result](papers/results/toy.quick.json)",
        "- Again: `mplab papers run --quick some2020-fig1`",
        "**Both are better** (gain 10 to 40 %): as claimed, confirmed.",
        "| files · baseline · 1 MB · against sptcp-lte | 25.0 % | 20.0 … 30.0 | 5 / 5 | 0.010 | 0.010 | as",
        "![Time](papers/figures/toy.quick.strip-time.svg)",
    ):
        assert part in row


def test_findings_without_interval_are_marked(catalogue: Catalogue) -> None:
    few = finding(interval=None, certain=False, cells=[1, 1], p=None, null="")
    text = page(catalogue, {"toy": result(few, finding())}, "papers")
    assert "as claimed, confirmed (1 of 2 without interval)." in text
    assert "| 1 / 1 | – | – | as claimed (no interval) |" in text


def test_a_row_without_results_says_that_it_was_not_run(catalogue: Catalogue) -> None:
    row = page(catalogue, {}, "papers").partition("### some2020-fig1")[2].partition("### ")[0]
    assert "- State: not run yet" in row
    assert "- Why" not in row


def test_p_values_are_corrected_over_the_whole_page(catalogue: Catalogue) -> None:
    """A single p of 0.04 confirms; next to 9 findings without effect, it does not."""
    lonely = result(finding(p=0.04))
    others = [finding(p=0.9, verdict="not seen", certain=False) for _ in range(9)]
    claim = {"figure": "some2020-fig9", "text": "x", "found": others}
    far = PaperResult.model_validate({"experiment": "later", "form": "quick", "run": "r", "claims": [claim]})
    alone = judge(catalogue, {"toy": lonely})[0].claims[0].outcome
    together = judge(catalogue, {"toy": lonely, "later": far})[0].claims[0].outcome
    assert (alone.confirmed, together.confirmed) == (True, False)
    assert alone.findings[0].p_corrected == pytest.approx(0.04)
    assert together.findings[0].p_corrected == pytest.approx(0.4)


@pytest.fixture
def two(catalogue: Catalogue) -> Catalogue:
    """Return a catalogue whose first row has two experiments."""
    (paper,) = catalogue.papers
    row = paper.rows[0].model_copy(update={"also": ("later",)})
    return Catalogue((paper.__class__(paper.name, (row, *paper.rows[1:])),), catalogue.forms)


def later(**changes: Any) -> PaperResult:
    return result(finding(), experiment="later", run="20261129T000000Z-later-abc123", seed=8, **changes)


def test_claims_of_a_second_experiment_belong_to_the_row(two: Catalogue) -> None:
    assert len(judge(two, {"toy": result(finding()), "later": later()})[0].claims) == 2


def test_a_row_is_judged_with_only_its_second_experiment(two: Catalogue) -> None:
    results = {"later": later(flagged=["0001-aa"], not_ok=["0002-bb", "0003-cc"])}
    judged = judge(two, results)[0]
    assert (judged.state, len(judged.claims), judged.not_run) == ("verdict", 1, ["toy"])
    row = page(two, results, "papers").partition("### some2020-fig1")[2].partition("### some2020-fig2")[0]
    shown = " ".join(row.split())
    for part in (
        "- Run: `20261129T000000Z-later-abc123`, quick form, seed 8, 5 repetitions, 2 cells not ok, 1 cell flagged,",
        "- Not run yet: `toy`",
        "**Both are better** (gain 10 to 40 %): as claimed, confirmed.",
        "![Time](papers/figures/toy.quick.strip-time.svg)",
    ):
        assert part in shown


def test_a_row_names_the_runs_of_all_its_experiments(two: Catalogue) -> None:
    results = {"toy": result(finding()), "later": later()}
    row = page(two, results, "papers").partition("### some2020-fig1")[2].partition("### some2020-fig2")[0]
    assert [line.split("`")[1] for line in row.splitlines() if line.startswith("- Run: ")] == [
        "20261128T000000Z-toy-abc123",
        "20261129T000000Z-later-abc123",
    ]
    assert "- Not run yet" not in row


def test_texts_of_results_are_no_markup(catalogue: Catalogue) -> None:
    text = page(catalogue, {"toy": result(finding(link="<b>|x", missing="_y_"))}, "papers")
    assert "<b>" not in text
    assert "\\<b\\>\\|x" in text


def test_the_full_form_is_preferred(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    for form in ("quick", "full"):
        (tmp_path / "results" / f"toy.{form}.json").write_text(result(form=form).model_dump_json())
    assert read_results(tmp_path)["toy"].form == "full"


@pytest.mark.parametrize("content", ["{", '{"experiment": "toy"}', '{"format": 2}'])
def test_a_damaged_result_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "toy.quick.json").write_text(content)
    with pytest.raises(InputError, match=r"toy\.quick\.json:1: .*'mplab papers collect' makes it again"):
        read_results(tmp_path)


def test_the_committed_page_is_up_to_date() -> None:
    made = page(load_catalogue(), read_results(ROOT / "docs" / "papers"), "papers")
    assert (ROOT / "docs" / "papers.md").read_text(encoding="utf-8") == made, "run 'mplab papers page docs/papers'"
