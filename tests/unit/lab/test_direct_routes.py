"""The routes of the direct route choose the congestion control, and their undo covers each of them."""

import re
from pathlib import Path

import pytest

from mplab.drivers.phone.interface import InterfaceState, parse_routes
from mplab.drivers.phone.netns import NetnsPhone
from mplab.lab.topology import GATEWAYS, phone_route_commands, sender_routes


def test_the_undo_replaces_every_route_that_was_chosen() -> None:
    plain, chosen = sender_routes(), sender_routes("cubic")
    for before, after in ((plain.phone, chosen.phone), (plain.origin, chosen.origin)):
        assert after == [f"{command} congctl cubic" for command in before]


def test_the_chosen_routes_are_all_default_routes_of_the_phone() -> None:
    made = {command for command in phone_route_commands("wlan0") if re.search(r"^route .*default", command)}
    assert made == set(sender_routes().phone)


def test_a_handover_keeps_the_chosen_congestion_control(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    phone = NetnsPhone("phone", 1, interfaces={}, gateways=GATEWAYS, directory=tmp_path, congestion_control="cubic")
    made: list[str] = []
    monkeypatch.setattr(NetnsPhone, "ip", lambda _, *lines: made.extend(lines))
    phone.prefer("rmnet0")
    phone.prefer("wlan0")
    assert len(made) == 2
    assert all(command.endswith(" congctl cubic") for command in made)
    assert made[1] in sender_routes("cubic").phone


def test_an_interface_that_returns_keeps_the_chosen_congestion_control() -> None:
    shown = "default via 10.64.1.1 table 101 congctl cubic \ndefault via 10.64.1.1 metric 50 congctl cubic linkdown \n"
    wlan = InterfaceState("wlan0", True, "10.64.1.2/24", (), parse_routes(shown), (), ())
    for state in (wlan, wlan.moved("10.64.1.23")):
        assert {command for command in state.coming() if command.startswith("route")} == {
            "route replace default via 10.64.1.1 table 101 congctl cubic dev wlan0",
            "route replace default via 10.64.1.1 metric 50 congctl cubic dev wlan0",
        }
