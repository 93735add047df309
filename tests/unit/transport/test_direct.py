"""The direct route is verified at both ends, and its test connection is described."""

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mplab.cell.evidence import Treatment
from mplab.cell.judge import judge_active
from mplab.drivers.transport import Transport, direct_check, make_transport
from mplab.drivers.transport.mptcp.transport import MptcpOptions
from mplab.drivers.transport.redirect import direct_nft_rules
from mplab.format.sockets import SocketSettings
from mplab.lab.topology import confine_rules
from mplab.userfiles.experiments.transport import ViaOptions
from tests.unit.transport.test_prove import INTERFACES, connection, mptcp_evidence, sptcp_evidence

PLAIN = connection(kind="tcp", subflows=1)


def mptcp() -> Transport:
    return make_transport("mptcp", MptcpOptions(via="direct"), INTERFACES)


def sptcp(name: str = "sptcp-wifi") -> Transport:
    return make_transport(name, ViaOptions(via="direct"), INTERFACES)


def at_both_ends(**changes: Any) -> dict[str, Any]:
    return {"origin_counters": {"MPTcpExt.MPCapableACKRX": 1}, "origin_connections": (connection(),)} | changes


def test_multipath_tcp_that_the_origin_saw_is_proved() -> None:
    assert mptcp().prove(mptcp_evidence(**at_both_ends())) == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"origin_counters": {}}, "the origin's kernel accepted no Multipath TCP connection"),
        (
            {"origin_counters": {"MPTcpExt.MPCapableACKRX": 1, "MPTcpExt.MPCapableFallbackACK": 3}},
            "the origin's kernel counted fall-backs to plain TCP: MPTcpExt.MPCapableFallbackACK 3",
        ),
        ({"origin_connections": ()}, "no TCP connection was captured at the origin"),
        ({"origin_connections": (connection(), PLAIN)}, "1 of 2 connections were plain TCP at the origin"),
        ({"origin_connections": (connection(subflows=1),)}, "never had a second subflow at the origin"),
    ],
)
def test_the_origin_is_a_witness_against_multipath_tcp(changes: dict[str, Any], reason: str) -> None:
    problems = mptcp().prove(mptcp_evidence(**at_both_ends(**changes)))
    assert any(reason in text for text in problems), problems


@pytest.mark.parametrize(("duration_s", "excused"), [(3.0, True), (60.0, False)])
def test_a_lost_handshake_is_no_excuse_at_the_origin_for_a_long_connection(duration_s: float, excused: bool) -> None:
    ends = at_both_ends(origin_connections=(connection(subflows=1, duration_s=duration_s),))
    problems = mptcp().prove(mptcp_evidence(**ends, lossy=("rmnet0",)))
    assert problems == ([] if excused else ["1 long connections never had a second subflow at the origin"])


@pytest.mark.parametrize("name", ["sptcp", "sptcp-wifi"])
def test_plain_tcp_that_the_origin_saw_is_proved(name: str) -> None:
    assert sptcp(name).prove(sptcp_evidence(origin_connections=(PLAIN,))) == []
    multipath = sptcp_evidence(origin_connections=(connection(),), origin_counters={"MPTcpExt.MPCapableSYNRX": 1})
    assert len(sptcp(name).prove(multipath)) == 2
    assert sptcp(name).prove(sptcp_evidence()) == ["no TCP connection was captured at the origin"]


def test_by_the_proxy_the_origin_is_no_witness() -> None:
    assert make_transport("mptcp", None, INTERFACES).prove(mptcp_evidence()) == []
    assert make_transport("sptcp", None, INTERFACES).prove(sptcp_evidence()) == []


def test_both_senders_need_the_requested_congestion_control() -> None:
    treatment = Treatment(transport=mptcp(), paths={}, sockets=SocketSettings("cubic"))
    active: Any = {"mptcp": True, "local": list(INTERFACES.values()), "congestion_control": "cubic"}
    assert judge_active(active | {"origin_congestion_control": "cubic"}, treatment) == []
    (wrong,) = judge_active(active | {"origin_congestion_control": "reno"}, treatment)
    assert wrong == "the origin's sockets use reno, cubic was requested"
    assert len(judge_active(active | {"congestion_control": "bbr"}, treatment)) == 2


def test_no_redirect_but_only_lookups_and_echoes_as_datagrams() -> None:
    rules = direct_nft_rules("10.64.3.2")
    assert "redirect" not in rules
    assert "10.65.0.53 udp dport 53 accept" in rules
    assert "meta l4proto udp counter reject" in rules


def test_a_confined_phone_refuses_other_interfaces_after_its_own_table() -> None:
    own, other = confine_rules("rmnet0")
    assert "table 102" in own
    assert "unreachable" in other
    assert int(own.split()[-1]) < int(other.split()[-1])


@pytest.fixture
def server() -> Iterator[tuple[str, int]]:
    """A server that answers one request with the begin of a large file."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\nabc")
                connection.recv(1)  # until the client ends the connection

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield listener.getsockname()
        thread.join(10)


def test_the_test_connection_is_described(server: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    host, port = server
    monkeypatch.setattr(direct_check, "PORT", port)
    described = direct_check.main(host, "/file", "ss", 1, 5.0)
    active = next(described)
    described.close()
    assert active["ok"], active
    assert (active["transport"], active["mptcp"], active["local"]) == ("tcp", False, ["127.0.0.1"])
    assert active["congestion_control"]
    assert active["via"] == "direct"


def test_a_server_that_is_not_there_is_an_error() -> None:
    script = Path(direct_check.__file__)
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(script), "127.0.0.254", "/file", "ss", "1", "2"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == {"ok": False, "error": "[Errno 111] Connection refused"}


def test_an_ss_that_does_not_end_is_an_error(
    server: tuple[str, int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    host, port = server
    ss = tmp_path / "ss"
    ss.write_text("#!/bin/sh\nexec sleep 60\n")
    ss.chmod(0o755)
    monkeypatch.setattr(direct_check, "PORT", port)
    monkeypatch.setattr(direct_check, "_SS_S", 0.1)
    with pytest.raises(OSError, match=r"ss did not end within 0\.1 s"):
        next(direct_check.main(host, "/file", str(ss), 1, 5.0))
