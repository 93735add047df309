"""Changes of a link condition are spread over time as its file requires."""

from pathlib import Path
from typing import Any

import pytest

from mplab.base.errors import InputError
from mplab.format.direction import GilbertElliott
from mplab.format.link import LinkCondition, Moment
from mplab.userfiles.links.link import list_links, load_link, load_links

LINKS = Path(__file__).parents[3] / "router-configs" / "links"
PATHS = """\
wifi: {down: 8 Mbit/s, up: 2 Mbit/s, rtt: 50 ms}
lte: {down: 9 Mbit/s, up: 2 Mbit/s, rtt: 70 ms}
"""


def link(directory: Path, *changes: str, name: str = "mine") -> LinkCondition:
    listed = "".join(f"  - {{{change}}}\n" for change in changes)
    text = PATHS + (f"changes:\n{listed}" if changes else "")
    (directory / f"{name}.yaml").write_text(text, encoding="utf-8")
    return load_link(name, directory)


def story(moments: tuple[Moment, ...]) -> list[tuple[float, str, str]]:
    return [(moment.at_s, moment.device, moment.text) for moment in moments]


def test_steps_begin_at_once_and_end_at_the_values(tmp_path: Path) -> None:
    moments = link(tmp_path, "at: 10 s, over: 15 s, steps: 4, path: wifi, loss: 8 %, rtt: 90 ms").changes
    assert [moment.at_s for moment in moments] == [10.0, 15.0, 20.0, 25.0]
    assert [moment.condition.down.loss_percent for moment in moments] == [2.0, 4.0, 6.0, 8.0]
    assert [moment.condition.rtt_ms for moment in moments] == [60.0, 70.0, 80.0, 90.0]
    assert {moment.condition.down_kbps for moment in moments} == {8000.0}


def test_steps_go_on_from_what_the_path_has_come_to(tmp_path: Path) -> None:
    moments = link(
        tmp_path, "at: 1 s, path: wifi, down: 2 Mbit/s", "at: 2 s, over: 1 s, steps: 2, path: wifi, down: 1 Mbit/s"
    ).changes
    assert [moment.condition.down_kbps for moment in moments] == [2000.0, 1500.0, 1000.0]


def test_repetitions_of_two_changes_take_turns(tmp_path: Path) -> None:
    moments = link(
        tmp_path,
        "at: 15 s, every: 30 s, until: 75 s, path: wifi, interface: down",
        "at: 30 s, every: 30 s, until: 60 s, path: wifi, interface: up",
    ).changes
    assert story(moments) == [
        (15.0, "wlan0", "interface down"),
        (30.0, "wlan0", "interface up"),
        (45.0, "wlan0", "interface down"),
        (60.0, "wlan0", "interface up"),
        (75.0, "wlan0", "interface down"),
    ]


def test_a_new_access_point_brings_its_condition_when_it_is_there(tmp_path: Path) -> None:
    lost, new = link(tmp_path, "at: 5 s, path: wifi, access_point: new, gone: 2 s, rtt: 20 ms").changes
    assert (lost.at_s, lost.access_point, lost.reshaped) == (5.0, "lost", False)
    assert (new.at_s, new.access_point, new.condition.rtt_ms) == (7.0, "new", 20.0)


def test_the_radio_of_a_new_access_point_is_on(tmp_path: Path) -> None:
    changes = ("at: 1 s, path: wifi, radio: off", "at: 5 s, path: wifi, access_point: new")
    assert link(tmp_path, *changes, "at: 9 s, path: wifi, radio: off").changes[-1].radio == "off"


def test_the_other_path_stays_as_it_is(tmp_path: Path) -> None:
    moments = link(tmp_path, "at: 1 s, path: lte, route: default", "at: 1 s, path: wifi, multipath: off").changes
    assert [(m.path, m.default_route, m.multipath, m.reshaped) for m in moments] == [
        ("lte", True, "", False),
        ("wifi", False, "off", False),
    ]


def test_cells_without_changes_keep_their_hashes(tmp_path: Path) -> None:
    assert "changes" not in link(tmp_path).to_json()
    changed: Any = link(tmp_path, "at: 1 s, path: wifi, loss: 1 %").to_json()["changes"]
    assert [(entry["at_s"], entry["device"], entry["down"]["loss_percent"]) for entry in changed] == [
        (1.0, "wlan0", 1.0)
    ]


def test_one_direction_alone_may_change(tmp_path: Path) -> None:
    first, second = link(
        tmp_path,
        "at: 1 s, path: wifi, down: {rate: 1 Mbit/s, loss: 5 %}, loss: 1 %",
        "at: 2 s, over: 4 s, steps: 2, path: wifi, up: {delay: 45 ms}",
    ).changes[::2]
    assert (first.condition.down.loss, first.condition.up.loss) == (5.0, 1.0)
    assert (first.condition.down_kbps, first.condition.up_kbps) == (1000.0, 2000.0)
    assert first.text == "down 1 Mbit/s, down loss 5 %, loss 1 %"
    assert (second.condition.down.delay_ms, second.condition.up.delay_ms) == (25.0, 45.0)


def test_losses_may_begin_to_come_in_bursts(tmp_path: Path) -> None:
    (moment,) = link(tmp_path, "at: 1 s, path: wifi, loss: {p: 1 %, r: 20 %}").changes
    assert moment.condition.up.loss == GilbertElliott(1.0, 20.0)
    recorded: Any = moment.to_json()
    assert "loss_percent" not in recorded["up"]


def test_only_numbers_change_in_steps(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"changes\[0\]: at 1 s: 'loss' cannot change in steps: only numbers can"):
        link(tmp_path, "at: 1 s, over: 1 s, steps: 2, path: wifi, loss: {p: 1 %, r: 20 %}")


@pytest.mark.parametrize("name", [name for name in list_links(LINKS) if load_links(name, LINKS)[0].changes])
def test_every_story_of_the_product_has_its_source(name: str) -> None:
    condition = load_link(name, LINKS)
    assert "baerts2015" in condition.source
    assert condition.changes[-1].at_s <= (300.0 if name.startswith("bad-simulation") else 119.0)


def test_the_four_methods_of_handing_over_differ() -> None:
    last = {}
    for method in ("wifi", "route", "prefer", "ip"):
        moments = load_link(f"handover-{method}", LINKS).changes
        last[method] = [(m.path, m.text) for m in moments if not m.reshaped]
        assert [m.condition.up.loss_percent for m in moments if m.reshaped] == [float(step) for step in range(1, 21)]
    assert last == {
        "wifi": [("wifi", "interface down")],
        "route": [("lte", "default route")],
        "prefer": [("lte", "default route"), ("wifi", "interface down")],
        "ip": [("lte", "default route"), ("wifi", "multipath off")],
    }
