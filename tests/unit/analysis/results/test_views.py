"""Views of results in a notebook: one line, HTML, plots, frames of pandas."""

import builtins
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from matplotlib.axes import Axes

from mplab.analysis.errors import FigureError
from mplab.analysis.pipeline import analyze
from mplab.analysis.results import views
from mplab.results import Results, load
from tests.unit.analysis.synthetic import Synthetic, toy_scenario


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three analysed runs of two experiments; the manifest of a fourth is damaged, that of a fifth is missing."""
    folder = tmp_path_factory.mktemp("runs")
    with toy_scenario(tmp_path_factory.mktemp("toy")), pytest.MonkeyPatch.context() as patch:
        patch.setattr("mplab.analysis.pipeline.draw_all", lambda _: iter(()))
        for day, name in ((1, "short"), (2, "short"), (3, "lossy")):
            analyze(Synthetic(folder, day=day, name=name, labels=["10 kB", "1 MB"], repetitions=3).build())
    (folder / "broken").mkdir()
    (folder / "broken" / "manifest.json").write_text("{")
    (folder / "<lost>" / "cells").mkdir(parents=True)
    return folder


def test_results_are_described_in_one_line(folder: Path) -> None:
    expected = "<Results: 3 runs of lossy and short; 2026-09-01 to 2026-09-03; 27 of 27 cells ok; 2 not read>"
    assert repr(load(folder)) == expected
    assert repr(Results(())) == "<Results: 0 runs; 0 of 0 cells ok>"


def test_a_notebook_shows_runs_and_why_others_were_not_read(folder: Path) -> None:
    shown = load(folder)._repr_html_()
    assert shown.index("20260903T101500Z-lossy-abc123") < shown.index("20260901T101500Z-short-abc123")
    assert "broken: not a run directory: manifest.json cannot be read" in shown
    assert "&lt;lost&gt;: not a run directory: manifest.json is missing" in shown
    assert "<lost>" not in shown


def test_the_description_of_many_runs_is_short(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "SHOWN", 1)
    shown = load(folder)._repr_html_()
    assert "The newest 1:" in shown
    assert "short-abc123" not in shown
    assert "… and 1 more" in shown


def test_runs_are_selected_by_experiment_or_id(folder: Path) -> None:
    results = load(folder)
    assert results.only(experiment="short").runs["experiment"].to_list() == ["short", "short"]
    assert results.only(run="20260902").values["run_id"].unique().to_list() == ["20260902T101500Z-short-abc123"]
    with pytest.raises(ValueError, match=r"unknown experiment 'shor'\. Did you mean 'short'"):
        results.only(experiment="shor")
    with pytest.raises(ValueError, match="unknown run '2027'"):
        results.only(run="2027")


def lines(axes: Axes, style: str) -> list[tuple[float, ...]]:
    """Return the x values of the lines with a style: ``None`` for points, ``-`` for medians and intervals."""
    return [tuple(np.asarray(line.get_xdata())) for line in axes.lines if line.get_linestyle() == style]


def points(results: Results, metric: str, **facet: str) -> dict[str, list[tuple[float, ...]]]:
    """Return the title of each facet of a plot → the values of each row."""
    return {axes.get_title(loc="left"): lines(axes, "None") for axes in results.plot(metric, **facet).axes}


def test_a_plot_has_a_facet_per_size_and_a_row_per_run_and_transport(folder: Path) -> None:
    results = load(folder).only(experiment="short")
    drawn = points(results, "time")
    assert list(drawn) == ["10 kB", "1 MB"]
    for labels, rows in drawn.items():
        assert len(rows) == 2 * 3
        wanted = results.values.filter(metric="time", labels=labels)["value"].sort().to_list()
        assert sorted(value for row in rows for value in row) == pytest.approx(wanted)
    assert list(points(results, "time", labels="1 MB")) == ["files · baseline · 1 MB"]


def test_a_plot_has_the_medians_and_intervals_of_the_report(folder: Path) -> None:
    results = load(folder).only(run="20260903")
    figure = results.plot("time", labels="10 kB")
    (axes,) = figure.axes
    reported = results.statistics.filter(metric="time", labels="10 kB").select("low", "high", "median").rows()
    assert lines(axes, "-") == [ends for low, high, median in reported for ends in ((low, high), (median, median))]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["TCP over WiFi", "TCP over LTE", "Multipath TCP"]
    assert figure.get_supxlabel() == "Download time (s)"
    assert axes.get_xlim()[0] == 0


def test_a_plot_is_the_same_svg_each_time(folder: Path) -> None:
    results = load(folder)
    shown = results.plot("goodput")._repr_svg_()
    assert shown == results.plot("goodput")._repr_svg_()
    assert "20260903T101500Z-lossy-abc123" in shown


def test_without_a_report_a_plot_has_no_intervals(folder: Path, tmp_path: Path) -> None:
    run = next(folder.glob("20260901*"))
    shutil.copytree(run, tmp_path / run.name)
    (tmp_path / run.name / "report" / "summary.json").unlink()
    (axes,) = load(tmp_path).plot("flows").axes
    assert [line.get_linestyle() for line in axes.lines] == ["None", "-"] * 3


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({"metric": "tim"}, "unknown metric 'tim'. Did you mean 'time'"),
        ({"metric": "time", "labels": "2 MB"}, "unknown labels '2 MB'"),
        ({"metric": "flows", "labels": "1 MB"}, "unknown labels '1 MB'"),
    ],
)
def test_a_wrong_choice_is_named(folder: Path, chosen: dict[str, str], words: str) -> None:
    with pytest.raises(FigureError, match=words):
        load(folder).plot(**chosen)


def test_runs_without_scores_have_no_plot(tmp_path: Path) -> None:
    Synthetic(tmp_path, repetitions=1).build()
    with pytest.raises(FigureError, match="'mplab analyze' computes them"):
        load(tmp_path).plot("time")


def test_too_many_facets_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mplab.analysis.results.plots.MAX_FACETS", 1)
    with pytest.raises(FigureError, match="time has 2 facets; at most 1 are drawn: give labels"):
        load(folder).plot("time")


def test_of_too_many_runs_the_newest_are_drawn(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mplab.analysis.results.plots.MAX_RUNS", 1)
    assert [len(rows) for rows in points(load(folder), "time").values()] == [3, 3]
    assert "The newest 1 of 3 runs" in load(folder).plot("time")._repr_svg_()


def test_without_pandas_the_command_that_installs_it_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def missing(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] in {"pandas", "pyarrow"}:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
        return original(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ModuleNotFoundError, match=r"is not installed\. Run: pip install pandas pyarrow"):
        load(folder).to_pandas("runs")


def test_pandas_gets_the_frames(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pl.DataFrame, "to_pandas", lambda frame: ("pandas", frame))
    results = load(folder)
    kind, frame = results.to_pandas("values")
    assert kind == "pandas"
    assert frame.equals(results.values)
    assert results.to_pandas("connections")[1].height == results.traces("connections").height
