"""``mplab analyze`` and its cross-check: compared files, output and exit code."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mplab.analysis.crosscheck.model import CrossCheckReport, Difference
from mplab.cli.main import app, main
from tests.unit.analysis.synthetic import Synthetic

Compared = list[tuple[str, list[str]]]


def report(tool: str, *, agree: bool) -> CrossCheckReport:
    result = CrossCheckReport(tool, flows=3, notes=["the captures were converted"])
    result.agreed["bytes"] = 6
    result.explained["bytes", "fin-again"] = 1
    result.definitions["fin-again"] = "A FIN takes a number."
    if not agree:
        result.differences = [Difference("a:1 → b:2 up", "segments", "total_packets", n, n + 1) for n in range(60)]
    return result


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> Compared:
    """Calls of the comparison, which finds agreement in all captures except those called ``bad``."""
    calls: Compared = []

    def fake(tool: str, files: Sequence[Path]) -> CrossCheckReport:
        calls.append((tool, [path.name for path in files]))
        return report(tool, agree=not any("bad" in path.name for path in files))

    monkeypatch.setattr("mplab.cli.verbs.results.analyze.check", fake)
    monkeypatch.setattr("mplab.cli.verbs.results.analyze.require", lambda tool: None)
    return calls


def captures(folder: Path, *names: str) -> list[str]:
    for name in names:
        (folder / name).write_bytes(b"x")
    return [str(folder / name) for name in names]


def test_captures_are_compared_together(tmp_path: Path, compared: Compared) -> None:
    files = captures(tmp_path, "a.pcap", "b.pcap")
    result = CliRunner().invoke(app, ["analyze", "--cross-check", "tshark", *files])
    assert result.exit_code == 0, result.output
    assert compared == [("tshark", ["a.pcap", "b.pcap"])]
    assert "they agree" in result.stdout
    assert "fin-again: A FIN takes a number." in result.stdout
    assert "the captures were converted" in result.stdout


def test_a_runs_cells_are_compared_one_by_one(tmp_path: Path, compared: Compared) -> None:
    run = Synthetic(tmp_path, repetitions=1).build()
    cells = sorted((run / "cells").iterdir())
    for cell in cells[:2]:
        captures(cell, "phone-wlan0.pcapng", "phone-lo.pcapng", "proxy.pcapng")
    result = CliRunner().invoke(app, ["analyze", "--cross-check", "tcptrace", str(run), "--json"])
    assert result.exit_code == 0, result.output
    assert compared == [("tcptrace", ["phone-wlan0.pcapng"])] * 2
    assert list(json.loads(result.stdout)["captures"]) == [cell.name for cell in cells[:2]]


def test_differences_end_with_1_and_are_listed(tmp_path: Path, compared: Compared) -> None:
    (file,) = captures(tmp_path, "bad.pcap")
    result = CliRunner().invoke(app, ["analyze", "--cross-check", "mptcptrace", file])
    assert result.exit_code == 1
    assert "60 differences" in result.stdout
    assert "and 10 more" in result.stdout
    document = json.loads(CliRunner().invoke(app, ["analyze", "--cross-check", "mptcptrace", file, "--json"]).stdout)
    assert len(document["captures"][file]["differences"]) == 60
    assert len(compared) == 2


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--cross-check", "tshark", "a.pcap", "b.pcap"], 2, "a.pcap, b.pcap: there is no such file"),
        (["--cross-check", "tshark", "/nonexistent/run"], 2, "not a run directory"),
        (["one", "two"], 2, "one run at a time"),
    ],
)
@pytest.mark.usefixtures("compared")
def test_bad_input_ends_with_2(
    arguments: list[str], code: int, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["mplab", "analyze", *arguments])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == code
    assert words in capsys.readouterr().err


def test_a_run_without_captures_cannot_be_compared(
    tmp_path: Path, compared: Compared, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Synthetic(tmp_path, repetitions=1).build()
    monkeypatch.setattr("sys.argv", ["mplab", "analyze", "--cross-check", "tshark", str(run)])
    with pytest.raises(SystemExit):
        main()
    assert "no cell has captures" in capsys.readouterr().err
    assert compared == []


def test_a_tool_that_is_missing_ends_with_3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (file,) = captures(tmp_path, "a.pcap")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("sys.argv", ["mplab", "analyze", "--cross-check", "tcptrace", file])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 3
    assert "apt install tcptrace" in capsys.readouterr().err
