"""The lab and the phone that a run uses, and conditions that its shapers refuse."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mplab.base.errors import InputError
from mplab.base.places import ROOT
from mplab.base.plugins import PHONES
from mplab.run.blocks import make_plan
from mplab.userfiles.experiments.experiment import Experiment
from mplab.userfiles.experiments.resolve import Catalog, load_experiment
from mplab.userfiles.labs.labuse import VIRTUAL, find_lab, use_lab
from mplab.userfiles.labs.machines import abilities

Load = Callable[..., Experiment]

ROUTER = "mplab: 1\nname: bench\nrouters: {wifi: {driver: virtual}}\n"
ONE = ROUTER + "phones: {one: {driver: virtual, wifi: {router: wifi}}}\n"
TWO = ROUTER + "phones:\n  one: {driver: virtual}\n  two: {driver: virtual, lte: {router: wifi}}\n"
BY_HAND = "mplab: 1\nname: bench\nservers: {proxy: {interface: eth0}}\nphones:\n  one: {lte: {server: proxy}}\n"


def lab(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "lab.yaml"
    path.write_text(text)
    return path


def test_the_only_phone_is_taken(tmp_path: Path) -> None:
    use = use_lab(lab(tmp_path, ONE))
    assert (use.kind, use.phone, use.source) == ("virtual", "one", ONE.encode())
    assert use.where() == {"wlan0": "router wifi (tc)", "rmnet0": "linkem"}
    assert list(use.inside()) == ["wifi"]
    assert use.to_json()["paths"] == use.where()


def test_one_of_several_is_chosen(tmp_path: Path) -> None:
    file = lab(tmp_path, TWO)
    assert use_lab(file, "two").where() == {"wlan0": "linkem", "rmnet0": "router wifi (tc)"}
    assert use_lab(file, "one").inside() == {}, "no need to boot what the phone is not behind"
    with pytest.raises(InputError, match=r"lab.yaml:4: phones: several phones: choose one, --phone one or --phone two"):
        use_lab(file)
    with pytest.raises(InputError, match=r"unknown phone 'tow'. Did you mean 'two'"):
        use_lab(file, "tow")


def test_a_phone_that_is_shaped_by_hand_alone(tmp_path: Path) -> None:
    message = f"lab.yaml:5: phones.one: no 'driver': a run needs one; allowed: {', '.join(PHONES)}"
    with pytest.raises(InputError, match=message):
        use_lab(lab(tmp_path, BY_HAND))
    with pytest.raises(InputError, match="no phone: a run needs one"):
        use_lab(lab(tmp_path, BY_HAND.split("phones", maxsplit=1)[0]))


def test_no_lab_file(tmp_path: Path) -> None:
    assert find_lab("virtual", tmp_path) is VIRTUAL
    assert VIRTUAL.to_json() == {"kind": "virtual", "same_clock": True}
    assert VIRTUAL.where() == {"wlan0": "linkem", "rmnet0": "linkem"}
    with pytest.raises(InputError, match="the virtual lab has one phone"):
        find_lab("virtual", tmp_path, "one")


def test_an_experiment_names_its_lab(load: Load, tmp_path: Path) -> None:
    (tmp_path / "labs").mkdir()
    lab(tmp_path / "labs", ONE)
    assert load(lab="labs/lab.yaml").lab.phone == "one"
    with pytest.raises(InputError, match=r"example.yaml:\d+: lab: lab 'vritual': no such file: .* Allowed: virtual"):
        load(lab="vritual")
    lab(tmp_path / "labs", ONE.replace("router: wifi", "router: wfi"))
    with pytest.raises(InputError, match=r"labs/lab.yaml:4: phones.one.wifi.router: unknown router 'wfi'"):
        load(lab="labs/lab.yaml")


def test_another_lab_can_be_asked_for(load: Load, tmp_path: Path, catalog: Catalog) -> None:
    with pytest.raises(InputError):
        load(lab="gone.yaml")
    assert load_experiment(tmp_path / "example.yaml", catalog=catalog, lab=VIRTUAL).lab is VIRTUAL


def test_cells_of_another_lab_are_other_cells(load: Load, tmp_path: Path) -> None:
    here = load()
    hashes = [make_plan(here).cells[0].hash]
    for text, phone in ((ONE, "one"), (TWO, "one"), (TWO, "two")):
        hashes.append(make_plan(replace(here, lab=use_lab(lab(tmp_path, text), phone))).cells[0].hash)
    assert len(set(hashes)) == len(hashes)
    assert make_plan(replace(here, lab=use_lab(lab(tmp_path, ONE)))).cells[0].hash == hashes[1]


GOOD = "{down: 1 Mbit/s, up: 1 Mbit/s, rtt: 40 ms}"


def problems_of(
    load: Load,
    catalog: Catalog,
    tmp_path: Path,
    *,
    wifi: str = GOOD,
    lte: str = GOOD,
    more: str = "",
    text: str = ONE,
) -> str:
    """Return the message that refuses a condition; by default WiFi has one virtual router and LTE the link emulator."""
    load(links=f"[{{name: mine, wifi: {wifi}, lte: {lte}{more}}}]")
    try:
        full = replace(catalog, shapers=abilities(), android=catalog.scenarios)
        load_experiment(tmp_path / "example.yaml", catalog=full, lab=use_lab(lab(tmp_path, text)))
    except InputError as error:
        return str(error)
    return ""


def test_what_a_path_cannot_be_is_said_with_the_place(load: Load, tmp_path: Path, catalog: Catalog) -> None:
    cake = "{down: {rate: 1 Mbit/s, queue: {discipline: cake}}, up: 1 Mbit/s, rtt: 40 ms}"
    assert problems_of(load, catalog, tmp_path, wifi=cake) == ""
    message = problems_of(load, catalog, tmp_path, lte=cake)
    assert "links[0]: link 'mine': lte, down: the link emulator of the virtual lab has no queue discipline" in message
    assert "example.yaml:" in message
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "walk.down").write_text("1\n2\n3\n")
    trace = "{down: {trace: walk.down}, up: 1 Mbit/s, rtt: 40 ms}"
    assert problems_of(load, catalog, tmp_path, lte=trace) == ""
    message = problems_of(load, catalog, tmp_path, wifi=trace)
    assert "wifi, down: router wifi (tc) cannot play packet-delivery traces (trace walk.down)" in message


REAL = """\
mplab: 1
name: bench
servers: {proxy: {interface: eth0}}
phones: {one: {driver: adb, serial: A1B2, wifi: {server: proxy}}}
proxy: {listen: [203.0.113.5]}
"""
AS_IT_IS = "{down: unlimited, up: unlimited, rtt: 0 ms}"


def test_a_real_phone_has_paths_that_are_shaped_by_nobody(tmp_path: Path) -> None:
    use = use_lab(lab(tmp_path, REAL))
    assert (use.kind, use.real) == ("adb", True)
    assert use.where() == {"wlan0": "server proxy (tc)", "rmnet0": "not shaped"}
    assert not VIRTUAL.real


def test_what_nobody_shapes_is_left_as_it_is(load: Load, tmp_path: Path, catalog: Catalog) -> None:
    assert problems_of(load, catalog, tmp_path, lte=AS_IT_IS, text=REAL) == ""
    message = problems_of(load, catalog, tmp_path, text=REAL)
    assert message.count("\n") == 0, "both directions are alike: one line"
    assert (
        "example.yaml:4: links[0]: link 'mine': lte, down: nothing shapes this path of one, since the lab file has no "
        "'lte' for it: found 1 Mbit/s, delay 20 ms; allowed: unlimited, rtt 0 ms (an unshaped path)"
    ) in message
    loses = "{down: {rate: unlimited, loss: 1 %}, up: unlimited, rtt: 0 ms}"
    assert "found unlimited, delay 0 ms, loss 1 %; allowed" in problems_of(
        load, catalog, tmp_path, lte=loses, text=REAL
    )


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("core_rtt: 40 ms", "core_rtt: a lab with a real phone cannot shape the path behind the proxy"),
        (
            "changes: [{at: 5 s, path: lte, radio: off}]",
            "lte at 5 s: radio: no shaper on this path of one can drop its packets",
        ),
        ("changes: [{at: 5 s, path: wifi, interface: down}]", "wifi at 5 s: interface: the Android of one switches"),
        ("changes: [{at: 5 s, path: wifi, access_point: new}]", "wifi at 5 s: access_point: the Android of one"),
        ("changes: [{at: 5 s, path: lte, loss: 1 %}]", "lte at 5 s, down: nothing shapes this path of one"),
    ],
)
def test_what_real_networks_cannot_do(load: Load, tmp_path: Path, catalog: Catalog, more: str, message: str) -> None:
    assert message in problems_of(load, catalog, tmp_path, lte=AS_IT_IS, more=f", {more}", text=REAL)


def test_what_real_networks_can_do(load: Load, tmp_path: Path, catalog: Catalog) -> None:
    wifi = "{at: 5 s, path: wifi, radio: off}, {at: 6 s, path: wifi, radio: on}"
    more = f", changes: [{wifi}, {{at: 7 s, path: lte, route: default}}]"
    assert problems_of(load, catalog, tmp_path, lte=AS_IT_IS, more=more, text=REAL) == ""


@pytest.mark.parametrize("name", ["bench", "docker-proxy", "emulated-phone", "virtual-router"])
def test_the_labs_that_come_with_mplab_can_be_used(name: str) -> None:
    use = use_lab(ROOT / "router-configs" / "labs" / f"{name}.yaml")
    assert use.where().keys() == {"wlan0", "rmnet0"}
