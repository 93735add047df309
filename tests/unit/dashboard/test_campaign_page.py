"""The page that a campaign writes shows its state, escapes all of it, and links to reports and logs."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from lxml import html

from mplab.campaign.night import Night, read_night
from mplab.dashboard.night_view import bar, night_view
from mplab.dashboard.render import write_page
from mplab.format.campaign import CampaignState, CellCounts
from mplab.format.events import EventLog
from mplab.format.plan import CellSpec
from mplab.format.runevents import CellFinished, CellStarted, CellStep, RunPlanned, RunStarted
from tests.unit.campaign.nights import T0, night_state, run_name
from tests.unit.record.conftest import cell_spec

NOW = T0 + 2100


def make_runs(folder: Path) -> Path:
    """Make runs with a report, without one, and one that is running."""
    for name in ("apps", "web"):
        report = folder / run_name(name) / "report"
        report.mkdir(parents=True)
        (report / "index.html").write_text("<!DOCTYPE html><title>report</title>", encoding="utf-8")
    (folder / "trend-web.html").write_text("trend", encoding="utf-8")
    video = folder / run_name("video")
    video.mkdir()
    cells: list[CellSpec] = [cell_spec(index, "mptcp") for index in range(1, 21)]
    with EventLog(video / "events.jsonl", clock=lambda: NOW - 5) as log:
        log.append(RunPlanned(cells=tuple(cells), estimate_s=2000.0))
        log.append(RunStarted())
        for number, cell in enumerate(cells[:6]):
            log.append(CellStarted(cell=cell.id, attempt=1))
            log.append(CellFinished(cell=cell.id, outcome="invalid" if number == 2 else "ok", duration_s=100.0))
        log.append(CellStarted(cell=cells[6].id, attempt=1))
        log.append(CellStep(cell=cells[6].id, step="scenario"))
    return folder


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return make_runs(tmp_path / "the runs")


@pytest.fixture
def night(runs: Path) -> Night:
    return read_night(night_state(), runs, live=True, now=NOW)


def texts(page: str, path: str) -> list[str]:
    return [" ".join(" ".join(element.itertext()).split()) for element in html.fromstring(page).xpath(path)]


def test_cells_count_those_of_a_run_at_work(night: Night) -> None:
    assert night.cells(night.state.job("04-video")) == CellCounts(20, 5, 1)
    assert night.all_cells() == CellCounts(total=140, ok=74, invalid=5, failed=5)


def test_time_left_is_that_of_the_resource_with_most_to_do(night: Night) -> None:
    video = night.progress["04-video"].eta_s
    assert video == pytest.approx(1400.0)
    backup = 1200.0 + (T0 + 4000 - NOW)  # phone-2 rests first
    far = 99999.0
    assert night.eta_s == far
    state = replace(night.state, jobs=night.state.jobs[:5])
    assert replace(night, state=state).eta_s == pytest.approx(backup)
    assert replace(night, state=replace(night.state, jobs=night.state.jobs[:4])).eta_s == pytest.approx(video)
    assert replace(night, live=False).eta_s is None


def test_what_a_quarantined_resource_keeps_from_being_run_does_not_count(night: Night) -> None:
    resources = tuple(
        replace(status, quarantined=True) if status.name == "phone-4" else status for status in night.state.resources
    )
    eta_s = replace(night, state=replace(night.state, resources=resources)).eta_s
    assert eta_s is not None
    assert eta_s < 10_000


@pytest.fixture
def page(runs: Path, tmp_path: Path) -> str:
    """Return the page that was written."""
    path = tmp_path / "campaigns" / "night-1" / "report" / "index.html"
    (path.parents[1] / "logs").mkdir(parents=True)
    (path.parents[1] / "logs" / "03-calls-1.log").write_text("no answer")
    write_page(night_state(), path, runs=runs, live=True, now=NOW)
    return path.read_text(encoding="utf-8")


def test_the_page_shows_every_job_resource_failure_and_comparison(page: str, night: Night) -> None:
    jobs = texts(page, "//*[@id='jobs']//tbody/tr[1]")
    assert [job.split()[0] for job in jobs] == [status.job.id for status in night.state.jobs]
    assert "done worse" in jobs[1]
    assert "5 ok, 1 invalid of 20" in jobs[3]
    assert any("0007-web-mptcp-baseline-r1: scenario" in text for text in texts(page, "//tr[@class='now']"))
    cards = texts(page, "//*[starts-with(@class, 'card ')]")
    assert "phone-1 used by 04-video" in cards
    assert any(card.startswith("phone-2 rests until") and "43 °C" in card for card in cards)
    quarantined = next(card for card in cards if card.startswith("phone-3 in quarantine"))
    assert "1 failed try" in quarantined
    assert re.search(r"Release it with mplab campaign release phone-3 --campaigns /\S+/campaigns$", quarantined)
    assert "phone-4 free" in cards
    failures = texts(page, "//*[@id='failures']//tbody/tr")
    assert "43 °C" in failures[0]  # the newest is first
    assert len(failures) == len(night.state.failures)
    assert len(texts(page, "//*[@id='compared']//tbody/tr")) == 2


def test_everything_is_escaped(page: str) -> None:
    document = html.fromstring(page)
    assert not document.xpath("//b//b | //experiment | //again | //script")
    assert "The night's <b>work</b>" in texts(page, "//h1")
    assert not re.search(r"\son[a-z]+=|style=|javascript:|http-equiv", page)


def test_more_work_than_fits_is_said(night: Night) -> None:
    assert night.eta_s == 99999.0  # the campaign ends earlier
    late = night_view(night, "runs").eta
    assert late.startswith("about 27 h 46 min of work left, more than fits until ")
    assert late.endswith(": the rest is left out")
    fits = replace(night, state=replace(night.state, jobs=night.state.jobs[:4]))
    assert night_view(fits, "runs").eta.startswith("about 23 min 20 s left, until ")
    assert night_view(replace(night, live=False), "runs").eta == ""


def test_a_page_on_disk_names_the_live_one_while_the_campaign_runs(page: str, runs: Path, tmp_path: Path) -> None:
    assert "mplab serve" in page
    path = tmp_path / "ended.html"
    write_page(night_state(), path, runs=runs, now=NOW)
    ended = path.read_text(encoding="utf-8")
    assert "mplab serve" not in ended
    assert "killed" in texts(ended, "//header//*[starts-with(@class, 'tag ')]")
    assert not list(tmp_path.glob(".*.new"))


def test_links_lead_to_reports_and_logs(page: str, tmp_path: Path) -> None:
    folder = tmp_path / "campaigns" / "night-1" / "report"
    links = [str(link) for link in html.fromstring(page).xpath("//main//a/@href")]
    assert len(links) == 4
    for link in links:
        assert (folder / link.replace("%20", " ")).is_file()


def test_a_campaign_that_has_not_begun_and_one_without_jobs(tmp_path: Path) -> None:
    path = tmp_path / "report" / "index.html"
    write_page(CampaignState(), path, runs=tmp_path / "missing", live=True, now=NOW)
    assert "not started" in path.read_text(encoding="utf-8")
    full = replace(CampaignState(), disk_low="2 GB free, 5 GB are needed")
    write_page(full, path, runs=tmp_path / "missing", now=NOW)
    assert "2 GB free, 5 GB are needed" in path.read_text(encoding="utf-8")


def test_parts_of_a_bar() -> None:
    parts = bar(CellCounts(total=8, ok=4, invalid=0, failed=1, left_out=2))
    assert [(part.kind, part.start, part.width) for part in parts] == [
        ("ok", 0.0, 50.0),
        ("failed", 50.0, 12.5),
        ("left-out", 62.5, 25.0),
    ]
    assert bar(CellCounts()) == ()
