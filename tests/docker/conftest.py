"""An engine with the stack's images, and a phone with two paths; skipped with a reason where that is impossible."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from docker import DockerClient

from mplab.drivers.proxy.byhand import ServiceState
from mplab.drivers.proxy.docker.render import Rendered
from mplab.drivers.proxy.docker.stack import DockerStack, StackSettings
from tests.docker.engine import Engine, why_not
from tests.docker.phone import PhoneNode

EVERYTHING = ("proxy", "origin", "dns", "shadowsocks", "icecast", "xmpp", "turn", "iperf", "collector", "capture")
SERVER_ADDRESSES = ("198.51.100.1", "203.0.113.1")
"""Addresses of the engine's host towards the phone, one for each path."""


def congestion_control() -> str:
    """Return a congestion control that containers may choose on this machine."""
    allowed = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text().split()
    return "cubic" if "cubic" in allowed else "reno"


@pytest.fixture(scope="session", autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        patch.setenv("MPLAB_HEALTH_INTERVAL", "2s")
        patch.delenv("DOCKER_HOST", raising=False)
        yield


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    if reason := why_not():
        pytest.skip(reason)
    with Engine(tmp_path_factory.mktemp("docker")) as running:
        yield running


@pytest.fixture(scope="session")
def client(engine: Engine) -> Iterator[DockerClient]:
    client = DockerClient(base_url=engine.url)
    yield client
    client.close()


@pytest.fixture(scope="session")
def bridge_stack(engine: Engine) -> DockerStack:
    """The complete stack, as in a lab on one machine: the phone is on the same two networks as the proxy."""
    signal = ("172.31.252.2",)
    settings = StackSettings(engine.url, profiles=EVERYTHING, signal=signal, congestion_control=congestion_control())
    return DockerStack(settings, say=_say)


@pytest.fixture(scope="session")
def states(bridge_stack: DockerStack) -> list[ServiceState]:
    """States of the running services; the last test of ``test_stack.py`` takes the services down."""
    return bridge_stack.up()


@pytest.fixture(scope="session")
def made(states: list[ServiceState], bridge_stack: DockerStack) -> Rendered:
    assert states
    rendered = bridge_stack.last_rendered()
    assert rendered is not None
    return rendered


def attach_to_bridges(phone: PhoneNode, engine: Engine, client: DockerClient) -> None:
    """Connect the phone's paths to the two networks in front of the proxy."""
    for interface, network, address in (
        ("wlan0", "mplab_front1", "172.31.251.10"),
        ("rmnet0", "mplab_front2", "172.31.252.10"),
    ):
        (docker_network,) = client.networks.list(names=[network])
        phone.wire(engine.node, interface, address, bridge=f"br-{str(docker_network.id)[:12]}")
    phone.use_both_paths("172.31.252.10")


@pytest.fixture(scope="session")
def server_stack(engine: Engine) -> DockerStack:
    """The proxy of a server with two addresses."""
    settings = StackSettings(
        engine.url,
        profiles=("proxy", "origin", "dns"),
        listen=SERVER_ADDRESSES,
        signal=SERVER_ADDRESSES[1:],
        congestion_control=congestion_control(),
    )
    return DockerStack(settings, say=_say)


@pytest.fixture
def phone(tmp_path: Path) -> Iterator[PhoneNode]:
    with PhoneNode(tmp_path / "phone", os.getpid()) as node:
        yield node


@pytest.fixture
def far_phone(engine: Engine, phone: PhoneNode) -> PhoneNode:
    """A phone with one path to each of the server's addresses."""
    for interface, address in zip(("wlan0", "rmnet0"), SERVER_ADDRESSES, strict=True):
        phone.wire(engine.node, interface, address.removesuffix("1") + "10", gateway=address)
    phone.use_both_paths(SERVER_ADDRESSES[1].removesuffix("1") + "10")
    return phone


_BEGIN = time.monotonic()


def _say(line: str) -> None:
    print(f"[{time.monotonic() - _BEGIN:6.1f} s] {line}", flush=True)  # shown if a test fails
