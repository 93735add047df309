"""Runs with a phone on adb; a router over SSH shapes its paths; proxy and origin are containers of an engine."""

import difflib
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from docker import DockerClient

from mplab.base.enter import IN_LAB_VARIABLE
from tests.docker.bench import Bench, why_no_router, why_not
from tests.docker.conftest import congestion_control
from tests.docker.engine import Engine
from tests.docker.ssh import SshServer
from tests.fakes.eventlines import read_lines
from tests.integration.conftest import environment, lab_processes, mplab_argv, wait_until

pytestmark = pytest.mark.timeout(600)

EXPERIMENT = f"""\
mplab: 1
name: bench
seed: 1
congestion_control: {congestion_control()}
transports: [sptcp-wifi, mptcp]
links:
  - name: LINK
scenarios:
  - download: {{sizes: [SIZE]}}
tolerance: {{rtt: 40 %, rate: 30 %}}
retries: 2
cell_timeout: 400 s
"""
AS_IT_IS = """as-it-is
    wifi: {down: unlimited, up: unlimited, rtt: 0 ms}
    lte: {down: unlimited, up: unlimited, rtt: 0 ms}"""
SLOW = """slow
    wifi: {down: 4 Mbit/s, up: 2 Mbit/s, rtt: 60 ms}
    lte: {down: 3 Mbit/s, up: 1 Mbit/s, rtt: 90 ms}"""
CAPTURES = {"phone-wlan0.pcapng", "phone-rmnet0.pcapng", "phone-lo.pcapng", "proxy.pcapng"}


@pytest.fixture
def bench(engine: Engine, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Bench]:
    """A bench, without a router unless the test requests one."""
    routed = getattr(request, "param", "") == "routed"
    if reason := why_not() or (why_no_router() if routed else ""):
        pytest.skip(reason)
    with Bench(tmp_path / "bench", engine, routed=routed) as running:
        yield running


def write_lab(folder: Path, bench: Bench, **phone: object) -> Path:
    path = folder / "lab.yaml"
    path.write_text(json.dumps(bench.lab(**phone)))
    return path


def run_argv(folder: Path, lab_file: Path, *, link: str = AS_IT_IS, size: str = "100 kB") -> list[str]:
    path = folder / "experiment.yaml"
    path.write_text(EXPERIMENT.replace("LINK", link).replace("SIZE", size))
    return mplab_argv("run", str(path), "--lab", str(lab_file), "--json")


def mplab(tmp_path: Path, argv: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, capture_output=True, text=True, timeout=500, check=False, env=environment(tmp_path))


def cells(runs: Path) -> dict[Path, dict[str, Any]]:
    return {path.parent: json.loads(path.read_text()) for path in sorted(runs.glob("*/cells/*/cell.json"))}


@pytest.mark.parametrize("bench", ["direct", "routed"], indirect=True)
def test_a_run_by_adb_with_containers(
    tmp_path: Path, bench: Bench, client: DockerClient, request: pytest.FixtureRequest
) -> None:
    routed = "routed" in request.node.name
    before = bench.seen()
    result = mplab(tmp_path, run_argv(tmp_path, write_lab(tmp_path, bench), link=SLOW if routed else AS_IT_IS))
    assert result.returncode == 0, result.stdout + result.stderr
    by_folder = cells(tmp_path / "runs")
    assert len(by_folder) == 2
    for path, cell in by_folder.items():
        assert cell["outcome"] == "ok", cell["reasons"]
        check_cell(path, cell)
        (check_shaped if routed else check_unshaped)(path, cell)
    (manifest,) = (tmp_path / "runs").glob("*/manifest.json")
    identity = json.loads(manifest.read_text())["lab"]["identity"]
    assert (identity["model"], identity["root"]) == ("Google Pixel 7", "su -c")
    assert differences(before, bench.seen()) == [], "phone and router are as they were found"
    assert client.containers.list(all=True) == [], "and so is the engine"


def test_a_run_whose_engine_is_reached_over_ssh(
    tmp_path: Path, bench: Bench, engine: Engine, client: DockerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    if reason := SshServer.why_not():
        pytest.skip(reason)
    with SshServer(tmp_path / "ssh", f"DOCKER_HOST={engine.url} docker system dial-stdio") as server:
        server.use(monkeypatch)
        lab = bench.lab()
        lab["proxy"]["engine"] = server.url
        path = tmp_path / "lab.yaml"
        path.write_text(json.dumps(lab))
        result = mplab(tmp_path, run_argv(tmp_path, path))
    if result.returncode == 3 and "Connection aborted" in result.stderr:
        pytest.skip("compose 1.29 has lost its connections five times: install compose v2")
    assert result.returncode == 0, result.stdout + result.stderr
    by_folder = cells(tmp_path / "runs")
    assert len(by_folder) == 2
    for folder, cell in by_folder.items():
        assert cell["outcome"] == "ok", cell["reasons"]
        check_cell(folder, cell)
    (manifest,) = (tmp_path / "runs").glob("*/manifest.json")
    assert json.loads(manifest.read_text())["lab"]["file"]["proxy"]["engine"] == server.url
    assert client.containers.list(all=True) == []


def check_shaped(path: Path, cell: dict[str, Any]) -> None:
    for interface, rtt_ms in (("wlan0", 60), ("rmnet0", 90)):
        link = cell["links"][interface]
        assert link["where"] == "router wifi (tc)"
        assert link["asked"]["rtt_ms"] == rtt_ms
        assert link["measured"]["rtt_ms_median"] > 0.9 * rtt_ms, "the delay is real"
    counters = json.loads((path / "counters" / "links-after.json").read_text())
    assert counters["wlan0.down.packets_out"] > 0


def check_unshaped(_path: Path, cell: dict[str, Any]) -> None:
    for link in cell["links"].values():
        assert link["where"] == "not shaped"
        assert link["measured"]["rtt_ms_median"] > 0


def check_cell(path: Path, cell: dict[str, Any]) -> None:
    assert {capture["file"] for capture in cell["captures"]} == CAPTURES
    packets = {capture["interface"]: capture["packets"] for capture in cell["captures"] if capture["node"] != "proxy"}
    used = {"wlan0", "rmnet0"} if cell["spec"]["transport"] == "mptcp" else {"wlan0"}
    assert min(packets["wlan0"], packets["lo"]) > 20, packets
    flows = cell["proof"]["subflows"]
    assert {interface for interface, flow in flows.items() if flow["established"]} == used
    assert (path / "tables" / "ends" / "ends.json").is_file(), "the side-car's packets fit those of the phone"
    local = ["10.64.1.2"] if cell["spec"]["transport"] == "sptcp-wifi" else ["10.64.1.2", "10.64.2.2"]
    assert sorted(cell["proof"]["active"]["local"]) == local
    assert cell["phone"]["serial"].startswith("127.0.0.1:")
    assert cell["congestion_control"]["origin"]
    assert (path / "logs" / "proxy.jsonl").stat().st_size > 0
    assert (path / "logs" / "access.jsonl").stat().st_size > 0


def differences(before: list[str], after: list[str]) -> list[str]:
    return [line for line in difflib.ndiff(before, after) if line.startswith(("-", "+"))]


def test_doctor_looks_at_phone_and_engine(tmp_path: Path, bench: Bench) -> None:
    result = mplab(tmp_path, mplab_argv("doctor", "--lab", str(write_lab(tmp_path, bench)), "--json"))
    checks = {check["name"]: check for check in json.loads(result.stdout)["checks"]}
    assert checks["phone bench-1"]["found"].startswith("127.0.0.1:")
    assert "Google Pixel 7, Android 13" in checks["phone bench-1"]["found"]
    assert checks["phone bench-1: root"]["found"] == "by 'su -c'"
    assert {check["level"] for name, check in checks.items() if name.startswith("phone bench-1")} == {"ok"}, checks
    assert checks["proxy: engine"]["level"] == "ok"
    lost = mplab(tmp_path, mplab_argv("doctor", "--lab", str(write_lab(tmp_path, bench, serial="0A1B2C3D")), "--json"))
    assert lost.returncode == 3
    (phone,) = (check for check in json.loads(lost.stdout)["checks"] if check["name"] == "phone bench-1")
    assert "not there after" in phone["found"]


def test_a_phone_that_is_not_there_is_one_clear_error(tmp_path: Path, bench: Bench, client: DockerClient) -> None:
    lab_file = write_lab(tmp_path, bench, serial="0A1B2C3D")
    result = mplab(tmp_path, run_argv(tmp_path, lab_file))
    assert result.returncode == 3
    (line,) = result.stderr.strip().splitlines()
    message = json.loads(line)["error"]["message"]
    assert message.startswith("bench-1 (0A1B2C3D): not there after"), line
    assert "is it plugged in" in message
    assert not list((tmp_path / "runs").glob("*")), "nothing was begun"
    assert client.containers.list(all=True) == []


@contextmanager
def begun(tmp_path: Path, lab_file: Path) -> Iterator[subprocess.Popen[str]]:
    """Yield a run that is in its first scenario, which lasts long."""
    with subprocess.Popen(
        run_argv(tmp_path, lab_file, size="100 MB"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(tmp_path),
    ) as running:
        try:
            wait_until(lambda: in_scenario(tmp_path / "runs", running), "the scenario has begun", timeout_s=120)
            yield running
        finally:
            running.kill()


def test_a_run_whose_outside_is_killed_gives_the_phone_back_itself(
    tmp_path: Path, bench: Bench, client: DockerClient
) -> None:
    before = bench.seen()
    with begun(tmp_path, write_lab(tmp_path, bench)) as running:
        (lab,) = labs_of(running)
        running.kill()
    wait_until(lambda: not lab_processes(lab), "everything of it has ended")
    assert differences(before, bench.seen()) == []
    assert client.containers.list() != [], "what is outside of the lab waits for the next run"
    result = mplab(tmp_path, mplab_argv("resume", "--json"))
    assert result.returncode == 0, result.stdout + result.stderr
    assert json.loads(result.stdout)["outcomes"] == {"ok": 2, "invalid": 0, "failed": 0}
    assert differences(before, bench.seen()) == []
    assert client.containers.list(all=True) == []


def test_what_a_killed_run_left_is_given_back_at_the_next_start(
    tmp_path: Path, bench: Bench, client: DockerClient
) -> None:
    before = bench.seen()
    lab_file = write_lab(tmp_path, bench)
    with begun(tmp_path, lab_file) as running:
        (lab,) = labs_of(running)
        kill(running)
    wait_until(lambda: not lab_processes(lab), "everything of it has ended")
    assert differences(before, bench.seen()), "there is something to give back"
    assert client.containers.list() != []
    result = mplab(tmp_path, run_argv(tmp_path, lab_file))
    assert result.returncode == 0, result.stdout + result.stderr
    assert differences(before, bench.seen()) == []
    assert client.containers.list(all=True) == []


def in_scenario(runs: Path, running: subprocess.Popen[str]) -> bool:
    assert running.poll() is None, running.communicate()[0]
    return any(event.get("step") == "scenario" for file in runs.glob("*/events.jsonl") for event in read_lines(file))


def labs_of(running: subprocess.Popen[str]) -> set[str]:
    return {process.environ()[IN_LAB_VARIABLE] for process in psutil.Process(running.pid).children(recursive=True)}


def kill(running: subprocess.Popen[str]) -> None:
    """Kill all processes of a run at once, as a power failure does; programs on the phone end with their connection."""
    for process in (psutil.Process(running.pid), *psutil.Process(running.pid).children(recursive=True)):
        with suppress(psutil.Error):
            process.kill()
