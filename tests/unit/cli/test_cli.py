"""The command line: help, lists, JSON, and errors that end with their exit code."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML
from typer.testing import CliRunner, Result

from mplab.base.errors import InputError
from mplab.cli.main import app, main
from mplab.cli.options import find_run
from mplab.cli.output import duration
from mplab.userfiles.labs.lab import load_lab

VERBS = [
    *"init doctor plan run resume status analyze figures report".split(),  # noqa: SIM905
    *"compare trend results lab router scenarios links transports".split(),  # noqa: SIM905
]
DEMO = str(Path(__file__).parents[3] / "experiments" / "demo.yaml")


def mplab(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def test_help_names_every_verb_and_the_exit_codes() -> None:
    text = mplab("--help").stdout
    assert all(f" {verb} " in text for verb in VERBS)
    assert "130" in text


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(verb: str) -> None:
    result = mplab(verb, "--help")
    assert result.exit_code == 0
    assert "Usage: mplab" in result.stdout


def test_every_verb_that_reads_has_json() -> None:
    for verb in (
        "doctor",
        "plan",
        "status",
        "report",
        "analyze",
        "compare",
        "trend",
        "scenarios",
        "links",
        "transports",
    ):
        assert "--json" in mplab(verb, "--help").stdout, verb


def test_the_plan_of_the_demo() -> None:
    plan = json.loads(mplab("plan", DEMO, "--json").stdout)["plan"]
    skipped = {item["transport"] for item in plan["skipped"]}
    assert len(plan["cells"]) == 2 * (4 - len(skipped)) * 6
    assert plan["estimate_s"] > 0


def test_variables_are_set_on_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(
        "mplab: 1\nname: x\nvars: {often: 1, size: 1 kB}\nrepetitions: ${often}\n"
        "transports: [sptcp-wifi]\nlinks: [baseline]\nscenarios:\n  - download: {sizes: ['${size}']}\n"
    )
    runs = ("--runs", str(tmp_path))
    plan = json.loads(mplab("plan", str(file), *runs, "--set", "often=3", "--set", "size=2 kB", "--json").stdout)
    assert plan["experiment"]["scenarios"][0]["parameters"]["sizes"] == ["2 kB"]
    assert len(plan["plan"]["cells"]) == 3
    same = json.loads(mplab("run", "--dry-run", str(file), *runs, "--set", "often=2", "--json").stdout)
    assert (len(same["plan"]["cells"]), same["experiment"]["given"]) == (2, ["often"])
    wrong = mplab("plan", str(file), *runs, "--set", "oftn=3")
    assert isinstance(wrong.exception, InputError)
    assert "--set oftn: unknown variable 'oftn'. Did you mean 'often'?" in str(wrong.exception)


def test_a_plan_says_when_it_may_end_and_what_this_host_would_run(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    text = (
        "mplab: 1\nname: x\nrepetitions: 9\ntransports: [sptcp-wifi, sptcp-lte]\nlinks: [baseline]\n"
        "scenarios: [download]\nhooks: {after_run: [sync]}\n"
        "stop:\n  interval: {metric: METRIC, within: 5 %}\n"
    )
    file.write_text(text.replace("METRIC", "download_time"))
    output = mplab("plan", str(file), "--runs", str(tmp_path)).stdout
    assert "may end after 6 of 9 blocks: intervals of download_time within 5 %" in output
    assert "commands of this host: after_run: 'sync'" in output
    file.write_text(text.replace("METRIC", "download_tim"))
    wrong = mplab("plan", str(file), "--runs", str(tmp_path))
    assert "x.yaml:9: stop.interval: unknown metric 'download_tim'. Allowed: " in str(wrong.exception)


def test_transports_scenarios_and_links_are_listed() -> None:
    transports = json.loads(mplab("transports", "--json").stdout)
    assert {"sptcp-wifi", "sptcp-lte", "mptcp"} <= {item["name"] for item in transports}
    for words in ("mpflex", "redundant", "policy", "nikravesh2016-fig18-lab"):
        assert words in mplab("transports").stdout.replace("\n", " ")
    scenarios = json.loads(mplab("scenarios", "--json").stdout)
    assert {"download", "web"} <= {item["name"] for item in scenarios}
    assert "baseline" in {item["name"] for item in json.loads(mplab("links", "--json").stdout)}
    assert "baseline" in mplab("links").stdout


def test_init_writes_an_experiment_that_can_be_planned(tmp_path: Path) -> None:
    file = tmp_path / "My First.yaml"
    assert mplab("init", str(file)).exit_code == 0
    assert json.loads(mplab("plan", str(file), "--json").stdout)["experiment"]["name"] == "my-first"
    again = mplab("init", str(file))
    assert isinstance(again.exception, InputError)
    assert "already exists" in str(again.exception)


def test_init_writes_a_lab_whose_schema_an_editor_finds(tmp_path: Path) -> None:
    file = tmp_path / "bench.yaml"
    assert mplab("init", "--kind", "lab", str(file)).exit_code == 0
    lab = load_lab(file)
    assert (lab.name, [*lab.routers], [*lab.phones]) == ("bench", ["wifi"], ["phone-1"])
    first = file.read_text().splitlines()[0]
    schema = json.loads((tmp_path / first.removeprefix("# yaml-language-server: $schema=")).read_text())
    Draft202012Validator(schema).validate(YAML(typ="safe", pure=True).load(file))


def test_doctor_says_what_it_found_and_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("mplab.base.programs._SYSTEM_PATH", ())
    result = mplab("doctor", "--json", "--runs", str(tmp_path))
    assert result.exit_code == 3
    checks = {check["name"]: check for check in json.loads(result.stdout)["checks"]}
    assert checks["nginx"]["level"] == "missing"
    assert checks["nginx"]["remedy"] == "install it: apt-get install nginx-light"
    assert checks["disk"]["level"] in {"ok", "warning"}


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["run", "nosuch.yaml"], 2, "nosuch.yaml"),
        (["status", "--runs", "/nonexistent"], 2, "no run in it"),
        (["report", "/nonexistent/run"], 2, "not a run directory"),
    ],
)
def test_errors_end_with_their_exit_code(
    arguments: Sequence[str], code: int, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["mplab", *arguments])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == code
    assert words in capsys.readouterr().err


def test_a_run_is_found_by_path_by_part_of_its_name_or_as_the_newest(tmp_path: Path) -> None:
    for name in ("20260101T000000Z-demo-aaaaaa", "20260102T000000Z-demo-bbbbbb"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").touch()
    assert find_run("", tmp_path).name.endswith("bbbbbb")
    assert find_run("aaaaaa", tmp_path).name.endswith("aaaaaa")
    assert find_run(str(tmp_path / "20260101T000000Z-demo-aaaaaa"), tmp_path).name.endswith("aaaaaa")
    with pytest.raises(InputError, match="'2026' fits 2 runs"):
        find_run("2026", tmp_path)


@pytest.mark.parametrize(("seconds", "text"), [(4.6, "5 s"), (125, "2 min 05 s"), (4200, "1 h 10 min")])
def test_durations_are_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text
