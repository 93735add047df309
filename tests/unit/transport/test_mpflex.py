"""MPFlex: the agent's configuration, and the check that a cell's bytes used the session's paths."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from mplab.base.endpoints import Listener
from mplab.base.outages import Disturbances, Outage
from mplab.drivers.phone.netns import NetnsPhone
from mplab.drivers.transport import DRIVERS, AgentSettings, Evidence, make_transport, names, transport_named
from mplab.drivers.transport.agent import Agent
from mplab.drivers.transport.mpflex.driver import LOOKS
from mplab.drivers.transport.mpflex.options import POLICIES_DIR, MpflexOptions, policy_names
from mplab.drivers.transport.mpflex.transport import Mpflex, Scheme, read_scheme, session_summary
from mplab.drivers.transport.protocol import Transport
from mplab.format.agentlog import ActiveCheck
from mplab.lab import topology

INTERFACES = {"wlan0": "10.64.1.2", "rmnet0": "10.64.2.2"}
ACTIVE: ActiveCheck = {"ok": True, "transport": "mpflex", "mptcp": False, "paths": ["wlan0", "rmnet0"]}
Record = Any


def mpflex(**options: Any) -> Transport:
    return make_transport("mpflex", MpflexOptions(**options), INTERFACES)


def event(interface: str, what: str, **more: Any) -> Record:
    return {"event": "path", "t": 1.0, "what": what, "interface": interface, "incarnation": 1, **more}


def stream(wlan0: int, rmnet0: int, *, copies: int = 0) -> Record:
    """Return a connection of the agent's log, with the bytes that each interface carried."""
    carried = {"wlan0": (90 if wlan0 else 0, wlan0, 0), "rmnet0": (0, rmnet0, copies)}
    return {
        "event": "connection",
        "transport": "mpflex",
        "bytes_up": 80,
        "bytes_down": wlan0 + rmnet0,
        "paths": [
            {"interface": interface, "bytes_out": sent, "bytes_in": received, "copies_out": copied}
            for interface, (sent, received, copied) in carried.items()
            if sent or received or copied
        ],
    }


ATTACHED = (event("wlan0", "attached"), event("rmnet0", "attached"))
BOTH = stream(500_000, 500_000)
DNS: Record = {"event": "dns", "t": 1.0, "name": "dl.lab.", "type": "A", "rcode": "NOERROR", "duration_s": 0.1}


def captured(*interfaces: str, kind: str = "tcp") -> dict[str, Sequence[Record]]:
    """Return rows of connections with one subflow each."""
    return {
        "connections": [{"kind": kind, "fallback": False} for _ in interfaces],
        "subflows": [{"interface": name} for name in interfaces],
    }


def evidence(log: Sequence[Record] = (*ATTACHED, DNS, BOTH), **changes: Any) -> Evidence:
    fields: dict[str, Any] = {"active": ACTIVE, "phone_counters": {}, "log": log, **captured("rmnet0", "wlan0")}
    return Evidence(**fields | changes)


def test_the_agent_has_a_path_on_every_interface() -> None:
    settings = mpflex().agent_settings()
    assert (settings.transport, settings.device, settings.plain) == ("mpflex", "", False)
    assert settings.paths == ("wlan0", "rmnet0")
    assert settings.session == {
        "scheduler": "earliest",
        "reinjection": {"tail": True, "stall": True, "buffer": True},
        "feeding": "late",
        "send_buffer_bytes": 0,
    }
    assert mpflex().expected_subflows == 2


def test_options_reach_the_session() -> None:
    settings = mpflex(scheduler="single", primary="lte", plain=True, reinjection=("stall",)).agent_settings()
    assert settings.plain
    assert settings.paths == ("rmnet0", "wlan0"), "the primary path has the lowest number"
    assert settings.session == {
        "scheduler": "single",
        "reinjection": {"tail": False, "stall": True, "buffer": False},
        "feeding": "late",
        "send_buffer_bytes": 0,
    }


def test_send_buffers_are_filled_where_that_is_asked_for() -> None:
    session = mpflex(feeding="buffered").agent_settings().session
    assert (session["feeding"], session["send_buffer_bytes"]) == ("buffered", 0), "0: the default of mpflex"
    session = mpflex(feeding="buffered", send_buffer="64 KiB").agent_settings().session
    assert session["send_buffer_bytes"] == 65536


def agent_config(folder: Path, settings: AgentSettings, *, app_proxy: str = "", http: str = "") -> dict[str, Any]:
    (folder / "secret").write_text("00")
    Agent(
        phone=NetnsPhone("phone", 1, interfaces=INTERFACES, gateways={}, directory=folder / "phone"),
        settings=settings,
        endpoints=replace(topology.endpoints(), app_proxy=app_proxy, app_http_proxy=http),
        secret_file=folder / "secret",
        congestion_control="bbr",
        logs=folder,
    )
    written: dict[str, Any] = json.loads((folder / "phone" / "agent.json").read_text())
    return written


@pytest.mark.parametrize(
    ("name", "options", "listener"),
    [
        ("sptcp-wifi", None, "tcp"),
        ("mptcp", None, "mptcp"),
        ("mpflex", None, "mpflex"),
        ("mpflex", MpflexOptions(plain=True), "mpflex_plain"),
    ],
)
def test_each_transport_has_a_listener_of_its_own(
    tmp_path: Path, name: str, options: MpflexOptions | None, listener: Listener
) -> None:
    assert agent_config(tmp_path, make_transport(name, options, INTERFACES).agent_settings())[
        "proxy"
    ] == topology.endpoints().listener(listener)


def test_the_configuration_of_a_session(tmp_path: Path) -> None:
    config = agent_config(tmp_path, mpflex(scheduler="txdelay", reinjection=()).agent_settings())
    assert config["transport"] == "mpflex"
    assert config["paths"] == [{"device": "wlan0"}, {"device": "rmnet0"}]
    assert config["plain"] is False
    assert config["congestion_control"] == "bbr"
    assert config["session"]["scheduler"] == "txdelay"
    assert set(config["session"]["reinjection"].values()) == {False}


def test_plain_tcp_can_take_several_interfaces_in_turn(tmp_path: Path) -> None:
    config = agent_config(tmp_path, AgentSettings("tcp", devices=("wlan0", "rmnet0")))
    assert (config["device"], config["devices"]) == ("", ["wlan0", "rmnet0"])
    assert "devices" not in agent_config(tmp_path, AgentSettings("tcp", "wlan0"))


def test_datagrams_are_handed_over_where_they_are_carried(tmp_path: Path) -> None:
    assert agent_config(tmp_path, mpflex().agent_settings())["listen"]["socks"] == "127.0.0.1:1080"
    assert mpflex().agent_settings().socks == "127.0.0.1:1080"
    plain = make_transport("mptcp", None, INTERFACES).agent_settings()
    assert "socks" not in agent_config(tmp_path, plain)["listen"]
    assert plain.socks == ""


@pytest.mark.parametrize("name", ["sptcp", "sptcp-lte", "mpflex"])
def test_without_root_the_agent_is_a_proxy_and_marks_nothing(tmp_path: Path, name: str) -> None:
    settings = make_transport(name, None, INTERFACES).agent_settings()
    config = agent_config(tmp_path, settings, app_proxy="127.0.0.1:1080", http="127.0.0.1:8118")
    assert config["listen"] == {"socks": "127.0.0.1:1080", "http": "127.0.0.1:8118"}
    assert config["mark"] == 0
    assert config["dns_server"] == topology.endpoints().dns, "names are the agent's to resolve"
    assert agent_config(tmp_path, settings)["mark"] != 0


def test_a_policy_stays_beside_the_logs(tmp_path: Path) -> None:
    assert "policy_file" not in agent_config(tmp_path, mpflex().agent_settings())
    config = agent_config(tmp_path, mpflex(policy="nikravesh2016-fig18-lab").agent_settings())
    assert Path(config["policy_file"]).read_bytes() == (tmp_path / "policy.yaml").read_bytes()
    assert (tmp_path / "policy.yaml").read_bytes() == (POLICIES_DIR / "nikravesh2016-fig18-lab.yaml").read_bytes()


def test_every_policy_that_comes_with_mpflex_can_be_named() -> None:
    assert "nikravesh2016-fig18-lab" in policy_names()
    for name in policy_names():
        assert mpflex(policy=name).agent_settings().policy == (POLICIES_DIR / f"{name}.yaml").read_text()


@pytest.mark.parametrize(
    ("text", "scheme"),
    [
        ("minrtt over wifi, cellular", Scheme("minrtt", frozenset({"wlan0", "rmnet0"}), frozenset())),
        ("single over wifi", Scheme("single", frozenset({"wlan0"}), frozenset())),
        ("default over every path", Scheme("default", frozenset({"wlan0", "rmnet0"}), frozenset())),
        (
            "minrtt over every other path; backup cellular",
            Scheme("minrtt", frozenset({"wlan0"}), frozenset({"rmnet0"})),
        ),
        ("default over rmnet0; backup wifi", Scheme("default", frozenset({"rmnet0"}), frozenset({"wlan0"}))),
    ],
)
def test_schemes_are_read_as_the_agent_writes_them(text: str, scheme: Scheme) -> None:
    assert read_scheme(text, INTERFACES) == scheme


POLICY = {"event": "policy", "t": 1.0, "file": "policy.yaml", "rules": 3}
BOTH_BY_RULE: Record = {**BOTH, "rule": "store", "scheme": "minrtt over wifi, cellular"}
WIFI_BY_RULE = {**stream(300_000, 0), "rule": "messages", "scheme": "single over wifi"}


def test_connections_that_keep_to_the_policy_are_proved() -> None:
    log = (*ATTACHED, POLICY, DNS, stream(500, 0), BOTH_BY_RULE, WIFI_BY_RULE)
    assert mpflex(policy="example").prove(evidence(log)) == []


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        ((BOTH_BY_RULE,), "the agent read no policy, example was requested"),
        ((POLICY, BOTH), "no connection that a rule decided over"),
        (({**POLICY, "error": "line 3: no"}, BOTH_BY_RULE), "the policy was not in force: line 3: no"),
        (
            (POLICY, {**BOTH, "rule": "messages", "scheme": "single over wifi"}),
            "a connection of rule 'messages' (single over wifi) went over rmnet0",
        ),
        (
            (POLICY, {**stream(900_000, 0), "rule": "store", "scheme": "default over every path"}),
            "a long connection of rule 'store' (default over every path) did not use rmnet0",
        ),
    ],
)
def test_a_policy_that_was_not_kept_is_told(log: Sequence[Record], reason: str) -> None:
    problems = mpflex(policy="example").prove(evidence((*ATTACHED, *log)))
    assert any(reason in text for text in problems), problems


@pytest.mark.parametrize(
    "options",
    [
        {"scheduler": "fastest"},
        {"policy": "../example"},
        {"primary": "lte"},
        {"scheduler": "minrtt", "primary": "wifi"},
        {"reinjection": ("tail", "tail")},
        {"reinjection": ("head",)},
        {"feeding": "early"},
        {"send_buffer": "64 KiB"},
        {"feeding": "buffered", "send_buffer": "1 kB"},
        {"congestion_control": "bbr"},
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        MpflexOptions(**options)


def test_every_scheduler_is_a_transport_with_a_look_of_its_own() -> None:
    schedulers = MpflexOptions.model_json_schema()["properties"]["scheduler"]["enum"]
    assert list(LOOKS) == schedulers
    assert set(names()) >= {"mpflex", *(f"mpflex:{name}" for name in schedulers)}
    looks = [
        *((driver.colour, driver.marker) for driver in DRIVERS.values()),
        *((k.colour, k.marker) for k in LOOKS.values()),
    ]
    assert len(set(looks)) == len(looks) - 1, "mpflex is mpflex:earliest, and no other two are alike"


def test_a_transport_is_made_by_its_name() -> None:
    for scheduler in LOOKS:
        transport = transport_named(f"mpflex:{scheduler}", INTERFACES)
        assert isinstance(transport, Mpflex)
        assert transport.agent_settings().session["scheduler"] == scheduler
    assert transport_named("mpflex", INTERFACES).agent_settings() == mpflex().agent_settings()
    assert transport_named("sptcp-lte", INTERFACES).agent_settings().device == "rmnet0"


def test_a_session_over_both_paths_is_active() -> None:
    assert mpflex().check_active(ACTIVE) == []
    assert mpflex(plain=True).check_active({**ACTIVE, "plain": True}) == []


@pytest.mark.parametrize(
    ("active", "reason"),
    [
        ({"transport": "mptcp", "mptcp": True}, "was mptcp, mpflex was requested"),
        ({**ACTIVE, "paths": ["wlan0"]}, "no path on rmnet0"),
        (
            {**ACTIVE, "ok": False, "error": "the exchange was interrupted: EOF"},
            "failed: the exchange was interrupted: EOF",
        ),
        (
            {**ACTIVE, "ok": False, "paths": [], "error": "0 of 2 paths after 5s (wlan0: connection refused)"},
            "wlan0: connection refused",
        ),
        ({**ACTIVE, "plain": True}, "the paths were plain, private ones were requested"),
    ],
)
def test_a_session_that_is_not_what_was_asked_is_told(active: Record, reason: str) -> None:
    problems = mpflex().check_active(active)
    assert any(reason in text for text in problems), problems


def test_private_paths_where_plain_ones_were_asked() -> None:
    assert mpflex(plain=True).check_active(ACTIVE) == ["the paths were private, plain ones were requested"]


@pytest.mark.parametrize("scheduler", ["earliest", "minrtt", "txdelay", "roundrobin", "redundant"])
def test_a_cell_over_both_paths_is_proved(scheduler: str) -> None:
    assert mpflex(scheduler=scheduler).prove(evidence()) == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"active": {**ACTIVE, "paths": ["wlan0"]}}, "the test session had no path on rmnet0"),
        ({"log": ATTACHED}, "no connection"),
        ({"log": (ATTACHED[0], BOTH)}, "the agent had no path on rmnet0"),
        ({"log": (*ATTACHED, stream(1_000_000, 0), BOTH)}, "1 long connections did not use every path"),
        (
            {"log": (*ATTACHED, event("wlan0", "ended", error="no answer to a ping"), BOTH)},
            "the path on wlan0 ended once: no answer to a ping",
        ),
        ({"log": (*ATTACHED, *[event("rmnet0", "stalled")] * 3, BOTH)}, "the path on rmnet0 stalled 3 times"),
        (captured("wlan0"), "0 TCP connections to the proxy began on rmnet0, one path was requested"),
        (captured("wlan0", "rmnet0", "wlan0"), "2 TCP connections to the proxy began on wlan0"),
        (captured("wlan0", "rmnet0", kind="mptcp"), "Multipath TCP was negotiated"),
    ],
)
def test_a_cell_that_was_not_is_told(changes: dict[str, Any], reason: str) -> None:
    problems = mpflex().prove(evidence(**changes))
    assert any(reason in text for text in problems), problems


def test_a_path_may_stall_where_losses_were_asked() -> None:
    log = (*ATTACHED, event("wlan0", "stalled"), event("wlan0", "recovered"), BOTH)
    assert mpflex().prove(evidence(log)) != []
    assert mpflex().prove(evidence(log, lossy=["wlan0"])) == []
    assert mpflex().prove(evidence((*log, event("wlan0", "ended")), lossy=["wlan0"])) != []


def test_attempts_before_a_path_was_there_do_not_count() -> None:
    early = event("rmnet0", "failed", error="connection refused")
    assert mpflex().prove(evidence((early, *ATTACHED, BOTH))) == []


def test_a_short_connection_needs_one_path() -> None:
    assert mpflex().prove(evidence((*ATTACHED, stream(10_000, 0)))) == []


@pytest.mark.parametrize("scheduler", ["single", "backup"])
def test_one_path_carries_all_where_the_scheduler_keeps_to_it(scheduler: str) -> None:
    wifi, lte = mpflex(scheduler=scheduler), mpflex(scheduler=scheduler, primary="lte")
    over_wifi, over_lte = evidence((*ATTACHED, stream(900_000, 0))), evidence((*ATTACHED, stream(0, 900_000)))
    assert wifi.prove(over_wifi) == []
    assert lte.prove(over_lte) == []
    assert wifi.prove(over_lte) == ["900000 bytes went over another path than wlan0"]
    assert lte.prove(over_wifi) == ["900090 bytes went over another path than rmnet0"]
    copied = evidence((*ATTACHED, stream(900_000, 0, copies=1200)))
    assert wifi.prove(copied) == ["1200 bytes went over another path than wlan0"]


def test_without_captures_the_log_speaks() -> None:
    nothing: dict[str, Any] = {"captured": False, "connections": (), "subflows": ()}
    assert mpflex().prove(evidence(**nothing)) == []
    assert mpflex().prove(evidence((*ATTACHED, stream(1_000_000, 0)), **nothing)) != []


def test_what_each_path_carried() -> None:
    agent = (*ATTACHED, DNS, stream(300, 100), stream(50, 0))
    proxy: list[Record] = [
        {"event": "connection", "paths": [{"interface": "wlan0", "bytes_in": 90, "bytes_out": 340, "copies_out": 7}]},
        {"event": "connection", "paths": [{"interface": "rmnet0", "bytes_in": 0, "bytes_out": 60, "copies_out": 40}]},
        {"event": "path", "t": 2.0, "what": "ended", "interface": "wlan0", "incarnation": 1, "client": "default"},
        {"event": "refused", "t": 3.0, "remote": "10.64.1.2:1", "reason": "x"},
    ]
    summary = session_summary(agent, proxy)
    assert summary["paths"] == {
        "rmnet0": {"bytes_up": 0, "bytes_down": 60, "copied_up": 0, "copied_down": 40},
        "wlan0": {"bytes_up": 180, "bytes_down": 340, "copied_up": 0, "copied_down": 7},
    }
    assert [(e["interface"], e["what"]) for e in summary["events"]] == [("wlan0", "attached"), ("rmnet0", "attached")]


def test_no_session_no_summary() -> None:
    connection: Record = {"event": "connection", "transport": "mptcp", "bytes_up": 1, "bytes_down": 2}
    assert session_summary([connection, DNS], [connection]) == {}


OUT = Disturbances([Outage("wlan0", 100.0, 110.0)])


def lived(begin_s: float, duration_s: float, wlan0: int, rmnet0: int) -> Record:
    return stream(wlan0, rmnet0) | {"opened": begin_s, "duration_s": duration_s}


@pytest.mark.parametrize(
    "log",
    [
        (*ATTACHED, event("wlan0", "ended", t=100.5), event("wlan0", "failed", t=112.0), BOTH),
        (*ATTACHED, event("rmnet0", "stalled", t=101.0), BOTH),
        (*ATTACHED, lived(101.0, 5.0, 0, 900_000)),
    ],
)
def test_a_path_that_was_taken_away_is_no_fault(log: Sequence[Record]) -> None:
    assert mpflex().prove(evidence(log, disturbances=OUT)) == []
    assert mpflex().prove(evidence(log)) != []


def test_a_stream_that_is_never_in_a_hurry_may_stay_on_one_path() -> None:
    assert mpflex().prove(evidence((*ATTACHED, lived(50.0, 21.6, 267_000, 0)))) == []
    assert mpflex().prove(evidence((*ATTACHED, lived(50.0, 5.0, 267_000, 0)))) != []


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        ((*ATTACHED, event("wlan0", "ended", t=60.0), BOTH), "the path on wlan0 ended once"),
        ((*ATTACHED, event("rmnet0", "ended", t=101.0), BOTH), "the path on rmnet0 ended once"),
        ((*ATTACHED, lived(50.0, 40.0, 0, 900_000)), "1 long connections did not use every path"),
        ((*ATTACHED, lived(101.0, 5.0, 900_000, 0)), "1 long connections did not use every path"),
    ],
)
def test_an_outage_excuses_its_own_path_and_time_alone(log: Sequence[Record], reason: str) -> None:
    assert mpflex().prove(evidence(log, disturbances=OUT)) == [reason]


def test_a_path_begins_again_after_an_outage() -> None:
    twice = captured("wlan0", "rmnet0", "wlan0")
    assert mpflex().prove(evidence(disturbances=OUT, **twice)) == []
    assert mpflex().prove(evidence(**twice)) != []
    other = captured("wlan0", "rmnet0", "rmnet0")
    assert mpflex().prove(evidence(disturbances=OUT, **other)) != []


def test_a_path_under_another_condition_may_stall() -> None:
    log = (*ATTACHED, event("wlan0", "stalled", t=60.0), BOTH)
    assert mpflex().prove(evidence(log, disturbances=Disturbances(reshaped={"wlan0"}))) == []
    assert mpflex().prove(evidence(log, disturbances=Disturbances(reshaped={"rmnet0"}))) != []


@pytest.mark.parametrize("error", ["", "another connection has taken its place"])
def test_a_path_that_stalls_because_it_was_asked_may_be_set_up_anew(error: str) -> None:
    ended = event("wlan0", "ended", t=61.0, **({"error": error} if error else {}))
    log = (*ATTACHED, event("wlan0", "stalled", t=60.0), ended, BOTH, event("wlan0", "attached", t=61.1, incarnation=2))
    twice = captured("wlan0", "rmnet0", "wlan0")
    assert mpflex().prove(evidence(log, disturbances=Disturbances(reshaped={"wlan0"}), **twice)) == []
    assert mpflex().prove(evidence(log, lossy=["wlan0"], **twice)) == []
    assert len(mpflex().prove(evidence(log, disturbances=Disturbances(reshaped={"rmnet0"}), **twice))) == 3
    assert mpflex().prove(evidence(log[:-1], lossy=["wlan0"], **twice)) != [], "nothing has taken its place"
    broken = (*ATTACHED, event("wlan0", "ended", t=61.0, error="read: connection reset by peer"), BOTH)
    assert mpflex().prove(evidence(broken, lossy=["wlan0"], **twice)) != []


def test_a_pinned_stream_may_go_on_elsewhere_when_its_path_is_gone() -> None:
    log = (*ATTACHED, stream(500_000, 300_000))
    assert mpflex(scheduler="backup").prove(evidence(log, disturbances=OUT)) == []
    assert mpflex(scheduler="backup").prove(evidence(log)) != []
