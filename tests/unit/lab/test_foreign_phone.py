"""A phone kind of another distribution: a lab file uses it, `mplab doctor` checks it, `mplab plan` resolves it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mplab.base.errors import InputError
from mplab.base.places import ROOT
from mplab.base.plugins import PHONES
from mplab.cli.main import app
from mplab.lab.base import BaseLab
from mplab.lab.catalog import catalog
from mplab.lab.driver import LabSettings, PhoneDriver, phone_driver
from mplab.userfiles.experiments.resolve import load_experiment
from mplab.userfiles.labs.labuse import use_lab
from mplab.userfiles.labs.phone import PhoneKind
from tests.foreign import Foreign, installed

DRIVER = '''
from pydantic import Field

from mplab.base.findings import Finding
from mplab.lab.base import BaseLab
from mplab.lab.driver import PhoneDriver
from mplab.userfiles.labs.lab import PhoneFile


class BenchPhoneFile(PhoneFile):
    """A phone on a bench."""

    slot: int = Field(ge=1, le=8, description="Where it lies.")


class BenchPhones(PhoneDriver):
    name = "bench"
    title = "a phone on a bench"
    settings = BenchPhoneFile
    real = True

    def open_lab(self, settings):
        return BaseLab(settings)

    def check(self, lab, name, lab_file):
        yield Finding(f"phone {name}", "ok", f"lies in slot {lab.phones[name].slot}")

    def check_use(self, lab, name, checker):
        if lab.phones[name].slot == 8:
            checker.add(("phones", name, "slot"), "slot 8 is broken")

    def refusals(self, link, name, settings, shaped):
        if "lte" not in shaped:
            yield f"{name} has no LTE"

    def resources(self, name, settings):
        yield f"slot {settings.slot}"


DRIVER = BenchPhones()
'''
LAB = """\
mplab: 1
name: mine
servers: {near: {interface: eth0}}
phones:
  one: {driver: bench, slot: 3, wifi: {server: near, ip: 10.0.0.2}, lte: {server: near, ip: 10.0.0.3}}
"""
ALLOWED = ", ".join(sorted({"bench", *PHONES}))
EXPERIMENT = """\
mplab: 1
name: tiny
transports: [sptcp-wifi]
links: [{name: moving, wifi: {down: 10 Mbit/s, up: 10 Mbit/s, rtt: 20 ms},
         lte: {down: 10 Mbit/s, up: 10 Mbit/s, rtt: 30 ms}}]
scenarios: [download]
"""


@pytest.fixture(autouse=True)
def foreign(tmp_path: Path) -> Iterator[Foreign]:
    with installed(tmp_path / "foreign") as plugins:
        plugins.add("mplab.phones", "bench", {"driver": DRIVER})
        yield plugins


def written(tmp_path: Path, text: str = LAB) -> Path:
    file = tmp_path / "lab.yaml"
    file.write_text(text)
    return file


def mplab(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def test_a_lab_file_has_the_keys_of_its_settings(tmp_path: Path) -> None:
    use = use_lab(written(tmp_path))
    assert (use.kind, use.real, use.android) == ("bench", True, False)
    determinants = use.determinants()
    assert isinstance(determinants, dict)
    assert determinants["phone"]["slot"] == 3
    assert use.to_json()["file"]["phones"]["one"]["slot"] == 3


@pytest.mark.parametrize(
    ("phone", "message"),
    [
        ("{driver: bench, slot: 9}", r"lab.yaml:5: phones.one.slot: found 9, allowed: 1…8"),
        ("{driver: bench, solt: 3}", r"lab.yaml:5: phones.one: unknown key 'solt'. Did you mean 'slot'\? Allowed: "),
        ("{driver: bench}", r"lab.yaml:5: phones.one: key 'slot' is missing"),
        ("{driver: bench, slot: 8}", r"lab.yaml:5: phones.one.slot: slot 8 is broken"),
        ("{driver: virtual, slot: 3}", r"lab.yaml:5: phones.one.slot: of phones with 'driver: bench' alone"),
        ("{driver: bnch}", rf"phones.one.driver: found 'bnch'. Did you mean 'bench'\? Allowed: {ALLOWED}\Z"),
    ],
)
def test_what_is_wrong_is_said_as_of_the_products_own(tmp_path: Path, phone: str, message: str) -> None:
    text = f"{LAB.partition('  one')[0]}  one: {phone}\n"
    with pytest.raises(InputError, match=message):
        use_lab(written(tmp_path, text))


def test_doctor_asks_its_driver(tmp_path: Path) -> None:
    result = mplab("doctor", "--lab", str(written(tmp_path)), "--json")
    checks = {check["name"]: check["found"] for check in json.loads(result.stdout)["checks"]}
    assert checks["phone one"] == "lies in slot 3"


def test_a_plan_has_its_resources_and_where_its_paths_are_shaped(tmp_path: Path) -> None:
    experiment = tmp_path / "tiny.yaml"
    experiment.write_text(EXPERIMENT)
    result = mplab("plan", str(experiment), "--lab", str(written(tmp_path)), "--runs", str(tmp_path), "--json")
    assert result.exit_code == 0, result.output
    plan = json.loads(result.stdout)
    assert plan["lab"]["kind"] == "bench"
    assert plan["lab"]["paths"] == {"wlan0": "server near (tc)", "rmnet0": "server near (tc)"}
    assert "slot 3" in plan["resources"]
    assert "virtual-lab" not in plan["resources"]


def test_it_refuses_links(tmp_path: Path) -> None:
    experiment = tmp_path / "tiny.yaml"
    experiment.write_text(EXPERIMENT)
    lab = written(tmp_path, LAB.replace(", lte: {server: near, ip: 10.0.0.3}", ""))
    with pytest.raises(InputError, match="link 'moving': one has no LTE"):
        load_experiment(experiment, catalog=catalog(), lab=use_lab(lab))


def test_its_driver_makes_the_lab(tmp_path: Path) -> None:
    use = use_lab(written(tmp_path))
    lab = phone_driver(use.kind).open_lab(LabSettings(seed=1, congestion_control="cubic", logs=tmp_path, use=use))
    assert isinstance(lab, BaseLab)


def test_one_that_cannot_be_imported_is_named_where_it_is_used_alone(tmp_path: Path, foreign: Foreign) -> None:
    foreign.add("mplab.phones", "broken", {"driver": "import nosuchmodule\n"})
    assert use_lab(written(tmp_path)).kind == "bench"
    with pytest.raises(Exception, match=r"phone broken: .* cannot be imported: ModuleNotFoundError"):
        use_lab(written(tmp_path, "mplab: 1\nname: mine\nphones: {one: {driver: broken}}\n"))


def test_the_manual_has_every_member_of_a_driver() -> None:
    manual = (ROOT / "docs" / "how-to" / "add-a-kind-of-phone.md").read_text()
    members = {name for kind in (PhoneDriver, PhoneKind) for name in [*vars(kind), *kind.__annotations__]}
    assert [name for name in sorted(members) if name[0] != "_" and f"| `{name}` |" not in manual] == []
