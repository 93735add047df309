"""``examples/plugin``, installed: its plug-ins are listed, planned, used for shaping, scored and drawn."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mplab.base.places import ROOT
from tests.example_plugin import install

pytestmark = pytest.mark.long

SUITE = ROOT / "examples" / "plugin" / "tests"
EXPERIMENT = (ROOT / "examples" / "plugin" / "example.yaml").read_text()
LAB = """
mplab: 1
name: scripted
routers:
  wifi: {driver: script, command: [sh, COMMAND], interface: eth1}
phones:
  one: {wifi: {router: wifi, ip: 10.0.0.2}}
"""
COMMAND = """
case $1 in
  shape) cat > "$(dirname "$0")/shaped.json" ;;
  restore) echo restored >> "$(dirname "$0")/calls" ;;
esac
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("example") / "site")


def mplab(site: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(site), "XDG_STATE_HOME": str(folder / "state")}
    argv = [sys.executable, "-m", "mplab", *arguments]
    return subprocess.run(argv, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)


def test_all_four_are_listed_and_can_be_imported(site: Path, tmp_path: Path) -> None:
    result = mplab(site, tmp_path, "plugins", "--check", "--json")
    assert result.returncode == 0, result.stdout + result.stderr
    own = {
        (plugin["kind"], plugin["name"])
        for plugin in json.loads(result.stdout)
        if plugin["distribution"] == "mplab-example 1.0"
    }
    assert own == {
        ("transport", "small-packets"),
        ("scenario", "first-byte"),
        ("shaper", "script"),
        ("figure", "first-bytes"),
    }


def test_transport_and_scenario_are_planned(site: Path, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(EXPERIMENT)
    result = mplab(site, tmp_path, "plan", str(tmp_path / "x.yaml"), "--json")
    assert result.returncode == 0, result.stderr
    planned = json.loads(result.stdout)
    assert {cell["transport"] for cell in planned["plan"]["cells"]} == {"sptcp-wifi", "small-packets"}
    assert {cell["scenario"] for cell in planned["plan"]["cells"]} == {"first-byte"}


def test_wrong_options_are_refused_with_their_line(site: Path, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(EXPERIMENT.replace("mtu: 600", "mtu: 100"))
    result = mplab(site, tmp_path, "plan", str(tmp_path / "x.yaml"))
    assert result.returncode == 2
    assert "x.yaml:4: transports[1].small-packets.mtu" in result.stderr


def test_the_router_is_shaped_and_restored(site: Path, tmp_path: Path) -> None:
    (tmp_path / "lab.yaml").write_text(LAB.replace("COMMAND", str(tmp_path / "router.sh")))
    (tmp_path / "router.sh").write_text(COMMAND)
    (tmp_path / "slow.yaml").write_text(
        "wifi: {down: 5 Mbit/s, up: 1 Mbit/s, rtt: 20 ms}\nlte: {down: unlimited, up: unlimited, rtt: 0 ms}\n"
    )
    arguments = ["shape", str(tmp_path / "lab.yaml"), "one", "--link", str(tmp_path / "slow.yaml"), "--seconds", "0.1"]
    result = mplab(site, tmp_path, "router", *arguments)
    assert result.returncode == 0, result.stderr
    (shaped,) = json.loads((tmp_path / "shaped.json").read_text()).values()
    assert shaped["down"]["rate_kbps"] == 5000
    assert (tmp_path / "calls").read_text() == "restored\n"


def test_doctor_checks_the_router(site: Path, tmp_path: Path) -> None:
    (tmp_path / "lab.yaml").write_text(LAB.replace("COMMAND", str(tmp_path / "router.sh")))
    result = mplab(site, tmp_path, "doctor", "--lab", str(tmp_path / "lab.yaml"), "--json")
    (own,) = (check for check in json.loads(result.stdout)["checks"] if check["name"] == "router wifi")
    assert own["level"] == "ok"


def test_its_own_tests_pass(site: Path) -> None:
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(SUITE), str(SUITE)]
    environment = {**os.environ, "PYTHONPATH": str(site)}
    result = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=SUITE, env=environment)
    assert result.returncode == 0, result.stdout
    assert "4 passed" in result.stdout
