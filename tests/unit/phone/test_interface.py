"""An interface is restored from the kernel's description of it."""

from mplab.drivers.phone.interface import (
    Endpoint,
    InterfaceState,
    parse_endpoints,
    parse_neighbours,
    parse_routes,
    parse_rules,
)

ROUTES = """\
default via 10.64.1.1 table 101
default via 10.64.1.1 metric 50
default via 10.64.1.1 metric 100
10.64.1.0/24 proto kernel scope link src 10.64.1.2
10.64.7.0/24 via 10.64.1.1 src 10.64.1.2
"""
RULES = """\
0:	from all lookup local
101:	from 10.64.1.2 lookup 101
102:	from 10.64.2.2 lookup 102
32766:	from all lookup main
"""
ENDPOINTS = """\
10.64.1.2 id 1 subflow dev wlan0
10.64.2.2 id 2 subflow backup dev rmnet0
"""

WLAN = InterfaceState(
    device="wlan0",
    up=True,
    address="10.64.1.2/24",
    neighbours=parse_neighbours("10.64.1.1 lladdr 02:6d:70:00:00:04 PERMANENT\n"),
    routes=parse_routes(ROUTES),
    rules=parse_rules(RULES, "10.64.1.2"),
    endpoints=parse_endpoints(ENDPOINTS, "wlan0"),
)


def test_what_ip_shows_is_understood() -> None:
    assert WLAN.neighbours == ("10.64.1.1 lladdr 02:6d:70:00:00:04 nud permanent",)
    assert "default via 10.64.1.1 metric 50" in WLAN.routes
    assert not any("proto kernel" in route for route in WLAN.routes), "it comes with the address"
    assert WLAN.rules == ("priority 101 from 10.64.1.2 lookup 101",)
    assert parse_endpoints(ENDPOINTS, "rmnet0") == (Endpoint("10.64.2.2", ("subflow", "backup"), 2),)


def test_what_sends_goes_first_and_comes_last() -> None:
    going, coming = WLAN.going(), WLAN.coming()
    assert (going[0], going[-1]) == ("mptcp endpoint delete id 1", "link set wlan0 down")
    assert coming[:2] == ["addr add 10.64.1.2/24 dev wlan0", "link set wlan0 up"]
    assert coming[-1] == "mptcp endpoint add 10.64.1.2 subflow dev wlan0"
    assert "route replace default via 10.64.1.1 table 101 dev wlan0" in coming


def test_another_address_is_everywhere_and_the_gateway_stays() -> None:
    moved = WLAN.moved("10.64.1.23")
    text = "\n".join(moved.coming())
    assert "10.64.1.2 " not in text
    assert "10.64.1.2/" not in text
    assert "addr add 10.64.1.23/24 dev wlan0" in text
    assert "rule add priority 101 from 10.64.1.23 lookup 101" in text
    assert "default via 10.64.1.1 metric 50" in text


def test_a_new_number_of_an_endpoint_is_no_difference() -> None:
    assert Endpoint("10.64.1.2", ("subflow",), 1) == Endpoint("10.64.1.2", ("subflow",), 7)
