"""Playback that is detected in recordings with known content."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mplab.scenarios.base.scoring.sound import METRICS, Melody, Recording, listen, playback, read_wav, values, waits
from mplab.scenarios.base.scoring.sound.recording import THRESHOLD_DB
from tests.unit.scenarios.scoring.sound.conftest import RATE_HZ, Heard, metrics, write_wav


@pytest.fixture
def melody(described: dict[str, Any]) -> Melody:
    return Melody.from_observation(described)


def test_the_source_is_never_silent(source: Any) -> None:
    level = Recording(source, RATE_HZ).level_db()
    assert level.min() > THRESHOLD_DB + 30


def test_sound_without_a_fault(heard: Heard, melody: Melody) -> None:
    scored = metrics(values(playback(heard(1.5, (10, 30)), melody), []))
    assert scored == {
        "time_to_first_sound": pytest.approx(1.5),
        "recognised": 100.0,
        **dict.fromkeys(
            ("silence_time", "silences", "silence_longest", "silence_share", "glitches", "stutter_time"), 0.0
        ),
        **dict.fromkeys(("skips", "skipped_time", "repeated_time"), 0.0),
    }
    assert set(scored) == {metric.name for metric in METRICS} - {"look_resolution"}


def test_silences_are_counted_from_the_first_sound_on(heard: Heard, melody: Melody) -> None:
    played = playback(heard(2.0, (10, 20), 3.0, (20, 25), 0.5, (25, 30), 0.05, (30, 33)), melody)
    assert [(round(p.start_s, 2), round(p.end_s, 2)) for p in played.silences] == [(12.0, 15.0), (20.0, 20.5)]
    assert [round(p.duration_s, 2) for p in played.glitches] == [0.05]
    assert played.skips == ()
    scored = metrics(values(played, []))
    assert scored["silence_time"] == pytest.approx(3.5)
    assert scored["silence_longest"] == pytest.approx(3.0)
    assert scored["silence_share"] == pytest.approx(100 * 3.5 / 26.55)


def test_a_silence_that_never_ends_lasts_to_the_end(heard: Heard, melody: Melody) -> None:
    played = playback(heard((0, 5), 20.0), melody)
    assert [pause.duration_s for pause in played.silences] == [pytest.approx(20.0)]


def test_a_silence_that_the_player_knows_nothing_of_is_the_hosts(heard: Heard, melody: Melody) -> None:
    played = playback(heard((0, 5), 1.0, (5, 10), 0.25, (10, 12), 0.5, (12, 15)), melody)
    scored = metrics(values(played, [4.9, 13.6]))
    assert scored["silence_time"] == pytest.approx(1.75)
    assert scored["stutter_time"] == pytest.approx(0.25)
    observations = [
        {"event": "player", "what": "waiting", "at": 1004.9},
        {"event": "player", "what": "playing", "at": 1006.0},
        {"event": "sound", "tapped": 1000.0},
    ]
    assert waits(observations, observations[-1]) == [pytest.approx(4.9)]


@pytest.mark.parametrize(
    ("parts", "jump_s"),
    [
        (((10, 20), (23.5, 30)), 3.5),
        (((10, 20), (18, 30)), -2.0),
        (((10, 20), 2.0, (22, 30)), 2.0),
        (((10, 20), 2.0, (20.5, 30)), 0.5),
        (((10, 20), 2.0, (19, 30)), -1.0),
        (((230, 240), (3, 10)), 3.0),
    ],
)
def test_a_skip_is_a_jump_of_the_source_and_no_silence(
    heard: Heard, melody: Melody, parts: tuple[Any, ...], jump_s: float
) -> None:
    played = playback(heard(*parts), melody)
    assert [skip.jump_s for skip in played.skips] == [pytest.approx(jump_s, abs=0.03)]
    assert played.skips[0].at_s == pytest.approx(10, abs=2.5)
    assert played.silence_s == pytest.approx(sum(part for part in parts if isinstance(part, float)))
    scored = metrics(values(played, []))
    assert (scored["skipped_time"] > 0, scored["repeated_time"] > 0) == (jump_s > 0, jump_s < 0)


def test_the_end_of_the_melody_is_followed_by_its_start(heard: Heard, melody: Melody) -> None:
    played = playback(heard((230, 250)), melody)
    assert (played.skips, played.recognised) == ((), 1.0)


def test_many_short_silences_are_no_skips(heard: Heard, melody: Melody) -> None:
    parts = [part for start in range(10, 30) for part in ((start, start + 1), 0.4)]
    played = playback(heard(*parts), melody)
    assert len(played.silences) == 20
    assert played.skips == ()
    assert played.recognised == 1.0


def test_noise_does_not_hide_the_melody(heard: Heard, melody: Melody) -> None:
    played = playback(heard((10, 20), (25, 40), noise=0.02), melody)
    assert played.recognised > 0.95
    assert [skip.jump_s for skip in played.skips] == [pytest.approx(5.0, abs=0.03)]


def test_something_else_is_not_recognised(melody: Melody) -> None:
    noise = np.random.default_rng(1).normal(0, 0.1, 10 * RATE_HZ).astype(np.float32)
    played = playback(Recording(noise, RATE_HZ), melody)
    assert played.recognised == 0
    assert played.silences == ()


def test_no_sound_at_all(heard: Heard, melody: Melody) -> None:
    with pytest.raises(ValueError, match=r"the recording of 5\.0 s has no sound"):
        playback(heard(5.0), melody)


def observation(described: dict[str, Any], **changes: Any) -> dict[str, Any]:
    fields = {"event": "sound", "file": "sound.wav", "began": 1000.0, "tapped": 1002.0, "listened_s": 10.0}
    return fields | {"melody": described} | changes


def test_the_recording_is_heard_from_the_tap_on(heard: Heard, described: dict[str, Any], tmp_path: Path) -> None:
    file = write_wav(tmp_path / "sound.wav", heard(2.0, 0.7, (0, 12)))
    played = listen(observation(described), file)
    assert played.first_sound_s == pytest.approx(0.7)
    assert played.recording.duration_s == 10.0


def test_a_recording_that_is_too_short(heard: Heard, described: dict[str, Any], tmp_path: Path) -> None:
    file = write_wav(tmp_path / "sound.wav", heard((0, 6)))
    with pytest.raises(ValueError, match=r"sound\.wav has 4\.0 s after the tap, 10 s were listened to"):
        listen(observation(described), file)


def test_channels_are_averaged(heard: Heard, tmp_path: Path) -> None:
    mono = heard((0, 1))
    stereo = read_wav(write_wav(tmp_path / "stereo.wav", mono, channels=2))
    assert np.abs(stereo.samples - mono.samples).max() < 1e-4


@pytest.mark.parametrize(
    ("content", "message"), [(b"", "not a WAV file"), (b"RIFF", "not a WAV file"), (b"x" * 100, "not a WAV file")]
)
def test_files_that_are_no_recording(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "sound.wav"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_wav(path)


def test_other_sample_widths_are_refused(heard: Heard, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="samples have 8 bits"):
        read_wav(write_wav(tmp_path / "sound.wav", heard((0, 1)), width=1))
