"""The figure of a test's playback."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from mplab.analysis.figures.style import Drawing
from mplab.analysis.record.run import read_run
from mplab.analysis.scores.plugins import load
from mplab.analysis.scores.scoring import score_cell
from mplab.analysis.statistics.summaries import Analysis, summarise
from mplab.scenarios.base.figures import playback
from tests.unit.analysis.synthetic import Synthetic
from tests.unit.scenarios.scoring.test_playback import SMOOTH, stalled


def figures(builder: Synthetic, records: Callable[[dict[str, Any]], Sequence[dict[str, Any]]]) -> list[Drawing]:
    directory = builder.build()
    for path in directory.glob("cells/*/scenario.jsonl"):
        spec = json.loads((path.parent / "cell.json").read_text())["spec"]
        path.write_text("".join(json.dumps(record) + "\n" for record in records(spec)))
    run = read_run(directory)
    plugin = load("youtube")
    scores = [score_cell(cell, plugin) for cell in run.cells if cell.ok]
    return list(playback.draw(Analysis(run, tuple(summarise(run, {"files": plugin.metrics}, scores)))))


def test_one_test_of_each_transport(synthetic: Callable[..., Synthetic]) -> None:
    def records(spec: dict[str, Any]) -> Sequence[dict[str, Any]]:
        return stalled() if spec["transport"] == "sptcp-wifi" else SMOOTH

    (drawing,) = figures(synthetic(repetitions=3), records)
    assert (drawing.scenario, drawing.link, drawing.metric) == ("files", "baseline", "mean_bitrate")
    rows = [dict(zip(drawing.columns, row, strict=True)) for row in drawing.rows]
    assert {row["transport"] for row in rows} == {"sptcp-wifi", "sptcp-lte", "mptcp"}
    assert all(row["cell"].endswith("-r1") for row in rows)
    assert [row["quality"] for row in rows if row["transport"] == "mptcp"] == ["240p", "720p"]
    assert [row["t_s"] for row in rows if row["transport"] == "mptcp"] == pytest.approx([1.2, 5.0])
    root = ET.fromstring(drawing.svg)  # noqa: S314 - our own
    texts = {"".join(element.itertext()).strip() for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"TCP over WiFi", "Multipath TCP", "240p", "720p", "stall"} <= texts


def test_a_stall_is_in_the_data(synthetic: Callable[..., Synthetic]) -> None:
    at_stall = {**SMOOTH[5], "at": 12.7, "media_s": 1.5, "buffer_s": 0.0}
    (drawing,) = figures(synthetic(repetitions=1), lambda _: [*stalled(), at_stall])
    states = {row[drawing.columns.index("t_s")]: row[drawing.columns.index("state")] for row in drawing.rows}
    assert states[2.7] == "stalled"
    assert states[1.2] == "playing"


def test_other_scenarios_have_none(synthetic: Callable[..., Synthetic]) -> None:
    builder = synthetic(repetitions=1)
    run = read_run(builder.build())
    plugin = load("toy")
    scores = [score_cell(cell, plugin) for cell in run.cells if cell.ok]
    assert list(playback.draw(Analysis(run, tuple(summarise(run, {"files": plugin.metrics}, scores))))) == []


def test_cells_that_failed_are_not_shown(synthetic: Callable[..., Synthetic]) -> None:
    builder = synthetic(repetitions=2, outcome=lambda spec: "failed" if spec["repetition"] == 1 else "ok")
    (drawing,) = figures(builder, lambda _: SMOOTH)
    assert all(row[drawing.columns.index("cell")].endswith("-r2") for row in drawing.rows)
