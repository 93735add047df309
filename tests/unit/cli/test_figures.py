"""``mplab figures``: lists and draws figures, names the omitted ones, refuses unknown ones."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mplab.cli.main import app, main
from tests.unit.analysis.synthetic import Synthetic
from tests.unit.analysis.traces import Trace


def test_the_list_names_every_figure_and_what_it_is_drawn_after() -> None:
    assert "bytes-over-time" in CliRunner().invoke(app, ["figures", "--list"]).stdout
    listed = {f["name"]: f for f in json.loads(CliRunner().invoke(app, ["figures", "--list", "--json"]).stdout)}
    assert listed["waterfall"]["after"] == "han2015 fig. 5"
    assert listed["join-delay"]["in_report"] is True
    assert listed["overhead"]["in_report"] is False


def test_a_runs_figures_lie_in_its_folder(tmp_path: Path) -> None:
    run = Synthetic(tmp_path, repetitions=1).build()
    result = CliRunner().invoke(app, ["figures", str(run), "--figure", "join-delay", "-f", "switches"])
    assert result.exit_code == 0, result.output
    assert (run / "figures" / "join-delay.svg").read_text().startswith("<?xml")
    assert (run / "figures" / "join-delay.csv").is_file()
    assert "switches is left out: no connection of 1 MB" in result.stderr


def test_a_folder_of_tables_will_do(tmp_path: Path) -> None:
    Trace().write(tmp_path / "tables")
    arguments = ["figures", str(tmp_path / "tables"), "-f", "rtt-samples", "-o", str(tmp_path / "out"), "--json"]
    result = CliRunner().invoke(app, arguments)
    assert json.loads(result.stdout) == {"figures": [str(tmp_path / "out" / "rtt-samples.svg")], "left_out": []}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-f", "pie"], "no figure is called 'pie'. Figures: bytes-over-time"),
        (["--cell", "nope"], "no ok cell is called 'nope'. Ok cells ("),
    ],
)
def test_what_does_not_exist_ends_with_2(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = Synthetic(tmp_path, repetitions=1).build()
    monkeypatch.setattr("sys.argv", ["mplab", "figures", str(run), *arguments])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 2
    assert words in capsys.readouterr().err
