"""Shaping of the cellular path: the stand-in router acts as the proxy's server, then as a phone that shapes itself."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mplab.base.errors import LabNotReadyError
from mplab.base.nodes import Node
from mplab.base.undo import UndoJournal, UndoStack
from mplab.cli.main import app
from mplab.drivers.shaper.attached import AttachedShaper
from mplab.drivers.shaper.linux.driver import DRIVER as LINUX
from mplab.drivers.shaper.linux.driver import ServerFile
from mplab.drivers.shaper.openwrt.router import Router
from mplab.drivers.shaper.owner import Owner
from mplab.drivers.shaper.restore import restore_argv
from mplab.drivers.shaper.root_shell.driver import DRIVER as ROOT_SHELL
from mplab.drivers.shaper.root_shell.driver import PhoneShellFile
from mplab.drivers.shaper.tc.machine import LinuxHost, RootedPhone, TcMachine
from mplab.drivers.shaper.tc.ssh import SshConnection
from mplab.format.path import PathCondition
from tests.router.bench import Bench
from tests.router.conditions import Case
from tests.router.conftest import found_on, settings_of, shaper_of
from tests.router.inside import SERVER
from tests.router.measure import Found, Slot, measure
from tests.router.stand_in import StandInRouter
from tests.router.test_router import rtt_ms, wait_until_given_back

LTE = PathCondition.of(9185, 4000, 70, loss_percent=1.0)
WIFI = PathCondition.of(7040, 2000, 25)


def server_held(settings: ServerFile, *, owner: Owner, interfaces: Sequence[str] = ()) -> LinuxHost:
    return LinuxHost(
        "server proxy",
        LINUX.shell("server proxy", settings),
        interface=settings.interface,
        interfaces=interfaces,
        dead_man_s=settings.dead_man,
        restore_command=restore_argv("server proxy", LINUX.name, settings),
        owner=owner,
    )


def phone_held(settings: PhoneShellFile, *, owner: Owner, interfaces: Sequence[str]) -> RootedPhone:
    return RootedPhone(
        "phone one",
        ROOT_SHELL.shell("phone one", settings),
        interfaces=interfaces,
        dead_man_s=settings.dead_man,
        restore_command=restore_argv("phone one", ROOT_SHELL.name, settings),
        owner=owner,
    )


def server_of(router: StandInRouter, **others: object) -> ServerFile:
    """Return the stand-in router's entry as a server."""
    ssh = settings_of(router).model_dump(include={"host", "port", "key", "host_key"})
    return ServerFile.model_validate({**ssh, "interface": "vec0", **others})


def phone_of(router: StandInRouter, known_hosts: Path, **others: object) -> PhoneShellFile:
    """Return the stand-in router's entry as a phone; a command line opens its shell, as `adb` would."""
    known_hosts.write_text(f"[127.0.0.1]:{router.port} {router.host_key}\n")
    options = ["-o", f"UserKnownHostsFile={known_hosts}", "-o", "BatchMode=yes"]
    command = ["ssh", "-p", str(router.port), "-i", str(router.key), *options, "root@127.0.0.1"]
    return PhoneShellFile.model_validate({"command": command, **others})


def lab_text(router: StandInRouter, kind: str, folder: Path, dead_man: str) -> str:
    """Return the text of a lab file whose cellular path is shaped at the server or on the phone."""
    server = server_of(router, dead_man=dead_man)
    shell = phone_of(router, folder / "known_hosts", dead_man=dead_man)
    lte = "{server: proxy, ip: 10.66.3.11}" if kind == "server" else "{at: phone, interface: vec2}"
    fields = {"host", "port", "key", "host_key", "interface"}
    return "\n".join(
        [
            *("mplab: 1", "name: cellular", "servers:"),
            f"  proxy: {json.dumps({**server.model_dump(include=fields), 'dead_man': dead_man, 'interface': 'vec2'})}",
            "phones:",
            "  one:",
            f"    root_shell: {json.dumps({'command': shell.command, 'dead_man': dead_man})}",
            f"    lte: {lte}",
            "",
        ]
    )


Hold = Callable[..., AbstractContextManager[LinuxHost]]


@pytest.fixture
def hold(router: StandInRouter) -> Hold:
    @contextmanager
    def held(*, interfaces: tuple[str, ...] = (), **others: object) -> Iterator[LinuxHost]:
        with (
            UndoStack() as undo,
            server_held(server_of(router, **others), owner=Owner(undo), interfaces=interfaces) as running,
        ):
            yield running

    return held


@pytest.fixture
def busy(router: StandInRouter, ssh: SshConnection) -> Iterator[None]:
    """A server with its own qdiscs and filters: fq at the root, and a clsact with a foreign filter."""
    ssh.script(
        "/sbin/tc qdisc add dev vec0 root handle 8001: fq limit 5000 quantum 4000 && "
        "/sbin/tc qdisc add dev vec0 clsact && "
        "/sbin/tc filter add dev vec0 egress protocol ip prio 3 u32 match ip dst 10.66.1.99/32 flowid 1:1"
    )
    try:
        yield
    finally:
        ssh.script("/sbin/tc qdisc del dev vec0 clsact; /sbin/tc qdisc del dev vec0 root")


def measured(
    router: StandInRouter, place: TcMachine, attached: dict[str, object], asked: dict[str, PathCondition]
) -> AttachedShaper:
    """Apply conditions to a phone, assert that it meets them, and return the shaper."""
    phone: Node = router.node("phone")

    def probe(paths: Mapping[str, PathCondition]) -> dict[str, Found]:
        measurements = measure({Slot(phone, interface): path for interface, path in paths.items()}, SERVER)
        return {slot.interface: measurement for slot, measurement in measurements.items()}

    shaper = shaper_of("one", attached, {"proxy": place, "one": place}, probe)

    def shape(cases: Mapping[Slot, Case]) -> None:
        shaper.apply({slot.interface: case.path for slot, case in cases.items()}, seed=1)

    cases = {Slot(phone, name): Case(name, path, changed=False) for name, path in asked.items()}
    bench = Bench(list(cases), SERVER, shape, cases=list(cases.values()))
    bench.judge(cases)
    for case in cases.values():
        bench.outcome(case).check()
    assert shaper.probe(asked).keys() == asked.keys()
    return shaper


def test_a_server_gives_each_path_its_condition_and_its_other_qdiscs_stay(
    router: StandInRouter, hold: Hold, busy: None
) -> None:
    before = found_on(router)
    assert any("fq 8001: dev vec0 root" in line and "quantum 4000" in line for line in before)
    places = {"lte": {"server": "proxy", "interface": "vec2"}, "wifi": {"server": "proxy", "ip": "10.66.1.11"}}
    with hold(interfaces=("vec0", "vec2")) as held:
        assert held.found.shared == {"vec0"}
        shaper = measured(router, held, {**places}, {"rmnet0": LTE, "wlan0": WIFI})
        assert shaper.where("rmnet0") == "server proxy (tc)"
        assert shaper.state()["wlan0"]["of"] == "10.66.1.11 at vec0"
        assert rtt_ms(router, "phone2") < 15
        during = found_on(router)
        assert {line for line in before if "qdisc" in line} <= set(during)
        shaper.clear()
        assert rtt_ms(router) < 15
        shaper.apply({"wlan0": WIFI}, seed=1)
    assert found_on(router) == before


def test_a_machine_that_is_router_server_and_phone_is_held_once(
    router: StandInRouter, hold: Hold, tmp_path: Path
) -> None:
    before = found_on(router)
    phone = phone_of(router, tmp_path / "known_hosts")
    with UndoStack() as undo, Router("wifi", settings_of(router), owner=Owner(undo, "first")) as held:
        shaper_of("one", {"wifi": {"router": "wifi"}}, {"wifi": held}).apply({"wlan0": WIFI}, seed=1)
        during, state = found_on(router), held.shaping.state()
        with pytest.raises(LabNotReadyError, match="server proxy: held by this run already, as router wifi: one mach"):
            server_held(server_of(router, host="localhost"), owner=Owner(undo, "first")).__enter__()
        with pytest.raises(LabNotReadyError, match=r"phone one: held by first@.*, as router wifi: wait for it, or run"):
            phone_held(phone, owner=Owner(undo, "second"), interfaces=("vec2",)).__enter__()
        assert found_on(router) == during
        assert held.shaping.state() == state
    assert found_on(router) == before
    with hold():
        pass


def test_what_puts_packets_together_is_switched_off_meanwhile(
    router: StandInRouter, hold: Hold, ssh: SshConnection
) -> None:
    before = ssh.script("ethtool -k vec0").stdout
    assert "generic-receive-offload: on" in before
    with hold():
        during = ssh.script("ethtool -k vec0").stdout
        assert "generic-receive-offload: off" in during
    assert ssh.script("ethtool -k vec0").stdout == before


def test_a_phone_shapes_itself_through_a_command_line(router: StandInRouter, tmp_path: Path) -> None:
    settings = phone_of(router, tmp_path / "known_hosts")
    before = found_on(router)
    with (
        UndoStack() as undo,
        # On the server's side, the router sends the packets of the phones.
        phone_held(settings, owner=Owner(undo), interfaces=("vec1",)) as held,
    ):
        attached = {"lte": {"at": "phone", "interface": "vec1"}}
        shaper = measured(router, held, {**attached}, {"rmnet0": LTE})
        assert shaper.where("rmnet0") == "phone one (tc)"
        counters = shaper.counters()
        assert counters["rmnet0.down.bytes_out"] > counters["rmnet0.up.bytes_out"]
    assert found_on(router) == before


@pytest.mark.parametrize(("kind", "who"), [("server", "next run"), ("phone", "place")])
def test_a_killed_host(
    router: StandInRouter, kind: str, who: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    before = found_on(router)
    dead_man = "10 s" if who == "place" else "600 s"  # a busy host must not trip it
    lab = tmp_path / "lab.yaml"
    lab.write_text(lab_text(router, kind, tmp_path, dead_man))
    argv = [sys.executable, "-m", "mplab", "router", "shape", str(lab), "one"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        assert "rmnet0" in host.stdout.readline()
        assert found_on(router) != before
        host.send_signal(signal.SIGKILL)
    if who == "place":
        wait_until_given_back(router, before)
        return
    recovered = UndoJournal.recover(tmp_path / "mplab" / "undo")
    name = "server proxy" if kind == "server" else "phone one"
    assert [(item.name, item.failure) for item in recovered] == [(f"{name}: as it was found", "")]
    assert found_on(router) == before


def test_what_mplab_says_about_a_lab(router: StandInRouter, tmp_path: Path) -> None:
    lab = tmp_path / "lab.yaml"
    lab.write_text(lab_text(router, "server", tmp_path, "15 s"))
    shaped = CliRunner().invoke(app, ["router", "shape", str(lab), "one", "--seconds", "0.2", "--json"])
    state = json.loads(shaped.stdout)["rmnet0"]
    assert (state["where"], state["of"]) == ("server proxy", "10.66.3.11 at vec2")
    shown = json.loads(CliRunner().invoke(app, ["router", "show", str(lab), "--json"]).stdout)
    assert shown == {name: {"owner": "", "silent_s": 0} for name in ("one", "proxy")}
    assert "nothing needs to be installed" in CliRunner().invoke(app, ["router", "install", str(lab)]).stdout
    doctor = json.loads(CliRunner().invoke(app, ["doctor", "--lab", str(lab), "--json"]).stdout)
    assert {"server proxy", "server proxy: shaping", "phone one: shaping"} <= {
        item["name"] for item in doctor["checks"]
    }
    assert doctor["ready"], doctor
