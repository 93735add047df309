"""``mplab scenarios``: listed scenarios, refused input, shell completion."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field
from typer.testing import CliRunner

from mplab.base.errors import InputError
from mplab.cli.main import app, main
from mplab.cli.options import link_entry
from mplab.cli.verbs.parts.scenarios import read_parameters
from mplab.drivers.transport import names as transport_names
from mplab.format.units import DurationS, SizeBytes
from mplab.lab.catalog import LINKS_DIR, scenario_names
from mplab.lab.session import condition_of
from mplab.scenarios.base import Parameters
from mplab.userfiles.experiments.explain import ParameterInfo, parameters_of
from mplab.userfiles.links.link import load_link, read_link_file


def listed() -> list[dict[str, Any]]:
    scenarios: list[dict[str, Any]] = json.loads(CliRunner().invoke(app, ["scenarios", "--json"]).stdout)
    return scenarios


def test_every_scenario_is_listed_whole() -> None:
    scenarios = listed()
    assert [scenario["name"] for scenario in scenarios] == scenario_names()
    for scenario in scenarios:
        assert scenario["cpus"] > 0, scenario["name"]
        assert all(parameter["description"] for parameter in scenario["parameters"]), scenario["name"]
        assert all(metric["source"] and metric["title"] for metric in scenario["metrics"]), scenario["name"]
        assert any(metric["headline"] for metric in scenario["metrics"]), scenario["name"]


def test_the_list_for_people_has_parameters_metrics_units_and_sources() -> None:
    text = " ".join(CliRunner().invoke(app, ["scenarios"]).stdout.split())
    for words in (
        "pause duration ms, s, min, h 200 ms",
        "jitter Jitter ms less direction RFC 3550 §6.4.1",
        "limit: 29 s",
    ):
        assert words in text


def test_show_is_of_one_scenario() -> None:
    text = CliRunner().invoke(app, ["scenarios", "show", "download"]).stdout
    assert "bundle_time" in text
    assert "jitter" not in text
    description = json.loads(CliRunner().invoke(app, ["scenarios", "show", "download", "--json"]).stdout)
    assert description["time_limit_s"] == 120
    assert description["schema"]["properties"]["sizes"]["type"] == "array"


def test_what_a_scenario_needs_is_checked_before_the_lab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("mplab.base.programs._SYSTEM_PATH", ())
    for name, program in (("firefox", "firefox-esr"), ("iperf", "iperf3")):
        monkeypatch.setattr("sys.argv", ["mplab", "scenarios", "check", name, "--runs", str(tmp_path / "checks")])
        with pytest.raises(SystemExit) as exit_:
            main()
        assert exit_.value.code == 3
        assert f"install it: apt-get install {program}" in capsys.readouterr().err
    assert not (tmp_path / "checks").exists()


class Everything(Parameters):
    """Every kind of parameter."""

    count: int = Field(3, ge=1, le=9, description="How many.")
    pause: DurationS = Field(description="Between two.")
    sizes: tuple[SizeBytes, ...] = Field((1000,), min_length=1, description="Each.")
    mode: Literal["up", "down"] = "up"
    loud: bool = False
    limit: DurationS | None = None
    word: Annotated[str, Field(max_length=3)] = "x"


def test_parameters_are_explained() -> None:
    units = "B, kB, MB, GB, TB, KiB, MiB, GiB"
    assert parameters_of(Everything) == [
        ParameterInfo("count", "whole number", "", 3, "1 … 9", "How many."),
        ParameterInfo("pause", "duration", "ms, s, min, h", None, "", "Between two."),
        ParameterInfo("sizes", "list of size", units, ["1 kB"], "at least 1 of them", "Each."),
        ParameterInfo("mode", "one of up, down", "", "up", "", ""),
        ParameterInfo("loud", "true or false", "", False, "", ""),
        ParameterInfo("limit", "duration", "ms, s, min, h", None, "", ""),
        ParameterInfo("word", "text", "", "x", "", ""),
    ]


def test_parameters_are_read_as_in_an_experiment_file() -> None:
    assignments = ["sizes=[10 kB, 1 MB]", "pause = 1 s"]
    assert read_parameters("download", assignments) == {"sizes": ["10 kB", "1 MB"], "pause": "1 s"}
    assert read_parameters("download", []) == {}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["pause"], "--parameter 'pause': KEY=VALUE is needed, like --parameter pause='1 s'"),
        (["=3"], "--parameter '=3': KEY=VALUE is needed, like --parameter pause='1 s'"),
        (["a=b\nc=d"], "--parameter 'a=b\\nc=d': KEY=VALUE is needed, like --parameter pause='1 s'"),
        (["pause=1"], "--parameter:1: pause: duration '1': a number needs a unit: ms, s, min, h"),
        (["sizes=[1 kB]", "sise=1"], "--parameter:2: unknown key 'sise'"),
        (["pause=1 s", "pause=2 s"], "--parameter:2: key 'pause' is given twice"),
        (["sizes=[1 kB"], "--parameter:"),
    ],
)
def test_wrong_parameters_are_explained(given: Sequence[str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_parameters("download", given)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["scenarios", "show", "wob"], "unknown scenario 'wob'. Did you mean 'web'?"),
        (["scenarios", "check", "wob"], "unknown scenario 'wob'. Did you mean 'web'?"),
        (["scenarios", "check", "download", "--transport", "mptpc"], "Did you mean 'mptcp'?"),
        (["scenarios", "check", "download", "--link", "basline"], "Did you mean 'baseline'?"),
        (["lab", "up", "--services", "nosuch"], "unknown service 'nosuch'"),
        (["lab", "up", "--link", "basline"], "Did you mean 'baseline'?"),
        (["lab", "up", "--link", "absent.yaml"], "absent.yaml: no such file"),
    ],
)
def test_what_is_unknown_ends_with_exit_code_2(
    arguments: Sequence[str], words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["mplab", *arguments])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("mplab scenarios show dow", {"download"}),
        ("mplab scenarios check udp-j", {"udp-jitter"}),
        (
            "mplab scenarios check download --transport mp",
            {name for name in transport_names() if name.startswith("mp")},
        ),
        ("mplab lab up --link basel", {"baseline"}),
        ("mplab lab up --services al", {"all"}),
    ],
)
def test_the_shell_completes_names(words: str, expected: set[str]) -> None:
    variables = {"_MPLAB_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    program = "import sys; sys.argv[0] = 'mplab'; from mplab.cli.main import app; app(prog_name='mplab')"
    result = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    assert set(result.stdout.split()) == expected, result.stderr


WRONG_LINK = """\
wifi: {down: 7040 kbit, up: 2 Mbit/s, rtt: 50 ms}
lte: {down: 9 Mbit/s, up: 2 Mbit/s, rtt: 70 ms}
loss: 3 %
"""


def test_a_link_condition_may_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(WRONG_LINK.replace("7040 kbit,", "7 Mbit/s,").replace("loss: 3 %", "core_rtt: 9 ms"))
    assert link_entry("baseline") == "baseline"
    entry = link_entry(str(path))
    assert isinstance(entry, dict)
    assert (entry["name"], entry["core_rtt"]) == ("mine", "9 ms")
    assert isinstance(entry["wifi"], dict)
    assert entry["wifi"]["down"] == "7 Mbit/s"
    assert condition_of(entry) == read_link_file(path, LINKS_DIR)[0]
    assert condition_of("baseline") == load_link("baseline", LINKS_DIR)


def test_a_file_may_be_a_sweep_of_one(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    good = WRONG_LINK.replace("7040 kbit,", "7 Mbit/s,")
    path.write_text(good.replace("loss: 3 %", "sweep: {wifi: {rtt: [90 ms]}}"))
    entry = link_entry(str(path))
    assert (condition_of(entry).name, condition_of(entry).wifi.rtt_ms) == ("mine-90", 90)
    path.write_text(good.replace("loss: 3 %", "sweep: {wifi: {rtt: [90 ms, 95 ms]}}"))
    with pytest.raises(InputError, match="a sweep of 2 conditions: one is needed"):
        link_entry(str(path))


@pytest.mark.parametrize(
    ("name", "messages"),
    [
        ("wrong.yaml", ["wrong.yaml:1: wifi.down: rate '7040 kbit': unknown unit", "wrong.yaml:3: unknown key 'loss'"]),
        ("Wrong link.yaml", ["the file's name is the condition's", "Did you mean 'wrong-link'?"]),
        ("absent.yaml", ["absent.yaml: no such file"]),
    ],
)
def test_a_file_with_a_wrong_link_condition(tmp_path: Path, name: str, messages: list[str]) -> None:
    if name != "absent.yaml":
        (tmp_path / name).write_text(WRONG_LINK)
    with pytest.raises(InputError) as error:
        link_entry(str(tmp_path / name))
    for message in messages:
        assert message in str(error.value)


def test_a_name_of_no_link_condition() -> None:
    with pytest.raises(InputError, match=r"unknown link 'basline'\. Did you mean 'baseline'\?"):
        link_entry("basline")
