"""A transport of another distribution: planned, listed, checked, and its wrong options refused as those of our own."""

import json
from pathlib import Path

import pytest

from tests.foreign import distribution, mplab

DRIVER = '''
"""A tunnel over one interface."""

from collections.abc import Iterator
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from mplab.base.findings import Finding
from mplab.drivers.transport import TransportDriver
from mplab.drivers.transport.single_path import SinglePathTcp
from mplab.userfiles.transport import Look


class TunnelOptions(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    cipher: Literal["none", "fast"] = Field("none", description="of the tunnel")


class TunnelDriver(TransportDriver):
    def open(self, options, interfaces, files=None):
        return SinglePathTcp(self.paths[0], interfaces[self.paths[0]])

    def check(self) -> Iterator[Finding]:
        yield Finding(self.name, "warning", "no tunnel device", "modprobe tunnel")


DRIVER = TunnelDriver(
    "my-tunnel", "Tunnel", "#123456", "x", TunnelOptions, variant_option="cipher",
    variants={"fast": Look("Tunnel, encrypted", "#654321", "+")}, paths=("rmnet0",),
)
'''
EXPERIMENT = """\
mplab: 1
name: x
transports: [sptcp-wifi, {my-tunnel: {OPTIONS}}, "my-tunnel:fast"]
links: [baseline]
scenarios: [download]
"""


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    files = {"my_package/__init__.py": "", "my_package/tunnel.py": DRIVER}
    distribution(folder, "my-tunnels", files, {"mplab.transports": {"my-tunnel": "my_package.tunnel:DRIVER"}})
    return folder


def experiment(folder: Path, options: str) -> str:
    path = folder / "x.yaml"
    path.write_text(EXPERIMENT.replace("OPTIONS", options))
    return str(path)


def test_it_is_planned_with_its_facts(foreign: Path, tmp_path: Path) -> None:
    done = mplab(foreign, "plan", experiment(tmp_path, "cipher: none"), "--json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert {cell["transport"] for cell in plan["plan"]["cells"]} == {"sptcp-wifi", "my-tunnel", "my-tunnel-fast"}
    used = {use["label"]: use for use in plan["experiment"]["transports"]}
    assert used["my-tunnel"] == {
        "label": "my-tunnel",
        "name": "my-tunnel",
        "options": {"cipher": "none"},
        "colour": "#123456",
        "marker": "x",
        "title": "Tunnel",
        "paths": ["rmnet0"],
        "sessions": False,
    }
    assert used["my-tunnel-fast"]["title"] == "Tunnel, encrypted"


def test_it_is_listed(foreign: Path) -> None:
    listed = {one["name"]: one for one in json.loads(mplab(foreign, "transports", "--json").stdout)}
    assert listed["my-tunnel"]["options"]["cipher"]["enum"] == ["none", "fast"]
    assert listed["my-tunnel"]["missing"] == ""
    assert {"mpflex", "mptcp", "sptcp", "sptcp-lte", "sptcp-wifi"} < set(listed)


def test_doctor_asks_its_driver(foreign: Path) -> None:
    checks = {one["name"]: one for one in json.loads(mplab(foreign, "doctor", "--json").stdout)["checks"]}
    assert checks["my-tunnel"]["found"] == "no tunnel device"
    assert checks["my-tunnel"]["remedy"] == "modprobe tunnel"
    assert {"mptcp", "mptcp-sockets"} <= set(checks)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("cypher: none", "x.yaml:3: transports[1].my-tunnel: unknown key 'cypher'. Did you mean 'cipher'? Allowed: "),
        ("cipher: slow", "x.yaml:3: transports[1].my-tunnel.cipher: found 'slow'. Allowed: none, fast"),
    ],
)
def test_wrong_options_are_refused_as_those_of_our_own(
    foreign: Path, tmp_path: Path, options: str, message: str
) -> None:
    done = mplab(foreign, "plan", experiment(tmp_path, options))
    assert done.returncode == 2
    assert message in done.stderr


def test_one_that_cannot_be_imported_harms_only_who_names_it(tmp_path: Path) -> None:
    files = {"broken.py": "raise RuntimeError('half installed')\n", "other.py": "DRIVER = 1\n"}
    points = {"mplab.transports": {"my-tunnel": "broken:DRIVER", "number": "other:DRIVER"}}
    distribution(tmp_path / "site", "broken", files, points)
    path = tmp_path / "x.yaml"
    path.write_text(EXPERIMENT.replace(', {my-tunnel: {OPTIONS}}, "my-tunnel:fast"', ""))
    assert mplab(tmp_path / "site", "plan", str(path)).returncode == 0
    doctor = mplab(tmp_path / "site", "doctor", "--json")
    checks = {one["name"]: one for one in json.loads(doctor.stdout)["checks"]}
    assert doctor.returncode == 3
    assert checks["transport my-tunnel"]["level"] == "missing"
    assert "broken (of broken 1.0) cannot be imported: RuntimeError: half" in checks["transport my-tunnel"]["found"]
    assert checks["transport number"]["found"] == "transport number: found int. Register a TransportDriver"
    listed = {one["name"]: one for one in json.loads(mplab(tmp_path / "site", "transports", "--json").stdout)}
    assert "half installed" in listed["my-tunnel"]["missing"]
    done = mplab(tmp_path / "site", "plan", experiment(tmp_path, "cipher: none"))
    assert done.returncode == 3
    assert "transport my-tunnel: broken (of broken 1.0) cannot be imported" in done.stderr
