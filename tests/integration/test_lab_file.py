"""Runs with a lab file: a path through a virtual router, shaped by the driver of real routers."""

import json
import re
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from mplab.base.errors import LabNotReadyError
from mplab.base.places import ROOT
from mplab.lab.driver import programs_of_lab
from mplab.lab.find import enter_argv, find_node
from mplab.userfiles.labs.labuse import use_lab
from tests.integration.conftest import Mplab, wait_until
from tests.integration.test_faults import whole_lines
from tests.integration.test_run import cells, only_run

Start = Callable[..., subprocess.Popen[str]]
LAB = ROOT / "router-configs" / "labs" / "virtual-router.yaml"
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
    """Write an experiment with one link for each name and rate, and its lab file in a subfolder; return its path."""
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "lab.yaml").write_bytes(LAB.read_bytes())
    wifi = {name: f"{{down: {down}, up: 8 Mbit/s, rtt: 20 ms}}" for name, down in links.items()}
    entries = ", ".join(f"{{name: {name}, wifi: {path}, lte: {LTE}}}" for name, path in wifi.items())
    file = tmp_path / "lab-file.yaml"
    file.write_text(EXPERIMENT.format(transports=transports, size=size, retries=retries, links=entries))
    return str(file)


def counted(run: Path, cell: str) -> dict[str, int]:
    """Return the growth of each link counter during a cell."""
    before, after = (json.loads((run / "cells" / cell / "counters" / f"links-{t}.json").read_text()) for t in _TIMES)
    return {name: after[name] - before[name] for name in after}


_TIMES = ("before", "after")


def test_a_path_through_a_virtual_router(mplab: Mplab, tmp_path: Path) -> None:
    file = write(tmp_path, "sptcp-wifi, mptcp", "1 MB", retries=2, home="8 Mbit/s")
    result = mplab("run", file, "--no-report")
    assert result.returncode == 0, result.stdout + result.stderr
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
        through_emulator = growth["wlan0.down.bytes_out"]
        assert through_router == pytest.approx(through_emulator, rel=0.02), "it is a bridge there"
        if cell["spec"]["transport"] == "mptcp":
            assert min(through_router, growth["rmnet0.down.bytes_out"]) > 50_000
        else:
            assert through_router > 1_000_000
            assert growth["tc.wlan0.up.bytes_out"] < through_router / 5, "what goes down is not counted as going up"
    (up,) = (json.loads(line) for line in whole_lines(run / "events.jsonl") if '"lab_up"' in line)
    assert lab["routers"]["wifi"]["kernel"] in up["routers"]["wifi"]["kernel"]


def test_a_router_that_reboots_costs_an_attempt(start_mplab: Start, tmp_path: Path) -> None:
    file = write(tmp_path, "sptcp-wifi", "1 MB", retries=2, slow="2 Mbit/s")
    process = start_mplab("run", file, "--no-report")
    wait_until(lambda: any(e.get("step") == "scenario" for e in events(tmp_path)), "the scenario has begun", 120)
    for child in psutil.Process(process.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # Killing linux.uml ends the other programs of its machine too.
            if child.name() == "linux.uml":
                child.kill()  # A power cut does the same; the machine boots again.
    assert process.wait(240) == 0
    (cell,) = cells(only_run(tmp_path)).values()
    first = cell["attempts"][0]
    assert first["outcome"] != "ok"
    assert first["reason"].startswith("router wifi: "), first
    assert "rebooted while it shaped" in first["reason"] or "lost while shaping" in first["reason"]
    assert cell["outcome"] == "ok"
    assert cell["links"]["wlan0"]["where"] == "router wifi (tc)"


NARROW = """
tc qdisc add dev eth0 root handle 1: htb && tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit &&
tc filter add dev eth0 parent 1: protocol ip u32 match ip dst 10.64.1.0/24 flowid 1:1
"""


def test_a_path_that_cannot_give_what_is_asked(start_mplab: Start, tmp_path: Path) -> None:
    file = write(tmp_path, "sptcp-wifi", "1 MB", retries=1, wanted="40 Mbit/s")
    process = start_mplab("run", file, "--no-report")
    wait_until(lambda: any(event["event"] == "lab_up" for event in events(tmp_path)), "the lab is up", 120)
    proxy = find_node("proxy")
    if subprocess.run(enter_argv(proxy, ["sh", "-c", NARROW]), check=False).returncode != 0:
        pytest.skip("no bottleneck can be made here: it needs sch_htb and cls_u32 of this kernel")
    assert process.wait(240) == 1
    (cell,) = cells(only_run(tmp_path)).values()
    assert cell["outcome"] == "invalid", cell["reasons"]
    (reason,) = (reason for reason in cell["reasons"] if reason.startswith("wlan0: rate down "))
    measured, requested = re.findall(r"([\d.e+]+) kbit/s", reason)
    assert float(requested) == 40_000
    assert float(measured) < 20_000


def events(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in tmp_path.glob("runs/*/events.jsonl") for line in whole_lines(file)]
