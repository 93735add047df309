"""Runs with a lab file: a path through a virtual router, shaped by the driver of real ones."""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from orchestrator.errors import LabNotReadyError
from orchestrator.lab.needs import programs_of_lab
from orchestrator.programs import CHECKOUT
from orchestrator.spec.labuse import use_lab
from tests.integration.conftest import Mplab
from tests.integration.test_faults import whole_lines
from tests.integration.test_run import cells, only_run

Start = Callable[..., subprocess.Popen[str]]
LAB = CHECKOUT / "router-configs" / "labs" / "virtual-router.yaml"
EXPERIMENT = """\
mplab: 1
name: lab-file
lab: here/lab.yaml
transports: [{transports}]
links: [{links}]
scenarios:
  - download: {{sizes: [{size}]}}
tolerance: {{rtt: 60 %, rate: 50 %}}
retries: {retries}
"""
LTE = "{down: 8 Mbit/s, up: 8 Mbit/s, rtt: 30 ms}"


@pytest.fixture(scope="module", autouse=True)
def _programs_are_there() -> None:
    try:
        missing = [program.name for program in programs_of_lab(use_lab(LAB)) if program.find() is None]
    except LabNotReadyError as error:
        pytest.skip(str(error))
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")


def write(tmp_path: Path, transports: str, size: str, *, retries: int, **links: str) -> str:
    """An experiment with links of these names and rates, and its lab file in a folder beside it."""
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "lab.yaml").write_bytes(LAB.read_bytes())
    wifi = {name: f"{{down: {down}, up: 8 Mbit/s, rtt: 20 ms}}" for name, down in links.items()}
    entries = ", ".join(f"{{name: {name}, wifi: {path}, lte: {LTE}}}" for name, path in wifi.items())
    file = tmp_path / "lab-file.yaml"
    file.write_text(EXPERIMENT.format(transports=transports, size=size, retries=retries, links=entries))
    return str(file)


def counted(run: Path, cell: str) -> dict[str, int]:
    """How much each counter of the links has grown during a cell."""
    before, after = (json.loads((run / "cells" / cell / "counters" / f"links-{t}.json").read_text()) for t in _TIMES)
    return {name: after[name] - before[name] for name in after}


_TIMES = ("before", "after")


def test_a_path_through_a_virtual_router(mplab: Mplab, tmp_path: Path) -> None:
    file = write(tmp_path, "sptcp-wifi, mptcp", "1 MB", retries=2, home="8 Mbit/s")
    done = mplab("run", file, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    run = only_run(tmp_path)
    assert (run / "lab.yaml").read_bytes() == LAB.read_bytes()
    lab = json.loads((run / "manifest.json").read_text())["lab"]
    assert (lab["kind"], lab["phone"]) == ("virtual", "phone-1")
    assert lab["paths"] == {"wlan0": "router wifi (tc)", "rmnet0": "linkem"}
    assert lab["routers"]["wifi"]["tc"]
    for cell in cells(run).values():
        assert cell["outcome"] == "ok"
        assert {interface: path["where"] for interface, path in cell["links"].items()} == lab["paths"]
        growth = counted(run, cell["id"])
        through_router = growth["tc.wlan0.down.bytes_out"]
        assert through_router == growth["wlan0.down.bytes_out"], "the emulator is a bridge there"
        if cell["spec"]["transport"] == "mptcp":
            assert min(through_router, growth["rmnet0.down.bytes_out"]) > 50_000
        else:
            assert through_router > 1_000_000
            assert growth["tc.wlan0.up.bytes_out"] < through_router / 5, "what goes down is not counted as going up"
    (up,) = (json.loads(line) for line in whole_lines(run / "events.jsonl") if '"lab_up"' in line)
    assert lab["routers"]["wifi"]["kernel"] in up["routers"]["wifi"]["kernel"]
    page = (run / "report" / "index.html").read_text()
    assert "router wifi (tc)" in page


def test_a_router_that_reboots_and_one_that_cannot_give_what_is_asked(start_mplab: Start, tmp_path: Path) -> None:
    file = write(tmp_path, "sptcp-wifi", "1 MB", retries=1, slow="2 Mbit/s", impossible="1500 Mbit/s")
    process = start_mplab("run", file, "--no-report")
    _cut_power_in(process, tmp_path, cell="slow")
    assert process.wait(240) == 1
    run = only_run(tmp_path)
    found = {cell["spec"]["link"]: cell for cell in cells(run).values()}
    slow, impossible = found["slow"], found["impossible"]
    assert impossible["outcome"] == "invalid"
    (reason,) = (reason for reason in impossible["reasons"] if "rate down" in reason)
    assert reason.startswith("wlan0: rate down ")
    assert "1.5e+06 kbit/s asked" in reason
    assert slow["outcome"] == "ok", slow["reasons"]
    first = slow["attempts"][0]
    assert first["outcome"] != "ok"
    assert first["reason"].startswith("router wifi: "), first
    assert "rebooted in the middle" in first["reason"] or "lost while shaping" in first["reason"]
    assert slow["links"]["wlan0"]["where"] == "router wifi (tc)"
    kept: dict[str, Any] = json.loads((run / "manifest.json").read_text())
    assert kept["lab"]["phone"] == "phone-1"


def _cut_power_in(run: subprocess.Popen[str], tmp_path: Path, *, cell: str) -> None:
    """End the virtual machine while the scenario of a cell runs; it boots again, as after a power cut."""
    while run.poll() is None:
        lines = [line for file in tmp_path.glob("runs/*/events.jsonl") for line in whole_lines(file)]
        steps = [event for event in map(json.loads, lines) if event["event"] == "cell_step"]
        if any(event["step"] == "scenario" and f"-{cell}-" in event["cell"] for event in steps):
            machines = [one for one in psutil.Process(run.pid).children(recursive=True) if one.name() == "linux.uml"]
            assert machines
            for machine in machines:
                machine.kill()
            return
        time.sleep(0.02)
    pytest.fail("the run has ended before that cell's scenario began")
