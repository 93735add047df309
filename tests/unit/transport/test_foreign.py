"""A transport of another distribution: planned, listed, checked; wrong options are refused as for mplab's own."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel
from typer.testing import CliRunner, Result

from mplab.base.errors import InputError, LabNotReadyError
from mplab.base.places import ROOT
from mplab.cli.main import app
from mplab.drivers.transport import DRIVERS, Transport, TransportDriver, names
from mplab.userfiles.experiments.transport import ROUTES
from tests.foreign import Foreign, installed

DRIVER = '''
"""A tunnel over one interface."""

from collections.abc import Iterator
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from mplab.base.findings import Finding
from mplab.drivers.transport import TransportDriver
from mplab.drivers.transport.single_path import SinglePathTcp
from mplab.userfiles.experiments.transport import TransportStyle


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
    variants={"fast": TransportStyle("Tunnel, encrypted", "#654321", "+")}, paths=("rmnet0",),
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
def foreign(tmp_path: Path) -> Iterator[Foreign]:
    with installed(tmp_path / "site") as plugins:
        yield plugins


@pytest.fixture
def tunnel(foreign: Foreign) -> None:
    foreign.add("mplab.transports", "my_tunnel", {"driver": DRIVER})


def mplab(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def experiment(folder: Path, options: str) -> str:
    path = folder / "x.yaml"
    path.write_text(EXPERIMENT.replace("OPTIONS", options))
    return str(path)


@pytest.mark.usefixtures("tunnel")
def test_it_is_planned_with_its_facts(tmp_path: Path) -> None:
    result = mplab("plan", experiment(tmp_path, "cipher: none"), "--json")
    assert result.exit_code == 0, result.exception
    plan = json.loads(result.stdout)
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
        "route": ROUTES["proxy"],
    }
    assert used["my-tunnel-fast"]["title"] == "Tunnel, encrypted"


@pytest.mark.usefixtures("tunnel")
def test_it_is_listed() -> None:
    listed = {transport["name"]: transport for transport in json.loads(mplab("transports", "--json").stdout)}
    assert listed["my-tunnel"]["options"]["cipher"]["enum"] == ["none", "fast"]
    assert listed["my-tunnel"]["missing"] == ""
    assert {"mpflex", "mptcp", "sptcp", "sptcp-lte", "sptcp-wifi"} < set(listed)
    assert {"my-tunnel", "my-tunnel:fast"} <= set(names())


def checks() -> dict[str, dict[str, str]]:
    return {check["name"]: check for check in json.loads(mplab("doctor", "--json").stdout)["checks"]}


@pytest.mark.usefixtures("tunnel")
def test_doctor_asks_its_driver() -> None:
    findings = checks()
    assert findings["my-tunnel"]["found"] == "no tunnel device"
    assert findings["my-tunnel"]["remedy"] == "modprobe tunnel"
    assert {"mptcp", "mptcp-sockets"} <= set(findings)


@pytest.mark.usefixtures("tunnel")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("cypher: none", "x.yaml:3: transports[1].my-tunnel: unknown key 'cypher'. Did you mean 'cipher'? Allowed: "),
        ("cipher: slow", "x.yaml:3: transports[1].my-tunnel.cipher: found 'slow'. Allowed: none, fast"),
    ],
)
def test_wrong_options_are_refused_as_those_of_our_own(tmp_path: Path, options: str, message: str) -> None:
    result = mplab("plan", experiment(tmp_path, options))
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)


def test_one_that_cannot_be_imported_harms_only_who_names_it(foreign: Foreign, tmp_path: Path) -> None:
    foreign.add("mplab.transports", "my_tunnel", {"driver": "raise RuntimeError('half installed')"})
    foreign.add("mplab.transports", "number", {"driver": "DRIVER = 1"})
    path = tmp_path / "own.yaml"
    path.write_text(EXPERIMENT.replace(', {my-tunnel: {OPTIONS}}, "my-tunnel:fast"', ""))
    assert mplab("plan", str(path)).exit_code == 0
    findings = checks()
    assert findings["transport my-tunnel"]["level"] == "missing"
    assert "cannot be imported: RuntimeError: half installed" in findings["transport my-tunnel"]["found"]
    assert findings["transport number"]["found"].endswith(
        "is of type int. Derive its class from mplab.drivers.transport.driver.TransportDriver"
    )
    listed = {transport["name"]: transport for transport in json.loads(mplab("transports", "--json").stdout)}
    assert "half installed" in listed["my-tunnel"]["missing"]
    assert "mpflex:minrtt" in names()
    result = mplab("plan", experiment(tmp_path, "cipher: none"))
    assert isinstance(result.exception, LabNotReadyError)
    assert "(of my_tunnel 1.0) cannot be imported" in str(result.exception)


def test_a_driver_is_registered_by_its_own_name(foreign: Foreign) -> None:
    foreign.add("mplab.transports", "tunnel", {"driver": DRIVER})
    assert "its driver is called my-tunnel. Register it by that name" in checks()["transport tunnel"]["found"]


def test_the_transport_of_the_manual_works(foreign: Foreign, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "add-a-transport.md").read_text()
    (driver,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    foreign.add("mplab.transports", "pinned", {"driver": driver})
    file = tmp_path / "x.yaml"
    file.write_text(EXPERIMENT.replace('{my-tunnel: {OPTIONS}}, "my-tunnel:fast"', "{pinned: {path: lte}}"))
    plan = json.loads(mplab("plan", str(file), "--json").stdout)
    assert {cell["transport"] for cell in plan["plan"]["cells"]} == {"sptcp-wifi", "pinned"}
    options = PinnedOptionsLike(path="lte")
    interfaces = {"wlan0": "192.0.2.1", "rmnet0": "192.0.2.2"}
    assert DRIVERS["pinned"].open(options, interfaces).agent_settings().device == "rmnet0"


class PinnedOptionsLike(BaseModel):
    """Options like those of the manual's transport."""

    path: str


def test_the_manual_names_what_a_driver_has() -> None:
    page = (ROOT / "docs" / "how-to" / "add-a-transport.md").read_text()
    for kind in (TransportDriver, Transport):
        own = [name for name in vars(kind) if not name.startswith("_") and name not in {"chance"}]
        assert [name for name in own if f"`{name}`" not in page] == []
