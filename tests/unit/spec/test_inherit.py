"""Keys that a condition inherits, and keys that it sets itself."""

from pathlib import Path

import pytest

from mplab.base.errors import InputError
from mplab.format.direction import Direction, Queue
from mplab.format.link import LinkCondition
from mplab.format.path import PathCondition
from mplab.userfiles.links.link import load_link

BASE = """\
title: The base
source: a paper
wifi: {down: {rate: 7 Mbit/s, loss: 2 %, jitter: 1 ms}, up: 2 Mbit/s, rtt: 50 ms, queue: 10 packets}
lte: {down: 9 Mbit/s, up: 2 Mbit/s, rtt: 70 ms}
core_rtt: 8 ms
changes:
  - {at: 1 s, path: lte, loss: 1 %}
"""


def on_top(directory: Path, text: str, base: str = BASE) -> LinkCondition:
    (directory / "base.yaml").write_text(base, encoding="utf-8")
    (directory / "mine.yaml").write_text(f"extends: base\n{text}", encoding="utf-8")
    return load_link("mine", directory)


def test_nothing_said_is_the_base_under_another_name(tmp_path: Path) -> None:
    link = on_top(tmp_path, "")
    base = load_link("base", tmp_path)
    assert (link.name, link.title, link.source, link.extends) == ("mine", "mine", "a paper", "base")
    assert {**link.to_json(), "name": "base", "title": "The base"} == base.to_json()


def test_a_key_of_a_path_changes_that_path_alone(tmp_path: Path) -> None:
    link = on_top(tmp_path, "lte: {rtt: 100 ms}\n")
    assert link.lte == PathCondition.of(9000.0, 2000.0, 100.0)
    assert link.wifi == load_link("base", tmp_path).wifi


def test_what_is_said_of_a_path_holds_for_both_directions(tmp_path: Path) -> None:
    wifi = on_top(tmp_path, "wifi: {loss: 5 %}\n").wifi
    assert (wifi.down.loss, wifi.up.loss) == (5.0, 5.0)
    assert (wifi.down.jitter_ms, wifi.up.jitter_ms) == (1.0, 0.0)


def test_one_direction_keeps_what_is_not_said(tmp_path: Path) -> None:
    down = on_top(tmp_path, "wifi: {down: {loss: 3 %}}\n").wifi.down
    assert down == Direction(7000.0, 25.0, 1.0, loss=3.0, queue=Queue("packets", 10))
    assert on_top(tmp_path, "wifi: {down: 1 Mbit/s}\n").wifi.down.loss == 2.0


def test_delays_of_both_directions_take_the_place_of_the_rtt(tmp_path: Path) -> None:
    wifi = on_top(tmp_path, "wifi: {down: {delay: 30 ms}, up: {delay: 5 ms}}\n").wifi
    assert wifi.rtt_ms == 35.0
    again = "wifi: {down: {rate: 7 Mbit/s, delay: 30 ms}, up: {rate: 2 Mbit/s, delay: 5 ms}}\n" + BASE.split("\n")[3]
    assert on_top(tmp_path, "wifi: {rtt: 10 ms}\n", again).wifi.down.delay_ms == 5.0


def test_a_trace_and_a_rate_replace_each_other(tmp_path: Path) -> None:
    links = tmp_path / "links"
    links.mkdir()
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "a.down").write_text("5\n", encoding="utf-8")
    traced = on_top(links, "wifi: {down: {trace: a.down}}\n").wifi.down
    assert (traced.rate_kbps, traced.loss) == (None, 2.0)
    (links / "again.yaml").write_text("extends: mine\nwifi: {down: 3 Mbit/s}\n", encoding="utf-8")
    again = load_link("again", links).wifi.down
    assert (again.rate_kbps, again.trace, again.loss) == (3000.0, None, 2.0)


def test_changes_are_inherited_as_a_whole_or_not(tmp_path: Path) -> None:
    assert len(on_top(tmp_path, "lte: {rtt: 100 ms}\n").changes) == 1
    assert on_top(tmp_path, "changes: []\n").changes == ()


def test_conditions_may_stand_on_one_another(tmp_path: Path) -> None:
    on_top(tmp_path, "wifi: {rtt: 60 ms}\n")
    (tmp_path / "third.yaml").write_text("extends: mine\nlte: {rtt: 90 ms}\n", encoding="utf-8")
    third = load_link("third", tmp_path)
    assert (third.wifi.rtt_ms, third.lte.rtt_ms, third.core_rtt_ms) == (60.0, 90.0, 8.0)


def test_no_condition_stands_on_itself(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("extends: b\n", encoding="utf-8")
    (tmp_path / "b.yaml").write_text("\nextends: a\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"b\.yaml:2: extends: link 'a' extends itself: a → b → a"):
        load_link("a", tmp_path)


def test_a_mistake_below_is_told_where_it_is(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        on_top(tmp_path, "wifi: {rtt: 60 ms}\n", BASE.replace("core_rtt: 8 ms", "core_rtt: 8"))
    assert str(caught.value).startswith(f"{tmp_path}/base.yaml:5: core_rtt: duration '8'")


def test_own_mistakes_are_told_beside_an_unknown_name(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(BASE, encoding="utf-8")
    (tmp_path / "mine.yaml").write_text("extends: bass\nwifi: {rtt: 60}\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_link("mine", tmp_path)
    first, second = str(caught.value).splitlines()
    assert "extends: unknown link 'bass'. Did you mean 'base'?" in first
    assert "mine.yaml:2: wifi.rtt: duration '60'" in second
