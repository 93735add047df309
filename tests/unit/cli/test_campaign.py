"""``mplab campaign``: its output, and input that it refuses before it starts anything."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mplab.base.errors import InputError
from mplab.cli.main import app

EXPERIMENT = """\
mplab: 1
name: tiny
vars: {size: 10 kB}
repetitions: 2
transports: [sptcp-wifi]
links: [baseline]
scenarios: [{download: {sizes: ["${size}"]}}]
"""
CAMPAIGN = """\
mplab_campaign: 1
name: night
experiments: [tiny.yaml, {file: tiny.yaml, label: larger, vars: {size: 1 MB}}]
at: "22:00"
"""


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    (tmp_path / "tiny.yaml").write_text(EXPERIMENT)
    path = tmp_path / "night.yaml"
    path.write_text(CAMPAIGN)
    return path


def mplab(*arguments: object) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)))


def test_the_plan_of_a_campaign(campaign: Path, tmp_path: Path) -> None:
    result = mplab("campaign", campaign, "--dry-run", "--json", "--runs", tmp_path / "runs")
    jobs = json.loads(result.stdout)["jobs"]
    assert [job["id"] for job in jobs] == ["01-tiny", "02-larger"]
    assert [job["given"] for job in jobs] == [{}, {"size": "1 MB"}]
    assert jobs[0]["sha256"] != jobs[1]["sha256"], "another value is another experiment"
    assert jobs[0]["resources"] == ["virtual-lab"]
    assert jobs[0]["cells"] == 2
    assert not (tmp_path / "runs").exists()
    shown = mplab("campaign", "run", campaign, "--dry-run").stdout
    assert "2 jobs, 4 cells, about" in shown
    assert mplab("nightly", campaign, "--dry-run").stdout == shown, "the earlier name of the verb"
    assert "nightly" not in mplab("--help").stdout


def test_its_units(campaign: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert "OnCalendar=*-*-* 22:00:00" in mplab("campaign", "install", campaign, "--dry-run").stdout
    assert "systemctl --user daemon-reload" in mplab("campaign", "install", campaign).stdout
    names = {path.name for path in (tmp_path / "systemd" / "user").iterdir()}
    assert names == {"mplab-night.service", "mplab-night.timer", "mplab-night-resume.service"}
    assert mplab("campaign", "uninstall", "night").exit_code == 0
    assert list((tmp_path / "systemd" / "user").iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("status",), "no campaign in it"),
        (("resume",), "no campaign in it"),
        (("release", "phone 1"), "is not known; known are: none"),
        (("pause",), "no campaign in it"),
        (("tidy", "{file}"), "no 'retention': everything is kept"),
    ],
)
def test_what_is_refused(arguments: tuple[str, ...], says: str, campaign: Path, tmp_path: Path) -> None:
    words = [word.format(file=campaign) for word in arguments]
    where = [] if words[0] == "tidy" else ["--campaigns", tmp_path / "campaigns"]
    result = mplab("campaign", *words, *where)
    assert isinstance(result.exception, InputError)
    assert says in str(result.exception)


def test_without_a_time_there_is_no_timer(campaign: Path) -> None:
    campaign.write_text(CAMPAIGN.replace('at: "22:00"\n', ""))
    result = mplab("campaign", "install", campaign)
    assert isinstance(result.exception, InputError)
    assert "no 'at'" in str(result.exception)


def test_nothing_to_go_on_with_after_a_power_loss(campaign: Path, tmp_path: Path) -> None:
    result = mplab("campaign", "resume", "--killed", "--of", campaign, "--campaigns", tmp_path / "campaigns")
    assert result.exit_code == 0
    assert not result.output


def test_a_campaign_to_begin_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert mplab("init").exit_code == 0
    assert mplab("init", "night.yaml", "--kind", "campaign").exit_code == 0
    jobs = json.loads(mplab("campaign", "night.yaml", "--dry-run", "--json").stdout)["jobs"]
    assert [job["id"] for job in jobs] == ["01-first"]
    assert mplab("init", "x.yaml", "--kind", "labs").exit_code == 2
