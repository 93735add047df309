"""A transport is verified, or the reasons name the differences from the request."""

from typing import Any, Literal

import pytest

from mplab.base.outages import Disturbances, Outage
from mplab.base.undo import UndoStack
from mplab.drivers.transport import Evidence, Transport, make_transport
from mplab.drivers.transport.mptcp.transport import MptcpOptions

INTERFACES = {"wlan0": "10.64.1.2", "rmnet0": "10.64.2.2"}
BOTH = ["10.64.1.2", "10.64.2.2"]


def connection(**changes: Any) -> dict[str, Any]:
    row = {"connection_id": 1, "kind": "mptcp", "fallback": False, "subflows": 2, "duration_s": 1.0}
    row |= {"bytes_up": 200, "bytes_down": 1_000_000}
    return row | changes


def subflow(interface: str, **changes: Any) -> dict[str, Any]:
    row = {"connection_id": 1, "interface": interface, "role": "initial", "established": True, "reset_by": ""}
    row |= {"start_ns": 0, "duration_s": 1.0}
    row |= {"payload_up": 100, "payload_down": 500_000}
    row |= {"unique_up": 100, "unique_down": 500_000}
    return row | changes


TWO_SUBFLOWS = (subflow("wlan0"), subflow("rmnet0", role="additional"))


def mptcp_evidence(**changes: Any) -> Evidence:
    fields: dict[str, Any] = {
        "active": {"mptcp": True, "local": BOTH},
        "phone_counters": {},
        "connections": (connection(),),
        "subflows": TWO_SUBFLOWS,
    }
    return Evidence(**fields | changes)


def sptcp_evidence(**changes: Any) -> Evidence:
    fields: dict[str, Any] = {
        "active": {"mptcp": False, "local": ["10.64.1.2"]},
        "phone_counters": {},
        "connections": (connection(kind="tcp", subflows=1),),
        "subflows": (subflow("wlan0"),),
    }
    return Evidence(**fields | changes)


class Routes:
    """A phone that records its preferred interfaces."""

    def __init__(self) -> None:
        self.preferred: list[str] = []

    def prefer(self, interface: str) -> None:
        self.preferred.append(interface)


@pytest.mark.parametrize(("name", "device"), [("sptcp", "wlan0"), ("sptcp-wifi", "wlan0"), ("sptcp-lte", "rmnet0")])
def test_datagrams_follow_the_single_path(name: str, device: str) -> None:
    phone: Any = Routes()
    with UndoStack() as undo:
        make_transport(name, None, INTERFACES).setup(phone, undo)
        assert phone.preferred == [device]
    assert phone.preferred[-1] == "wlan0"


def test_mptcp_over_both_paths_is_proved() -> None:
    assert make_transport("mptcp", None, INTERFACES).prove(mptcp_evidence()) == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"active": {"mptcp": False, "local": BOTH}}, "was plain TCP"),
        ({"active": {"mptcp": True, "local": BOTH[:1]}}, "no subflow on rmnet0"),
        ({"phone_counters": {"MPTcpExt.MPCapableFallbackACK": 2}}, "MPCapableFallbackACK 2"),
        ({"connections": ()}, "no TCP connection was captured"),
        ({"connections": (connection(fallback=True), connection())}, "1 of 2 connections were plain TCP"),
        ({"connections": (connection(subflows=1),)}, "1 long connections never had a second subflow"),
        ({"subflows": (subflow("rmnet0"),)}, "began on another interface than wlan0"),
    ],
)
def test_mptcp_that_was_not_is_told(changes: dict[str, Any], reason: str) -> None:
    problems = make_transport("mptcp", None, INTERFACES).prove(mptcp_evidence(**changes))
    assert any(reason in text for text in problems), problems


def test_a_short_connection_needs_no_second_subflow() -> None:
    evidence = mptcp_evidence(connections=(connection(), connection(subflows=1, bytes_down=10_000)))
    assert make_transport("mptcp", None, INTERFACES).prove(evidence) == []


LOST = subflow("rmnet0", role="additional", established=False)
NEVER_SECOND = ["1 long connections never had a second subflow"]


@pytest.mark.parametrize(
    ("duration_s", "flow", "lossy", "rtts_s", "excused"),
    [
        (3.0, LOST, ("rmnet0",), {}, True),
        (60.0, LOST, ("rmnet0",), {}, False),
        (3.0, LOST, ("wlan0",), {}, False),
        (3.0, LOST, (), {}, False),
        (3.0, LOST | {"reset_by": "server"}, ("rmnet0",), {}, False),
        (0.6, LOST | {"reset_by": "server"}, (), {"wlan0": 0.02, "rmnet0": 0.6}, False),
        (1.1, LOST | {"reset_by": "server", "duration_s": 1.1}, (), {"wlan0": 0.02, "rmnet0": 0.6}, True),
        (3.0, LOST | {"connection_id": 2}, ("rmnet0",), {}, False),
        (1.1, LOST, (), {"wlan0": 0.02, "rmnet0": 0.6}, True),
        (1.1, LOST, (), {"wlan0": 0.02, "rmnet0": 0.1}, False),
        (2.0, LOST, (), {"wlan0": 0.02, "rmnet0": 0.6}, False),
    ],
)
def test_a_second_subflow_is_excused_only_while_its_handshake_can_last(
    duration_s: float, flow: dict[str, Any], lossy: tuple[str, ...], rtts_s: dict[str, float], excused: bool
) -> None:
    evidence = mptcp_evidence(
        connections=(connection(subflows=1, duration_s=duration_s),),
        subflows=(subflow("wlan0"), flow),
        lossy=lossy,
        rtts_s=rtts_s,
    )
    assert make_transport("mptcp", None, INTERFACES).prove(evidence) == ([] if excused else NEVER_SECOND)


def test_mptcp_with_lte_first() -> None:
    transport = make_transport("mptcp", MptcpOptions(primary="lte"), INTERFACES)
    lte_first = (subflow("rmnet0"), subflow("wlan0", role="additional"))
    assert transport.prove(mptcp_evidence(subflows=lte_first)) == []
    assert transport.prove(mptcp_evidence()) != []


def test_a_backup_path_that_carried_data_is_told() -> None:
    transport = make_transport("mptcp", MptcpOptions(mode="backup"), INTERFACES)
    assert any("backup path" in reason for reason in transport.prove(mptcp_evidence()))
    idle = (subflow("wlan0"), subflow("rmnet0", role="additional", unique_up=0, unique_down=0))
    assert transport.prove(mptcp_evidence(subflows=idle)) == []


def test_without_captures_the_test_connection_and_the_counters_speak() -> None:
    transport = make_transport("mptcp", None, INTERFACES)
    assert transport.prove(mptcp_evidence(captured=False, connections=(), subflows=())) == []
    assert transport.prove(mptcp_evidence(captured=False, active={"mptcp": False, "local": BOTH})) != []


def test_single_path_tcp_is_proved() -> None:
    assert make_transport("sptcp-wifi", None, INTERFACES).prove(sptcp_evidence()) == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"active": {"mptcp": True, "local": BOTH[:1]}}, "Multipath TCP, single-path TCP was requested"),
        ({"active": {"mptcp": False, "local": BOTH[1:]}}, "not from 10.64.1.2 (wlan0)"),
        ({"subflows": ()}, "no TCP connection was captured on wlan0"),
        ({"subflows": TWO_SUBFLOWS}, "500100 bytes went over another interface than wlan0"),
        ({"connections": (connection(),)}, "Multipath TCP was negotiated"),
    ],
)
def test_single_path_tcp_that_was_not_is_told(changes: dict[str, Any], reason: str) -> None:
    problems = make_transport("sptcp-wifi", None, INTERFACES).prove(sptcp_evidence(**changes))
    assert any(reason in text for text in problems), problems


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"active": {"mptcp": True, "local": BOTH[:1]}}, "Multipath TCP, single-path TCP was requested"),
        ({"active": {"mptcp": False, "local": BOTH[1:]}}, "not from 10.64.1.2 (wlan0)"),
        ({"subflows": ()}, "no TCP connection was captured"),
        ({"connections": (connection(),)}, "Multipath TCP was negotiated"),
    ],
)
def test_tcp_over_the_default_route_that_was_not_is_told(changes: dict[str, Any], reason: str) -> None:
    transport = make_transport("sptcp", None, INTERFACES)
    assert transport.prove(sptcp_evidence()) == []
    problems = transport.prove(sptcp_evidence(**changes))
    assert any(reason in text for text in problems), problems


def test_the_default_route_is_cellular_while_the_phone_has_no_wifi_and_then_alone() -> None:
    transport = make_transport("sptcp", None, INTERFACES)
    lost_signal_first = Disturbances([Outage("wlan0", 90.0, 110.0)], absences=[Outage("wlan0", 100.0, 110.0)])
    for begin_s, right in ((89.0, False), (95.0, False), (100.0, True), (109.0, True), (110.5, False)):
        flows = (subflow("wlan0", **at(50.0)), subflow("rmnet0", **at(begin_s)))
        problems = transport.prove(sptcp_evidence(subflows=flows, disturbances=lost_signal_first))
        assert problems == ([] if right else ["1 connections began on another interface than wlan0 while it was up"])
    moved = Disturbances(rerouted_s=80.0)
    assert transport.prove(sptcp_evidence(subflows=(subflow("rmnet0", **at(81.0)),), disturbances=moved)) == []


OUT = Disturbances([Outage("wlan0", 100.0, 110.0)])


def at(time_s: float, duration_s: float = 4.0) -> dict[str, Any]:
    return {"start_ns": int(time_s * 1e9), "duration_s": duration_s}


@pytest.mark.parametrize(
    "changes",
    [
        {"connections": (connection(kind="tcp", **at(103.0)),)},
        {"connections": (connection(subflows=1, **at(101.0)),)},
        {"subflows": (subflow("rmnet0", **at(101.0)),)},
        {"phone_counters": {"MPTcpExt.MPCapableFallbackACK": 2}},
    ],
)
def test_mptcp_is_not_blamed_for_an_outage_that_was_asked(changes: dict[str, Any]) -> None:
    transport = make_transport("mptcp", None, INTERFACES)
    fields = {"connections": (connection(**at(50.0)),)}
    assert transport.prove(mptcp_evidence(**fields | changes, disturbances=OUT)) == []
    assert transport.prove(mptcp_evidence(**fields | changes)) != []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"connections": (connection(kind="tcp", **at(50.0)),)}, "1 of 1 connections were plain TCP"),
        ({"connections": (connection(subflows=1, **at(50.0, 40.0)),)}, "never had a second subflow"),
        ({"subflows": (subflow("rmnet0", **at(130.0)),)}, "began on another interface"),
    ],
)
def test_an_outage_is_no_excuse_for_what_was_before_or_after(changes: dict[str, Any], reason: str) -> None:
    fields = {"connections": (connection(**at(50.0)),)}
    problems = make_transport("mptcp", None, INTERFACES).prove(mptcp_evidence(**fields | changes, disturbances=OUT))
    assert len(problems) == 1
    assert reason in problems[0]


def test_connections_follow_the_default_route_that_was_moved() -> None:
    moved = Disturbances(rerouted_s=100.0)
    transport = make_transport("mptcp", None, INTERFACES)
    for time_s, judged in ((99.0, True), (101.0, False)):
        evidence = mptcp_evidence(subflows=(subflow("rmnet0", **at(time_s)),), disturbances=moved)
        assert bool(transport.prove(evidence)) is judged


def behind(*stripped: str, primary: Literal["wifi", "lte"] = "wifi") -> Transport:
    transport = make_transport("mptcp", MptcpOptions(primary=primary), INTERFACES)
    transport.stripped = stripped
    return transport


FELL_BACK: dict[str, Any] = {
    "active": {"mptcp": False, "local": BOTH[:1]},
    "phone_counters": {"MPTcpExt.MPCapableFallbackSYNACK": 1},
    "connections": (connection(fallback=True, subflows=1),),
    "subflows": (subflow("wlan0"),),
}
REFUSED = subflow("rmnet0", role="additional", established=False, unique_up=0, unique_down=0)
ALONE: dict[str, Any] = {
    "active": {"mptcp": True, "local": BOTH[:1]},
    "connections": (connection(subflows=1),),
    "subflows": (subflow("wlan0"), REFUSED),
}


def test_a_middlebox_on_the_primary_path_makes_connections_fall_back() -> None:
    transport = behind("wlan0")
    assert transport.expected_subflows == 1
    assert transport.prove(mptcp_evidence(**FELL_BACK)) == []
    assert make_transport("mptcp", None, INTERFACES).prove(mptcp_evidence(**FELL_BACK)) != []


def test_a_middlebox_on_the_other_path_takes_its_subflow() -> None:
    transport = behind("rmnet0")
    assert transport.expected_subflows == 1
    assert transport.prove(mptcp_evidence(**ALONE)) == []
    assert make_transport("mptcp", None, INTERFACES).prove(mptcp_evidence(**ALONE)) != []
    assert behind("rmnet0", primary="lte").prove(mptcp_evidence(**ALONE)) != []


def test_behind_a_middlebox_the_path_of_the_initial_subflow_decides() -> None:
    inside = connection(connection_id=2, **at(103.0))
    flows = (subflow("wlan0", **at(50.0)), subflow("rmnet0", connection_id=2, **at(103.0)))
    changes = FELL_BACK | {"connections": (connection(fallback=True, subflows=1, **at(50.0)), inside)}
    for story in (OUT, Disturbances(rerouted_s=100.0)):
        assert behind("wlan0").prove(mptcp_evidence(**changes | {"subflows": flows}, disturbances=story)) == []
    # The other way round: the default route moves to the path with the middlebox.
    plain = connection(connection_id=2, kind="tcp", subflows=1, **at(103.0))
    moved = ALONE | {"connections": (connection(subflows=1, **at(50.0)), plain), "subflows": flows}
    counted = moved | {"phone_counters": FELL_BACK["phone_counters"], "disturbances": Disturbances(rerouted_s=100.0)}
    assert behind("rmnet0").prove(mptcp_evidence(**counted)) == []


@pytest.mark.parametrize(
    ("stripped", "evidence", "changes", "reason"),
    [
        (
            "wlan0",
            FELL_BACK,
            {"active": {"mptcp": True, "local": BOTH}},
            "connection was Multipath TCP, although a middlebox",
        ),
        ("wlan0", FELL_BACK, {"active": {"mptcp": False, "local": BOTH[1:]}}, "did not leave from wlan0"),
        ("wlan0", FELL_BACK, {"connections": (connection(),)}, "1 of 1 connections were Multipath TCP, although"),
        ("wlan0", FELL_BACK, {"subflows": (subflow("rmnet0"),)}, "began on another interface than wlan0"),
        ("rmnet0", ALONE, {"active": {"mptcp": True, "local": BOTH}}, "had a subflow on rmnet0, although a middlebox"),
        ("rmnet0", ALONE, {"active": {"mptcp": False, "local": BOTH[:1]}}, "was plain TCP"),
        (
            "rmnet0",
            ALONE,
            {"subflows": (subflow("wlan0"), REFUSED | {"established": True})},
            "subflows on rmnet0, although",
        ),
        ("rmnet0", ALONE, {"connections": (connection(fallback=True),)}, "1 of 1 connections were plain TCP"),
    ],
)
def test_a_middlebox_that_had_another_effect_is_told(
    stripped: str, evidence: dict[str, Any], changes: dict[str, Any], reason: str
) -> None:
    problems = behind(stripped).prove(mptcp_evidence(**evidence | changes))
    assert any(reason in text for text in problems), problems
