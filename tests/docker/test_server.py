"""A server with two addresses of its own, and a phone somewhere else: both paths come through published ports."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from docker import DockerClient

from orchestrator.errors import LabNotReadyError
from orchestrator.programs import DNSMASQ
from orchestrator.proxy.docker import DockerStack, StackSettings
from orchestrator.proxy.docker.borrow import borrowed, exclusive, give_back
from orchestrator.proxy.docker.doctor import examine
from orchestrator.spec.proxyfile import ProxyFile
from tests.docker.conftest import SERVER_ADDRESSES, congestion_control
from tests.docker.engine import Engine
from tests.docker.phone import SIZE, PhoneNode, download_over_both

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def far_phone(engine: Engine, phone: PhoneNode) -> PhoneNode:
    """Each of its paths ends at one of the server's addresses."""
    for interface, address in zip(("wlan0", "rmnet0"), SERVER_ADDRESSES, strict=True):
        phone.wire(engine.node, interface, address.removesuffix("1") + "10", gateway=address)
    phone.use_both_paths(SERVER_ADDRESSES[1].removesuffix("1") + "10")
    return phone


def test_a_port_that_is_taken_is_named(far_phone: PhoneNode, engine: Engine, server_stack: DockerStack) -> None:
    listens = f"import socket, time; s = socket.create_server(('{SERVER_ADDRESSES[0]}', 7002)); time.sleep(99)"
    other = engine.node.spawn(["python3", "-c", listens], log=far_phone.directory / "other.log")
    try:
        with pytest.raises(LabNotReadyError, match=rf"port {SERVER_ADDRESSES[0]}:7002 is taken by another program"):
            server_stack.up()
    finally:
        other.stop()
        server_stack.down()


def test_both_paths_reach_the_proxy_through_the_servers_addresses(
    far_phone: PhoneNode, server_stack: DockerStack, client: DockerClient
) -> None:
    states = server_stack.up(build=False)
    assert {port.rpartition(":")[0] for state in states for port in state.ports} == set(SERVER_ADDRESSES)
    made = server_stack.last_rendered()
    assert made is not None
    proxy = f"{SERVER_ADDRESSES[0]}:7002"
    said = far_phone.check(far_phone.agent_config(proxy, made.secret_file, "mptcp"), "--wait-subflows", "2")
    assert said["mptcp"]
    assert {address.rpartition(".")[0] for address in said["local"]} == {"198.51.100", "203.0.113"}
    paths = [{"device": "wlan0"}, {"device": "rmnet0"}]
    config = far_phone.agent_config(f"{SERVER_ADDRESSES[0]}:7003", made.secret_file, "mpflex", paths=paths)
    assert set(far_phone.check(config)["paths"]) == {"wlan0", "rmnet0"}
    far_phone.start_agent(config)
    carried = download_over_both(far_phone)
    assert min(carried.values()) > 0.01 * SIZE, carried
    server_stack.down()
    assert client.containers.list(all=True) == []


OUTSIDE, RESOLVER = "192.0.2.80", "192.0.2.53"
"""Of a stand-in of the Internet: a web server and the engine host's resolver."""


@pytest.fixture
def outside(engine: Engine, server_stack: DockerStack, tmp_path: Path) -> Iterator[None]:
    """Give the engine's host a resolver of its own, and a server outside of the lab at ports 80 and 81."""
    server_stack.prepare()  # as long as the engine finds packages
    with ExitStack() as stack:
        for address in (OUTSIDE, RESOLVER):
            engine.node.ip(f"addr add {address}/32 dev lo")
            stack.callback(engine.node.run, ["ip", "addr", "del", f"{address}/32", "dev", "lo"], check=False)
        (tmp_path / "resolv.conf").write_text(f"nameserver {RESOLVER}\n")
        engine.node.run(["mount", "--bind", str(tmp_path / "resolv.conf"), "/etc/resolv.conf"])
        stack.callback(engine.node.run, ["umount", "/etc/resolv.conf"], check=False)
        (tmp_path / "site").mkdir()
        (tmp_path / "site" / "index.html").write_text("outside")
        web = ["python3", "-m", "http.server", "--bind", OUTSIDE, "--directory", str(tmp_path / "site")]
        names = [str(DNSMASQ.path()), "--no-daemon", "--conf-file=", "--no-resolv", "--no-hosts", "--bind-interfaces"]
        names += [f"--listen-address={RESOLVER}", f"--host-record=shop.example,{OUTSIDE}", "--address=/#/"]
        for number, argv in enumerate(([*web, "80"], [*web, "81"], names)):
            stack.callback(engine.node.spawn(argv, log=tmp_path / f"outside-{number}.log").stop)
        yield


@pytest.mark.usefixtures("outside")
def test_phones_reach_what_the_lab_file_allows_of_the_internet(far_phone: PhoneNode, server_stack: DockerStack) -> None:
    wanted = StackSettings.of(ProxyFile.model_validate({"internet": {"allow": [f"{OUTSIDE}/32:80"]}}))
    opened = replace(
        server_stack.settings,
        profiles=wanted.profiles,
        internet=wanted.internet,
        upstream_names=wanted.upstream_names,
    )
    proxy = f"{SERVER_ADDRESSES[0]}:7001"
    for stack, reached in ((DockerStack(opened), True), (server_stack, False)):
        stack.up(build=False)
        made = stack.last_rendered()
        assert made is not None
        agent = far_phone.start_agent(far_phone.agent_config(proxy, made.secret_file, "tcp"))
        assert far_phone.get("http://dl.lab/10000").stat().st_size == 10000, "the lab's own names"
        answers = [far_phone.curl(f"http://{host}/").exit_code for host in ("shop.example", OUTSIDE)]
        if reached:
            assert answers == [0, 0]
            assert far_phone.fetched.read_text() == "outside"
        else:
            assert 0 not in answers
        assert far_phone.curl(f"http://{OUTSIDE}:81/").exit_code != 0, "a port that no rule names"
        assert far_phone.curl("http://nosuch.example/").exit_code != 0
        agent.stop()
        stack.down()


LEND = """
import os, signal, sys
from orchestrator.proxy.docker import DockerStack, StackSettings
from orchestrator.proxy.docker.borrow import borrowed, exclusive
stack = DockerStack(StackSettings(sys.argv[1], profiles=("dns", "iperf"), congestion_control=sys.argv[2]))
with exclusive(stack, run_id="killed"), borrowed(stack):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_stack_that_was_lent_is_given_back_after_kill_9(engine: Engine, client: DockerClient) -> None:
    by_hand = DockerStack(StackSettings(engine.url, profiles=("dns",), congestion_control=congestion_control()))
    by_hand.down()
    DockerStack(StackSettings(engine.url, profiles=("iperf",), congestion_control=congestion_control())).prepare()
    before = {state.service for state in by_hand.up(build=False)}
    done = subprocess.run([sys.executable, "-c", LEND, engine.url, congestion_control()], check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL
    assert "iperf" in {state.service for state in by_hand.status()}
    with exclusive(by_hand):
        assert give_back(by_hand)
        assert not give_back(by_hand), "once"
    states = by_hand.status()
    assert {state.service for state in states} == before
    assert all(state.well for state in states)
    by_hand.down()
    assert client.containers.list(all=True) == []


def test_an_image_that_is_missing_and_that_no_registry_gives_is_named(engine: Engine, client: DockerClient) -> None:
    settings = StackSettings(engine.url, profiles=("dns",), congestion_control=congestion_control())
    gone = DockerStack(replace(settings, variables={"MPLAB_TAG": "gone"}))
    with pytest.raises(LabNotReadyError, match="mplab/net:gone is not in the engine; 'mplab proxy prepare' builds it"):
        gone.up(build=False)
    found = {finding.what: finding.found for finding in examine(gone) if not finding.ok}
    assert found["kernel"] == "it is asked by a container of mplab/net:gone, which is missing"
    assert "mplab/net:gone is missing" in found["images"]
    pinned = f"registry.invalid/debian@sha256:{'0' * 64}"
    with pytest.raises(LabNotReadyError, match=r"no registry gave it \(.*what a digest names cannot be made from"):
        DockerStack(replace(settings, variables={"MPLAB_BASE": pinned})).up()
    assert client.containers.list(all=True) == []


def test_what_somebody_else_has_started_is_left_alone(engine: Engine, client: DockerClient) -> None:
    stack = DockerStack(StackSettings(engine.url, profiles=("dns",), congestion_control=congestion_control()))
    labels = {"com.docker.compose.project": "mplab", "com.docker.compose.service": "theirs"}
    theirs = client.containers.run(stack.image("net"), ["sleep", "99"], detach=True, init=True, labels=labels)
    try:
        with (
            pytest.raises(LabNotReadyError, match=r"nobody here knows how they were started \(theirs\)"),
            borrowed(stack),
        ):
            pytest.fail("it was lent")
        assert [container.id for container in client.containers.list()] == [theirs.id]
    finally:
        theirs.remove(force=True)
