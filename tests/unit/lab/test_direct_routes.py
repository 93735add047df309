"""The routes of the direct route choose the congestion control, and their undo covers each of them."""

import re

from mplab.lab.topology import phone_route_commands, sender_routes


def test_the_undo_replaces_every_route_that_was_chosen() -> None:
    plain, chosen = sender_routes(), sender_routes("cubic")
    for before, after in ((plain.phone, chosen.phone), (plain.origin, chosen.origin)):
        assert after == [f"{command} congctl cubic" for command in before]


def test_the_chosen_routes_are_all_default_routes_of_the_phone() -> None:
    made = {command for command in phone_route_commands("wlan0") if re.search(r"^route .*default", command)}
    assert made == set(sender_routes().phone)
