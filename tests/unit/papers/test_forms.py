"""The experiments of the papers in their quick and full forms, and the parts of a plan."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest

from mplab.campaign import executing
from mplab.papers.forms import PlanPart, plan_parts, write_campaign
from mplab.userfiles.papers.paper import Form, load_catalogue
from mplab.userfiles.strict.yaml import load_yaml

OWN = load_catalogue()
NIGHT_S, QUICK_S = 8 * 3600.0, 125 * 60.0


Parts = Callable[..., list[PlanPart]]


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    def make(form: Form, *names: str, part_s: float = NIGHT_S) -> list[PlanPart]:
        folder = tmp_path / form
        return plan_parts(OWN, OWN.chosen(names), form, folder, runs=tmp_path / "runs", part_s=part_s)

    return make


@pytest.mark.parametrize("form", get_args(Form))
def test_every_experiment_can_be_planned_in_both_forms(form: Form, parts: Parts) -> None:
    planned = parts(form)
    assert [job.experiment for part in planned for job in part.jobs] == list(OWN.experiments)
    assert all(job.plan.experiment.tags == (f"papers-{form}",) for part in planned for job in part.jobs)
    repeated = {row.id for part in planned for job in part.jobs for row in job.rows}
    assert repeated == {row.id for row in OWN.rows if row.experiment}


def test_the_quick_form_of_everything_takes_about_two_hours(parts: Parts) -> None:
    (part,) = parts("quick")
    assert part.estimate_s <= QUICK_S


def test_parts_are_as_long_as_they_may_be(parts: Parts) -> None:
    whole = parts("full", "han2015", part_s=1e9)
    divided = parts("full", "han2015", part_s=NIGHT_S / 4)
    assert len(whole) == 1 < len(divided)
    assert [job.experiment for part in divided for job in part.jobs] == [job.experiment for job in whole[0].jobs]
    for part, following in pairwise(divided):
        assert part.estimate_s + following.jobs[0].plan.estimate_s > NIGHT_S / 4
        assert part.estimate_s <= NIGHT_S / 4 or len(part.jobs) == 1


def test_a_figure_is_planned_with_the_experiments_that_repeat_it(parts: Parts) -> None:
    (part,) = parts("quick", "han2015-sec4.1.2-a")
    assert [job.experiment for job in part.jobs] == ["han2015-fig4", "han2015-fig6"]


def test_parameters_replace_those_of_the_experiment(parts: Parts) -> None:
    (part,) = parts("quick", "han2015-fig3")
    uses = {use.label: use.record().parameters for use in part.jobs[0].plan.experiment.scenarios}
    assert uses["web-h1"]["http"] == "h1"
    assert uses["web-h1"]["sites"] == ["search", "wiki", "social", "news-2"]


def test_the_campaign_of_a_part_can_be_planned_and_has_a_name_of_its_own(parts: Parts, tmp_path: Path) -> None:
    (one,), (other,) = parts("quick", "han2015-fig5"), parts("quick", "han2015-fig5", "nikravesh2016-sec5.4")
    file = write_campaign(one, "quick", tmp_path / "quick")
    assert write_campaign(one, "quick", tmp_path / "quick") == file
    assert write_campaign(other, "quick", tmp_path / "quick") != file
    campaign = executing.plan(file, tmp_path / "runs")
    assert [job.experiment for job in campaign.jobs] == ["han2015-fig5"]
    assert load_yaml(file).data["title"] == "The papers again, quick form"


def test_a_file_that_is_the_same_is_not_written_again(parts: Parts, tmp_path: Path) -> None:
    """A campaign that is continued must find its files as they were."""
    parts("quick", "han2015-fig5")
    before = (tmp_path / "quick" / "han2015-fig5.yaml").stat().st_ino
    parts("quick", "han2015-fig5")
    assert (tmp_path / "quick" / "han2015-fig5.yaml").stat().st_ino == before
