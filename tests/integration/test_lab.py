"""The virtual lab comes up with the requested links and transport. It leaves nothing behind, however it ends."""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import (
    TIMEOUT_S,
    Mplab,
    Traces,
    environment,
    lab_processes,
    mplab_argv,
    wait_until,
)

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def before() -> Traces:
    return Traces()


def gone(before: Traces, lab: str) -> None:
    wait_until(lambda: not lab_processes(lab), f"end of lab {lab}")
    wait_until(lambda: not Traces().left_since(before), f"nothing left, found {Traces().left_since(before)}")


def facts(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Return the JSON that ``mplab lab up --json`` prints when the lab is up."""
    assert process.stdout is not None
    text = ""
    while not text.rstrip().endswith("\n}"):
        line = process.stdout.readline()
        assert line, process.stderr.read() if process.stderr else ""
        text += line
    report: dict[str, Any] = json.loads(text)
    return report


@pytest.mark.parametrize("transport", ["sptcp-lte", "mptcp", "mpflex:txdelay"])
def test_every_transport_is_what_was_asked(mplab: Mplab, before: Traces, transport: str) -> None:
    result = mplab("lab", "up", "--transport", transport, "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["problems"] == []
    assert report["active"]["mptcp"] is (transport == "mptcp")
    assert report["active"]["congestion_control"] == "cubic"
    gone(before, report["lab"])


def test_links_are_near_what_was_asked_for_a_user_without_root_too(tmp_path: Path) -> None:
    other_user = [] if os.geteuid() else ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
    result = subprocess.run(
        [*other_user, *mplab_argv("lab", "up", "--json")],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        env=environment(tmp_path) | {"HOME": str(tmp_path)},
    )
    assert result.returncode == 0, result.stderr
    measured = json.loads(result.stdout)["measured"]
    assert measured["wlan0"]["rtt_ms_median"] == pytest.approx(50, rel=0.2)
    assert measured["rmnet0"]["rtt_ms_median"] == pytest.approx(70, rel=0.2)
    assert measured["wlan0"]["down_kbps"] == pytest.approx(7040, rel=0.2)
    assert measured["rmnet0"]["up_kbps"] == pytest.approx(2286, rel=0.2)


def test_a_link_may_be_a_file(mplab: Mplab, tmp_path: Path) -> None:
    file = tmp_path / "far.yaml"
    file.write_text("extends: baseline\nwifi: {rtt: 150 ms}\n")
    report = json.loads(mplab("lab", "up", "--link", str(file), "--json").stdout)
    assert report["link"] == "far"
    assert report["measured"]["wlan0"]["rtt_ms_median"] == pytest.approx(150, rel=0.2)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_when_the_orchestrator_ends(start_mplab: Start, before: Traces, number: int) -> None:
    process = start_mplab("lab", "up", "--keep", "--json")
    lab = facts(process)["lab"]
    assert lab_processes(lab)
    process.send_signal(number)
    process.wait(30)
    gone(before, lab)


def test_nothing_is_left_when_the_labs_first_process_is_killed(start_mplab: Start, before: Traces) -> None:
    process = start_mplab("lab", "up", "--keep", "--json")
    lab = facts(process)["lab"]
    first = min(lab_processes(lab), key=lambda found: found.create_time())
    first.kill()
    assert process.wait(30) != 0
    gone(before, lab)


def test_a_shell_in_the_phone_sees_its_network_and_reaches_the_lab_alone(start_mplab: Start, mplab: Mplab) -> None:
    lab = facts(start_mplab("lab", "up", "--keep", "--json"))["lab"]
    _a_shell_sees_the_phones_network(mplab, lab)
    _the_phone_reaches_the_lab_and_nothing_else(mplab, lab)


def _a_shell_sees_the_phones_network(mplab: Mplab, lab: str) -> None:
    shown = mplab("lab", "shell", "phone", "--id", lab, "--", "ip", "-brief", "address")
    assert "wlan0" in shown.stdout
    assert "10.64.2.2" in shown.stdout
    assert lab in mplab("lab", "list").stdout
    wrong = mplab("lab", "shell", "tablet", "--id", lab)
    assert wrong.returncode == 3
    assert "it has air, origin, peer, phone, proxy, router" in wrong.stderr


def _the_phone_reaches_the_lab_and_nothing_else(mplab: Mplab, lab: str) -> None:
    def curl(*arguments: str) -> subprocess.CompletedProcess[str]:
        shell = ("lab", "shell", "phone", "--id", lab, "--")
        return mplab(*shell, "curl", "--silent", "--max-time", "10", *arguments)

    size = curl("--output", "/dev/null", "--write-out", "%{size_download}", "http://dl.lab/10000")
    assert size.stdout == "10000"
    assert curl("http://example.org/").returncode == 6, "a name outside the lab"
    assert curl("http://10.64.3.2:7001/").returncode != 0, "the proxy answers no stranger"
    assert curl("http://192.0.2.1/").returncode != 0, "a destination outside the allow-list"


def test_no_lab_no_shell(mplab: Mplab) -> None:
    result = mplab("lab", "shell", "phone", "--id", "nosuchlab")
    assert result.returncode == 3
    assert "mplab lab up --keep" in result.stderr


def test_unknown_names_are_refused_before_anything_is_touched(mplab: Mplab, before: Traces) -> None:
    result = mplab("lab", "up", "--link", "basline")
    assert result.returncode == 2
    assert "baseline" in result.stderr
    assert Traces().left_since(before) == []
