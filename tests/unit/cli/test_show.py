"""``mplab show``: one cell on the terminal, and as JSON."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from mplab.base.errors import InputError
from mplab.cli.main import app
from tests.unit.analysis.synthetic import START, Synthetic


def show(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["show", *map(str, arguments)], env={"COLUMNS": "120"})


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of three cells: the first was repeated and is ok, the second is invalid, the third is missing."""
    outcomes = {1: "ok", 2: "invalid", 3: "missing"}
    run = Synthetic(tmp_path, repetitions=1, outcome=lambda spec: outcomes[spec["index"]], retried=[1]).build()
    steps = [("prepare", 3), ("scenario", 3.5)]
    with (run / "events.jsonl").open("a") as events:
        for name, seconds in steps:
            line = {"t": START + seconds, "event": "cell_step", "cell": cells(run)[0], "step": name}
            events.write(json.dumps(line) + "\n")
    lines = (run / "events.jsonl").read_text().splitlines(keepends=True)
    (run / "events.jsonl").write_text("".join(sorted(lines, key=lambda line: float(json.loads(line)["t"]))))
    return run


def cells(run: Path) -> list[str]:
    return [spec["id"] for spec in json.loads((run / "manifest.json").read_text())["plan"]["cells"]]


def change(run: Path, cell: str, edit: Callable[[dict[str, Any]], object]) -> None:
    file = run / "cells" / cell / "cell.json"
    record = json.loads(file.read_text())
    edit(record)
    file.write_text(json.dumps(record))


def test_an_ok_cell(run: Path) -> None:
    cell = cells(run)[0]
    change(run, cell, lambda record: record["attempts"].append({"attempt": 2, "outcome": "ok", "reason": ""}))
    scores = [{"metric": "time", "value": 1.4176, "unit": "s", "labels": {"size": "1 MB"}}]
    (run / "cells" / cell / "scores.json").write_text(json.dumps({"format": 1, "cell": cell, "values": scores}))
    shown = show(run, cell)
    assert shown.exit_code == 0, shown.output
    text = " ".join(shown.stdout.split())
    assert f"{cell}: ok, attempt 2" in text
    assert "baseline: block 1, repetition 1, seed 000003e9" in text
    assert "attempt 1: failed: curl: connection reset" in text
    assert "attempt 2: ok" not in text, "the last attempt is the cell"
    assert "wlan0 linkem download rate 7.04 Mbit/s" in text
    assert "congestion control of proxy cubic" in text
    assert "0.0 s attempt 1 1.0 s attempt 1 failed: curl: connection reset 2.0 s prepare 0.5 s 2.5 s scenario" in text
    assert "time 1 MB 1.42 s" in text
    assert "cell.json" in text
    assert "tables/" in text


def test_an_invalid_cell_says_why(run: Path) -> None:
    cell = cells(run)[1]
    change(run, cell, lambda record: record.update(warnings=["the host was overloaded"]))
    shown = show(run, cell)
    assert shown.exit_code == 0
    assert f"{cell}: invalid" in shown.stdout
    assert "• <invalid> because of cell 2" in shown.stdout
    assert "! the host was overloaded" in shown.stdout
    assert "Scores" not in shown.stdout


def test_a_cell_that_was_not_run(run: Path) -> None:
    shown = show(run, cells(run)[2])
    assert shown.exit_code == 0
    assert "missing" in shown.stdout
    assert "the cell has not been run" in shown.stdout
    assert "Files" not in shown.stdout


def test_what_was_not_measured_or_is_not_limited(run: Path) -> None:
    cell = cells(run)[0]
    change(run, cell, lambda record: record["links"].update(rmnet0={"asked": {"up_kbps": 0}, "where": "router"}))
    text = " ".join(show(run, cell).stdout.split())
    assert "rmnet0 router download rate unlimited – upload rate unlimited – round-trip time – – loss – –" in text


def test_proofs_of_the_transport(run: Path) -> None:
    proof = {
        "active": {"congestion_control": "lia"},
        "counters": {"MPCapableSYNTX": 3, "MPFallbackTokenInit": 0},
        "subflows": {"rmnet0": {"established": 1, "bytes_up": 500, "bytes_down": 2_000_000}},
        "session": {"paths": {"wlan0": {"bytes_down": 1_000_000}}},
    }
    cell = cells(run)[0]
    change(run, cell, lambda record: record.update(proof=proof))
    text = " ".join(show(run, cell).stdout.split())
    assert "congestion_control lia subflows on rmnet0 1 established, 2.0 MB down, 500 B up" in text
    assert "session on wlan0 1.0 MB down, 0 B up" in text
    assert "MPCapableSYNTX 3" in text
    assert "MPFallbackTokenInit" not in text


def test_json_has_all(run: Path) -> None:
    cell = cells(run)[0]
    content = json.loads(show(run, cell, "--json").stdout)
    assert (content["cell"], content["outcome"], content["reasons"]) == (cell, "ok", [])
    assert content["record"]["links"]["wlan0"]["asked"]["down_kbps"] == 7040
    assert content["spec"]["transport"] in cell
    assert content["timeline"][2] == {"at_s": 2.0, "event": "prepare", "took_s": 0.5}
    files = {file["file"]: file["size_bytes"] for file in content["files"]}
    assert files["cell.json"] == (run / "cells" / cell / "cell.json").stat().st_size
    missing = json.loads(show(run, cells(run)[2], "--json").stdout)
    assert (missing["record"], missing["directory"], missing["files"]) == (None, None, [])


@pytest.mark.parametrize("name", ["1", "0001", "0001-files"])
def test_a_cell_is_found_by_its_number_or_the_beginning_of_its_name(run: Path, name: str) -> None:
    assert json.loads(show(run, name, "--json").stdout)["cell"] == cells(run)[0]


@pytest.mark.parametrize(
    ("name", "problem"),
    [("000", "'000' fits 3 cells. Give more of the name: 0001-"), ("9", "no cell is called '9'. Cells: 0001-")],
)
def test_a_cell_that_is_not_one(run: Path, name: str, problem: str) -> None:
    shown = show(run, name)
    assert isinstance(shown.exception, InputError)
    assert problem in str(shown.exception)


def test_text_of_a_run_does_not_steer_the_terminal(run: Path) -> None:
    cell = cells(run)[1]
    change(run, cell, lambda record: record.update(reasons=["\x1b[2J[red]no[/red]"]))
    shown = show(run, cell).stdout
    assert "[2J[red]no[/red]" in shown
    assert "\x1b" not in shown
