"""Test this machine as a router: its entry in a lab file, the findings of doctor, and real tc.

In the tests with real tc, a user-mode Linux is "this machine": a ``sudo`` in PATH runs commands there.
"""

import json
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mplab.base.errors import InputError, LabNotReadyError
from mplab.base.machine import CommandResult
from mplab.base.undo import UndoJournal
from mplab.cli.main import app
from mplab.drivers.shaper.driver import reachable_driver_of
from mplab.drivers.shaper.this_machine.driver import ThisMachineFile, check_access_point
from mplab.format.path import PathCondition
from mplab.userfiles.labs.lab import load_lab
from mplab.userfiles.labs.labuse import use_lab
from mplab.userfiles.labs.machines import AttachedPath, ShapingMachine
from tests.router.conftest import found_on
from tests.router.inside import MAC, SERVER
from tests.router.measure import Slot, measure, probe_server
from tests.router.stand_in import StandInRouter, why_not
from tests.router.test_router import wait_until_given_back

LAB = """\
mplab: 1
name: own-access-point
routers:
  wifi: {{driver: this-machine, interface: {interface}{more}}}
phones:
  one: {{driver: adb, wifi: {{router: wifi, mac: "{mac}"}}}}
"""
LINK = """\
wifi: {down: 9 Mbit/s, up: 4 Mbit/s, rtt: 60 ms}
lte: {down: unlimited, up: unlimited, rtt: 0 ms}
"""


def written(folder: Path, interface: str = "wlan0", mac: str = "02:00:00:00:00:01", more: str = "") -> Path:
    path = folder / "lab.yaml"
    path.write_text(LAB.format(interface=interface, mac=mac, more=more))
    return path


class Told:
    """`Shell` that returns the same output for each script."""

    name, where, alive = "router wifi", "this machine", True

    def __init__(self, text: str) -> None:
        self._text = text

    def connect(self) -> None: ...

    def close(self) -> None: ...

    def script(self, _text: str, *_arguments: str, timeout_s: float = 0.0, check: bool = True) -> CommandResult:
        return CommandResult(0, self._text, "")


def checked(text: str, interface: str = "wlan0") -> dict[str, tuple[str, str]]:
    settings = ThisMachineFile.model_validate({"driver": "this-machine", "interface": interface})
    path = AttachedPath("one", "wlan0", interface, mac="02:00:00:00:00:01")
    machine = ShapingMachine("this-machine", "routers", "wifi", settings, (path,))
    return {finding.name: (finding.level, finding.found) for finding in check_access_point(Told(text), machine)}


def test_a_lab_file_names_it_without_any_address(tmp_path: Path) -> None:
    lab = load_lab(written(tmp_path))
    machine = lab.reachable()["wifi"]
    assert (machine.kind, machine.interfaces, machine.label) == ("this-machine", ("wlan0",), "router wifi")
    driver = reachable_driver_of(machine)
    assert driver.where(machine) == "this machine"
    assert driver.uses(machine) == "routers.wifi shapes wlan0 of this host"
    with pytest.raises(InputError, match=r"routers.wifi: unknown key 'host'"):
        load_lab(written(tmp_path, more=", host: 192.168.1.1"))


def test_a_plan_says_where_the_path_is_shaped(tmp_path: Path) -> None:
    text = written(tmp_path).read_text() + "proxy: {driver: docker, listen: [203.0.113.5]}\n"
    (tmp_path / "run.yaml").write_text(text)
    assert use_lab(tmp_path / "run.yaml").where() == {"wlan0": "router wifi (tc)", "rmnet0": "not shaped"}


def test_doctor_wants_a_port_of_a_bridge_or_forwarding() -> None:
    port = checked("port wlan0\nradio wlan0\nforward 0\nneighbour 10.0.0.2 dev br0 lladdr 02:00:00:00:00:01 REACHABLE")
    assert port == {
        "router wifi: access point": ("ok", "wlan0 is a radio, a port of a bridge"),
        "phone one: wlan0": ("ok", "02:00:00:00:00:01 is known to router wifi"),
    }
    assert checked("forward 1")["router wifi: access point"] == ("ok", "wlan0 is a wire, routed")
    assert checked("forward 0")["router wifi: access point"][0] == "missing"
    assert checked("forward 0")["phone one: wlan0"][0] == "warning"


def test_doctor_warns_of_a_bridge() -> None:
    assert checked("bridge br0\nforward 1", "br0")["router wifi: br0"][0] == "warning"


def test_doctor_says_when_there_is_no_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sudo = tmp_path / "sudo"
    sudo.write_text("#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n")
    sudo.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    (machine,) = load_lab(written(tmp_path, more=", sudo: true")).reachable().values()
    driver = reachable_driver_of(machine)
    (finding,) = driver.check(machine, "lab.yaml")
    assert (finding.name, finding.level) == ("router wifi", "missing")
    assert "a password is required" in finding.found
    with pytest.raises(LabNotReadyError, match="a password is required"):
        driver.show(machine)


@dataclass(frozen=True)
class Host:
    """Machine that the tests use as "this machine", and a folder with a lab file for it."""

    machine: StandInRouter
    folder: Path

    def lab(self, dead_man: str = "60 s") -> str:
        return str(written(self.folder, "vec0", MAC["phone"], f", sudo: true, dead_man: {dead_man}"))


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandInRouter]:
    if reason := why_not():
        pytest.skip(reason)
    with StandInRouter(tmp_path_factory.mktemp("machine")) as running, probe_server(running.node("server"), SERVER):
        yield running


@pytest.fixture
def host(stand_in: StandInRouter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """Yield a `Host`; fail the test if it does not restore the original state of the machine."""
    (tmp_path / "known_hosts").write_text(f"[127.0.0.1]:{stand_in.port} {stand_in.host_key}\n")
    options = ["-o", f"UserKnownHostsFile={tmp_path / 'known_hosts'}", "-o", "BatchMode=yes"]
    ssh = shlex.join(["ssh", "-p", str(stand_in.port), "-i", str(stand_in.key), *options, "root@127.0.0.1"])
    (tmp_path / "bin").mkdir()
    sudo = tmp_path / "bin" / "sudo"
    sudo.write_text(f'#!/bin/sh\n[ "$1" = -n ] && shift\nexec {ssh} "$@"\n')
    sudo.chmod(0o755)
    monkeypatch.setenv("PATH", str(sudo.parent), prepend=":")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "mine.yaml").write_text(LINK)
    before = found_on(stand_in)
    yield Host(stand_in, tmp_path)
    assert found_on(stand_in) == before, "the machine is not as it was found"


@contextmanager
def shaped(host: Host, dead_man: str) -> Iterator[subprocess.Popen[str]]:
    """Start another process that shapes the phone's path; yield the process when the path is shaped."""
    link = str(host.folder / "mine.yaml")
    argv = [sys.executable, "-m", "mplab", "router", "shape", host.lab(dead_man), "one", "--link", link]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert "wlan0, router wifi" in process.stdout.readline()
            yield process
        finally:
            if process.poll() is None:
                process.terminate()


@pytest.mark.router
def test_a_phone_gets_its_condition_and_the_machine_is_as_before(host: Host) -> None:
    requested = PathCondition.of(9000, 4000, 60)
    slot = Slot(host.machine.node("phone"), "wlan0")
    with shaped(host, "60 s"):
        measured = measure({slot: requested}, SERVER)[slot]
    assert 60 <= measured.rtt_ms_min < 75
    assert measured.down_kbps is not None
    assert measured.up_kbps is not None
    assert measured.down_kbps == pytest.approx(9000, rel=0.1)
    assert measured.up_kbps == pytest.approx(4000, rel=0.1)


@pytest.mark.router
@pytest.mark.parametrize("who", ["next run", "machine"])
def test_what_a_killed_mplab_has_changed_is_taken_back(host: Host, who: str) -> None:
    before = found_on(host.machine)
    with shaped(host, "10 s" if who == "machine" else "600 s") as process:
        assert found_on(host.machine) != before
        process.send_signal(signal.SIGKILL)
    if who == "machine":
        wait_until_given_back(host.machine, before)
        return
    recovered = UndoJournal.recover(host.folder / "state" / "mplab" / "undo")
    assert [(item.name, item.failure) for item in recovered] == [("router wifi: as it was found", "")]
    assert found_on(host.machine) == before


@pytest.mark.router
def test_what_mplab_says_about_it(host: Host) -> None:
    doctor = json.loads(CliRunner().invoke(app, ["doctor", "--lab", host.lab(), "--json"]).stdout)
    levels = {item["name"]: item["level"] for item in doctor["checks"]}
    wanted = ("router wifi", "router wifi: shaping", "router wifi: access point")
    assert {name: levels.get(name) for name in wanted} == dict.fromkeys(wanted, "ok")
    shown = CliRunner().invoke(app, ["router", "show", host.lab(), "--json"])
    assert json.loads(shown.stdout) == {"wifi": {"owner": "", "silent_s": 0}}
    assert "nothing needs to be installed" in CliRunner().invoke(app, ["router", "install", host.lab()]).stdout
