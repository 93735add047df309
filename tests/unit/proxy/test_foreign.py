"""A kind of proxy of another distribution: named in a lab file, locked, checked, and refused as those of our own."""

import json
from pathlib import Path

import pytest

from tests.foreign import distribution, mplab

DRIVER = '''
"""A proxy that somebody else runs."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from mplab.base.findings import Finding
from mplab.drivers.proxy import ProxyDriver
from mplab.userfiles.proxyfile import ProxyFile


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
EXPERIMENT = "mplab: 1\nname: x\ntransports: [sptcp-wifi]\nlinks: [baseline]\nscenarios: [download]\n"


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    distribution(
        folder, "rented", {"rented.py": DRIVER}, {"mplab.proxies": {"rented": "rented:DRIVER", "gone": "no_such:X"}}
    )
    (tmp_path / "x.yaml").write_text(EXPERIMENT)
    return folder


def lab(folder: Path, proxy: str) -> str:
    path = folder / "lab.yaml"
    path.write_text(f"mplab: 1\nname: bench\nphones: {{one: {{driver: virtual}}}}\nproxy: {proxy}\n")
    return str(path)


def test_a_lab_file_names_it_and_a_plan_its_locks(foreign: Path, tmp_path: Path) -> None:
    file = lab(tmp_path, "{driver: rented, region: north, listen: [192.0.2.1]}")
    done = mplab(foreign, "plan", str(tmp_path / "x.yaml"), "--lab", file, "--json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert plan["resources"] == ["rented in north", "virtual-lab"]
    content = plan["lab"]["file"]["proxy"]
    assert content == {"driver": "rented", "listen": ["192.0.2.1"], "region": "north"}


def test_doctor_asks_its_driver(foreign: Path, tmp_path: Path) -> None:
    file = lab(tmp_path, "{driver: rented, region: north}")
    done = mplab(foreign, "doctor", "--lab", file, "--json")
    checks = {one["name"]: one for one in json.loads(done.stdout)["checks"]}
    assert checks["proxy: region"]["found"] == "no servers in north"
    assert checks["proxy: region"]["remedy"] == f"see {file}"
    assert done.returncode == 3


@pytest.mark.parametrize(
    ("proxy", "message"),
    [
        ("{driver: rented}", "lab.yaml:4: proxy: key 'region' is missing"),
        (
            "{driver: rented, region: north, port: 1}",
            "proxy: unknown key 'port'. Allowed: driver, internet, listen, region",
        ),
        ("{driver: rentd, region: north}", "unknown driver 'rentd'. Did you mean 'rented'? Allowed: docker, rented"),
        ("{driver: gone}", "proxy gone: no_such (of rented 1.0) cannot be imported"),
        ("{driver: process}", "unknown driver 'process'. Allowed: docker, rented"),
        ("{engin: unix}", "proxy: unknown key 'engin'. Did you mean 'engine'?"),
        ("{driver: docker, listen: [x]}", "proxy.listen[0]: address 'x': an IPv4 address is needed"),
    ],
)
def test_wrong_settings_are_refused_as_those_of_our_own(
    foreign: Path, tmp_path: Path, proxy: str, message: str
) -> None:
    done = mplab(foreign, "plan", str(tmp_path / "x.yaml"), "--lab", lab(tmp_path, proxy))
    assert message in done.stderr
    assert done.returncode in {2, 3}


def test_the_verbs_of_containers_are_for_containers(foreign: Path, tmp_path: Path) -> None:
    done = mplab(foreign, "proxy", "status", "--lab", lab(tmp_path, "{driver: rented, region: north}"))
    assert done.returncode == 2
    assert "driver: docker" in done.stderr
