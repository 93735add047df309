"""Datagrams, policies and distant servers in the virtual lab."""

import json
from pathlib import Path
from typing import Any

from tests.integration.conftest import Mplab
from tests.integration.test_run import cells, only_run

LINK = """\
    wifi: {down: 20 Mbit/s, up: 20 Mbit/s, rtt: 16 ms}
    lte: {down: 20 Mbit/s, up: 20 Mbit/s, rtt: 56 ms}
tolerance: {rtt: 60 %, rate: 50 %}
retries: 2
"""

DATAGRAMS = f"""\
mplab: 1
name: datagrams
transports: [sptcp-lte, mpflex:roundrobin]
scenarios:
  - udp-jitter: {{duration: 2 s}}
links:
  - name: voip
{LINK}"""

APPS = f"""\
mplab: 1
name: apps
transports:
  - mpflex:minrtt: {{policy: nikravesh2016-fig18-lab}}
scenarios:
  - download: {{server: store, sizes: [1 MB], label: store}}
  - download: {{server: messages, sizes: [300 kB], label: messages}}
links:
  - name: far-servers
    core_rtt: 150 ms
{LINK}"""


def observed(run: Path, record: dict[str, Any], event: str) -> dict[str, Any]:
    lines = (run / "cells" / record["id"] / "scenario.jsonl").read_text().splitlines()
    (fields,) = (observation for observation in map(json.loads, lines) if observation["event"] == event)
    return dict(fields)


def test_datagrams_take_the_default_route_or_the_paths_of_a_session(mplab: Mplab, tmp_path: Path) -> None:
    (tmp_path / "datagrams.yaml").write_text(DATAGRAMS)
    result = mplab("run", str(tmp_path / "datagrams.yaml"), "--json")
    assert result.returncode == 0, result.stdout + result.stderr
    run = only_run(tmp_path)
    by_transport = {cell["spec"]["transport"]: cell for cell in cells(run).values()}
    plain, spread = (observed(run, by_transport[label], "datagrams") for label in ("sptcp-lte", "mpflex-roundrobin"))
    assert (plain["carried_by"], spread["carried_by"]) == ("default route", "session")
    assert plain["sent"] == spread["sent"] == 200
    assert plain["rtt_ms"]["min"] >= 60, "over LTE, and 4 ms on to the server"
    assert observed(run, by_transport["sptcp-lte"], "traffic")["interfaces"]["wlan0"]["packets_up"] == 0
    assert spread["rtt_ms"]["min"] >= 20
    carried = observed(run, by_transport["mpflex-roundrobin"], "traffic")["interfaces"]
    assert all(interface["bytes_up"] > 50 * 100 for interface in carried.values()), carried
    assert spread["up"]["reordered"] > 50, "every second one takes a way that is two periods longer"
    assert spread["up"]["reordering_delay_ms"]["max"] > 10


def test_apps_keep_to_the_policy_and_servers_are_as_far_as_asked(mplab: Mplab, tmp_path: Path) -> None:
    (tmp_path / "apps.yaml").write_text(APPS)
    result = mplab("run", str(tmp_path / "apps.yaml"), "--no-report")
    assert result.returncode == 0, result.stdout + result.stderr
    run = only_run(tmp_path)
    by_scenario = {cell["spec"]["scenario"]: cell for cell in cells(run).values()}
    paths = {label: cell["proof"]["session"]["paths"] for label, cell in by_scenario.items()}
    assert all(path["bytes_down"] > 50_000 for path in paths["store"].values()), paths
    assert paths["messages"].get("rmnet0", {"bytes_down": 0})["bytes_down"] < 1000, "the lookup, at most"
    for label, cell in by_scenario.items():
        download = observed(run, cell, "download")
        assert download["first_byte_s"] - download["namelookup_s"] >= 2 * 0.154, label
        assert (run / "cells" / cell["id"] / "logs" / "policy.yaml").is_file()
    assert by_scenario["store"]["outcome"] == by_scenario["messages"]["outcome"] == "ok"
