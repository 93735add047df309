"""A single scenario with its scores, exit code and evidence; and a lab with services that is brought up by hand."""

import json
from pathlib import Path

import pytest

from mplab.base.programs import FIREFOX
from mplab.drivers.services import load_service, service_names
from mplab.format.sites import load_sites
from tests.integration.conftest import Mplab


def test_a_scenario_is_checked_alone(mplab: Mplab, tmp_path: Path) -> None:
    folder = str(tmp_path / "checks")
    arguments = ("scenarios", "check", "download", "-p", "sizes=[10 kB]", "--transport", "mptcp", "--runs", folder)
    result = mplab(*arguments, "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert (report["outcome"], report["transport"], report["parameters"]["sizes"]) == ("ok", "mptcp", ["10 kB"])
    scores = {row["metric"]: row for row in report["scores"]}
    assert scores["download_time"]["value"] > 0
    assert scores["download_time"]["labels"] == {"size": "10 kB"}
    cell = Path(report["directory"])
    assert (cell / "scenario.jsonl").is_file()
    assert list(cell.glob("*.pcapng")) == []


def test_a_scenario_that_fails_says_why_and_where(
    mplab: Mplab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("MPLAB_CHROMIUM", str(broken))
    folder = tmp_path / "checks"
    result = mplab("scenarios", "check", "web", "-p", "sites=[search]", "--runs", str(folder))
    assert result.returncode == 1, result.stdout
    assert "failed: browser: no session" in result.stderr
    evidence = Path(result.stdout.split("Evidence: ")[1].strip())
    assert (evidence / "cell.json").is_file()
    assert (evidence / "logs").is_dir()


def test_iperf_measures_what_the_link_gives(mplab: Mplab, tmp_path: Path) -> None:
    arguments = ("-p", "duration=2 s", "-p", "directions=[down]", "--runs", str(tmp_path / "checks"), "--json")
    report = json.loads(mplab("scenarios", "check", "iperf", *arguments).stdout)
    assert report["reasons"] == []
    scores = {row["metric"]: row["value"] for row in report["scores"]}
    assert 0 < scores["goodput"] < 7.04 * 1.2
    assert scores["wifi_bytes"] > scores["cellular_bytes"]


def test_pages_in_firefox(mplab: Mplab, tmp_path: Path) -> None:
    if FIREFOX.find() is None:
        pytest.skip("firefox is not installed")
    check = ("scenarios", "check", "firefox", "--transport", "mptcp", "--runs", str(tmp_path / "checks"), "--json")
    report = json.loads(mplab(*check, "-p", "sites=[movie]").stdout)  # This page has frames.
    assert report["reasons"] == []
    scores = {row["metric"]: row["value"] for row in report["scores"]}
    assert 0 < scores["first_contentful_paint"] <= scores["largest_contentful_paint"]
    assert scores["page_load_time"] == scores["page_load_time_mean"] > 0
    assert scores["page_bytes"] > 845_700
    assert scores["page_connections"] >= 1
    lines = (Path(report["directory"]) / "scenario.jsonl").read_text().splitlines()
    states = [item for item in map(json.loads, lines) if item["event"] == "app_state"]
    assert [(item["device"], item["clean"]) for item in states] == [("phone", True)]


def requests_at_origin(cell: Path) -> tuple[set[str], set[int]]:
    """Return the host names that were requested in a cell, and the numbers of the connections that carried requests."""
    requests = [json.loads(line) for line in (cell / "logs" / "access.jsonl").read_text().splitlines()]
    return {request["host"] for request in requests}, {request["connection"] for request in requests}


def test_a_site_at_one_address_comes_over_one_connection(mplab: Mplab, tmp_path: Path) -> None:
    check = ("scenarios", "check", "web", "-p", "sites=[movie]", "-p", "addresses=one", "-p", "origin_rtt=none")
    report = json.loads(mplab(*check, "--transport", "mptcp", "--runs", str(tmp_path / "checks"), "--json").stdout)
    assert report["reasons"] == []
    cell = Path(report["directory"])
    hosts, connections = requests_at_origin(cell)
    assert len(hosts) == 4
    assert len(connections) == 1
    entries = json.loads((cell / "har" / "movie-1.har").read_text())["log"]["entries"]
    assert len({entry["connection"] for entry in entries}) == 1
    agent = [json.loads(line) for line in (cell / "logs" / "agent.jsonl").read_text().splitlines()]
    assert [item["dst"] for item in agent if item.get("dst", "").endswith(":443")] == ["10.65.48.100:443"]


def test_a_site_at_one_address_in_firefox(mplab: Mplab, tmp_path: Path) -> None:
    if FIREFOX.find() is None:
        pytest.skip("firefox is not installed")
    check = ("scenarios", "check", "web", "-p", "sites=[movie]", "-p", "addresses=one", "-p", "browser=firefox")
    report = json.loads(mplab(*check, "--transport", "mptcp", "--runs", str(tmp_path / "checks"), "--json").stdout)
    assert report["reasons"] == []
    hosts, connections = requests_at_origin(Path(report["directory"]))
    assert len(hosts) == 4
    assert len(connections) == 1
    assert {row["metric"] for row in report["scores"]} >= {"page_load_time", "page_first_byte", "dns_time"}


CLEAR = """\
mplab: 1
name: clear
transports: [mptcp]
links:
  - name: fast
    wifi: {down: 20 Mbit/s, up: 20 Mbit/s, rtt: 10 ms}
    lte: {down: 20 Mbit/s, up: 20 Mbit/s, rtt: 20 ms}
scenarios:
  - web: {sites: [ad], http: h1, tls: false, loads: 2, label: table}
  - web: {sites: [ad], http: h1, tls: false, loads: 2, origin_rtt: none, label: none}
tolerance: {rtt: 60 %, rate: 50 %}
retries: 2
"""


def test_clear_text_and_the_round_trip_to_the_origin(mplab: Mplab, tmp_path: Path) -> None:
    path = tmp_path / "clear.yaml"
    path.write_text(CLEAR)
    result = mplab("run", str(path), "--no-report")
    assert result.returncode == 0, result.stdout + result.stderr
    first_bytes = {}
    for file in tmp_path.glob("runs/*/cells/*/cell.json"):
        label = json.loads(file.read_text())["spec"]["scenario"]
        agent = [json.loads(line) for line in (file.parent / "logs" / "agent.jsonl").read_text().splitlines()]
        ports = {item["dst"].rpartition(":")[2] for item in agent if item["event"] == "connection"}
        assert "80" in ports
        assert "443" not in ports
        pages = [json.loads(line) for line in (file.parent / "scenario.jsonl").read_text().splitlines()]
        first_bytes[label] = min(page["time_to_first_byte_s"] for page in pages if page["event"] == "page")
    (row,) = (site for site in load_sites() if site.slug == "ad")
    assert first_bytes["table"] - first_bytes["none"] > row.rtt_ms / 1000


def test_a_lab_with_all_services(mplab: Mplab) -> None:
    result = mplab("lab", "up", "--services", "all", "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["services"] == {name: dict(load_service(name).hosts) for name in service_names()}
