"""The phone's sound card and the scenarios that record it, with the real programs."""

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from mplab.base.errors import DeviceError, LabNotReadyError
from mplab.drivers.phone.sound import PAREC, PULSEAUDIO, SoundCard
from mplab.drivers.services import load_service
from mplab.scenarios.base.scoring.sound import Melody, playback, read_wav
from tests.integration.conftest import Mplab

EXPERIMENT = """\
mplab: 1
name: sound
transports: [sptcp-wifi]
links:
  - name: fast
    wifi: {down: 20 Mbit/s, up: 20 Mbit/s, rtt: 10 ms}
    lte: {down: 20 Mbit/s, up: 20 Mbit/s, rtt: 20 ms}
scenarios: [SCENARIOS]
tolerance: {rtt: 60 %, rate: 50 %}
retries: 0
"""

EXACTNESS_S = 0.05
"""Maximum error of a recording's start time, s."""


@pytest.fixture(scope="module", autouse=True)
def _programs_are_there() -> None:
    try:
        for program in (PULSEAUDIO, PAREC, *load_service("icecast").programs):
            program.path()
    except LabNotReadyError as error:
        pytest.skip(str(error))


@pytest.fixture
def melody() -> Any:
    from mplab.services.icecast.service import RADIO

    return RADIO


@pytest.fixture
def card(tmp_path: Path) -> SoundCard:
    return SoundCard(enter=[], directory=tmp_path / "card", log=tmp_path / "card.log")


def play(card: SoundCard, samples: bytes) -> float:
    """Play mono 48 kHz sound until it ends; return its start, Unix time in s."""
    argv = ["pacat", "--playback", "--rate=48000", "--channels=1", "--format=s16le", "--raw", "--latency-msec=50"]
    began = time.time()
    subprocess.run(argv, input=samples, env={**os.environ, "PULSE_SERVER": card.server}, timeout=60, check=True)
    return began


def test_what_is_played_is_recorded_with_its_time(card: SoundCard, melody: Any, tmp_path: Path) -> None:
    samples = melody.samples()
    with card:
        card.record(tmp_path / "sound.wav")
        time.sleep(0.3)
        first = play(card, samples[: 2 * 48000].tobytes())
        time.sleep(1)
        second = play(card, samples[10 * 48000 : 12 * 48000].tobytes())
        recorded = card.stop_recording()
    assert recorded.duration_s == pytest.approx(read_wav(recorded.file).duration_s)
    assert 0.2 < recorded.peak < 0.4
    result = playback(read_wav(recorded.file), Melody.from_observation(melody.describe()))
    assert result.first_sound_s >= first - recorded.began - EXACTNESS_S
    silence = max(result.silences, key=lambda pause: pause.end_s - pause.start_s)  # A busy host adds short pauses.
    assert silence.end_s >= second - recorded.began - EXACTNESS_S
    assert [skip.jump_s for skip in result.skips] == [pytest.approx(8.0, abs=0.05)]


def test_silence_is_recorded_too(card: SoundCard, tmp_path: Path) -> None:
    with card:
        card.record(tmp_path / "sound.wav")
        time.sleep(0.5)
        recorded = card.stop_recording()
    assert recorded.peak == 0
    assert recorded.duration_s > 0


def test_a_sound_card_that_ends_in_the_middle(card: SoundCard, tmp_path: Path) -> None:
    with card:
        card.record(tmp_path / "sound.wav")
        (server,) = [
            child for child in psutil.Process().children(recursive=True) if child.name().startswith("pulseaudio")
        ]
        server.kill()
        server.wait(10)
        with pytest.raises(DeviceError, match="phone: the sound card has ended"):
            card.stop_recording()
    assert read_wav(tmp_path / "sound.wav").samples.max(initial=0) == 0


def test_a_sound_card_that_cannot_start(tmp_path: Path) -> None:
    with (
        pytest.raises(DeviceError, match="the sound card has ended"),
        SoundCard(enter=["false"], directory=tmp_path / "card", log=tmp_path / "card.log"),
    ):
        pass


def experiment(tmp_path: Path, scenarios: str) -> str:
    path = tmp_path / "sound.yaml"
    path.write_text(EXPERIMENT.replace("SCENARIOS", scenarios))
    return str(path)


def test_radio_and_spotify_are_heard(mplab: Mplab, tmp_path: Path) -> None:
    result = mplab("run", experiment(tmp_path, "radio: {listen: 6 s}, spotify: {listen: 6 s}"))
    assert result.returncode == 0, result.stdout + result.stderr
    (run,) = (tmp_path / "runs").iterdir()
    for cell in run.glob("cells/*"):
        values = {v["metric"]: v["value"] for v in json.loads((cell / "scores.json").read_text())["values"]}
        assert values["recognised"] > 90
        assert values["skips"] == 0
        assert values["time_to_first_sound"] < 6
        assert (cell / "logs" / "icecast.log").stat().st_size or "spotify" in cell.name
    assert {path.stem for path in run.glob("report/data/waveform-*.csv")} == {
        "waveform-radio-fast",
        "waveform-spotify-fast",
    }
