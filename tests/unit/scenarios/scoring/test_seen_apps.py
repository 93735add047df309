"""Scores of apps that report nothing about themselves (Android): unknown metrics have no value."""

from pathlib import Path
from typing import Any

from mplab.analysis.record.tables import Tables
from mplab.scenarios.base.scoring import pages, playback, sound, upload

NOTHING = Tables(None)


def values(found: Any) -> dict[str, float]:
    return {value.metric: value.value for value in found}


def clip(event: str, at: float, **fields: Any) -> dict[str, Any]:
    return {"t": at, "event": event, "visit": 1, "clip": "clip-1", "at": at, **fields}


def test_clip_has_startup_and_stalls_and_no_quality() -> None:
    seen = [
        clip("tapped", 10.0),
        clip("playing", 12.0, media_s=0.0),
        clip("waiting", 15.0, buffer_s=None, media_s=None),
        clip("playing", 16.0, media_s=None),
        clip("left", 22.0, media_s=9.0),
        {"t": 22.0, "event": "rebuffering", "visit": 1, "clip": "clip-1", "resolution_s": 0.3},
    ]
    assert values(playback.score(seen, NOTHING, Path())) == {
        "startup_delay": 2.0,
        "clip_startup_delay": 2.0,
        "rebuffering_count": 1.0,
        "rebuffering_time": 1.0,
        "rebuffering_ratio": 10.0,
        "look_resolution": 0.3,
    }


def file(number: int, state: str) -> dict[str, Any]:
    common = {"event": "upload", "file": number, "size_bytes": 1_000_000, "blocks": None, "resolution_s": 0.25}
    return {**common, "state": state, "duration_s": 8.0}


def test_file_that_was_cancelled_is_not_counted_as_lost() -> None:
    scored = values(upload.score([file(1, "done"), file(2, "cancelled")], NOTHING, Path()))
    assert scored == {"upload_time": 8.0, "goodput": 1.0, "look_resolution": 0.25}


def test_log_of_the_origin_says_what_came_of_it() -> None:
    arrived = {"event": "arrived", "file": 1, "timeline": [[1.0, 250_000]]}
    scored = values(upload.score([file(1, "cancelled"), arrived], NOTHING, Path()))
    assert scored == {"goodput": 0.25, "uploaded_share": 25.0, "look_resolution": 0.25}


def test_page_has_its_time_alone() -> None:
    page = {"event": "page", "site": "wiki", **dict.fromkeys(pages.FIELDS.values()), "page_load_time_s": 2.0}
    assert values(pages.score([{**page, "resolution_s": 0.5}])) == {
        "page_load_time_mean": 2.0,
        "page_load_time": 2.0,
        "look_resolution": 0.5,
    }


def test_app_that_was_listened_to(tmp_path: Any) -> None:
    silences = [{"at": 5.0, "duration_s": 2.0}, {"at": 9.0, "duration_s": 1.0}]
    listened = {"event": "listened", "startup_s": 1.0, "listened_s": 11.0, "silences": silences, "resolution_s": 1.0}
    assert values(sound.score([listened], tmp_path)) == {
        "time_to_first_sound": 1.0,
        "silence_time": 3.0,
        "silences": 2.0,
        "silence_longest": 2.0,
        "silence_share": 30.0,
        "look_resolution": 1.0,
    }


def test_app_that_never_played(tmp_path: Any) -> None:
    listened: dict[str, Any] = {
        "event": "listened",
        "startup_s": None,
        "listened_s": 11.0,
        "silences": [],
        "resolution_s": 1.0,
    }
    assert values(sound.score([listened], tmp_path)) == {"look_resolution": 1.0}
