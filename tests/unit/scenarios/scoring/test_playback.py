"""Scores of video from the player's records."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mplab.scenarios.base.scoring.playback import METRICS, clips_of, score

LADDER = [{"height": 240, "rate_kbps": 250.0}, {"height": 720, "rate_kbps": 2000.0}]


def record(event: str, at: float, visit: int = 1, **fields: Any) -> dict[str, Any]:
    return {"t": 99.0, "event": event, "visit": visit, "clip": f"clip-{visit}", "at": at, **fields}


def segment(number: int, height: int, at: float, visit: int = 1, kind: str = "video") -> dict[str, Any]:
    rate = {240: 250.0, 720: 2000.0}[height]
    return record(
        "segment",
        at,
        visit,
        kind=kind,
        number=number,
        height=height,
        rate_kbps=rate,
        start_s=2.0 * number,
        duration_s=2.0,
        done=at,
    )


def sample(at: float, media_s: float, buffer_s: float, dropped: int = 0, visit: int = 1) -> dict[str, Any]:
    frames = round(media_s * 25)
    return record("sample", at, visit, media_s=media_s, buffer_s=buffer_s, frames=frames, dropped=dropped, height=240)


SMOOTH = [
    record("tapped", 10.0),
    record("waiting", 10.1, media_s=0.0, buffer_s=0.0),
    record("qualities", 10.2, qualities=LADDER),
    segment(0, 240, 10.5),
    record("playing", 11.0, media_s=0.0),
    sample(11.2, 0.2, 4.0),
    segment(1, 720, 11.5),
    segment(2, 720, 12.0),
    sample(15.0, 4.0, 2.0),
    record("left", 16.0, media_s=5.0),
]
"""Startup of 1 s; then 2 s in 240p and 3 s in 720p."""


def values(records: Sequence[Mapping[str, Any]]) -> dict[Any, float]:
    scored = {(value.metric, *value.labels.values()): value.value for value in score(records, {}, Path())}
    return {key if len(key) > 1 else key[0]: value for key, value in scored.items()}


def test_a_clip_without_stalls() -> None:
    scored = values(SMOOTH)
    assert scored == pytest.approx(
        {
            "startup_delay": 1.0,
            ("clip_startup_delay", "clip-1"): 1.0,
            "rebuffering_count": 0.0,
            "rebuffering_time": 0.0,
            "rebuffering_ratio": 0.0,
            "quality_switches": 1.0,
            "mean_bitrate": (2 * 250 + 3 * 2000) / 5,
            ("quality_time", "240p"): 40.0,
            ("quality_time", "720p"): 60.0,
            ("segment_bitrate", "01"): 250.0,
            ("segment_bitrate", "02"): 2000.0,
            ("segment_bitrate", "03"): 2000.0,
            "buffer_level": 3.0,
            "dropped_frames": 0.0,
            "host_stalls": 0.0,
        }
    )


def stalled(*, to_the_end: bool = False) -> list[dict[str, Any]]:
    """Return records with two stalls of 0.5 s; with `to_the_end`, the second lasts 1.5 s, until the user leaves."""
    return [
        *SMOOTH,
        record("waiting", 12.5, media_s=1.5, buffer_s=0.2),
        record("playing", 13.0, media_s=1.5),
        record("waiting", 14.5, media_s=3.0, buffer_s=0.0),
        *([] if to_the_end else [record("playing", 15.0, media_s=3.0)]),
    ]


def test_stalls_are_counted_without_the_start() -> None:
    scored = values(stalled())
    assert scored["rebuffering_count"] == 2
    assert scored["rebuffering_time"] == pytest.approx(1.0)
    assert scored["rebuffering_ratio"] == pytest.approx(100 * 1.0 / 5.0)
    assert scored["startup_delay"] == pytest.approx(1.0)


def test_a_stall_that_lasts_to_the_end_counts_until_the_user_leaves() -> None:
    scored = values(stalled(to_the_end=True))
    assert scored["rebuffering_count"] == 2
    assert scored["rebuffering_time"] == pytest.approx(0.5 + 1.5)


def test_a_stall_with_video_in_the_buffer_is_the_hosts() -> None:
    busy = [*SMOOTH, record("waiting", 12.5, media_s=1.5, buffer_s=4.0), record("playing", 13.0, media_s=1.5)]
    assert values(busy)["host_stalls"] == 1
    assert values(busy)["rebuffering_count"] == values(busy)["rebuffering_time"] == 0


def test_waiting_for_the_end_of_a_clip_is_no_stall() -> None:
    over = [*SMOOTH[:-1], record("waiting", 15.95, media_s=5.0, buffer_s=0.0), record("ended", 16.0, media_s=5.02)]
    assert values(over)["rebuffering_count"] == 0
    late = [*over, record("left", 21.0, media_s=5.02)]
    assert values(late)["rebuffering_time"] == 0
    assert clips_of(late)[0].watched_s == pytest.approx(5.0)


def test_a_segment_that_came_twice_counts_as_it_came_last() -> None:
    again = [*SMOOTH, segment(0, 720, 11.8)]
    assert values(again)["mean_bitrate"] == pytest.approx(2000.0)
    assert values(again)["quality_switches"] == 0


def test_what_was_loaded_and_not_shown_does_not_count() -> None:
    ahead = [*SMOOTH, segment(3, 240, 13.0), segment(4, 240, 13.5)]
    assert values(ahead)["mean_bitrate"] == values(SMOOTH)["mean_bitrate"]
    assert ("segment_bitrate", "04") not in values(ahead)


def test_audio_is_no_video() -> None:
    assert values([*SMOOTH, segment(0, 720, 10.6, kind="audio")]) == values(SMOOTH)


def test_a_quality_that_was_never_shown_has_no_time() -> None:
    low = [record for record in SMOOTH if record["event"] != "segment"] + [segment(n, 240, 11.0) for n in range(3)]
    assert values(low)["quality_time", "720p"] == 0
    assert values(low)["quality_time", "240p"] == 100


def test_dropped_frames_are_a_share_of_all() -> None:
    busy = [*SMOOTH[:-2], sample(15.0, 4.0, 2.0, dropped=25), SMOOTH[-1]]
    assert values(busy)["dropped_frames"] == pytest.approx(25.0)


def test_clips_are_averaged() -> None:
    second = [
        {**record, "visit": 2, "clip": "clip-2", "at": record["at"] + (101.0 if record["event"] != "tapped" else 100.0)}
        for record in SMOOTH
    ]
    scored = values([*SMOOTH, *second])
    assert scored["startup_delay"] == pytest.approx(1.5)
    assert scored["clip_startup_delay", "clip-2"] == pytest.approx(2.0)
    assert scored["mean_bitrate"] == pytest.approx(values(SMOOTH)["mean_bitrate"])


@pytest.mark.parametrize("missing", ["tapped", "playing", "left"])
def test_a_clip_that_was_not_watched_gives_no_value(missing: str) -> None:
    assert score([record for record in SMOOTH if record["event"] != missing], {}, Path()) == []


def test_other_observations_do_not_matter() -> None:
    traffic = {"t": 1.0, "event": "traffic", "interfaces": {}}
    assert values([traffic, *SMOOTH]) == values(SMOOTH)
    assert score([traffic], {}, Path()) == []


def test_values_carry_the_labels_of_their_metric() -> None:
    metrics = {metric.name: metric for metric in METRICS}
    scored = score(stalled(), {}, Path())
    assert {value.metric for value in scored} == set(metrics) - {"look_resolution"}
    for value in scored:
        assert tuple(value.labels) == metrics[value.metric].labels
