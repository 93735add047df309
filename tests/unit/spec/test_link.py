"""Link conditions: linkem receives the values of the file."""

import math
from pathlib import Path
from typing import Any

import pytest

from mplab.base.errors import InputError
from mplab.format.direction import Direction, GilbertElliott, Queue
from mplab.format.link import LinkCondition
from mplab.format.path import PathCondition
from mplab.userfiles.links.link import link_names, list_links, load_link, load_links

LINKS = Path(__file__).parents[3] / "router-configs" / "links"

FULL = """\
title: Everything said
source: a paper, table 1
wifi: {down: 7040 kbit/s, up: 2.02 Mbit/s, rtt: 50 ms, loss: 1 %, jitter: 3 ms, queue: 64 KiB}
lte: {down: unlimited, up: 1 Gbit/s, rtt: 0 ms, queue: 100 packets}
"""


def write_link(directory: Path, text: str, name: str = "mine") -> LinkCondition:
    (directory / f"{name}.yaml").write_text(text, encoding="utf-8")
    return load_link(name, directory)


def test_everything_that_can_be_said(tmp_path: Path) -> None:
    link = write_link(tmp_path, FULL)
    assert (link.name, link.title, link.source) == ("mine", "Everything said", "a paper, table 1")
    assert link.wifi == PathCondition.of(7040.0, 2020.0, 50.0, 1.0, 3.0, Queue("bytes", 65_536))
    assert link.lte == PathCondition.of(None, 1_000_000.0, 0.0, queue=Queue("packets", 100))


def test_the_way_behind_the_proxy_may_be_longer(tmp_path: Path) -> None:
    near, far = write_link(tmp_path, FULL), write_link(tmp_path, FULL + "core_rtt: 40 ms\n", "far")
    assert (near.core_rtt_ms, far.core_rtt_ms) == (0.0, 40.0)
    assert "core_rtt_ms" not in near.to_json(), "so that cells of earlier runs keep their hashes"
    assert far.to_json() == {**near.to_json(), "name": "far", "core_rtt_ms": 40.0}


def test_directions_are_what_linkem_takes(tmp_path: Path) -> None:
    link = write_link(tmp_path, FULL)
    assert link.wifi.down.to_linkem() == {
        "rate_kbps": 7040.0,
        "delay_ms": 25.0,
        "jitter_ms": 3.0,
        "loss_percent": 1.0,
        "queue": {"bytes": 65_536},
    }
    assert link.wifi.up.to_linkem()["rate_kbps"] == 2020.0
    assert link.lte.down.to_linkem()["rate_kbps"] == 0.0
    assert link.lte.down.to_linkem()["queue"] == {"packets": 100}
    assert set(link.paths()) == {"wlan0", "rmnet0"}
    recorded: Any = link.to_json()
    assert recorded["paths"]["wlan0"] == {"down": link.wifi.down.to_json(), "up": link.wifi.up.to_json()}


def test_defaults_are_no_loss_no_jitter_150_kb(tmp_path: Path) -> None:
    path = "{down: 1 Mbit/s, up: 1 Mbit/s, rtt: 10 ms}"
    link = write_link(tmp_path, f"wifi: {path}\nlte: {path}\n")
    assert link.wifi == PathCondition.of(1000.0, 1000.0, 10.0, 0.0, 0.0, Queue("bytes", 150_000))
    assert (link.title, link.source) == ("mine", "")


def test_a_path_in_words() -> None:
    assert str(PathCondition.of(7040.0, None, 50.0)) == "7.04 Mbit/s down, unlimited up, RTT 50 ms"
    full = PathCondition.of(1000.0, 500.0, 50.0, 1.0, 2.5, Queue("packets", 20))
    assert str(full) == "1 Mbit/s down, 500 kbit/s up, RTT 50 ms, loss 1 %, jitter 2.5 ms, queue 20 packets"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("7040 kbit/s", "0 kbit/s"), "must be more than 0; or 'unlimited'"),
        (("64 KiB", "1513 B"), "no full packet fits: at least 1514 B"),
        (("100 packets", "0 packets"), "must hold at least 1 packet"),
        (("64 KiB", "64"), "a number needs a unit"),
        (("3 ms", "26 ms"), "jitter 26 ms is more than the one-way delay 25 ms"),
        (("source:", "sauce:"), "unknown key 'sauce'. Did you mean 'source'?"),
        (("wifi:", "name: mine\nwifi:"), "unknown key 'name'"),
        (("lte:", "5g:"), "key 'lte' is missing"),
        (("7040 kbit/s", "{loss: 1 %}"), "wifi: down: key 'rate' is missing (or 'trace')"),
        (("7040 kbit/s", "{}"), "empty: one of rate, delay"),
        (("7040 kbit/s", "{rate: 1 Mbit/s, trace: x}"), "a trace replaces the rate"),
        (("7040 kbit/s", "{trace: ../x}"), "the name of a file in router-configs/traces is needed"),
        (("7040 kbit/s", "{trace: nosuch}"), "unknown trace 'nosuch'. Allowed: none"),
        (("7040 kbit/s", "{rate: 1 Mbit/s, delay: 51 ms}"), "the delay of down is more than the rtt 50 ms"),
        (("loss: 1 %", "loss: {p: 1 %}"), "wifi.loss: key 'r' is missing"),
        (("loss: 1 %", "loss: {p: 1 %, r: 0 %}"), "wifi.loss.r: found '0 %', must be more than 0"),
        (("loss: 1 %", "loss: [1 %]"), "needed, like '10 %'"),
        (("jitter: 3 ms", "distribution: normal"), "distribution normal of no jitter"),
        (("jitter: 3 ms", "jitter: 3 ms, distribution: gauss"), "Allowed: uniform, normal, pareto, paretonormal"),
        (("rtt: 0 ms", "rtt: 0 ms, reorder: 1 %"), "reorder without a delay"),
        (("64 KiB", "{discipline: red}"), "Allowed: drop-tail, codel, fq_codel, cake"),
        (("64 KiB", "{discipline: cake, target: 5 ms}"), "cake has no 'target': only codel and fq_codel have"),
        (("64 KiB", "{discipline: codel, target: 200 ms}"), "the target must be more than 0 ms and the shorter"),
    ],
)
def test_what_is_refused(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        write_link(tmp_path, FULL.replace(*change))
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path}/mine.yaml:")


def test_an_unknown_name_suggests_one_that_exists(tmp_path: Path) -> None:
    write_link(tmp_path, FULL)
    with pytest.raises(InputError, match=r"unknown link 'mime'. Did you mean 'mine'\? Allowed: mine"):
        load_link("mime", tmp_path)
    with pytest.raises(InputError, match=r"unknown link '\.\./mine'"):
        load_link("../mine", tmp_path)


def test_links_are_the_yaml_files_with_a_proper_name(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.yaml", "Not This.yaml", "notes.txt"):
        (tmp_path / name).touch()
    assert list_links(tmp_path) == ["a", "b"]
    assert list_links(tmp_path / "nowhere") == []


@pytest.mark.parametrize("name", list_links(LINKS))
def test_every_link_of_the_product_is_good(name: str) -> None:
    links = load_links(name, LINKS)
    assert all(link.name.startswith(name) and link.source for link in links)
    assert [load_link(link.name, LINKS) for link in links] == list(links)


PAPERS: dict[str, tuple[tuple[float | None, ...], ...]] = {
    "baseline": ((7040, 2020, 50, 0), (9185, 2286, 70, 0)),
    "lossy-wifi-both-0p5": ((7040, 2020, 50, 0.5), (9185, 2286, 70, 0)),
    "lossy-wifi-both-1": ((7040, 2020, 50, 1), (9185, 2286, 70, 0)),
    "slow-wifi": ((7040, 2020, 100, 0), (9185, 2286, 70, 0)),
    "slow-lte": ((7040, 2020, 50, 0), (9185, 2286, 120, 0)),
    "txdelay": ((7040, 2020, 20, 0), (9185, 2286, 70, 0)),
    "reinject-lte": ((10000, 2020, 50, 0), (9000, 2286, 150, 0)),
    "reinject-wifi": ((12000, 2020, 300, 0), (9000, 2286, 70, 0)),
    "dsl": ((15000, 1000, 15, 0), (70000, 15000, 40, 0)),
    "quota": ((60000, 60000, 15, 0), (300, 300, 40, 0)),
    "3g": ((60000, 60000, 15, 0), (20000, 2000, 60, 0)),
    "3g-baerts2015": ((60000, 60000, 15, 0), (20000, 2000, 33, 0)),
    "walking-3g": ((15000, 1000, 20, 0), (20000, 2000, 33, 0)),
    "4g": ((60000, 60000, 15, 0), (70000, 15000, 40, 0)),
    "2g": ((15000, 1000, 20, 0), (160, 100, 200, 0)),
    "rtt-sweep-20": ((None, None, 20, 0.1), (None, None, 20, 0.1)),
    "rtt-sweep-50": ((None, None, 20, 0.1), (None, None, 50, 0.1)),
    "rtt-sweep-500": ((None, None, 20, 0.1), (None, None, 500, 0.1)),
    "loss-sweep-0": ((None, None, 20, 0), (None, None, 20, 0)),
    "both-ways-loss-sweep-0p5": ((None, None, 20, 0), (None, None, 20, 0.5)),
    "both-ways-loss-sweep-9p5": ((None, None, 20, 0), (None, None, 20, 9.5)),
    "both-ways-loss-sweep-20": ((None, None, 20, 0), (None, None, 20, 20)),
    "internet-loss-sweep-0": ((None, None, 61, 0), (None, None, 61, 0)),
    "internet-rtt-sweep-561": ((None, None, 61, 0), (None, None, 561, 0)),
    "cdn-server-1": ((7040, 2020, 90, 0), (9185, 2286, 70, 0)),
    "cdn-server-2": ((7040, 2020, 60, 0), (9185, 2286, 100, 0)),
    "cdn-what-if": ((7040, 2020, 10, 0), (9185, 2286, 70, 0)),
    "proxy-a": ((7040, 2020, 27, 0), (9185, 2286, 49, 0)),
    "proxy-b": ((7040, 2020, 44, 0), (9185, 2286, 66, 0)),
    "proxy-c": ((7040, 2020, 81, 0), (9185, 2286, 100, 0)),
    "proxy-d": ((7040, 2020, 131, 0), (9185, 2286, 148, 0)),
}
"""Rates down and up in kbit/s, RTT in ms, losses of each direction in percent: over WiFi, and over LTE."""


@pytest.mark.parametrize("name", PAPERS)
def test_the_conditions_of_the_papers(name: str) -> None:
    link = load_link(name, LINKS)
    for path, expected in zip((link.wifi, link.lte), PAPERS[name], strict=True):
        assert (path.down_kbps, path.up_kbps, path.rtt_ms, path.down.loss_percent) == expected
        assert path.up.loss_percent == expected[-1]


@pytest.mark.parametrize(
    ("name", "wifi", "lte"),
    [
        ("lossy-wifi-05", 0.5, 0),
        ("lossy-wifi-1", 1, 0),
        ("loss-sweep-0p5", 0, 0.5),
        ("loss-sweep-20", 0, 20),
        ("internet-loss-sweep-10", 0, 10),
    ],
)
def test_losses_of_the_papers_are_towards_the_phone(name: str, wifi: float, lte: float) -> None:
    link = load_link(name, LINKS)
    assert (link.wifi.down.loss_percent, link.lte.down.loss_percent) == (wifi, lte)
    assert link.wifi.up.loss_percent == link.lte.up.loss_percent == 0


def test_a_queue_holds_after_each_change() -> None:
    link = load_link("walking", LINKS).with_queue(Queue("packets", 50))
    assert {condition.down.queue for _, condition in link.conditions()} == {Queue("packets", 50)}
    assert len(list(link.conditions())) > 20


def test_a_middlebox_is_on_one_path() -> None:
    link = load_link("middlebox-lte", LINKS)
    assert set(link.stripped) == {"rmnet0"}
    assert not load_link("baseline", LINKS).stripped
    assert link.lte.up.to_linkem()["middlebox"] == link.lte.down.to_linkem()["middlebox"] == "strip-mptcp"
    assert str(link.lte).endswith("middlebox strip-mptcp")


def test_internet_paths_vary_by_3_ms() -> None:
    path = load_link("internet-loss-sweep-0", LINKS).wifi
    assert math.hypot(path.down.jitter_ms, path.up.jitter_ms) == pytest.approx(3, abs=0.01)


def test_the_sweeps_of_the_papers_are_whole() -> None:
    assert len(load_links("rtt-sweep", LINKS)) == 11
    assert len(load_links("loss-sweep", LINKS)) == 23
    assert len(load_links("internet-rtt-sweep", LINKS)) == 11
    assert len(load_links("internet-loss-sweep", LINKS)) == 13
    assert {"rtt-sweep-450", "loss-sweep-15", "baseline"} <= set(link_names(LINKS))


def path(direction: str, more: str = "") -> str:
    lte = "lte: {down: 9 Mbit/s, up: 2 Mbit/s, rtt: 70 ms}"
    return f"wifi: {{down: {direction}, up: 2 Mbit/s, rtt: 50 ms{more}}}\n{lte}\n"


def test_one_direction_alone_differs_from_the_other(tmp_path: Path) -> None:
    keys = "rate: 7 Mbit/s, loss: 2 %, reorder: 1 %, duplicate: 0.5 %, jitter: 4 ms, distribution: pareto"
    keys = f"{{{keys}, queue: 9 packets}}"
    wifi = write_link(tmp_path, path(keys, ", loss: 1 %, jitter: 1 ms")).wifi
    assert wifi.up == Direction(2000.0, 25.0, 1.0, loss=1.0)
    assert wifi.down == Direction(
        7000.0, 25.0, 4.0, "pareto", 2.0, reorder_percent=1.0, duplicate_percent=0.5, queue=Queue("packets", 9)
    )
    assert wifi.round_trip_loss_percent == 2.98
    assert str(wifi) == (
        "7 Mbit/s down, 2 Mbit/s up, RTT 50 ms, loss 2 % down, jitter 4 ms pareto down, reorder 1 % down, "
        "duplicate 0.5 % down, queue 9 packets down, loss 1 % up, jitter 1 ms up"
    )


def test_new_keys_are_handed_on_only_when_they_are_set(tmp_path: Path) -> None:
    plain = write_link(tmp_path, path("{rate: 7 Mbit/s}"))
    assert plain.to_json() == write_link(tmp_path, path("7 Mbit/s")).to_json(), "cells keep their hashes"
    assert list(plain.wifi.down.to_linkem()) == ["rate_kbps", "delay_ms", "jitter_ms", "loss_percent", "queue"]
    keys = "rate: 7 Mbit/s, loss: {p: 1 %, r: 20 %, bad: 80 %}, reorder: 1 %, duplicate: 0.5 %"
    keys = f"{{{keys}, queue: {{discipline: codel}}}}"
    full = write_link(tmp_path, path(keys, ", jitter: 5 ms, distribution: normal"))
    assert full.wifi.down.to_linkem() == {
        "rate_kbps": 7000.0,
        "delay_ms": 25.0,
        "jitter_ms": 5.0,
        "jitter_distribution": "normal",
        "loss_model": {"p_percent": 1.0, "r_percent": 20.0, "good_loss_percent": 0.0, "bad_loss_percent": 80.0},
        "reorder_percent": 1.0,
        "duplicate_percent": 0.5,
        "queue": {"bytes": 150_000, "discipline": "codel", "target_ms": 5.0, "interval_ms": 100.0},
    }
    assert full.wifi.up.to_json()["loss_percent"] == 0.0


def test_a_queue_with_its_discipline(tmp_path: Path) -> None:
    queue = "{length: 100 packets, discipline: fq_codel, target: 2 ms, interval: 40 ms}"
    link = write_link(tmp_path, path("7 Mbit/s", f", queue: {queue}"))
    assert link.wifi.up.queue == Queue("packets", 100, "fq_codel", 2.0, 40.0)
    assert write_link(tmp_path, path("7 Mbit/s", ", queue: {discipline: cake}")).wifi.up.to_linkem()["queue"] == {
        "bytes": 150_000,
        "discipline": "cake",
    }


def test_losses_in_bursts_have_a_mean() -> None:
    model = GilbertElliott(p_percent=1.0, r_percent=19.0, good_loss_percent=0.0, bad_loss_percent=100.0)
    assert model.mean_percent == pytest.approx(5.0)
    assert model.correlation == pytest.approx(0.8)
    assert str(model) == "5 % in bursts (p 1 %, r 19 %)"


def test_a_delay_of_one_direction_leaves_the_rest_of_the_rtt_to_the_other(tmp_path: Path) -> None:
    wifi = write_link(tmp_path, path("{rate: 7 Mbit/s, delay: 40 ms}")).wifi
    assert (wifi.down.delay_ms, wifi.up.delay_ms, wifi.rtt_ms) == (40.0, 10.0, 50.0)
    both = "wifi: {down: {rate: 7 Mbit/s, delay: 40 ms}, up: {rate: 2 Mbit/s, delay: 5 ms}}\n"
    wifi = write_link(tmp_path, both + path("7 Mbit/s").partition("\n")[2]).wifi
    assert (wifi.down.delay_ms, wifi.up.delay_ms, wifi.rtt_ms) == (40.0, 5.0, 45.0)
    assert "RTT 45 ms (40 ms down, 5 ms up)" in str(wifi)


def test_a_trace_takes_the_place_of_a_rate(tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    (tmp_path / "traces").mkdir()
    trace = tmp_path / "traces" / "Some-LTE.down"
    trace.write_text("0\n0\n5\n12\n")
    link = write_link(tmp_path / "links", path("{trace: Some-LTE.down}"))
    assert link.wifi.down_kbps is None
    assert link.wifi.down.to_linkem()["trace"] == str(trace)
    assert "rate_kbps" not in link.wifi.down.to_linkem()
    described: Any = link.to_json()
    first = described["paths"]["wlan0"]["down"]["trace"]
    assert first["name"] == "Some-LTE.down"
    other = tmp_path / "elsewhere"
    (other / "links").mkdir(parents=True)
    (other / "traces").mkdir()
    (other / "traces" / "Some-LTE.down").write_text("0\n0\n5\n13\n")
    described = write_link(other / "links", path("{trace: Some-LTE.down}")).to_json()
    there = described["paths"]["wlan0"]["down"]["trace"]
    assert there["name"] == first["name"]
    assert there["sha256"] != first["sha256"], "what is in it counts, not where it is"
