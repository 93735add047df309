"""The `docker` driver on a running stack: sessions, logs, counters, captures of one cell, and faults."""

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from docker import DockerClient
from docker.models.containers import Container

from mplab.base.errors import DeviceError, LabNotReadyError
from mplab.base.programs import MPTRACE
from mplab.drivers.capture import Captures
from mplab.drivers.origin.cache import stream_bytes
from mplab.drivers.proxy.byhand import ServiceState
from mplab.drivers.proxy.docker.engine import connect
from mplab.drivers.proxy.docker.proxy import DockerProxy
from mplab.drivers.proxy.docker.render import Rendered
from mplab.drivers.proxy.docker.sidecar import LABEL, Sidecar
from mplab.drivers.proxy.docker.stack import DockerStack
from mplab.drivers.services import load_service
from tests.docker.conftest import attach_to_bridges, congestion_control
from tests.docker.engine import Engine
from tests.docker.phone import PhoneNode
from tests.docker.ssh import SshServer

pytestmark = pytest.mark.timeout(300)

SIZE = 2_000_000


def _container(client: DockerClient, service: str) -> Container:
    (container,) = client.containers.list(filters={"label": f"com.docker.compose.service={service}"})
    return container


def _sidecar(client: DockerClient, stack: DockerStack, *, free_mb: int = 10, tmpfs: str = "") -> Sidecar:
    return Sidecar(
        client,
        image=stack.image("capture"),
        project=stack.settings.project,
        beside=str(_container(client, "proxy-net").id),
        free_mb=free_mb,
        tmpfs=tmpfs,
    )


def _driver(client: DockerClient, stack: DockerStack, sidecar: Sidecar | None = None) -> DockerProxy:
    return DockerProxy(
        client,
        project=stack.settings.project,
        image=stack.image("net"),
        sidecar=sidecar or _sidecar(client, stack),
        interface="eth0",
        congestion_control=congestion_control(),
        ports=load_service("icecast").ports,
    )


@pytest.fixture
def proxy(states: list[ServiceState], client: DockerClient, bridge_stack: DockerStack) -> Iterator[DockerProxy]:
    assert states
    proxy = _driver(client, bridge_stack)
    proxy.use({}, congestion_control())
    yield proxy
    proxy.use({}, congestion_control())


@pytest.fixture
def near_phone(phone: PhoneNode, engine: Engine, client: DockerClient) -> PhoneNode:
    attach_to_bridges(phone, engine, client)
    return phone


def _start_agent(phone: PhoneNode, made: Rendered) -> None:
    phone.start_agent(phone.agent_config("172.31.251.2:7001", made.secret_file, "tcp"))


def test_what_a_cell_wants_of_sessions_is_what_the_proxy_has(
    proxy: DockerProxy, made: Rendered, near_phone: PhoneNode
) -> None:
    mark = proxy.log_end()
    proxy.use({"scheduler": "roundrobin"}, congestion_control())
    ready = [record for record in proxy.logs_since(mark) if record["event"] == "ready"]
    assert len(ready) == 1
    before, mark = proxy.counters(), proxy.log_end()
    proxy.use({"scheduler": "roundrobin"}, congestion_control())
    assert [record for record in proxy.logs_since(mark) if record["event"] == "ready"] == [], "it has them already"
    paths = [{"device": "wlan0"}, {"device": "rmnet0"}]
    config = near_phone.agent_config("172.31.251.2:7003", made.secret_file, "mpflex", paths=paths)
    assert "wlan0" in near_phone.check(config)["paths"]
    assert proxy.counters()["Tcp.InSegs"] > before["Tcp.InSegs"]
    assert any(record["event"] == "connection" for record in proxy.logs_since(mark))
    assert proxy.watch.containers()["proxy"].status == "running"
    proxy.check_alive()


def test_a_capture_of_one_cell_is_fetched_whole(
    proxy: DockerProxy, made: Rendered, near_phone: PhoneNode, client: DockerClient, tmp_path: Path
) -> None:
    _start_agent(near_phone, made)
    captures = Captures([proxy.capture_point], "headers", tmp_path)
    captures.start()
    assert near_phone.get(f"http://dl.lab/{SIZE}").read_bytes() == stream_bytes(SIZE)
    (result,) = captures.stop()
    assert (result.node, result.dropped, result.headers_only) == ("proxy", 0, True)
    assert result.packets > 100
    completed = subprocess.run(
        [str(MPTRACE.path()), str(tmp_path / "proxy.pcapng"), "--json"], capture_output=True, text=True, check=True
    )
    assert max(row["bytes_down"] for row in json.loads(completed.stdout)["connections"]) >= SIZE
    assert client.containers.list(all=True, filters={"label": LABEL}) == [], "it goes with its cell"


def test_what_was_damaged_on_its_way_is_refused(proxy: DockerProxy, tmp_path: Path) -> None:
    captures = Captures([proxy.capture_point], "headers", tmp_path)
    captures.start()
    log = tmp_path / "logs" / "capture-proxy.log"
    log.write_text('{"event": "packed", "sha256": "0"}\n' + log.read_text())
    with pytest.raises(DeviceError, match=r"proxy\.pcapng was damaged on its way from the side-car"):
        captures.stop()


@pytest.mark.usefixtures("proxy")
def test_no_capture_begins_on_a_disk_that_is_nearly_full(
    client: DockerClient, bridge_stack: DockerStack, tmp_path: Path
) -> None:
    short = _driver(client, bridge_stack, _sidecar(client, bridge_stack, free_mb=10**9))
    with pytest.raises(DeviceError, match=r"MB free, captures need 1000000000 MB"):
        Captures([short.capture_point], "headers", tmp_path).start()


@pytest.mark.usefixtures("proxy")
def test_a_disk_that_gets_full_fails_the_cell(
    made: Rendered, near_phone: PhoneNode, client: DockerClient, bridge_stack: DockerStack, tmp_path: Path
) -> None:
    _start_agent(near_phone, made)
    small = _driver(client, bridge_stack, _sidecar(client, bridge_stack, free_mb=0, tmpfs="size=64k"))
    captures = Captures([small.capture_point], "payload", tmp_path)
    captures.start()
    near_phone.get(f"http://dl.lab/{SIZE}")
    with pytest.raises(DeviceError, match=r"(?i)no space left"):
        captures.stop()


def test_side_cars_of_a_run_that_was_killed_are_removed(
    proxy: DockerProxy, client: DockerClient, bridge_stack: DockerStack, tmp_path: Path
) -> None:
    Captures([proxy.capture_point], "headers", tmp_path).start()
    assert len(client.containers.list(filters={"label": LABEL})) == 1
    assert _sidecar(client, bridge_stack).clear() == 1
    assert client.containers.list(all=True, filters={"label": LABEL}) == []


@pytest.mark.usefixtures("proxy")
def test_an_image_that_is_missing_is_named(client: DockerClient, bridge_stack: DockerStack, tmp_path: Path) -> None:
    missing = Sidecar(client, image="mplab/gone:1", project="mplab", beside=str(_container(client, "proxy-net").id))
    with pytest.raises(DeviceError, match="mplab/gone:1 is not in the engine; 'mplab proxy prepare' builds it"):
        Captures([_driver(client, bridge_stack, missing).capture_point], "headers", tmp_path).start()


def test_a_container_that_is_killed_is_named_and_comes_back(proxy: DockerProxy, client: DockerClient) -> None:
    _container(client, "proxy").kill()
    with pytest.raises(DeviceError, match=r"the container of proxy ended by itself \(killed\)"):
        proxy.check_alive()
    proxy.use({}, congestion_control())
    proxy.check_alive()
    assert proxy.watch.containers()["proxy"].status == "running"


def test_a_container_whose_memory_is_not_enough_is_named(
    proxy: DockerProxy, client: DockerClient, bridge_stack: DockerStack
) -> None:
    if not client.info()["MemoryLimit"]:
        pytest.skip("this kernel enforces no memory limits")
    labels = {"com.docker.compose.project": "mplab", "com.docker.compose.service": "greedy"}
    greedy = client.containers.run(
        bridge_stack.image("apps"),
        ["python3", "-c", "import time; time.sleep(3); b'x' * (1 << 28)"],
        detach=True,
        mem_limit="32m",
        memswap_limit="32m",
        labels=labels,
    )
    try:
        proxy.watch.begin()
        greedy.wait(timeout=60)
        with pytest.raises(
            DeviceError, match=r"the container of greedy ended by itself \(out of memory: its 32 MiB were not enough\)"
        ):
            proxy.check_alive()
    finally:
        greedy.remove(force=True)
        proxy.watch.forget()


def test_a_clock_that_is_off_is_an_error(proxy: DockerProxy) -> None:
    assert proxy.clock_offset_s() == 0
    with pytest.raises(DeviceError, match=r"the clock of its host is \d+\.\d s off this machine's"):
        proxy.check_clock(lambda: time.time() - 30)


@pytest.mark.usefixtures("proxy")
def test_over_ssh_until_it_is_dropped(
    engine: Engine, client: DockerClient, bridge_stack: DockerStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if reason := SshServer.why_not():
        pytest.skip(reason)
    with SshServer(tmp_path / "ssh", f"DOCKER_HOST={engine.url} docker system dial-stdio") as server:
        server.use(monkeypatch)
        known = server.known_hosts.read_text()
        server.known_hosts.write_text("")
        with pytest.raises(LabNotReadyError, match=r"over SSH: Host key verification failed; try: ssh ssh://root@"):
            connect(server.url)
        server.known_hosts.write_text(known)
        far = connect(server.url)
        try:
            driver = _driver(far, bridge_stack)
            driver.use({}, congestion_control())
            captures = Captures([driver.capture_point], "headers", tmp_path)
            captures.start()
            (result,) = captures.stop()
            assert (tmp_path / result.file).stat().st_size > 0
            driver.check_alive()
            server.drop()
            with pytest.raises(DeviceError, match="engine: it does not answer any more"):
                driver.check_alive()
            with pytest.raises(LabNotReadyError, match=r"cannot be reached over SSH: .*refused"):
                connect(server.url)
        finally:
            far.close()
    assert _container(client, "proxy").status == "running"
