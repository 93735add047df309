"""``mplab papers``: list, plan, and make the page."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mplab.base.errors import InputError
from mplab.campaign import executing
from mplab.campaign.directory import CampaignDirectory
from mplab.cli.main import app
from mplab.format.campaign import CampaignState


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["papers", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_rows_are_listed_with_their_state(tmp_path: Path) -> None:
    rows = json.loads(invoke("list", "han2015", "--results", str(tmp_path), "--json"))
    states = {row["id"]: row["state"] for row in rows}
    assert len(states) == 13
    assert (states["han2015-fig2"], states["han2015-fig7"]) == ("not run yet", "piece missing")
    assert "han2015-fig7" in invoke("list", "han2015-fig7", "--results", str(tmp_path))


def test_a_plan_has_parts_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    jobs = json.loads(invoke("plan", "han2015-fig3", "han2015-fig5", "--part-time", "1 s", "--json"))
    assert [(job["part"], job["experiment"]) for job in jobs] == [(1, "han2015-fig3"), (2, "han2015-fig5")]
    assert "2 parts, 2 experiments" in invoke("plan", "han2015-fig3", "han2015-fig5", "--part-time", "1 s")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["plan", "deng2014-fig16"],
            "no experiment of ours repeats these figures: deng2014-fig16: a model of radio power",
        ),
        (["plan", "--part-time", "1"], "--part-time: "),
        (["run", "han2015-fig5", "--part", "2"], "--part 2: the plan has 1 part"),
        (["collect"], "no complete run of the papers' experiments"),
    ],
)
def test_what_cannot_be_done_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        invoke(*arguments)
    assert message in str(caught.value)


@pytest.mark.parametrize("phase", ["killed", "interrupted"])
def test_a_campaign_that_did_not_end_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phase: str) -> None:
    monkeypatch.chdir(tmp_path)
    executed: list[str] = []

    def execute(directory: CampaignDirectory, _: Any) -> CampaignState:
        executed.append(directory.id)
        return directory.read_state()

    monkeypatch.setattr(executing, "execute", execute)
    invoke("run", "han2015-fig5")
    monkeypatch.setattr("mplab.campaign.night.Night.phase", phase)
    invoke("run", "han2015-fig5")
    assert len(set(executed)) == 1
    monkeypatch.setattr("mplab.campaign.night.Night.phase", "finished")
    invoke("run", "han2015-fig5")
    assert len(executed) == 3
    assert len(set(executed)) == 2


def test_the_page_is_next_to_the_folder(tmp_path: Path) -> None:
    written = json.loads(invoke("page", str(tmp_path / "again"), "--json"))["written"]
    assert written == [str(tmp_path / "again.md")]
    assert (tmp_path / "again.md").read_text(encoding="utf-8").startswith("# The papers, run again\n")
