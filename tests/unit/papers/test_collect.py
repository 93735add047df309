"""Content of the compact results of runs."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from mplab.analysis.figures.catalog import load, write_figures
from mplab.analysis.pipeline import statistics_of
from mplab.base.errors import InputError
from mplab.format.paperresult import PaperResult
from mplab.papers import collect as collecting
from mplab.papers.collect import collect, compact_json, newest_runs, small_svg, write
from mplab.userfiles.papers.paper import Catalogue

Build = Callable[..., Path]
TAGGED = {"tags": ["papers-quick"]}


@pytest.fixture
def quick(synthetic: Build) -> Build:
    """Return a builder of runs in the quick form."""

    def make(**changes: object) -> Path:
        run = synthetic(**changes)
        manifest = json.loads((run / "manifest.json").read_text())
        manifest["experiment"]["tags"] = ["papers-quick"]
        manifest["host"] = {"kernel": "6.18.0", "hostname": "somewhere"}
        manifest["versions"] = {"mplab": "1.0", "mpflex": "2.0", "curl": "8"}
        (run / "manifest.json").write_text(json.dumps(manifest))
        return run

    return make


def test_a_result_has_values_claims_and_provenance(quick: Build, catalogue: Catalogue) -> None:
    run = quick()
    result = collect(run, catalogue).result
    assert (result.experiment, result.form, result.run, result.seed, result.repetitions) == (
        "toy",
        "quick",
        run.name,
        1,
        5,
    )
    assert result.versions == {"mplab": "1.0", "mpflex": "2.0", "kernel": "6.18.0"}
    assert result.cells == {"ok": 15}
    gain, power = result.claims
    assert (gain.figure, gain.claimed) == ("some2020-fig1", "gain 10 to 40 %")
    assert {finding.labels["size"] for finding in gain.found} == {"10 kB", "1 MB", "10 MB"}
    for finding in gain.found:
        assert finding.cells == (5, 5)
        assert finding.estimate is not None
        assert finding.interval is not None
        low, high = finding.interval
        assert low is not None
        assert high is not None
        assert low <= finding.estimate <= high
    (finding,) = power.found
    assert (finding.verdict, finding.missing) == ("not measurable here", "there is no model of energy")
    times = [group for group in result.groups if group.metric == "time"]
    assert {group.metric for group in result.groups} == {"time"}
    assert set(times[0].values) == {"sptcp-wifi", "sptcp-lte", "mptcp"}
    assert all(len(values) == 5 for values in times[0].values.values())


def test_only_drawings_that_rows_name_are_kept(quick: Build, catalogue: Catalogue) -> None:
    collected = collect(quick(), catalogue)
    assert {figure.name for figure in collected.result.figures} == {"box", "links"}
    assert all(figure.drawing.endswith("-time") for figure in collected.result.figures if figure.name == "box")
    assert set(collected.drawings) == {figure.file for figure in collected.result.figures}


def test_a_large_drawing_is_named_but_not_kept(
    quick: Build, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collecting, "LARGEST_BYTES", 100)
    collected = collect(quick(), catalogue)
    assert collected.drawings == {}
    assert {figure.file for figure in collected.result.figures} == {None}


def test_files_have_no_paths_and_no_host(quick: Build, catalogue: Catalogue, tmp_path: Path) -> None:
    written = write(collect(quick(), catalogue), tmp_path / "papers")
    assert tmp_path / "papers" / "results" / "toy.quick.json" in written
    for path in written:
        text = path.read_text(encoding="utf-8")
        assert str(tmp_path) not in text
        assert "somewhere" not in text


def test_a_file_can_be_read_again(quick: Build, catalogue: Catalogue, tmp_path: Path) -> None:
    collected = collect(quick(), catalogue)
    write(collected, tmp_path / "papers")
    text = (tmp_path / "papers" / "results" / "toy.quick.json").read_text(encoding="utf-8")
    assert PaperResult.model_validate_json(text) == collected.result


def test_the_same_run_gives_the_same_bytes(quick: Build, catalogue: Catalogue, tmp_path: Path) -> None:
    run = quick()
    first, second = (write(collect(run, catalogue), tmp_path / name) for name in ("a", "b"))
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_drawings_of_an_earlier_run_are_removed(quick: Build, catalogue: Catalogue, tmp_path: Path) -> None:
    figures = tmp_path / "papers" / "figures"
    figures.mkdir(parents=True)
    for name in ("toy.quick.old.svg", "toy.full.old.svg"):
        (figures / name).write_text("<svg/>")
    write(collect(quick(), catalogue), tmp_path / "papers")
    assert not (figures / "toy.quick.old.svg").exists()
    assert (figures / "toy.full.old.svg").exists()


def test_flagged_and_failed_cells_are_named(quick: Build, catalogue: Catalogue) -> None:
    result = collect(quick(outcome=lambda spec: "invalid" if spec["index"] == 2 else "ok"), catalogue).result
    assert result.cells == {"ok": 14, "invalid": 1}
    assert [cell[:4] for cell in result.not_ok] == ["0002"]


def test_a_run_of_another_experiment_is_refused(synthetic: Build, catalogue: Catalogue) -> None:
    with pytest.raises(InputError, match="no row of the papers names its experiment 'demo'"):
        collect(synthetic(name="demo"), catalogue)


def test_an_unfinished_run_is_refused_and_not_found(synthetic: Build, catalogue: Catalogue) -> None:
    run = synthetic()
    events = (run / "events.jsonl").read_text().splitlines(keepends=True)
    (run / "events.jsonl").write_text("".join(events[:-1]))
    assert newest_runs(run.parent, catalogue) == []
    with pytest.raises(InputError, match="has not finished"):
        collect(run, catalogue)


def test_the_newest_run_of_each_form_is_found(synthetic: Build, quick: Build, catalogue: Catalogue) -> None:
    quick(day=20)
    newer, plain = quick(day=21), synthetic(day=19)
    synthetic(day=25, name="demo")
    assert newest_runs(newer.parent, catalogue) == [plain, newer]


@pytest.mark.parametrize(
    ("drawn", "small"),
    [
        ('<path d="M 1.2345 -0.04 L 10.25 3"/>', '<path d="M 1.2 -0 L 10.2 3"/>'),
        ('<path d="M1.2345-0.04L10.25 3z"/>', '<path d="M1.2-0L10.2 3z"/>'),
        ('<use xlink:href="#m1" x="10.123" y="4.56"/>', '<use xlink:href="#m1" x="10.1" y="4.6"/>'),
        (
            '<g transform="translate(7.123 8.1234) scale(0.015625)"/>',
            '<g transform="translate(7.1 8.1) scale(0.015625)"/>',
        ),
    ],
)
def test_coordinates_are_rounded(drawn: str, small: str) -> None:
    assert small_svg(drawn) == small


@pytest.mark.parametrize(
    "kept",
    [
        "<text>0.025</text>",
        '<text>p = 0.004; x="0.004"</text>',
        "<style>.a{opacity: 0.04}</style>",
        '<path style="opacity: 0.04; fill: #1.234" width="0.75" viewBox="0 0 460.75 345.25"/>',
        '<g transform="scale(0.015625)"/>',
        '<g id="d 0.125" data-y="0.125"/>',
    ],
)
def test_other_numbers_of_a_drawing_are_kept(kept: str) -> None:
    assert small_svg(kept) == kept


def test_drawings_keep_their_texts(quick: Build, catalogue: Catalogue, tmp_path: Path) -> None:
    run = quick()
    written, _ = write_figures(load(run), ["box", "links"], tmp_path, statistics=lambda: statistics_of(run))
    original = {f"toy.quick.{figure.files[0].stem}.svg": texts(figure.files[0].read_text()) for figure in written}
    drawings = collect(run, catalogue).drawings
    assert any(re.search(r"\d\.\d{2}", text) for name in drawings for text in original[name])
    assert {name: texts(svg) for name, svg in drawings.items()} == {name: original[name] for name in drawings}


def texts(svg: str) -> list[str]:
    return [text for element in ET.fromstring(svg).iter() for text in element.itertext()]  # noqa: S314 - our own


def test_a_list_has_an_item_in_each_line() -> None:
    text = compact_json({"a": 1, "b": [{"c": 2}, {"c": 3}], "d": ["x"]})
    assert text == '{\n "a": 1,\n "b": [\n  {"c": 2},\n  {"c": 3}\n ],\n "d": ["x"]\n}\n'
