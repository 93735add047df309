"""Untrusted run directories: their content is checked, and one bad run affects no other."""

import copy
import json
import random
import shutil
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mplab.analysis.bundle.write import Options, write_bundle
from mplab.analysis.errors import AnalysisError, NotARunError, TablesError
from mplab.analysis.figures.kinds import RunFigure
from mplab.analysis.figures.style import Drawing
from mplab.analysis.files import csv_text, inside, parse_json
from mplab.analysis.pipeline import analyze, summary
from mplab.analysis.record.run import Run, read_run
from mplab.analysis.results.columns import RESULT_TABLES
from mplab.analysis.results.frames import Results, load
from mplab.analysis.results.index import NAME, query, update
from mplab.analysis.verdicts.compare import compare
from tests.unit.analysis.synthetic import Synthetic, summary_json

pytestmark = pytest.mark.long

Builder = Callable[..., Synthetic]
ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\ud800\u202e"
DEEP = "[" * 100_000


def changed(path: Path, keys: tuple[str | int, ...], value: object) -> None:
    """Replace one value in a JSON file."""
    content = json.loads(path.read_text())
    at = content
    for key in keys[:-1]:
        at = at[key]
    at[keys[-1]] = value
    path.write_text(json.dumps(content))


@pytest.fixture
def analysed(synthetic: Builder, no_figures: None) -> Path:
    builder = synthetic(repetitions=2, labels=["1 MB"])
    run = builder.build()
    analyze(run)
    return run


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("run_id",), "../../../elsewhere"),
        (("run_id",), ".."),
        (("run_id",), "/etc/passwd"),
        (("experiment", "name"), "x/../../../elsewhere"),
        (("experiment", "scenarios", 0, "name"), "../runs/theirs/logs/x"),
        (("experiment", "scenarios", 0, "label"), '=cmd|" /C calc"!A0'),
        (("experiment", "transports", 0, "label"), "[/b]x"),
        (("experiment", "links", 0, "name"), "\x1b[2J"),
        (("experiment", "links", 0, "changes"), [{"at_s": "soon"}]),
        (("experiment", "links", 0, "changes"), [{"at_s": 1e308}]),
        (("experiment", "seed"), 10**30),
        (("plan", "cells", 0, "id"), "../0001"),
        (("plan", "cells", 0, "link"), "a/b"),
    ],
)
def test_a_manifest_with_a_name_that_is_none_is_refused_in_one_sentence(
    synthetic: Builder, keys: tuple[str | int, ...], value: object
) -> None:
    run = synthetic(repetitions=1).build()
    changed(run / "manifest.json", keys, value)
    with pytest.raises(NotARunError) as refused:
        read_run(run)
    message = str(refused.value)
    assert message.startswith(f"{run}: not a run directory: manifest.json: {'.'.join(map(str, keys))}")
    assert ": found " in message
    assert not {"\n", "\x1b"} & set(message)


def test_texts_steer_no_terminal_and_break_no_figure(synthetic: Builder) -> None:
    builder = synthetic(repetitions=1, labels=["1 MB"])
    run = builder.build()
    for keys in (("title",), ("notes",), ("transports", 0, "title"), ("links", 0, "title")):
        changed(run / "manifest.json", ("experiment", *keys), f"a{ESCAPES}b")
    analyze(run)
    figures = list((run / "report").rglob("*.svg"))
    assert figures
    for figure in figures:
        ET.parse(figure)  # noqa: S314 - our own figure
    for file in (run / "report").rglob("*.*"):
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(file.read_text())


def test_texts_of_a_csv_are_no_formulas() -> None:
    assert (
        csv_text(("x",), [("=1+1",), ("@x",), ("-1",), (-1,), ("a=b",), ("",)]) == "x\n'=1+1\n'@x\n'-1\n-1\na=b\n\"\"\n"
    )


@pytest.mark.parametrize("text", [DEEP, '{"a":' * 100_000, "[" * 600 + '"\\u001b"' + "]" * 600])
def test_json_that_is_nested_too_deeply_is_no_json(text: str) -> None:
    with pytest.raises(ValueError, match="is nested too deeply"):
        parse_json(text)


def test_numbers_that_are_too_large_are_floats() -> None:
    assert parse_json("[" + "9" * 400 + ", 12]") == [float("inf"), 12]


def test_a_line_that_is_nested_too_deeply_is_left_out(analysed: Path) -> None:
    cell = read_run(analysed).cells[0]
    assert cell.directory is not None
    with (cell.directory / "scenario.jsonl").open("a") as file:
        file.write(f"{DEEP}\n")
    assert len(cell.observations()) == 1


def test_a_damaged_cell_of_any_kind_is_partial(analysed: Path) -> None:
    first, second, third, *_ = sorted((analysed / "cells").iterdir())
    (first / "cell.json").write_text(DEEP)
    changed(second / "cell.json", ("links", "wlan0", "asked"), 5)
    changed(third / "cell.json", ("links",), [1])
    partial, good, other, *_ = read_run(analysed).cells
    assert (partial.outcome, partial.reasons) == ("partial", ("cell.json: Invalid JSON: it is nested too deeply",))
    assert good.outcome == "ok"
    assert other.outcome == "partial"
    assert Results((read_run(analysed),)).links.height > 0


@pytest.mark.parametrize("value", ["x", None, 1e400, [], {"a": 1}])
def test_one_damaged_run_does_not_spoil_a_folder(synthetic: Builder, no_figures: None, value: object) -> None:
    for day in (1, 2, 3):
        builder = synthetic(day=day, repetitions=2, labels=["1 MB"])
        analyze(builder.build())
    folder = builder.root
    bad, good, new = sorted(path.parent for path in folder.glob("*/manifest.json"))
    scores = next(bad.glob("cells/*/scores.json"))
    changed(scores, ("values", 0, "value"), value)
    with pytest.raises(TablesError, match=r"scores\.json: cannot be read \(values\.0\.value: .*mplab analyze"):
        _ = Results((read_run(bad),)).values
    result = update(folder, folder / NAME)
    assert (result.read, len(result.problems)) == (2, 1)
    assert str(scores) in result.problems[0]
    assert len(query(folder / NAME, "SELECT DISTINCT run_id FROM values").rows) == 2
    results = load(folder)
    assert results.values["run_id"].n_unique() == 2
    assert [str(scores) in text for text in results.unread] == [True]
    compared = compare([read_run(bad), read_run(good)], read_run(new))
    assert any(str(scores) in warning for warning in compared.warnings)


@pytest.mark.parametrize("seconds", [1e308, float("nan"), float("inf"), 1e-320, "x", None, [], 10**400])
def test_an_observation_of_any_size_is_analysed(synthetic: Builder, seconds: object) -> None:
    builder = synthetic(repetitions=1, labels=["1 MB"])
    run = builder.build()
    lines = next(run.glob("cells/*/scenario.jsonl"))
    lines.write_text(json.dumps({"t": 1, "event": "done", "size": "1 MB", "seconds": seconds, "bits": 8e6}) + "\n")
    analyze(run)
    assert len(summary_json(run)["problems"]) == 1


def test_a_figure_that_cannot_be_drawn_is_a_problem_of_the_report(
    synthetic: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> Iterator[Drawing]:
        raise ValueError("no axis is that long")

    monkeypatch.setattr("mplab.analysis.figures.report.cdf.FIGURE", RunFigure(order=20, title="", draw=fail))
    builder = synthetic(repetitions=1, labels=["1 MB"])
    run = builder.build()
    analyze(run)
    assert summary_json(run)["problems"] == [
        {"cell": "report", "message": "figure cdf cannot be drawn: ValueError: no axis is that long"}
    ]
    assert list((run / "report" / "figures").iterdir())


def test_the_report_replaces_nothing_elsewhere(synthetic: Builder, tmp_path: Path) -> None:
    builder = synthetic(repetitions=1, labels=["1 MB"])
    run = builder.build()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "thesis.tex").write_text("x")
    (run / "report").mkdir()
    (run / "report" / "figures").symlink_to(elsewhere)
    with pytest.raises(NotARunError, match=r"report/figures is a link to a folder; a run has none"):
        analyze(run)
    assert (elsewhere / "thesis.tex").exists()


def test_files_that_records_name_are_those_of_their_folder(tmp_path: Path) -> None:
    (tmp_path / "cell").mkdir()
    (tmp_path / "link").symlink_to("/")
    assert inside(tmp_path, "sound/x.wav") == tmp_path / "sound" / "x.wav"
    for name in ("../x.wav", "/etc/passwd", "link/etc/passwd", "cell/../../x"):
        with pytest.raises(ValueError, match="is not a file of this folder"):
            inside(tmp_path, name)


VALUES = [None, 5, -1, "x", "", [], {}, [1], {"a": 1}, 1e308, float("nan"), "[/b]x", "../../x", "=cmd", 10**400, True]
FILES = ("manifest.json", "events.jsonl", "cells/*/cell.json", "cells/*/scores.json", "report/summary.json")


def places(content: object, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value in a document; of lists, only the first element."""
    yield at
    if isinstance(content, dict):
        for key, value in content.items():
            yield from places(value, (*at, key))
    elif isinstance(content, list) and content:
        yield from places(content[0], (*at, 0))


def mutated(content: Any, at: tuple[Any, ...], value: object) -> Any:
    if not at:
        return value
    copied = copy.deepcopy(content)
    container = copied
    for key in at[:-1]:
        container = container[key]
    container[at[-1]] = value
    return copied


def used(run: Path, good: Run) -> None:
    """Call everything that reads an analysed run."""
    for use in (
        lambda: [Results((read_run(run),)).table(name) for name in RESULT_TABLES],
        lambda: summary(run),
        lambda: compare([good], read_run(run)),
        lambda: write_bundle(run, run.parent / "bundle.tar.gz", Options(partial=True)),
    ):
        with suppress(AnalysisError):
            use()


def test_records_with_anything_in_any_place_are_read_or_explained(analysed: Path, tmp_path: Path) -> None:
    rng = random.Random(4)  # noqa: S311
    good = read_run(analysed)
    for number in range(40):
        run = tmp_path / str(number) / analysed.name
        shutil.copytree(analysed, run)
        path = next(run.glob(rng.choice(FILES)))
        text = path.read_text()
        first, *rest = [text] if path.suffix == ".json" else text.splitlines()
        content = json.loads(first)
        at, value = rng.choice(list(places(content))), rng.choice(VALUES)
        path.write_text("\n".join([json.dumps(mutated(content, at, value)), *rest]))
        try:
            used(run, good)
        except Exception as error:
            raise AssertionError(f"{path.name}: {at}: {value!r}") from error
