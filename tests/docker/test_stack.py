"""The complete stack on a real engine, with a phone on the same two networks: up, used, captured, shown, down."""

import io
import json
import subprocess
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest
from docker import DockerClient
from docker.models.containers import Container

from mplab.base.programs import MPTRACE
from mplab.drivers.origin.cache import stream_bytes
from mplab.drivers.proxy.byhand import ServiceState
from mplab.drivers.proxy.docker.byhand import examine
from mplab.drivers.proxy.docker.render import Rendered
from mplab.drivers.proxy.docker.stack import DockerStack
from tests.docker.conftest import attach_to_bridges
from tests.docker.engine import Engine
from tests.docker.phone import SIZE, PhoneNode, download_over_both

pytestmark = pytest.mark.timeout(600)

HOLDERS, CAPTURES = {"NET_ADMIN"}, {"NET_RAW", "SETUID", "SETGID", "KILL"}


def _container(client: DockerClient, service: str) -> Container:
    (container,) = client.containers.list(filters={"label": f"com.docker.compose.service={service}"})
    return container


def test_every_service_answers(states: list[ServiceState]) -> None:
    assert {state.service: state.health for state in states if not state.well} == {}
    healthy = {state.service for state in states if state.health == "healthy"}
    assert {"proxy", "web", "feed", "upload", "dns", "icecast", "xmpp", "turn", "iperf", "shadowsocks"} <= healthy
    assert {state.service: state.restarts for state in states if state.restarts or state.out_of_memory} == {}


def test_nothing_listens_beyond_loopback_unless_told(states: list[ServiceState]) -> None:
    ports = [port for state in states for port in state.ports]
    assert ports
    assert all(port.startswith("127.") for port in ports)


def test_containers_may_do_next_to_nothing(states: list[ServiceState], client: DockerClient) -> None:
    containers = client.containers.list(filters={"label": "com.docker.compose.project=mplab"})
    assert len(containers) == len(states)
    for container in containers:
        host, name = container.attrs["HostConfig"], container.labels["com.docker.compose.service"]
        allowed = HOLDERS if name.endswith("-net") else CAPTURES if name.startswith("capture-") else set()
        assert {part.removeprefix("CAP_") for part in host["CapAdd"] or []} == allowed, name
        assert host["CapDrop"] == ["ALL"], name
        assert host["ReadonlyRootfs"], name
        assert host["Memory"] > 0, name
        assert "no-new-privileges:true" in host["SecurityOpt"], name
        if not allowed:
            assert container.attrs["Config"]["User"] == "10001:10001", name


def test_no_secret_is_in_a_command_line_or_a_log(
    states: list[ServiceState], made: Rendered, client: DockerClient
) -> None:
    secrets = [made.secret_file.read_text(), (made.directory / "services/icecast/password").read_text()]
    secrets.append(json.loads((made.directory / "shadowsocks/shadowsocks.json").read_text())["password"])
    for container in client.containers.list(filters={"label": "com.docker.compose.project=mplab"}):
        seen = json.dumps(container.attrs) + container.logs().decode(errors="replace")
        assert not any(secret in seen for secret in secrets), container.name
    assert len(states) > len(secrets)


def test_a_phone_on_two_networks_gets_files_over_both_and_all_is_captured(
    made: Rendered, engine: Engine, client: DockerClient, phone: PhoneNode, tmp_path: Path
) -> None:
    attach_to_bridges(phone, engine, client)
    config = phone.agent_config("172.31.251.2:7002", made.secret_file, "mptcp")
    result = phone.check(config, "--wait-subflows", "2", "--target", "10.65.0.2:80")
    assert result["mptcp"]
    assert set(result["local"]) == {"172.31.251.10", "172.31.252.10"}
    phone.start_agent(config)
    carried = download_over_both(phone)
    assert min(carried.values()) > 0.01 * SIZE, carried
    for url, expected in (
        ("https://www.wiki.lab/", b"</html>"),
        ("https://media.tube.lab/clip-1/manifest.mpd", b"</MPD>"),
        ("https://feed.lab/api/health", b"true"),
        ("https://dropbox.lab/files/", b"true"),
        ("https://chat.lab/xmpp.js", b"XMPP"),
        ("https://call.lab/config.json", b"turn:turn.lab"),
        ("http://music.lab/tracks/index.json", b"track-1"),
        ("http://radio.lab:8000/status-json.xsl", b"audio/mpeg"),
    ):
        assert expected in phone.get(url, "--cacert", str(made.ca_pem)).read_bytes(), url
    _check_captures(client, tmp_path)


def _check_captures(client: DockerClient, folder: Path) -> None:
    """Check that the side-car captures both paths in files that the trace engine reads, and reports its drops."""
    sidecar = _container(client, "capture-proxy")
    deadline = time.monotonic() + 30
    while not _over_both(connections := _connections(sidecar, folder)):  # the last packets arrive later
        assert time.monotonic() < deadline, [
            {name: row[name] for name in ("kind", "client", "subflows", "subflows_used", "bytes_down")}
            for row in connections
        ]
        time.sleep(1)
    sidecar.kill("SIGTERM")
    deadline = time.monotonic() + 20
    while b"dropped by kernel" not in (logs := sidecar.logs()) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert logs.count(b"dropped by kernel") >= 3


def _connections(sidecar: Container, folder: Path) -> list[dict[str, Any]]:
    """Return the connections in the side-car's capture files."""
    chunks, _ = sidecar.get_archive("/captures")
    with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
        archive.extractall(folder, filter="data")
    files = sorted((folder / "captures").glob("proxy-eth*.pcap*"))
    assert len(files) >= 3
    return _run_json([str(MPTRACE.path()), *map(str, files), "--json"])["connections"]


def _over_both(connections: list[dict[str, Any]]) -> bool:
    both = [row for row in connections if row["kind"] == "mptcp" and row["subflows_used"] >= 2]
    return any(row["bytes_down"] >= SIZE for row in both)


def _run_json(argv: list[str]) -> dict[str, list[dict[str, Any]]]:
    result = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 0, result.stderr
    content: dict[str, list[dict[str, Any]]] = json.loads(result.stdout)
    return content


def test_rings_of_captures_do_not_fill_the_disk(
    made: Rendered, engine: Engine, client: DockerClient, phone: PhoneNode, bridge_stack: DockerStack
) -> None:
    attach_to_bridges(phone, engine, client)
    phone.start_agent(phone.agent_config("172.31.251.2:7001", made.secret_file, "tcp"))
    small = client.containers.run(
        bridge_stack.image("capture"),
        detach=True,
        init=True,
        network_mode=f"container:{_container(client, 'proxy-net').id}",
        cap_drop=["ALL"],
        cap_add=sorted(CAPTURES),
        environment={"MPLAB_CAPTURE": "small", "MPLAB_RING_FILES": "2", "MPLAB_RING_MB": "1", "MPLAB_SNAPLEN": "0"},
        tmpfs={"/run": ""},
        volumes=["/captures"],
    )
    try:
        deadline = time.monotonic() + 30
        while small.exec_run(["test", "-e", "/run/ready"]).exit_code != 0:
            assert time.monotonic() < deadline, small.logs()
            time.sleep(0.1)
        for _ in range(2):
            assert phone.get(f"http://dl.lab/{SIZE}").stat().st_size == SIZE
        _, output = small.exec_run(["sh", "-c", "stat -c '%s %n' /captures/small-eth0.pcap*"], user="tcpdump")
        assert isinstance(output, bytes)
        sizes = [int(line.split()[0]) for line in output.decode().splitlines()]
        assert len(sizes) == 2, output
        assert max(sizes) < 1_100_000, output
    finally:
        small.remove(force=True, v=True)


def test_shadowsocks_carries_over_mptcp_and_only_to_the_origin(
    made: Rendered, engine: Engine, client: DockerClient, phone: PhoneNode
) -> None:
    if (ss_local := phone.shadowsocks(made.directory / "shadowsocks/shadowsocks.json", "172.31.251.3")) is None:
        pytest.skip("not installed: shadowsocks-libev, the phone's side")
    attach_to_bridges(phone, engine, client)
    phone.start(ss_local)
    got = phone.get("http://10.65.0.2/1000000", "--retry", "5", "--retry-connrefused")
    assert got.read_bytes() == stream_bytes(1_000_000)
    assert phone.counters()["MPTcpExt.MPCapableSYNACKRX"] > 0
    refused = phone.curl("http://172.31.251.1/", "--max-time", "5")
    assert refused.exit_code != 0


def test_what_phones_send_is_kept_when_the_stack_goes(
    made: Rendered, engine: Engine, client: DockerClient, phone: PhoneNode, bridge_stack: DockerStack
) -> None:
    attach_to_bridges(phone, engine, client)
    token = (made.directory / "collector/tokens").read_text().strip().partition(":")[2]
    header = phone.directory / "header"
    header.write_text(f"Authorization: Bearer {token}")
    curl = [
        "curl",
        "-q",
        "-sS",
        "--fail",
        "--cacert",
        str(made.ca_pem),
        "--resolve",
        "collector.lab:8443:172.31.251.4",
    ]
    answer = phone.node.run([*curl, "--header", f"@{header}", "https://collector.lab:8443/myip"])
    assert answer.stdout.strip() == "172.31.251.10"
    assert phone.node.run([*curl, "https://collector.lab:8443/myip"], check=False).exit_code != 0
    before = _store(client)
    assert before
    assert bridge_stack.prepare(renew=False, build=False).key == made.key
    assert _store(client) == before


def _store(client: DockerClient) -> list[str]:
    chunks, _ = _container(client, "collector").get_archive("/var/lib/mplab/collected")
    with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
        return sorted(archive.getnames())


def test_the_doctor_finds_a_working_lab(states: list[ServiceState], bridge_stack: DockerStack) -> None:
    assert states
    findings = {finding.what: finding for finding in examine(bridge_stack)}
    checked = {"compose", "engine", "images", "MPTCP", "congestion control", "clock", "disk", "certificates"}
    assert checked <= set(findings)
    bad = {name: finding.found for name, finding in findings.items() if not finding.ok and name != "services"}
    assert bad == {}


def test_what_is_up_to_date_is_left_alone(states: list[ServiceState], bridge_stack: DockerStack) -> None:
    before = {state.service: state.id for state in states}
    again = bridge_stack.up(build=False)
    assert {state.service: state.id for state in again} == before


def test_logs_are_those_of_the_services(states: list[ServiceState], bridge_stack: DockerStack) -> None:
    assert states
    lines = list(bridge_stack.logs("proxy"))
    assert {name for name, _ in lines} == {"proxy"}
    records = [json.loads(line) for _, line in lines if line.startswith("{")]
    assert any(record["event"] == "connection" and record["mptcp"] for record in records)


def test_a_program_that_is_killed_comes_back(states: list[ServiceState], client: DockerClient) -> None:
    assert states
    before = _container(client, "dns").attrs["State"]["StartedAt"]
    _container(client, "dns").exec_run(["bash", "-c", "kill -9 -1"])
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        now = _container(client, "dns").attrs["State"]
        if now["StartedAt"] != before and now["Health"]["Status"] == "healthy":
            return
        time.sleep(0.5)
    pytest.fail(f"dns is {now}")


def test_down_leaves_nothing(states: list[ServiceState], bridge_stack: DockerStack, client: DockerClient) -> None:
    assert states
    bridge_stack.down()
    assert client.containers.list(all=True) == []
    assert [network.name for network in client.networks.list() if str(network.name).startswith("mplab")] == []
    volumes = {volume.name for volume in client.volumes.list()}
    assert {"mplab_content", "mplab_captures"} <= volumes
    bridge_stack.down(volumes=True)
    assert [volume.name for volume in client.volumes.list() if volume.name.startswith("mplab")] == []
