"""Runs whose proxy and origin are containers: the demo's scenarios, and faults during a run."""

import json
import os
import signal
import statistics
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from docker import DockerClient
from docker.models.containers import Container

from mplab.base.errors import LabNotReadyError
from mplab.lab.catalog import catalog
from mplab.run.hostside.ready import check_ready
from tests.docker.conftest import congestion_control
from tests.docker.engine import Engine
from tests.fakes.eventlines import read_lines
from tests.integration.conftest import Mplab, environment, mplab_argv, runner, wait_until

pytestmark = pytest.mark.timeout(600)

DEMO = f"""\
mplab: 1
name: demo
seed: 1
repetitions: 1
congestion_control: {congestion_control()}
transports: [sptcp-wifi, mptcp]
links: [baseline]
scenarios:
  - download: {{sizes: [50 kB, 100 kB, 300 kB, 1 MB, 2 MB], pause: 100 ms}}
  - web: {{sites: [search], http: h2}}
tolerance: {{rtt: 25 %, rate: 25 %}}
"""
LONG = f"""\
mplab: 1
name: long
seed: 1
repetitions: 2
retries: 0
congestion_control: {congestion_control()}
transports: [mptcp]
links: [baseline]
scenarios:
  - download: {{sizes: [3 MB]}}
tolerance: {{rtt: 25 %, rate: 25 %}}
"""
NOISE = {"download_time": 0.35, "page_load_time": 1.0}
"""Allowed relative difference of two consecutive runs on a shared machine; each page is loaded once."""


@pytest.fixture(scope="module", autouse=True)
def _phone_is_possible() -> None:
    try:
        check_ready(needs_ui=True)
    except LabNotReadyError as error:
        pytest.skip(str(error))
    assert catalog().scenarios


@pytest.fixture
def mplab(tmp_path: Path) -> Mplab:
    return runner(tmp_path, timeout_s=300)


@pytest.fixture
def lab_file(tmp_path: Path, engine: Engine) -> Path:
    path = tmp_path / "lab.yaml"
    path.write_text(
        "mplab: 1\nname: containers\nphones: {one: {driver: virtual}}\n"
        f"proxy: {{driver: docker, engine: '{engine.url}'}}\n"
    )
    return path


def _experiment(folder: Path, text: str) -> str:
    path = folder / "experiment.yaml"
    path.write_text(text)
    return str(path)


def _cells(run: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(run.glob("cells/*/cell.json"))]


def _times(run: Path) -> dict[tuple[str, str], dict[str, float]]:
    """Return (transport, metric) → seconds by labels, which are size or page."""
    times: dict[tuple[str, str], dict[str, float]] = {}
    for path in run.glob("cells/*/scores.json"):
        transport = json.loads((path.parent / "cell.json").read_text())["spec"]["transport"]
        for value in json.loads(path.read_text())["values"]:
            if value["metric"] in NOISE:
                times.setdefault((transport, value["metric"]), {})[str(value["labels"])] = value["value"]
    return times


def test_the_demo_runs_in_containers_as_it_does_in_processes(
    mplab: Mplab, tmp_path: Path, lab_file: Path, client: DockerClient
) -> None:
    experiment = _experiment(tmp_path, DEMO)
    result = mplab("run", experiment, "--lab", str(lab_file), "--json")
    assert result.returncode == 0, result.stderr
    run = Path(json.loads(result.stdout)["run"])
    assert (run / "report" / "index.html").stat().st_size > 10_000
    _check_evidence(run)
    assert client.containers.list(all=True) == [], "the engine is as it was"
    other = mplab("run", experiment, "--json")
    assert other.returncode == 0, other.stderr
    containers, processes = _times(run), _times(Path(json.loads(other.stdout)["run"]))
    assert containers.keys() == processes.keys()
    assert len(containers) == 4
    for (transport, metric), times in containers.items():
        ratios = {label: seconds / processes[transport, metric][label] for label, seconds in times.items()}
        assert abs(statistics.median(ratios.values()) - 1) < NOISE[metric], (transport, metric, ratios)


def _check_evidence(run: Path) -> None:
    cells = _cells(run)
    assert [cell["outcome"] for cell in cells] == ["ok"] * 4, [cell["reasons"] for cell in cells]
    for cell in cells:
        (proxy,) = [capture for capture in cell["captures"] if capture["node"] == "proxy"]
        assert proxy["packets"] > 50
        assert proxy["dropped"] == 0
        folder = run / "cells" / cell["id"]
        assert (folder / "tables" / "ends" / "ends.json").is_file(), "the side-car's packets fit those of the phone"
        assert (folder / "logs" / "proxy.jsonl").stat().st_size > 0
        assert (folder / "logs" / "access.jsonl").stat().st_size > 0
        if cell["spec"]["transport"] == "mptcp":
            flows = cell["proof"]["subflows"]
            assert all(flows[interface]["established"] for interface in ("wlan0", "rmnet0")), flows
            least = 10_000 if cell["spec"]["scenario"] == "download" else 100
            assert all(flows[interface]["bytes_down"] > least for interface in ("wlan0", "rmnet0")), flows
    containers = json.loads((run / "manifest.json").read_text())["lab"]["containers"]
    assert {"proxy", "web", "dns", "capture", "net"} <= set(containers["images"])
    assert all(digest.startswith("sha256:") for digest in containers["images"].values())
    assert containers["configuration"]


@pytest.fixture
def long_run(
    tmp_path: Path, lab_file: Path, engine: Engine
) -> Iterator[Callable[[], tuple[subprocess.Popen[str], Path]]]:
    """Start a run of two cells; return the process and the run directory once a scenario runs."""
    started: list[subprocess.Popen[str]] = []

    def start() -> tuple[subprocess.Popen[str], Path]:
        argv = mplab_argv("run", _experiment(tmp_path, LONG), "--lab", str(lab_file), "--no-report")
        process = subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(tmp_path)
        )
        started.append(process)
        runs = tmp_path / "runs"

        def begun() -> bool:
            assert process.poll() is None, process.communicate()[0]
            events = [event for file in runs.glob("*/events.jsonl") for event in read_lines(file)]
            return any(event.get("step") == "scenario" for event in events)

        wait_until(begun, "the scenario has begun", timeout_s=120)
        (run,) = runs.iterdir()
        return process, run

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_a_container_that_is_killed_costs_an_attempt_and_no_cell(
    long_run: Callable[[], tuple[subprocess.Popen[str], Path]], client: DockerClient
) -> None:
    process, run = long_run()
    _kill(_container(client, "proxy"))
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 0, output
    assert "attempt 1 failed: engine: the container of proxy ended by itself (killed)" in output
    assert [cell["outcome"] for cell in _cells(run)] == ["ok", "ok"]
    assert client.containers.list(all=True) == []


def _container(client: DockerClient, service: str) -> Container:
    (container,) = client.containers.list(filters={"label": f"com.docker.compose.service={service}"})
    return container


def _kill(container: Container) -> None:
    """Kill the container's processes by signal, as the kernel would, without the engine."""
    for process in Path("/proc").iterdir():
        with suppress(OSError):
            if process.name.isdigit() and str(container.id) in (process / "cgroup").read_text():
                os.kill(int(process.name), signal.SIGKILL)
