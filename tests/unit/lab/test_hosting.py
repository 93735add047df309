"""The containers that a lab needs, and machines that cannot run any."""

import os
from pathlib import Path

import pytest

from mplab.base.errors import LabNotReadyError
from mplab.drivers.proxy.docker.hosting import VARIABLE, HostedStack, profiles_of
from mplab.drivers.proxy.docker.settings import DockerProxyFile
from mplab.lab.hosting import hosted, prepared
from mplab.userfiles.labs.labuse import VIRTUAL, LabUse, use_lab


def lab(folder: Path, engine: str = "") -> LabUse:
    path = folder / "lab.yaml"
    proxy = f"{{driver: docker{f', engine: {engine!r}' if engine else ''}}}"
    path.write_text(f"mplab: 1\nname: bench\nphones: {{one: {{driver: virtual}}}}\nproxy: {proxy}\n")
    return use_lab(path)


def test_what_scenarios_use_is_started_and_captures_are_not() -> None:
    settings = DockerProxyFile.model_validate({"profiles": ["proxy", "capture", "iperf"]})
    assert profiles_of(settings, ["dash", "icecast", "xmpp"]) == ("proxy", "origin", "icecast", "xmpp", "dns", "iperf")
    assert profiles_of(DockerProxyFile.model_validate({}), []) == ("proxy", "origin", "dns")


def test_a_lab_without_containers_needs_nothing() -> None:
    assert prepared(VIRTUAL, congestion_control="cubic", services=[]) == {}
    with hosted(VIRTUAL, congestion_control="cubic", services=[]) as stack:
        assert stack is None


def test_the_engine_of_a_virtual_phone_is_on_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("DOCKER_HOST", "ssh://lab@proxy.example.org")
    with pytest.raises(LabNotReadyError, match=r"engine ssh://lab@proxy\.example\.org: a virtual phone needs"):
        prepared(lab(tmp_path), congestion_control="cubic", services=[])


def test_an_ordinary_user_is_told_to_be_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(LabNotReadyError, match="only root can wire a virtual phone to containers"):
        prepared(lab(tmp_path, "unix:///run/docker.sock"), congestion_control="cubic", services=[])


def test_an_engine_that_does_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    use = lab(tmp_path, f"unix://{tmp_path}/none.sock")
    with pytest.raises(LabNotReadyError, match=r"Docker at unix://.*none.sock does not run; start it"):
        prepared(use, congestion_control="cubic", services=[])


def test_what_is_handed_over_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(LabNotReadyError, match="has no running containers"):
        HostedStack.received()
    stack = HostedStack(
        "unix:///run/docker.sock",
        "mplab",
        "/state",
        "c0ffee",
        {"net": "mplab/net:1"},
        {"engine": "1", "kernel": "6", "project": "mplab", "profiles": [], "images": {"net": "1"}, "configuration": ""},
        3,
        {"proxy": 4, "origin": 5},
    )
    inherited = stack.inherited()
    assert inherited.descriptors == (3, 4, 5)
    monkeypatch.setenv(VARIABLE, inherited.environment[VARIABLE])
    assert HostedStack.received() == stack
    assert stack.changed_since({"containers": stack.facts}) == ""
    assert stack.changed_since({"containers": {"images": {"net": "2", "capture": "1"}}}) == "the images capture, net"
