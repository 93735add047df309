"""Resources that a run locks, named before it starts: its parts lock the same names themselves."""

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mplab.base.errors import LabNotReadyError
from mplab.base.lock import resource_lock
from mplab.base.places import ROOT
from mplab.cli.main import app
from mplab.drivers.proxy.docker.settings import DockerProxyFile
from mplab.drivers.proxy.docker.stack import DockerStack, StackSettings
from mplab.drivers.proxy.docker.takeover import exclusive
from mplab.drivers.shaper.owner import held_machines
from mplab.lab.catalog import catalog
from mplab.lab.phones.adb.lab import phone_lock
from mplab.lab.resources import resources_of
from mplab.userfiles.experiments.resolve import load_experiment
from mplab.userfiles.labs.labuse import VIRTUAL, LabUse, use_lab

BENCH = """
mplab: 1
name: bench
routers:
  wifi: {host: 127.0.0.1, port: 9, user: nobody, interface: phy0-ap0}
servers:
  far: {host: 127.0.0.9, port: 9, sudo: true, user: nobody, interface: eth0}
  near: {interface: eth0}
phones:
  pixel:
    driver: adb
    serial: NOT-A-PHONE-1
    wifi: {router: wifi, ip: 192.168.1.23}
    lte: {server: far, ip: 198.51.100.7}
  other: {driver: adb, serial: 127.0.0.1:1, wifi: {at: phone, interface: wlan0}, lte: {server: near}}
  long:
    driver: adb
    serial: NOT-A-PHONE-2
    root_shell: {command: [no-such-program, a-command-line-that-is-much-longer-than-a-name-of-a-file-should-ever-be]}
    lte: {at: phone, interface: rmnet0}
proxy: {engine: "unix:///nowhere/docker.sock", project: unit-test, listen: [203.0.113.5]}
"""
DOWNLOAD = """
mplab: 1
name: one
transports: [sptcp-wifi]
links: [{name: as-it-is, wifi: {down: unlimited, up: unlimited, rtt: 0 ms},
         lte: {down: unlimited, up: unlimited, rtt: 0 ms}}]
scenarios: [download: {sizes: [1 kB]}]
"""

Uses = Callable[[LabUse], tuple[str, ...]]


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    path = tmp_path / "bench.yaml"
    path.write_text(BENCH)
    return path


@pytest.fixture
def uses(tmp_path: Path) -> Uses:
    file = tmp_path / "one.yaml"
    file.write_text(DOWNLOAD)
    return lambda use: resources_of(load_experiment(file, catalog=catalog(), lab=use))


def test_the_virtual_lab_is_one_resource(uses: Uses, tmp_path: Path) -> None:
    assert uses(VIRTUAL) == ("virtual-lab",)
    for name in ("virtual-router", "emulated-phone"):
        assert uses(use_lab(ROOT / "router-configs" / "labs" / f"{name}.yaml")) == ("virtual-lab",)
    file = tmp_path / "docker.yaml"
    file.write_text("mplab: 1\nname: d\nphones: {one: {driver: virtual}}\nproxy: {engine: 'unix:///lab.sock'}\n")
    assert uses(use_lab(file)) == ("docker mplab at unix:///lab.sock", "virtual-lab")


def test_a_real_phone_comes_with_what_shapes_it(uses: Uses, bench: Path) -> None:
    containers = "docker unit-test at unix:///nowhere/docker.sock"
    pixel = ("phone NOT-A-PHONE-1", "shaping nobody@127.0.0.1:9", "shaping nobody@127.0.0.9:9")
    assert uses(use_lab(bench, "pixel")) == (containers, *pixel)
    other = ("phone 127.0.0.1:1", "shaping adb 127.0.0.1:1", "shaping this machine")
    assert uses(use_lab(bench, "other")) == (containers, *other)


def test_an_only_phone_needs_no_serial_number(uses: Uses, tmp_path: Path) -> None:
    file = tmp_path / "bench.yaml"
    phone = "{driver: adb, wifi: {at: phone, interface: wlan0}}"
    file.write_text(f"mplab: 1\nname: b\nphones: {{mine: {phone}}}\nproxy: {{listen: [203.0.113.5]}}\n")
    containers, *others = uses(use_lab(file))
    assert containers.startswith("docker mplab at ")
    assert others == ["phone mine"]


@pytest.mark.parametrize("phone", ["pixel", "long"])
def test_they_are_the_names_that_are_locked(uses: Uses, bench: Path, phone: str, tmp_path: Path) -> None:
    """Lock each name and check that exactly its own part of the run is blocked."""
    lab = use_lab(bench, phone)
    assert isinstance(lab.proxy, DockerProxyFile)
    proxy, machines = lab.proxy, {machine.name: machine for machine in lab.machines().values()}

    def blocked() -> int:
        parts: list[Callable[[ExitStack], object]] = [
            lambda stack: stack.enter_context(phone_lock(lab)),
            lambda stack: stack.enter_context(exclusive(DockerStack(StackSettings.of(proxy)))),
            *(
                lambda stack, one=machine: stack.enter_context(held_machines([one], directory=tmp_path / "undo"))
                for machine in machines.values()
            ),
        ]
        refusals = 0
        for part in parts:
            try:
                with ExitStack() as stack:
                    part(stack)
            except LabNotReadyError as error:
                refusals += "is in use by run test" in str(error)
        return refusals

    names = uses(lab)
    assert blocked() == 0
    for name in names:
        with resource_lock(name, run_id="test"):
            assert blocked() == 1, name
    with ExitStack() as held:
        for name in names:
            held.enter_context(resource_lock(name, run_id="test"))
        assert blocked() == len(names) == 2 + len(machines)


def test_a_plan_says_them(tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(DOWNLOAD)
    runs = ("--runs", str(tmp_path))
    assert json.loads(CliRunner().invoke(app, ["plan", str(file), *runs, "--json"]).stdout)["resources"] == [
        "virtual-lab"
    ]
    assert "locks while it runs: virtual-lab" in CliRunner().invoke(app, ["plan", str(file), *runs]).stdout
