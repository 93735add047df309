"""Clips in the real browser, over fast and slow links."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from mplab.scenarios.base.scoring.playback import clips_of
from tests.integration.conftest import Mplab
from tests.integration.test_run import cells, only_run

EXPERIMENT = """\
mplab: 1
name: clips
transports: [sptcp-wifi]
links: [{links}]
scenarios:
  - {scenario}
tolerance: {{rtt: 60 %, rate: 50 %}}
retries: {retries}
"""
LINK = "{{name: {name}, wifi: {{down: {rate}, up: {rate}, rtt: 20 ms}}, lte: {{down: {rate}, up: {rate}, rtt: 20 ms}}}}"
FAST, SLOW = LINK.format(name="fast", rate="10 Mbit/s"), LINK.format(name="slow", rate="250 kbit/s")


def test_a_slow_link_means_waiting_and_a_poorer_picture(mplab: Mplab, tmp_path: Path) -> None:
    scenario = "dailymotion: {clips: [clip-2], watch: 8 s, patience: 40 s}"
    path = tmp_path / "clips.yaml"
    path.write_text(EXPERIMENT.format(links=f"{FAST}, {SLOW}", scenario=scenario, retries=2))
    result = mplab("run", str(path), "--json")
    assert result.returncode == 0, result.stdout + result.stderr
    run = only_run(tmp_path)
    by_link = {}
    for identity, cell in cells(run).items():
        values = json.loads((run / "cells" / identity / "scores.json").read_text())["values"]
        by_link[cell["spec"]["link"]] = {
            (value["metric"], *value["labels"].values()): value["value"] for value in values
        }
    fast, slow = by_link["fast"], by_link["slow"]
    assert set(fast) - {key for key in fast if key[0] == "segment_bitrate"} == {
        key for key in slow if key[0] != "segment_bitrate"
    }
    for metric in ("startup_delay", "rebuffering_count", "rebuffering_time", "rebuffering_ratio"):
        assert slow[metric,] > fast[metric,], metric
    for metric in ("mean_bitrate", "buffer_level"):
        assert slow[metric,] < fast[metric,], metric
    assert slow["quality_time", "240p"] > fast["quality_time", "240p"]
    assert fast["quality_time", "1080p"] > 0
    _check_clips(run)
    names = {path.stem for path in (run / "report" / "figures").iterdir()}
    assert {"playback-dailymotion-fast", "playback-dailymotion-slow"} <= names


def _check_clips(run: Path) -> None:
    """Check that time without a picture counts as a stall, and that the picture moves while the clip's clock does."""
    for path in run.glob("cells/*/scenario.jsonl"):
        records = [json.loads(line) for line in path.read_text().splitlines()]
        assert [record["protocol"] for record in records if record["event"] == "qualities"] == ["h2"]
        clips = clips_of(records)
        assert [clip.name for clip in clips] == ["clip-2"]
        for clip in clips:
            assert clip.shown_s + clip.stalled_s == pytest.approx(clip.watched_s, abs=0.2 * clip.watched_s)
            frozen = [
                (earlier, later)
                for earlier, later in pairwise(clip.samples)
                if earlier.media_s > 0 and later.media_s - earlier.media_s > 0.2 and later.frames == earlier.frames
            ]
            assert len(frozen) < 0.2 * len(clip.samples), frozen


def test_a_clip_that_never_begins_fails_with_evidence(mplab: Mplab, tmp_path: Path) -> None:
    path = tmp_path / "clips.yaml"
    scenario = "youtube: {clips: [clip-1], patience: 1 s}"
    path.write_text(EXPERIMENT.format(links=SLOW, scenario=scenario, retries=0))
    mplab("run", str(path), "--no-report")
    ((identity, cell),) = cells(only_run(tmp_path)).items()
    assert cell["outcome"] == "failed"
    assert "youtube: clip-1: no picture within 1 s, the player reports 'loading'" in cell["reasons"][0]
    directory = only_run(tmp_path) / "cells" / identity
    assert list(directory.glob("screenshots/*.png"))
    events = [json.loads(line)["event"] for line in (directory / "scenario.jsonl").read_text().splitlines()]
    assert "tapped" in events
    assert "playing" not in events
