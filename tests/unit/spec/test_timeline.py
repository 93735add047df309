"""The values of a condition over time."""

from pathlib import Path

import pytest

from mplab.userfiles.links.link import load_link
from mplab.userfiles.links.timeline import LinkTimeline, timeline_of

PATHS = """\
wifi: {down: 8 Mbit/s, up: 2 Mbit/s, rtt: 50 ms}
lte: {down: unlimited, up: 2 Mbit/s, rtt: 70 ms}
"""


def story(directory: Path, *changes: str, paths: str = PATHS) -> LinkTimeline:
    links = directory / "links"
    links.mkdir(exist_ok=True)
    listed = "".join(f"  - {{{change}}}\n" for change in changes)
    (links / "mine.yaml").write_text(paths + (f"changes:\n{listed}" if changes else ""), encoding="utf-8")
    return timeline_of(load_link("mine", links))


def test_nothing_happens(tmp_path: Path) -> None:
    still = story(tmp_path)
    assert not any(line.changes for line in still.lines)
    rates = {(line.path, line.ways): line.steps for line in still.lines if line.quantity == "rate"}
    assert rates["wifi", ("down",)] == ((0.0, 8000.0),)
    assert rates["lte", ("down",)] == ((0.0, None),)
    assert [line.ways for line in still.lines if line.quantity == "delay"] == [("down", "up"), ("down", "up")]


def test_values_hold_until_the_next_change(tmp_path: Path) -> None:
    timeline = story(tmp_path, "at: 10 s, path: wifi, loss: 5 %", "at: 20 s, path: wifi, loss: 1 %")
    (loss,) = (line for line in timeline.lines if line.changes)
    assert (loss.path, loss.quantity) == ("wifi", "loss")
    assert [loss.at(time_s) for time_s in (0.0, 9.9, 10.0, 19.9, 22.0)] == [0.0, 0.0, 5.0, 5.0, 1.0]
    assert timeline.ends_s > 20.0


def test_a_path_is_out_until_interface_and_radio_are_on(tmp_path: Path) -> None:
    timeline = story(
        tmp_path,
        "at: 10 s, path: wifi, radio: off",
        "at: 15 s, path: wifi, interface: down",
        "at: 20 s, path: wifi, radio: on",
        "at: 25 s, path: wifi, interface: up",
        "at: 30 s, path: wifi, access_point: new, gone: 2 s",
        "at: 40 s, path: lte, interface: down",
        "at: 50 s, path: wifi, multipath: backup",
    )
    assert timeline.outages["wifi"] == ((10.0, 25.0), (30.0, 32.0))
    assert timeline.outages["lte"] == ((40.0, timeline.ends_s),)
    assert timeline.marks == ((50.0, "wifi", "multipath backup"),)


def test_a_trace_is_told_by_its_rate_over_time(tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    trace = [*range(0, 1000, 2), *range(1000, 2001, 10)]
    (tmp_path / "traces" / "t.down").write_text("\n".join(map(str, trace)), encoding="utf-8")
    timeline = story(tmp_path, paths=PATHS.replace("8 Mbit/s", "{trace: t.down}"))
    (rate,) = (line for line in timeline.lines if (line.path, line.quantity, line.ways) == ("wifi", "rate", ("down",)))
    assert timeline.ends_s == 2.0
    assert rate.at(0.5) == pytest.approx(500 * 1504 * 8 / 1000)
    assert rate.at(1.5) == pytest.approx(100 * 1504 * 8 / 1000)
