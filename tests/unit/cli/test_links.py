"""``mplab links``: listed, explained, drawn, checked."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mplab.base.errors import InputError
from mplab.cli.main import app
from mplab.cli.options import complete_links
from mplab.cli.verbs.parts.links.drawing import text_drawing
from mplab.lab.catalog import LINKS_DIR
from mplab.userfiles.links.link import load_link

ROOT = Path(__file__).parents[3]


def mplab(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})


def test_every_condition_is_listed_with_where_it_is() -> None:
    listed = {condition["name"]: condition for condition in json.loads(mplab("links", "--json").stdout)}
    assert {"baseline", "rtt-sweep-50", "loss-sweep-20"} <= set(listed)
    assert listed["rtt-sweep-50"]["file"].endswith("router-configs/links/rtt-sweep.yaml")
    assert (listed["txdelay"]["extends"], listed["baseline"]["extends"]) == ("baseline", None)
    table = mplab("links").stdout
    assert "(11)" in table, "a sweep has one line"
    assert "Typical WiFi and LTE" in table
    assert "rtt-sweep-100" not in table


def test_a_condition_is_explained() -> None:
    text = mplab("links", "show", "slow-lte").stdout
    assert "from: han2015 §4.1.3" in text
    assert "on top of baseline (Typical WiFi and LTE; han2015 table 2" in text
    assert "150 kB (up to 170 ms)" in text
    assert "Round trips of an idle path: 50 ms over WiFi and 120 ms over LTE." in text
    assert "over time" not in text
    assert "(0.2 % of them lost)" in mplab("links", "show", "rtt-sweep-100").stdout


def test_a_sweep_is_explained_as_a_table() -> None:
    text = mplab("links", "show", "rtt-sweep").stdout
    assert text.startswith("rtt-sweep  Two paths, the second of them farther and farther\n")
    assert "rtt-sweep-450" in text
    assert len(json.loads(mplab("links", "show", "rtt-sweep", "--json").stdout)) == 11


def test_changes_are_listed_and_drawn() -> None:
    text = mplab("links", "show", "handover-ip").stdout
    assert "50 s   WiFi  multipath off" in text
    assert "WiFi multipath off" in text
    assert "0 % to 20 %" in text


def test_the_drawing_of_a_path_that_comes_and_goes() -> None:
    (label, cells, share), axis = text_drawing(load_link("wifi-toggle", LINKS_DIR), columns=58)
    assert (label, share) == ("WiFi out", "48% of the time")
    outages = [column for column, cell in enumerate(cells) if cell == "×" and cells[column - 1] != "×"]
    assert [round(column / 58 * 116.5 / 15) for column in outages] == [1, 3, 5, 7]
    assert axis[1].startswith("0 s")
    assert len(axis[1]) == len(cells) == 58


def test_the_drawing_of_values_that_grow() -> None:
    rows = {
        label: (cells, values) for label, cells, values in text_drawing(load_link("bad-simulation-loss", LINKS_DIR))
    }
    cells, values = rows["WiFi loss"]
    assert list(cells) == sorted(cells)
    assert (cells[0], cells[-1], values) == ("▁", "█", "0 % to 20 %")


@pytest.mark.parametrize("name", ["baseline", "walking", "handover-ip", "loss-sweep-5"])
def test_a_condition_is_drawn_into_a_file(name: str, tmp_path: Path) -> None:
    file = tmp_path / "drawn.svg"
    assert mplab("links", "show", name, "--plot", str(file)).exit_code == 0
    svg = file.read_text(encoding="utf-8")
    assert load_link(name, LINKS_DIR).title in svg
    assert ("loss (%)" in svg) == (name != "baseline")
    assert ("unlimited" in svg) == (name == "loss-sweep-5")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show", "basline"], "unknown link 'basline'. Did you mean 'baseline'?"),
        (["show", "loss-sweep-33"], "unknown link 'loss-sweep-33'. Did you mean 'loss-sweep-3'?"),
        (["show", "loss-sweep", "--plot", "x.svg"], "is a sweep of 23 conditions: name one of them"),
        (["show", "baseline", "--plot", "x.png"], "name a file that ends in .svg"),
    ],
)
def test_what_is_refused(arguments: list[str], words: str) -> None:
    result = mplab("links", *arguments)
    assert isinstance(result.exception, InputError)
    assert words in str(result.exception)


def test_good_files_pass(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("extends: baseline\nsweep: {wifi: {queue: [20 packets, 200 packets]}}\n", encoding="utf-8")
    result = mplab("links", "lint", str(LINKS_DIR / "dsl.yaml"), str(own))
    assert result.exit_code == 0
    assert f"{own}: ok (own-20, own-200)" in result.stdout


def test_all_mistakes_of_all_files_are_listed(tmp_path: Path) -> None:
    first, second = tmp_path / "first.yaml", tmp_path / "Second.yaml"
    first.write_text("extends: basline\nwifi: {loss: 1}\n", encoding="utf-8")
    second.write_text("extends: baseline\nwfi: {}\n", encoding="utf-8")
    result = mplab("links", "lint", str(first), str(second), str(LINKS_DIR / "dsl.yaml"))
    assert result.exit_code == 2
    problems = result.stderr.splitlines()
    assert [line.split(": ")[0] for line in problems] == [
        f"{first}:1",
        f"{first}:2",
        f"{second}:1",
        f"{second}:2",
    ]
    assert "the file's name is the condition's: name 'Second'" in problems[2]
    files = json.loads(mplab("links", "lint", "--json", str(first), str(LINKS_DIR / "dsl.yaml")).stdout)["files"]
    assert [(len(file["problems"]), file["conditions"]) for file in files] == [(2, []), (0, ["dsl"])]


def test_what_the_virtual_lab_cannot_do_is_said_but_is_no_mistake(tmp_path: Path) -> None:
    file = tmp_path / "fair.yaml"
    file.write_text("extends: baseline\nwifi: {queue: {discipline: cake}}\n", encoding="utf-8")
    result = mplab("links", "lint", str(file))
    assert result.exit_code == 0
    assert "has no queue discipline 'cake'" in result.stderr


def test_names_are_completed_with_those_of_sweeps() -> None:
    assert complete_links("rtt-sweep-4") == ["rtt-sweep-400", "rtt-sweep-450"]
    assert complete_links("base") == ["baseline"]
