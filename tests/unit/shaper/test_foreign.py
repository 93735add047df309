"""A shaper kind in a separate package: lab files use it, doctor checks it, runs lock it, and a command holds it."""

import json
import re
import subprocess
import sys
from dataclasses import dataclass

import pytest

from mplab.base.places import ROOT
from mplab.userfiles.labs.machines import kinds_of
from tests.foreign import installed

pytestmark = pytest.mark.long

BOX = '''
"""A kind of router that keeps its conditions in a file."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from pydantic import Field

from mplab.base.errors import LabNotReadyError
from mplab.base.findings import Finding
from mplab.drivers.shaper.driver import MachineDriver
from mplab.format.abilities import Abilities
from mplab.userfiles.labs.machine_fields import MachineFile


class BoxFile(MachineFile):
    """One box."""

    driver: Literal["box"] = Field(description="A box.")
    file: str = Field(description="Where it keeps its conditions.")

    @property
    def shaped_interface(self):
        return "port-1"


class State:
    owner = "nobody"

    def to_json(self):
        return {"owner": self.owner}

    def __str__(self):
        return f"held by {self.owner}"


class HeldBox:
    method, warnings = "cogs", ["it is only a box"]

    def __init__(self, name, file):
        self.name, self._file, self._paths = name, file, {}
        self.shaping = self.hold = self

    def shape(self, key, selector, *, up, down, seed=None):
        self._paths[key] = {"of": str(selector), "up": {"rate": up.rate_kbps}, "down": {"rate": down.rate_kbps}}
        self._file.write_text(json.dumps(self._paths))

    def unshape(self, key):
        self._paths.pop(key, None)

    def state(self):
        return self._paths

    def counters(self):
        return {}

    def check_alive(self):
        pass

    def renew(self):
        pass


class Box(MachineDriver):
    name, title, section, settings, method = "box", "a box", "routers", BoxFile, "cogs"
    abilities = Abilities("a box", disciplines=("drop-tail",), traces=False, rate_kbps=8000.0)

    def where(self, machine):
        return f"box {machine.settings.file}"

    @contextmanager
    def hold(self, machine, owner):
        file = Path(machine.settings.file)
        with owner.lock(self.where(machine)):
            owner.undo.register(f"{machine.label}: as it was found", lambda: file.write_text("open"))
            yield HeldBox(machine.label, file)

    def uses(self, machine):
        return f"writes {machine.settings.file}"

    def restore(self, label, settings, token):
        if token == "nobody":
            raise LabNotReadyError(f"{label}: not given back")
        Path(settings.file).write_text(f"given back by {token}")

    def give_back(self, machine):
        Path(machine.settings.file).write_text("open")

    def show(self, machine):
        return State()

    def check(self, machine, lab_file):
        yield Finding(machine.label, "ok", f"{self.where(machine)} shapes {', '.join(machine.interfaces)}")


DRIVER = Box()
'''
LAB = """
mplab: 1
name: foreign
routers:
  wifi: {driver: box, file: FILE}
  vyos: {driver: vyos, host: 127.0.0.1, port: 1, user: vyos, interface: eth1}
phones:
  one: {wifi: {router: wifi, ip: 10.0.0.2}}
  pixel: {driver: adb, serial: NOT-A-PHONE, wifi: {router: wifi, ip: 10.0.0.3}}
proxy: {engine: "unix:///nowhere/docker.sock", project: unit-test, listen: [203.0.113.5]}
"""
LINK = """
wifi: {down: RATE, up: 1 Mbit/s, rtt: 20 ms}
lte: {down: unlimited, up: unlimited, rtt: 0 ms}
"""
EXPERIMENT = """
mplab: 1
name: one
transports: [sptcp-wifi]
links: [{name: mine, wifi: {down: 5 Mbit/s, up: 1 Mbit/s, rtt: 20 ms},
         lte: {down: unlimited, up: unlimited, rtt: 0 ms}}]
scenarios: [download: {sizes: [1 kB]}]
"""


CHILD = """
import json, sys
from pathlib import Path
from typer.testing import CliRunner
from mplab.cli.main import app
from mplab.drivers.shaper import restore

done = {}
for name, argv in json.load(sys.stdin).items():
    if argv[0] == "restore":
        done[name] = {"code": restore.main(argv[1:]), "output": "", "error": ""}
    else:
        result = CliRunner().invoke(app, argv)
        error = f"{result.stderr} {result.exception or ''}"
        done[name] = {"code": result.exit_code, "output": result.stdout, "error": " ".join(error.split())}
    done[name]["box"] = Path("box.json").read_text() if Path("box.json").exists() else ""
print(json.dumps(done))
"""


def example() -> str:
    """Return the package that the manual shows."""
    page = (ROOT / "docs" / "how-to" / "add-a-kind-of-router.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    return str(code)


@dataclass(frozen=True)
class Done:
    """Result of one command, and the content of the box's file after it."""

    code: int
    output: str
    error: str
    box: str


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Done]:
    """Run all commands in one process with the packages installed, because its start takes longest."""
    folder = tmp_path_factory.mktemp("foreign")
    box = folder / "box.json"
    lab = LAB.replace("FILE", str(box))
    for name, text in {
        "lab": lab,
        "unknown": lab.replace("driver: box", "driver: bxo"),
        "broken": lab.replace("driver: box", "driver: broken"),
        "one": EXPERIMENT,
        "fast": EXPERIMENT.replace("5 Mbit/s", "9 Mbit/s"),
        "mine": LINK.replace("RATE", "5 Mbit/s"),
    }.items():
        (folder / f"{name}.yaml").write_text(text)
    restore = ["restore", "router wifi", "box", json.dumps({"driver": "box", "file": str(box)})]
    on_pixel = ["--lab", "lab.yaml", "--phone", "pixel"]
    commands = {
        "doctor": ["doctor", "--lab", "lab.yaml", "--json"],
        "plan": ["plan", "one.yaml", *on_pixel, "--json"],
        "fast plan": ["plan", "fast.yaml", *on_pixel],
        "shape": ["router", "shape", "lab.yaml", "one", "--link", "./mine.yaml", "--seconds", "0.1", "--json"],
        "show": ["router", "show", "lab.yaml", "--router", "wifi"],
        "install": ["router", "install", "lab.yaml", "--router", "wifi"],
        "restore": [*restore, "run@host:1:2"],
        "failed restore": [*restore, "nobody"],
        "unknown": ["doctor", "--lab", "unknown.yaml"],
        "broken": ["doctor", "--lab", "broken.yaml"],
    }
    with installed(folder / "packages") as foreign, pytest.MonkeyPatch.context() as patch:
        foreign.add("mplab.shapers", "box", {"driver": BOX})
        foreign.add("mplab.shapers", "vyos", {"driver": example()})
        foreign.add("mplab.shapers", "broken", {"driver": "import no_such_module\n"})
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        child = subprocess.run(
            [sys.executable, "-c", CHILD],
            input=json.dumps(commands),
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
        )
    assert child.returncode == 0, child.stderr
    return {name: Done(**fields) for name, fields in json.loads(child.stdout.splitlines()[-1]).items()}


def test_doctor_asks_it(done: dict[str, Done]) -> None:
    router = {check["name"]: check for check in json.loads(done["doctor"].output)["checks"]}["router wifi"]
    assert router["level"] == "ok"
    assert router["found"].endswith("box.json shapes port-1")


def test_the_example_of_the_manual_is_a_kind_of_router(done: dict[str, Done]) -> None:
    router = {check["name"]: check for check in json.loads(done["doctor"].output)["checks"]}["router vyos"]
    assert router["found"].startswith("router vyos (vyos@127.0.0.1:1): unreachable")


def test_a_plan_names_it_and_what_it_locks(done: dict[str, Done]) -> None:
    planned = json.loads(done["plan"].output)
    assert planned["lab"]["paths"] == {"wlan0": "router wifi (cogs)", "rmnet0": "not shaped"}
    assert any(name.startswith("shaping ") for name in planned["resources"])


def test_what_it_cannot_give_is_refused_before_anything_is_touched(done: dict[str, Done]) -> None:
    assert "rate 9 Mbit/s: router wifi (cogs) can give 1 kbit/s to 8 Mbit/s" in done["fast plan"].error


def test_it_is_held_and_shaped_by_hand(done: dict[str, Done]) -> None:
    shaped = done["shape"]
    assert shaped.code == 0, shaped.error
    state = json.loads(shaped.output)["wlan0"]
    assert state == {"where": "router wifi", "of": "10.0.0.2 at port-1", "up": {"rate": 1000}, "down": {"rate": 5000}}
    assert "it is only a box" in shaped.error
    assert shaped.box == "open", "it was given back"
    assert "router wifi: held by nobody" in done["show"].output
    assert "nothing needs to be installed" in done["install"].output


def test_what_a_dead_run_held_is_given_back(done: dict[str, Done]) -> None:
    assert (done["restore"].code, done["restore"].box) == (0, "given back by run@host:1:2")
    assert done["failed restore"].code == 3


def test_a_driver_that_is_not_there_is_named_with_those_that_are(done: dict[str, Done]) -> None:
    allowed = ", ".join(sorted({"box", "vyos", *kinds_of("routers")}))
    message = f"unknown driver 'bxo'. Did you mean 'box'? Allowed: {allowed}"
    assert f"unknown.yaml:5: routers.wifi.driver: {message}" in done["unknown"].error


def test_a_package_that_cannot_be_imported_stops_only_who_names_it(done: dict[str, Done]) -> None:
    error = done["broken"].error
    assert "broken.yaml:5: routers.wifi.driver: shaper broken: " in error
    assert "(of broken 1.0) cannot be imported: ModuleNotFoundError: No module named 'no_such_module'" in error
