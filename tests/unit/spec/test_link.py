"""Link conditions: what a file says is what linkem is told."""

from pathlib import Path

import pytest

from orchestrator.errors import InputError
from orchestrator.spec import LinkCondition, PathCondition, Queue, list_links, load_link

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
    assert link.wifi == PathCondition(7040.0, 2020.0, 50.0, 1.0, 3.0, Queue("bytes", 65_536))
    assert link.lte == PathCondition(None, 1_000_000.0, 0.0, queue=Queue("packets", 100))


def test_directions_are_what_linkem_takes(tmp_path: Path) -> None:
    link = write_link(tmp_path, FULL)
    assert link.wifi.down_direction() == {
        "rate_kbps": 7040.0,
        "delay_ms": 25.0,
        "jitter_ms": 3.0,
        "loss_percent": 1.0,
        "queue": {"bytes": 65_536},
    }
    assert link.wifi.up_direction()["rate_kbps"] == 2020.0
    assert link.lte.down_direction()["rate_kbps"] == 0.0
    assert link.lte.down_direction()["queue"] == {"packets": 100}
    assert set(link.paths()) == {"wlan0", "rmnet0"}
    assert link.to_json()["paths"]["wlan0"] == {"down": link.wifi.down_direction(), "up": link.wifi.up_direction()}


def test_defaults_are_no_loss_no_jitter_150_kb(tmp_path: Path) -> None:
    path = "{down: 1 Mbit/s, up: 1 Mbit/s, rtt: 10 ms}"
    link = write_link(tmp_path, f"wifi: {path}\nlte: {path}\n")
    assert link.wifi == PathCondition(1000.0, 1000.0, 10.0, 0.0, 0.0, Queue("bytes", 150_000))
    assert (link.title, link.source) == ("mine", "")


def test_a_path_in_words() -> None:
    assert str(PathCondition(7040.0, None, 50.0)) == "7.04 Mbit/s down, unlimited up, RTT 50 ms"
    full = PathCondition(1000.0, 500.0, 50.0, 1.0, 2.5, Queue("packets", 20))
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
    assert load_link(name, LINKS).name == name
