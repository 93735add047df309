"""The transport `sptcp-balanced`: its settings for the agent, and the verification of each connection."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from mplab.base.outages import Disturbances, Outage
from mplab.base.paths import RMNET, WLAN
from mplab.drivers.phone.kernel import PhoneFacts
from mplab.drivers.transport import DRIVERS, AgentSettings, Evidence, Transport

ADDRESSES = {WLAN: "10.64.1.2", RMNET: "10.64.2.2"}
ACTIVE = {"mptcp": False, "local": list(ADDRESSES.values())}


@pytest.fixture
def balanced(mplab_transport: Callable[[str], Transport]) -> Transport:
    return mplab_transport("sptcp-balanced")


def opened(device: str, at: float = 0.0, **changes: Any) -> dict[str, Any]:
    record = {"event": "connection", "opened": at, "device": device, "local": f"{ADDRESSES.get(device, '')}:40000"}
    return {**record, "process": "curl", **changes}


def evidence(log: Sequence[dict[str, Any]], **changes: Any) -> Evidence:
    captured = [record["device"] for record in log if record.get("device")]
    fields: dict[str, Any] = {
        "active": ACTIVE,
        "phone_counters": {},
        "connections": [{"kind": "tcp", "fallback": False} for _ in captured],
        "subflows": [{"interface": device} for device in captured],
        "log": log,
    }
    return Evidence(**{**fields, **changes})


FOUR = [opened(WLAN), opened(RMNET), opened(WLAN), opened(RMNET)]


def test_the_agent_takes_both_interfaces_in_turn(balanced: Transport) -> None:
    assert balanced.agent_settings() == AgentSettings("tcp", devices=(WLAN, RMNET))
    assert balanced.expected_subflows == 1
    assert DRIVERS["sptcp-balanced"].paths == (WLAN, RMNET)


def test_nothing_is_left_on_the_phone(balanced: Transport, mplab_left_by: Callable[[Transport], list[str]]) -> None:
    assert mplab_left_by(balanced) == []


@pytest.mark.parametrize(
    ("active", "reasons"),
    [
        (ACTIVE, []),
        ({**ACTIVE, "mptcp": True}, ["the test connection was Multipath TCP, single-path TCP was requested"]),
        (
            {**ACTIVE, "local": ["10.64.1.2"]},
            ["no test connection left from 10.64.2.2 (rmnet0), only from 10.64.1.2"],
        ),
        (
            {},
            [
                "no test connection left from 10.64.1.2 (wlan0), only from nowhere",
                "no test connection left from 10.64.2.2 (rmnet0), only from nowhere",
            ],
        ),
    ],
)
def test_a_test_connection_over_each_interface(balanced: Transport, active: Any, reasons: list[str]) -> None:
    assert balanced.check_active(active) == reasons


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_connections_in_turn_are_proved(balanced: Transport, count: int) -> None:
    assert balanced.prove(evidence(FOUR[:count])) == []


def test_lookups_have_turns_of_their_own(balanced: Transport) -> None:
    lookups = [opened(WLAN, process="mpflex") for _ in range(5)]
    assert balanced.prove(evidence([*FOUR, *lookups])) == []


@pytest.mark.parametrize(
    ("log", "changes", "reason"),
    [
        (
            [opened(WLAN), opened(WLAN), opened(WLAN), opened(RMNET)],
            {},
            "the interfaces did not take turns: connections over wlan0 3, rmnet0 1",
        ),
        (
            [*FOUR, opened(WLAN, local="10.64.2.2:40000")],
            {},
            "1 of 5 connections did not leave from the address of their interface",
        ),
        ([opened(WLAN, process="mpflex")], {}, "the agent's log has no connection of an application"),
        (
            FOUR,
            {"subflows": [{"interface": WLAN}, {"interface": WLAN}, {"interface": RMNET}]},
            "the agent's log has 2 connections over rmnet0, 1 were captured",
        ),
        (
            FOUR,
            {"connections": [{"kind": "mptcp", "fallback": False}]},
            "Multipath TCP was negotiated, single-path TCP was requested",
        ),
        (FOUR, {"active": {**ACTIVE, "local": ["10.64.2.2"]}}, "no test connection left from 10.64.1.2 (wlan0)"),
    ],
)
def test_what_is_not_this_transport(
    balanced: Transport, log: Sequence[dict[str, Any]], changes: Any, reason: str
) -> None:
    (problem,) = balanced.prove(evidence(log, **changes))
    assert problem.startswith(reason)


def test_without_captures_the_log_is_the_proof(balanced: Transport) -> None:
    assert balanced.prove(evidence(FOUR, captured=False, connections=(), subflows=())) == []
    (reason,) = balanced.prove(evidence(FOUR[::2] * 2, captured=False, connections=(), subflows=()))
    assert reason == "the interfaces did not take turns: connections over wlan0 4, rmnet0 0"


def test_a_connection_that_was_not_opened_has_used_up_a_turn(balanced: Transport) -> None:
    refused = opened("", local="")
    assert balanced.prove(evidence([opened(WLAN), refused, opened(WLAN), refused, opened(WLAN)])) == []


def test_in_an_outage_connections_go_elsewhere(balanced: Transport) -> None:
    story = Disturbances(outages=[Outage(WLAN, 10.0, 20.0)])
    log = [opened(WLAN, 1.0), *(opened(RMNET, at) for at in (11.0, 12.0, 13.0, 14.0)), opened(WLAN, 30.0)]
    assert balanced.prove(evidence(log, disturbances=story)) == []
    assert balanced.prove(evidence(log[1:5], disturbances=story)) == []
    (reason,) = balanced.prove(evidence(log))
    assert reason == "the interfaces did not take turns: connections over wlan0 2, rmnet0 4"


def test_an_interface_may_come_back_with_another_address(balanced: Transport) -> None:
    other = opened(WLAN, 30.0, local="10.64.1.7:40000")
    story = Disturbances(outages=[Outage(WLAN, 10.0, 13.0)], absences=[Outage(WLAN, 10.0, 13.0)])
    assert balanced.prove(evidence([*FOUR, other], disturbances=story)) == []
    (reason,) = balanced.prove(evidence([*FOUR, other]))
    assert "did not leave from the address" in reason


def test_a_phone_with_one_interface_is_refused() -> None:
    chance = DRIVERS["sptcp-balanced"].chance(PhoneFacts(rooted=True, interfaces=(WLAN,)))
    assert (chance.possible, chance.note) == (False, "two interfaces are needed, and there is one")
    assert DRIVERS["sptcp-balanced"].open(None, {WLAN: "10.64.1.2"}).agent_settings().devices == (WLAN,)
