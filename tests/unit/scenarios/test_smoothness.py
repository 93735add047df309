"""The player's records distinguish a busy host from a slow network."""

from typing import Any

import pytest

from mplab.scenarios.base.playback import disturbances


def played(*, dropped: int = 0, gap_s: float = 0.25, buffer_s: float = 0.0) -> list[dict[str, Any]]:
    """Return records of a clip of 200 frames that stalls once after its start."""
    samples = [
        {"event": "sample", "at": 0.0, "frames": 0, "dropped": 0},
        {"event": "sample", "at": 0.25, "frames": 100, "dropped": 0},
        {"event": "sample", "at": 0.25 + gap_s, "frames": 200, "dropped": dropped},
    ]
    begin = [{"event": "waiting", "at": 0.05, "buffer_s": 9.0}, {"event": "playing", "at": 0.1}]
    return [samples[0], *begin, samples[1], {"event": "waiting", "at": 0.3, "buffer_s": buffer_s}, samples[2]]


def test_a_network_that_stalls_is_no_disturbance() -> None:
    assert disturbances(played(dropped=10, gap_s=1.0, buffer_s=0.2)) == []
    assert disturbances([]) == []


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"dropped": 11}, "5.5 % of the frames came too late for the screen (more than 5 %)"),
        ({"gap_s": 1.2}, "the page was blocked for 1.2 s (more than 1 s)"),
        ({"buffer_s": 1.0}, "the player stopped 1 times with 1 s or more in its buffer"),
    ],
)
def test_what_no_network_does_is_told(given: dict[str, Any], text: str) -> None:
    assert disturbances(played(**given)) == [f"the host was busy: {text}"]
