"""The virtual lab's wiring is consistent."""

from mplab.drivers.phone.routes import primary_command
from mplab.drivers.transport.redirect import nft_rules
from mplab.lab import topology


def test_every_interface_has_its_own_hardware_address() -> None:
    ends = [(node, interface) for node in topology.NODES for interface in topology.interfaces_of(node)]
    assert len(ends) == 2 * len(topology.WIRES)
    assert len({topology.mac(*end) for end in ends}) == len(ends)


def test_interface_names_fit_the_kernel() -> None:
    assert all(len(name) < 16 for node in topology.NODES for name in topology.interfaces_of(node))


def test_emulated_ends_bear_no_address() -> None:
    assert all(not command.startswith("addr") for command in topology.address_commands("air"))


def test_both_ends_of_an_emulated_link_know_each_other() -> None:
    phone = topology.address_commands("phone")
    router = topology.mac("router", "wlan")
    assert f"neigh replace 10.64.1.1 lladdr {router} dev wlan0 nud permanent" in phone


def test_the_primary_interface_has_the_best_metric() -> None:
    assert primary_command("rmnet0", "10.64.2.1") == "route replace default via 10.64.2.1 dev rmnet0 metric 50"
    commands = topology.phone_route_commands("wlan0")
    assert commands[-1] == primary_command("wlan0", "10.64.1.1")
    assert all(f"metric {metric}" in " ".join(commands) for metric in (50, 100, 200))


def test_the_phone_has_no_route_to_the_origin_of_its_own() -> None:
    assert all("10.65" not in command for command in topology.phone_route_commands("wlan0"))
    assert "meta l4proto tcp redirect to :3128" in nft_rules(topology.PROXY)
