"""Transports that are possible with a phone's root access, kernel and interfaces."""

from collections.abc import Sequence

import pytest

from mplab.base.paths import RMNET, WLAN
from mplab.drivers.phone.adb.kernel import parse_kernel
from mplab.drivers.phone.kernel import KernelMptcp, PhoneFacts
from mplab.drivers.transport import DRIVERS, TransportChance, chances, make_transport

BOTH = (WLAN, RMNET)
INTERFACES = {WLAN: "10.64.1.2", RMNET: "10.64.2.2"}
UPSTREAM = KernelMptcp("upstream", enabled=True, endpoints=True)
PATCHED = KernelMptcp("out-of-tree", "0.95", enabled=True, path_manager="fullmesh")


def chance(
    kernel: KernelMptcp, *, rooted: bool, name: str = "mptcp", interfaces: Sequence[str] = BOTH
) -> TransportChance:
    return chances(PhoneFacts(rooted, kernel, interfaces=interfaces))[name]


def test_kernels_without_tools_or_root() -> None:
    upstream = parse_kernel({"sysctls": "enabled:1\npm_type:0\n", "endpoints": 'Object "mptcp" is unknown'})
    assert not chance(upstream, rooted=True).possible
    preset = parse_kernel({"sysctls": "mptcp_enabled:1\nmptcp_path_manager:fullmesh\n", "multipath": "garbage"})
    assert chance(preset, rooted=False).possible
    assert "no backup paths" in chance(preset, rooted=True).note
    off = parse_kernel({"sysctls": "mptcp_enabled:0\nmptcp_path_manager:default\n"})
    assert "only root can change that" in chance(off, rooted=False).note
    assert chance(parse_kernel({}), rooted=True).note == "its kernel has no Multipath TCP"
    assert not chance(upstream, rooted=True, name="mpflex", interfaces=("wlan0",)).possible
    assert chance(upstream, rooted=True, name="sptcp-lte", interfaces=("wlan0",)).note == "no cellular interface"


def test_without_agent_or_interfaces_nothing_is_possible() -> None:
    assert not any(chance.possible for chance in chances(PhoneFacts(kernel=UPSTREAM, agent=False)).values())
    only_lte = chances(PhoneFacts(kernel=UPSTREAM, interfaces=(RMNET,)))
    assert [name for name, chance in only_lte.items() if chance.possible] == [
        name for name, driver in DRIVERS.items() if driver.paths == (RMNET,)
    ]
    assert only_lte["sptcp-wifi"].note == "no WiFi interface"
    assert only_lte["mptcp"].note == "two interfaces are needed, and there is one"


def test_without_root_apps_take_a_proxy_and_sockets_are_bound() -> None:
    by_name = chances(PhoneFacts(rooted=False, kernel=UPSTREAM))
    assert {name: chance.how for name, chance in by_name.items()} == {
        name: "" if name == "mptcp" else "socks" for name in DRIVERS
    }
    assert "Linux 5.7" in by_name["mpflex"].note
    assert by_name["sptcp"].note == ""


@pytest.mark.parametrize(
    ("phone", "missing"),
    [
        (PhoneFacts(), ""),
        (PhoneFacts(kernel=UPSTREAM), ""),
        (PhoneFacts(kernel=KernelMptcp()), "has no Multipath TCP of Linux 5.6"),
        (
            PhoneFacts(kernel=PATCHED),
            "has no Multipath TCP of Linux 5.6 or later, only the out-of-tree 0.95 one",
        ),
        (PhoneFacts(rooted=False, kernel=UPSTREAM), "is used without root: without root there is no second subflow"),
    ],
)
def test_a_plan_leaves_out_what_the_phone_of_the_lab_file_cannot(phone: PhoneFacts, missing: str) -> None:
    assert DRIVERS["mptcp"].missing_on_phone(phone).startswith(missing)
    assert bool(DRIVERS["mptcp"].missing_on_phone(phone)) == bool(missing)
    assert [name for name, driver in DRIVERS.items() if driver.missing_on_phone(phone)] == (
        ["mptcp"] if missing else []
    )


def test_a_phone_that_answers_is_asked_for_its_kernel_only_where_that_matters() -> None:
    def unread() -> KernelMptcp:
        raise AssertionError("no need to read the kernel")

    for name in DRIVERS:
        transport = make_transport(name, None, INTERFACES)
        if name != "mptcp":
            assert transport.missing_on_phone(unread) == DRIVERS[name].check_phone(unread) == ""
    transport = make_transport("mptcp", None, INTERFACES)
    assert transport.missing_on_phone(lambda: UPSTREAM) == ""
    reason = "its kernel has the patches 0.95, which proxies do not support"
    assert transport.missing_on_phone(lambda: PATCHED) == f"no Multipath TCP: {reason}"
    assert DRIVERS["mptcp"].check_phone(lambda: PATCHED) == reason
