"""Stored settings of a stack, and parsing of containers' logs."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from mplab.base.errors import LabNotReadyError
from mplab.drivers.proxy.docker.proxy import parse_records, parse_timed
from mplab.drivers.proxy.docker.settings import DockerProxyFile
from mplab.drivers.proxy.docker.stack import DockerStack, StackSettings
from mplab.drivers.proxy.docker.takeover import exclusive, restore_state

PROXY = DockerProxyFile.model_validate(
    {"engine": "ssh://lab@far", "project": "two", "listen": ["203.0.113.5"], "congestion_control": "system"}
)


def test_a_lab_file_says_what_runs_unless_somebody_else_does() -> None:
    settings = StackSettings.of(PROXY)
    assert (settings.engine, settings.project, settings.listen, settings.congestion_control) == (
        "ssh://lab@far",
        "two",
        ("203.0.113.5",),
        "",
    )
    overridden = StackSettings.of(PROXY, engine="unix:///x", profiles=["dns"], congestion_control="reno")
    assert (overridden.engine, overridden.profiles, overridden.congestion_control) == ("unix:///x", ("dns",), "reno")


def test_settings_survive_on_disk() -> None:
    settings = StackSettings.of(PROXY, profiles=["proxy", "dns"])
    assert StackSettings.read(json.loads(json.dumps(asdict(settings)))) == settings


def test_what_was_never_lent_is_not_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    stack = DockerStack(StackSettings(f"unix://{tmp_path}/none.sock"))
    assert stack.up_with() is None
    assert not restore_state(stack)


def test_a_stack_belongs_to_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    stack = DockerStack(StackSettings(f"unix://{tmp_path}/none.sock", project="three"))
    refused = pytest.raises(LabNotReadyError, match=r"docker three at unix://.* is in use by run 20261122-demo")
    with exclusive(stack, run_id="20261122-demo"), refused, exclusive(stack):
        pytest.fail("both have it")


def test_lines_of_a_log_have_their_time() -> None:
    log = (
        b'2026-11-22T22:49:29.123456789Z {"event": "ready"}\n'
        b"2026-11-22T22:49:30Z no JSON\n"
        b'2026-11-22T22:49:30.5Z {"event": "conn'  # cut off
    )
    lines = parse_timed(log)
    assert [at % 10**10 for at, _ in lines] == [9_123_456_789, 0, 500_000_000]
    assert parse_records(lines) == [{"event": "ready"}]
