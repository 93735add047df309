"""Which lab a run is made in, which phone of it, and what its shapers refuse."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.errors import InputError
from orchestrator.plan import make_plan
from orchestrator.shaper.abilities import SHAPERS
from orchestrator.spec import Catalog, Experiment, load_experiment
from orchestrator.spec.labuse import VIRTUAL, find_lab, use_lab

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
    assert list(use.virtual_routers()) == ["wifi"]
    assert use.to_json()["paths"] == use.where()


def test_one_of_several_is_chosen(tmp_path: Path) -> None:
    file = lab(tmp_path, TWO)
    assert use_lab(file, "two").where() == {"wlan0": "linkem", "rmnet0": "router wifi (tc)"}
    assert use_lab(file, "one").virtual_routers() == {}, "no need to boot what the phone is not behind"
    with pytest.raises(InputError, match=r"lab.yaml:4: phones: several phones: choose one, --phone one or --phone two"):
        use_lab(file)
    with pytest.raises(InputError, match=r"unknown phone 'tow'. Did you mean 'two'"):
        use_lab(file, "tow")


def test_a_phone_that_is_shaped_by_hand_alone(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"lab.yaml:5: phones.one: no 'driver': a run needs one; allowed: virtual, emulated"
    ):
        use_lab(lab(tmp_path, BY_HAND))
    with pytest.raises(InputError, match="no phone: a run needs one"):
        use_lab(lab(tmp_path, BY_HAND.split("phones", maxsplit=1)[0]))


def test_no_lab_file(tmp_path: Path) -> None:
    assert find_lab("virtual", tmp_path) is VIRTUAL
    assert VIRTUAL.to_json() == {"kind": "virtual"}
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


def problems_of(load: Load, catalog: Catalog, tmp_path: Path, *, wifi: str = GOOD, lte: str = GOOD) -> str:
    """What is refused of a condition where WiFi is at the virtual router and LTE at the link emulator."""
    load(links=f"[{{name: mine, wifi: {wifi}, lte: {lte}}}]")
    try:
        full = replace(catalog, shapers=SHAPERS)
        load_experiment(tmp_path / "example.yaml", catalog=full, lab=use_lab(lab(tmp_path, ONE)))
    except InputError as error:
        return str(error)
    return ""


def test_what_a_path_cannot_be_is_said_with_the_place(load: Load, tmp_path: Path, catalog: Catalog) -> None:
    cake = "{down: {rate: 1 Mbit/s, queue: {discipline: cake}}, up: 1 Mbit/s, rtt: 40 ms}"
    assert problems_of(load, catalog, tmp_path, wifi=cake) == ""
    found = problems_of(load, catalog, tmp_path, lte=cake)
    assert "links[0]: link 'mine': lte, down: the link emulator of the virtual lab has no queue discipline" in found
    assert "example.yaml:" in found
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "walk.down").write_text("1\n2\n3\n")
    trace = "{down: {trace: walk.down}, up: 1 Mbit/s, rtt: 40 ms}"
    assert problems_of(load, catalog, tmp_path, lte=trace) == ""
    found = problems_of(load, catalog, tmp_path, wifi=trace)
    assert "wifi, down: router wifi (tc) cannot play packet-delivery traces (trace walk.down)" in found
