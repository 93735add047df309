"""The waveform of the recorded sound, over runs with and without recordings."""

import json
import shutil
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mplab.analysis.record.run import read_run
from mplab.analysis.statistics.summaries import Analysis
from mplab.scenarios.base.figures.waveform import COLUMNS, draw, envelope
from mplab.scenarios.base.scoring.sound import Melody, playback
from tests.unit.analysis import traces as made_up
from tests.unit.analysis.synthetic import LTE, WIFI, Synthetic
from tests.unit.scenarios.scoring.sound.conftest import Heard, described, heard, source, station, write_wav

__all__ = ["described", "heard", "source", "station"]


@pytest.fixture
def run(synthetic: Callable[..., Synthetic], heard: Heard, described: dict[str, Any]) -> Path:
    """A run in which TCP over WiFi has a silence and a skip, and TCP over LTE has lost its recording."""
    path = synthetic(repetitions=2, transports=(WIFI, LTE), labels=["1 MB"]).build()
    for cell in sorted((path / "cells").iterdir()):
        sound = {"t": 1.0, "event": "sound", "file": "sound.wav", "began": 1000.0, "tapped": 1001.0, "listened_s": 12.0}
        with (cell / "scenario.jsonl").open("a") as file:
            file.write(json.dumps(sound | {"melody": described}) + "\n")
        if "wifi" in cell.name:
            write_wav(cell / "sound.wav", heard(1.5, (0, 4), 3.0, (4, 7), (9, 12)))
    return path


def test_a_row_for_each_transport_with_a_recording(run: Path) -> None:
    (drawing,) = draw(Analysis(read_run(run)))
    assert (drawing.section, drawing.scenario, drawing.link) == ("traces", "files", "baseline")
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in drawing.rows]
    assert {row["transport"] for row in rows} == {"sptcp-wifi"}
    assert len({row["cell"] for row in rows}) == 1
    assert max(row["end_s"] for row in rows) == 12.0
    quiet = [row for row in rows if row["least"] == row["most"] == 0]
    assert sum(row["end_s"] - row["start_s"] for row in quiet) == pytest.approx(3.5, abs=0.1)
    text = " ".join(ET.fromstring(drawing.svg).itertext())  # noqa: S314 - our own
    assert all(word in text for word in ("First sound", "Silence", "Skip", "Time since the tap"))
    assert next(iter(draw(Analysis(read_run(run))))).svg == drawing.svg


def test_below_it_is_what_the_networks_carried_on_the_same_axis(run: Path) -> None:
    for tables in run.glob("cells/*/tables"):
        shutil.rmtree(tables)
    bare = next(iter(draw(Analysis(read_run(run))))).svg
    began = made_up.START_NS / 1e9
    for cell in (run / "cells").iterdir():
        made_up.Trace(seed=cell.name, connections=2, segments=200, interfaces=["wlan0", "rmnet0"]).write(
            cell / "tables"
        )
        events = (
            {"event": "change", "begun": began + 3, "at_s": 3.0, "interface": "wlan0", "what": "x", "outage": "begins"},
            {"event": "player", "what": "request", "at": began + 0.5},
            {"event": "player", "what": "waiting", "at": began + 0.6},
        )
        path = cell / "scenario.jsonl"
        text = path.read_text().replace('"began": 1000.0, "tapped": 1001.0', f'"began": {began - 1}, "tapped": {began}')
        path.write_text(text + "".join(json.dumps({"t": began, "path": "wifi"} | event) + "\n" for event in events))
    (drawing,) = draw(Analysis(read_run(run)))
    root = ET.fromstring(drawing.svg)  # noqa: S314 - our own
    text = " ".join(root.itertext())
    wanted = ("Stream requested", "WiFi", "LTE", "Retransmission", "Reinjection", "WiFi gone", "New payload")
    assert [word for word in wanted if word not in text] == []
    assert "Stream requested" not in bare
    assert float(root.get("height", "0pt")[:-2]) > float(ET.fromstring(bare).get("height", "0pt")[:-2])  # noqa: S314


def test_nothing_without_recordings(synthetic: Callable[..., Synthetic]) -> None:
    assert list(draw(Analysis(read_run(synthetic(repetitions=1).build())))) == []


def test_the_envelope_keeps_the_extremes(heard: Heard, described: dict[str, Any]) -> None:
    played = playback(heard((0, 3)), Melody.from_observation(described))
    parts = envelope(played, 7)
    assert parts.shape == (7, 4)
    assert parts[:, 2].min() == played.recording.samples.min()
    assert parts[:, 3].max() == played.recording.samples.max()
    assert np.allclose(parts[1:, 0], parts[:-1, 1])
