"""A run with the transport, the scenario and the figure of ``examples/plugin``."""

import json
import os
import subprocess
import sys
from pathlib import Path

from mplab.base.places import ROOT
from tests.example_plugin import install

EXPERIMENT = """
mplab: 1
name: example
transports: [small-packets: {mtu: 600}]
links: [baseline]
scenarios: [first-byte: {requests: 3}]
"""
LARGEST_PAYLOAD = 600 - 20 - 20
"""Bytes, of a TCP segment in a packet of 600 bytes."""


def test_the_example_runs_and_is_reported(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(install(tmp_path / "site"))}
    (tmp_path / "x.yaml").write_text(EXPERIMENT)
    argv = [sys.executable, "-m", "mplab", "run", str(tmp_path / "x.yaml"), "--runs", str(tmp_path / "runs"), "--json"]
    result = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert result.returncode == 0, result.stderr
    run = Path(json.loads(result.stdout)["run"])
    (cell,) = (run / "cells").iterdir()
    values = {value["metric"]: value["value"] for value in json.loads((cell / "scores.json").read_text())["values"]}
    assert 0 < values["first_byte"] < 10
    assert (run / "report" / "figures" / "first-bytes.svg").is_file()
    fields = ["-T", "fields", "-e", "tcp.len", "-Y", "ip.src==10.0.0.0/8 && tcp"]
    shown = subprocess.run(
        ["tshark", "-r", str(cell / "phone-wlan0.pcapng"), *fields], capture_output=True, text=True, check=True
    )
    sent = [int(length) for length in shown.stdout.split()]
    assert sent
    assert max(sent) <= LARGEST_PAYLOAD
