"""A server with its own two addresses, and a phone elsewhere: both paths use published ports."""

import signal
import subprocess
import sys
from dataclasses import replace

import pytest
from docker import DockerClient

from mplab.base.errors import LabNotReadyError
from mplab.drivers.proxy.docker.byhand import examine
from mplab.drivers.proxy.docker.stack import DockerStack, StackSettings
from mplab.drivers.proxy.docker.takeover import exclusive, restore_state, taken_over
from tests.docker.conftest import SERVER_ADDRESSES, congestion_control
from tests.docker.engine import Engine
from tests.docker.phone import SIZE, PhoneNode, download_over_both

pytestmark = pytest.mark.timeout(600)


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
    rendered = server_stack.last_rendered()
    assert rendered is not None
    proxy = f"{SERVER_ADDRESSES[0]}:7002"
    result = far_phone.check(far_phone.agent_config(proxy, rendered.secret_file, "mptcp"), "--wait-subflows", "2")
    assert result["mptcp"]
    assert {address.rpartition(".")[0] for address in result["local"]} == {"198.51.100", "203.0.113"}
    paths = [{"device": "wlan0"}, {"device": "rmnet0"}]
    config = far_phone.agent_config(f"{SERVER_ADDRESSES[0]}:7003", rendered.secret_file, "mpflex", paths=paths)
    assert set(far_phone.check(config, "--wait-subflows", "2")["paths"]) == {"wlan0", "rmnet0"}
    far_phone.start_agent(config)
    carried = download_over_both(far_phone)
    assert min(carried.values()) > 0.01 * SIZE, carried
    server_stack.down()
    assert client.containers.list(all=True) == []


LEND = """
import os, signal, sys
from mplab.drivers.proxy.docker.stack import DockerStack, StackSettings
from mplab.drivers.proxy.docker.takeover import taken_over, exclusive
stack = DockerStack(StackSettings(sys.argv[1], profiles=("dns", "iperf"), congestion_control=sys.argv[2]))
with exclusive(stack, run_id="killed"), taken_over(stack):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_stack_that_was_lent_is_given_back_after_kill_9(engine: Engine, client: DockerClient) -> None:
    by_hand = DockerStack(StackSettings(engine.url, profiles=("dns",), congestion_control=congestion_control()))
    by_hand.down()
    DockerStack(StackSettings(engine.url, profiles=("iperf",), congestion_control=congestion_control())).prepare()
    before = {state.service for state in by_hand.up(build=False)}
    result = subprocess.run([sys.executable, "-c", LEND, engine.url, congestion_control()], check=False, timeout=120)
    assert result.returncode == -signal.SIGKILL
    assert "iperf" in {state.service for state in by_hand.status()}
    with exclusive(by_hand):
        assert restore_state(by_hand)
        assert not restore_state(by_hand), "once"
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
    problems = {finding.what: finding.found for finding in examine(gone) if not finding.ok}
    assert problems["kernel"] == "not checked: the image mplab/net:gone is missing"
    assert "mplab/net:gone is missing" in problems["images"]
    pinned = f"registry.invalid/debian@sha256:{'0' * 64}"
    with pytest.raises(LabNotReadyError, match=r"no registry gave it \(.*an image with a digest cannot be made from"):
        DockerStack(replace(settings, variables={"MPLAB_BASE": pinned})).up()
    assert client.containers.list(all=True) == []


def test_what_somebody_else_has_started_is_left_alone(engine: Engine, client: DockerClient) -> None:
    stack = DockerStack(StackSettings(engine.url, profiles=("dns",), congestion_control=congestion_control()))
    labels = {"com.docker.compose.project": "mplab", "com.docker.compose.service": "theirs"}
    theirs = client.containers.run(stack.image("net"), ["sleep", "99"], detach=True, init=True, labels=labels)
    try:
        with (
            pytest.raises(LabNotReadyError, match=r"on this machine did not start them \(theirs\)"),
            taken_over(stack),
        ):
            pytest.fail("it was lent")
        assert [container.id for container in client.containers.list()] == [theirs.id]
    finally:
        theirs.remove(force=True)
