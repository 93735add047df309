"""Runs every Android scenario on an emulated device, inside a lab's namespaces, with the origin's own services.

Device and origin run in one node, so that no network is between them. ``python -m tests.device.inside_apps FOLDER``
writes ``FOLDER/<scenario>.json``: observations, scores and the error, if there was one.
"""

import contextlib
import dataclasses
import itertools
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from mplab.analysis.record.tables import Tables
from mplab.analysis.scores.plugins import load
from mplab.base.errors import MplabError
from mplab.base.machine import MachineProcess
from mplab.base.nodes import Node, start_node
from mplab.base.places import ROOT
from mplab.base.plugins import SCENARIOS
from mplab.base.programs import APPIUM_DIR, NODE
from mplab.device import Device, DeviceSettings
from mplab.device.apps import lab_services, lab_variables
from mplab.drivers.origin.origin import Origin
from mplab.drivers.phone.adb import AdbPhone, AdbServer, AdbSettings
from mplab.drivers.services import RunningServices, load_service
from mplab.drivers.ui import AppUi
from mplab.drivers.ui.android import AndroidSettings
from mplab.drivers.ui.dialogs import load_dialogs
from mplab.drivers.ui.uiautomator2 import uiautomator2_session
from mplab.format.sites import SiteVariant
from mplab.lab.catalog import load_android_scenario
from mplab.lab.devtools import open_devtools
from mplab.scenarios.base import Context
from mplab.scenarios.base.protocol import Tools
from mplab.userfiles.experiments.app import AndroidApp, load_android_app

SCRATCH = Path("/run/mplab-apps")
CACHE = ROOT / "build" / "services-short"
"""Cache for clips that are shorter than those of a lab, and therefore not in the lab's cache."""
LATE_S = 8.0
"""Time for which no server answers at the start of Dailymotion's clip, s."""
_LINKS = {"wlan0": ("10.64.1.2", "10.64.1.1"), "rmnet0": ("10.64.2.2", "10.64.2.1")}


@dataclass
class Lab:
    """Parts that all cells share."""

    phone: AdbPhone
    services: RunningServices
    origin: Origin
    folder: Path
    numbers: Iterator[int] = field(default_factory=itertools.count)


def make_node(names: Mapping[str, str]) -> Node:
    """Return the phone's node, with two links to a router. The router is the origin too: its addresses are local."""
    hosts = SCRATCH / "hosts"
    hosts.write_text("".join(f"{address} {name}\n" for name, address in {"localhost": "127.0.0.1", **names}.items()))
    phone, router = start_node("phone", binds={hosts: Path("/etc/hosts")}), start_node("router")
    outside = Node("lab", os.getpid())
    outside.ip("link set lo up")
    phone.ip("route add local 10.65.0.0/16 dev lo")
    phone.sysctl({"net.ipv4.ip_nonlocal_bind": 1})
    for interface, (address, gateway) in _LINKS.items():
        outside.ip(f"link add {interface} netns {phone.pid} type veth peer name {interface} netns {router.pid}")
        router.ip(f"addr add {gateway}/24 dev {interface}", f"link set {interface} up")
        phone.ip(f"addr add {address}/24 dev {interface}", f"link set {interface} up")
    return phone


def run(
    lab: Lab, name: str, chosen: str, *, time_limit_s: float = 60.0, by_screen: bool = False, **parameters: Any
) -> dict[str, Any]:
    """Run one cell: prepare, run, clean up, score; `by_screen`: without the app's DevTools."""
    scenario = load_android_scenario(name)
    android_app = load_android_app(SCENARIOS[name].folder(), chosen)
    number = next(lab.numbers)
    cell_dir, scratch_dir = (lab.folder / kind / f"{number:04}-{name}" for kind in ("cells", "scratch"))
    for folder in (cell_dir, scratch_dir):
        folder.mkdir(parents=True)
    observed: list[dict[str, Any]] = []

    def observe(event: str, **fields: Any) -> None:
        observed.append({"t": time.time(), "event": event, **fields})

    def open_app(app: AndroidApp) -> AbstractContextManager[AppUi]:
        settings = AndroidSettings(
            packages=(app.package,),
            fresh=not app.signed_in,
            dialogs=load_dialogs(),
            observe=observe,
            screenshots=cell_dir / "screenshots",
        )
        return uiautomator2_session(lab.phone.adb, settings, lab.phone.name)

    def no_browser(**_options: Any) -> Any:
        raise MplabError("an Android scenario opens no browser on the phone")

    context = Context(
        phone=lab.phone,
        open_ui=no_browser,
        observe=observe,
        rng=Random(1),  # noqa: S311 - repeatable, not secret
        cell_dir=cell_dir,
        scratch_dir=scratch_dir,
        time_limit_s=time_limit_s,
        tools=Tools(NODE.path(), APPIUM_DIR / "node_modules"),
        service=lab.services.facts,
        open_app=open_app,
        open_devtools=lambda app: open_devtools(lab.phone, app.devtools),
        android=dataclasses.replace(android_app, devtools="") if by_screen else android_app,
    )
    validated = scenario.parameters.model_validate(parameters)
    mark = lab.services.mark(scenario.services)
    began, error = time.monotonic(), ""
    try:
        with scenario.open(context, validated) as session:
            try:
                session.run()
            finally:
                mark.keep(cell_dir / "logs")
    except MplabError as failure:
        error = str(failure)
    outcome = {"observed": observed, "error": error, "took_s": time.monotonic() - began, "files": downloads(lab.phone)}
    har = {path.stem: json.loads(path.read_text()) for path in cell_dir.glob("har/*.har")}
    return {**outcome, "har": har, "scores": score(name, observed, cell_dir)}


def score(name: str, observed: list[dict[str, Any]], cell_dir: Path) -> list[dict[str, Any]]:
    """Return the scenario's scores; there are no captures."""
    values = load(name).score(observed, Tables(None), cell_dir)
    return [{"metric": value.metric, "value": value.value, "labels": dict(value.labels)} for value in values]


def downloads(phone: AdbPhone) -> list[str]:
    """Return the names of the phone's downloads."""
    return phone.shell(["ls", "/sdcard/Download"]).stdout.split()


def shorten_clips() -> None:
    """Use clips of 6 s in two qualities, which are made within 2 s."""
    service = load_service("dash")
    content: Any = sys.modules["mplab.services.dash.content"]
    module: Any = sys.modules[type(service).__module__]
    sites = tuple(dataclasses.replace(site, top=360, clips={"clip-1": 6, "clip-2": 6}) for site in content.SITES)
    content.QUALITIES = content.QUALITIES[:2]
    content.SITES = module.SITES = sites


@contextlib.contextmanager
def open_lab(folder: Path) -> Iterator[Lab]:
    """Yield the origin's services and an emulated device that resolves their names."""
    SCRATCH.mkdir()
    shorten_clips()
    with contextlib.ExitStack() as stack:
        wanted = [load_service(name) for name in lab_services()]
        names = {host: address for service in wanted for host, address in service.hosts.items()}
        node = make_node(names)
        services = RunningServices(wanted, directory=SCRATCH / "services", host=node, cache=CACHE)
        origin = Origin(SCRATCH / "origin", additions=services)
        origin.prepare()
        hosts = SCRATCH / "hosts"
        with hosts.open("a") as file:
            for site in origin.index:
                pairs = zip(site.addresses(SiteVariant()), site.host_names(SiteVariant()), strict=True)
                file.writelines(f"{address} {name}\n" for address, name in pairs)
        logs = folder / "logs"
        origin.start(node, logs)
        stack.callback(origin.stop)
        services.start(logs)
        stack.callback(services.stop)
        accounts = services.facts("xmpp")
        contact = ["-m", "tests.device.contact", accounts["url"], accounts["accounts"], str(origin.ca_pem)]
        stack.callback(node.spawn([sys.executable, *contact], log=logs / "contact.log").stop)
        facts = {name: services.facts(name) for name in lab_services()}
        variables = (*lab_variables(facts, cacert=str(origin.ca_pem)), ("radio_ahead", "0.5"), ("music_ahead", "0.5"))
        device = stack.enter_context(Device(DeviceSettings(app_variables=variables), node))
        server = stack.enter_context(AdbServer(SCRATCH / "adb"))
        phone = stack.enter_context(AdbPhone("phone", server, AdbSettings(serial=device.address)))
        yield Lab(phone, services, origin, folder)


@contextlib.contextmanager
def halted(process: MachineProcess, after_s: float = 0.0, for_s: float = 3600.0) -> Iterator[None]:
    """Stop a server from `after_s` for `for_s`: clients receive nothing, as when the network is lost."""
    ended = threading.Event()

    def halt() -> None:
        if ended.wait(after_s):
            return
        os.killpg(process.pid, signal.SIGSTOP)
        ended.wait(for_s)
        os.killpg(process.pid, signal.SIGCONT)

    thread = threading.Thread(target=halt)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def cells(lab: Lab) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the cells in running order, as functions by name."""

    def server(service: str, program: str) -> MachineProcess:
        return lab.services._entries[service].running[program][0]

    def cancelled() -> dict[str, Any]:
        with halted(server("upload", "upload")):
            return run(lab, "drive", "drive", time_limit_s=13, size="3 MB", files=1, think="100 ms", limit="15 s")

    def late() -> dict[str, Any]:
        with halted(lab.origin._running["nginx"][0], for_s=LATE_S):
            return run(lab, "dailymotion", "dailymotion", clips=("clip-1",), watch="3 s", pause="500 ms")

    def interrupted() -> dict[str, Any]:
        with halted(server("icecast", "icecast"), after_s=3.0, for_s=7.0):
            return run(lab, "radio", "tunein", listen="11 s")

    def refused() -> dict[str, Any]:
        return run(lab, "youtube", "youtube", clips=("long",), watch="3 s", pause="100 ms")

    return {
        "dropbox": lambda: run(lab, "dropbox", "dropbox", size="2 MB", files=2, think="100 ms"),
        "drive": cancelled,
        "youtube": lambda: run(lab, "youtube", "youtube", clips=("clip-1", "clip-2"), watch="4 s", pause="100 ms"),
        "youtube-refused": refused,
        "dailymotion": late,
        "radio": interrupted,
        "spotify": lambda: run(lab, "spotify", "spotify", listen="5 s"),
        "firefox": lambda: run(lab, "firefox", "firefox", sites=("search",), think="100 ms"),
        "web": lambda: run(lab, "web", "chrome", sites=("search", "wiki"), loads=2, settle="100 ms"),
        "web-seen": lambda: run(lab, "web", "chrome", by_screen=True, sites=("search", "wiki"), settle="100 ms"),
        "facebook": lambda: run(lab, "facebook", "facebook", rounds=1, think="100 ms"),
        "messenger": lambda: run(lab, "messenger", "messenger", rounds=1, pause="100 ms", periodic=2, period="1 s"),
        "whatsapp": lambda: run(lab, "messenger", "whatsapp", rounds=1, pause="100 ms", periodic=0),
        "signal": lambda: run(lab, "messenger", "signal", rounds=0, pause="100 ms", periodic=1),
        "call": lambda: run(lab, "call", "linphone", duration="10 s", calls=1),
    }


def main() -> None:
    """Run all cells, or the named ones."""
    folder, *wanted = sys.argv[1:]
    with open_lab(Path(folder)) as lab:
        for name, cell in cells(lab).items():
            if not wanted or name in wanted:
                (Path(folder) / f"{name}.json").write_text(json.dumps(cell(), indent=1))


if __name__ == "__main__":
    main()
