"""A proxy kind of another distribution: named in a lab file, locked, checked and refused like mplab's own kinds."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mplab.base.places import ROOT
from mplab.userfiles.labs.proxyfile import models
from tests.foreign import installed

pytestmark = pytest.mark.long

DRIVER = '''
"""A proxy that somebody else runs."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from mplab.base.findings import Finding
from mplab.drivers.proxy import ProxyDriver
from mplab.userfiles.labs.proxyfile import ProxyFile


class RentedFile(ProxyFile):
    """A rented proxy."""

    driver: Literal["rented"] = Field(description="A rented proxy.")
    region: str = Field(description="Where it is.")


class RentedDriver(ProxyDriver[RentedFile]):
    name = "rented"
    settings = RentedFile

    def open(self, settings, lab):
        raise NotImplementedError

    def resources(self, settings: RentedFile) -> Iterator[str]:
        yield f"rented in {settings.region}"

    def check(self, settings: RentedFile, lab_file: str) -> Iterator[Finding]:
        yield Finding("proxy: region", "missing", f"no servers in {settings.region}", f"see {lab_file}")


DRIVER = RentedDriver()
'''
ALLOWED = ", ".join(sorted({"rented", *models()}))
BY_HAND = '''
"""A proxy that `mplab proxy` controls."""

import contextlib
from pathlib import Path
from typing import Literal

from pydantic import Field

from mplab.drivers.proxy import ProxyDriver
from mplab.drivers.proxy.byhand import Check, ServiceState
from mplab.userfiles.labs.proxyfile import ProxyFile


class SharedFile(ProxyFile):
    driver: Literal["shared"] = Field(description="A shared proxy.")
    room: str = Field(description="Where it stands.")


class Shared:
    def __init__(self, settings, chosen, say):
        self.settings, self.chosen, self.say = settings, chosen, say

    def exclusive(self):
        return contextlib.nullcontext()

    def prepare(self, *, renew):
        return Path(f"/shared/{self.settings.room}")

    def up(self, *, renew, build):
        self.say(f"starting {self.chosen.engine} {','.join(self.chosen.parts)}")
        return self.status()

    def status(self):
        return [ServiceState("door", "1", "running", "", "", 0, False, ())]

    def logs(self, service, *, lines):
        yield "door", f"{lines} lines"

    def examine(self):
        return [Check("door", False, "locked")]


class SharedDriver(ProxyDriver[SharedFile]):
    name = "shared"
    settings = SharedFile
    parts = ("door", "window")

    def open(self, settings, lab):
        raise NotImplementedError

    def by_hand(self, settings, chosen, *, say, detail=None):
        return Shared(settings, chosen, say)


DRIVER = SharedDriver()
'''
EXPERIMENT = "mplab: 1\nname: x\ntransports: [sptcp-wifi]\nlinks: [baseline]\nscenarios: [download]\n"


@pytest.fixture(autouse=True)
def foreign(tmp_path: Path) -> Iterator[None]:
    with installed(tmp_path / "site") as plugins:
        plugins.add("mplab.proxies", "rented", {"driver": DRIVER})
        plugins.register("mplab.proxies", "gone", "no_such:X")
        (tmp_path / "x.yaml").write_text(EXPERIMENT)
        yield


def mplab(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run mplab in a separate process, since a process looks up the kinds of proxy only once."""
    command = [sys.executable, "-m", "mplab", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def lab(folder: Path, proxy: str) -> str:
    path = folder / "lab.yaml"
    path.write_text(f"mplab: 1\nname: bench\nphones: {{one: {{driver: virtual}}}}\nproxy: {proxy}\n")
    return str(path)


def test_a_lab_file_names_it_and_a_plan_its_locks(tmp_path: Path) -> None:
    file = lab(tmp_path, "{driver: rented, region: north, listen: [192.0.2.1]}")
    result = mplab("plan", str(tmp_path / "x.yaml"), "--lab", file, "--json")
    assert result.returncode == 0, result.stderr
    plan = json.loads(result.stdout)
    assert plan["resources"] == ["rented in north", "virtual-lab"]
    content = plan["lab"]["file"]["proxy"]
    assert content == {"driver": "rented", "listen": ["192.0.2.1"], "region": "north"}


def test_doctor_asks_its_driver(tmp_path: Path) -> None:
    file = lab(tmp_path, "{driver: rented, region: north}")
    result = mplab("doctor", "--lab", file, "--json")
    checks = {check["name"]: check for check in json.loads(result.stdout)["checks"]}
    assert checks["proxy: region"]["found"] == "no servers in north"
    assert checks["proxy: region"]["remedy"] == f"see {file}"
    assert result.returncode == 3


@pytest.mark.parametrize(
    ("proxy", "message"),
    [
        ("{driver: rented}", "lab.yaml:4: proxy: key 'region' is missing"),
        (
            "{driver: rented, region: north, port: 1}",
            "proxy: unknown key 'port'. Allowed: driver, internet, listen, region",
        ),
        ("{driver: rentd, region: north}", f"unknown driver 'rentd'. Did you mean 'rented'? Allowed: {ALLOWED}"),
        ("{driver: gone}", "proxy gone: no_such (of gone 1.0) cannot be imported"),
        ("{driver: process}", f"unknown driver 'process'. Allowed: {ALLOWED}"),
        ("{engin: unix}", "proxy: unknown key 'engin'. Did you mean 'engine'?"),
        ("{driver: docker, listen: [x]}", "proxy.listen[0]: address 'x': an IPv4 address is needed"),
    ],
)
def test_wrong_settings_are_refused_as_those_of_our_own(tmp_path: Path, proxy: str, message: str) -> None:
    result = mplab("plan", str(tmp_path / "x.yaml"), "--lab", lab(tmp_path, proxy))
    assert message in result.stderr
    assert result.returncode in {2, 3}


def test_the_verbs_of_a_proxy_ask_its_driver(tmp_path: Path) -> None:
    with installed(tmp_path / "more") as plugins:
        plugins.add("mplab.proxies", "shared", {"driver": BY_HAND})
        file = lab(tmp_path, "{driver: shared, room: attic}")
        up = mplab("proxy", "up", "--lab", file, "--engine", "upstairs", "--profile", "window", "--json")
        assert (up.returncode, up.stderr.strip()) == (0, "starting upstairs window")
        assert json.loads(up.stdout)[0]["service"] == "door"
        assert "/shared/attic" in mplab("proxy", "prepare", "--lab", file).stdout
        assert mplab("proxy", "logs", "--lab", file).stdout == "door | 100 lines\n"
        assert "door: locked" in mplab("proxy", "doctor", "--lab", file).stderr
        wrong = mplab("proxy", "up", "--lab", file, "--profile", "origin")
        assert "unknown profile 'origin'. Allowed: door, window" in wrong.stderr


def test_the_verbs_of_containers_are_for_containers(tmp_path: Path) -> None:
    result = mplab("proxy", "status", "--lab", lab(tmp_path, "{driver: rented, region: north}"))
    assert result.returncode == 2
    assert "driver: docker" in result.stderr
