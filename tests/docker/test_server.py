"""A server with two addresses of its own, and a phone somewhere else: both paths come through published ports."""

import pytest
from docker import DockerClient

from orchestrator.errors import LabNotReadyError
from orchestrator.origin.files import stream_bytes
from orchestrator.proxy.docker import DockerStack
from tests.docker.conftest import SERVER_ADDRESSES
from tests.docker.engine import Engine
from tests.docker.phone import PhoneNode

pytestmark = pytest.mark.timeout(600)

SIZE = 5_000_000


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
    before = far_phone.bytes_received()
    assert far_phone.get(f"http://dl.lab/{SIZE}").read_bytes() == stream_bytes(SIZE)
    carried = {name: count - before[name] for name, count in far_phone.bytes_received().items()}
    assert min(carried.values()) > 0.01 * SIZE, carried
    server_stack.down()
    assert client.containers.list(all=True) == []
