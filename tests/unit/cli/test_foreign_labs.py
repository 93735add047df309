"""Foreign lab files, from a run or a bundle: mplab lists what they would use, and uses it only with permission."""

import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from mplab.base.errors import InputError, LabNotReadyError
from mplab.cli.main import app
from mplab.cli.options import naming_options
from mplab.format.manifest import LabRecord, Manifest
from mplab.format.record import utc_now
from mplab.lab.catalog import catalog
from mplab.run.hostside import host, ready
from mplab.run.hostside.ready import check_lab, outside, remember_lab
from mplab.run.planning import plan_of
from mplab.run.reproducing import plan_again
from mplab.run.run_directory import RunDirectory
from mplab.userfiles.labs.lab import load_lab
from mplab.userfiles.labs.labuse import VIRTUAL, LabUse, use_lab

EXPERIMENT = (
    "mplab: 1\nname: theirs\nscenarios: [download]\ntransports: [sptcp-wifi]\nlinks: [baseline]\nrepetitions: 1\n"
)
LAB = """mplab: 1
name: theirs
routers:
  wifi: {host: 192.0.2.1, port: 2222, user: admin, key: ~/.ssh/id_ed25519, interface: phy0-ap0}
servers:
  here: {interface: eth0}
  there: {host: 192.0.2.2, interface: eth1}
phones:
  p:
    driver: adb
    serial: "192.0.2.3:5555"
    root_shell: {command: [sh, -c, "id > owned; exec sh"]}
    wifi: {router: wifi, ip: 192.0.2.4}
    lte: {at: phone, interface: rmnet0}
proxy: {driver: docker, engine: "tcp://192.0.2.5:2375", listen: [192.0.2.6]}
"""
INSIDE = "mplab: 1\nname: v\nrouters: {wifi: {driver: virtual}}\nphones: {p: {driver: virtual, wifi: {router: wifi}}}\n"


@pytest.fixture(autouse=True)
def nothing_used_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def lab_of(tmp_path: Path, text: str = LAB) -> LabUse:
    path = tmp_path / "lab.yaml"
    path.write_text(text)
    return use_lab(path)


def their_run(tmp_path: Path) -> RunDirectory:
    """A run directory as another user may have made it."""
    lab = lab_of(tmp_path)
    directory = RunDirectory.create(tmp_path / "runs", "theirs", EXPERIMENT.encode(), lab.source)
    experiment = directory.load_experiment(catalog(), lab=lab)
    directory.write_manifest(
        Manifest(
            run_id=directory.run_id,
            experiment=experiment.record(),
            plan=plan_of(experiment),
            lab=LabRecord.model_validate(lab.to_json()),
            host=host.describe_host(),
            versions={},
            git=host.describe_git(),
            started=utc_now(),
        )
    )
    return directory


def test_everything_that_a_lab_file_would_use_is_named(tmp_path: Path) -> None:
    path = tmp_path / "lab.yaml"
    path.write_text(LAB)
    assert list(outside(load_lab(path))) == [
        "logs in to admin@192.0.2.1:2222 with the key ~/.ssh/id_ed25519",
        "servers.here shapes eth0 of this host",
        "logs in to root@192.0.2.2:22 with the keys of the SSH agent",
        f"phones.p.root_shell runs on this host: {shlex.join(['sh', '-c', 'id > owned; exec sh'])}",
        "phones.p is the Android device 192.0.2.3:5555",
        "starts containers with the Docker engine tcp://192.0.2.5:2375",
    ]


def test_a_lab_file_is_refused_until_the_user_has_begun_a_run_with_it(tmp_path: Path) -> None:
    lab = lab_of(tmp_path)
    with pytest.raises(
        InputError,
        match=r"bundle: lab.yaml: .*root_shell runs on this host: sh -c .*tcp://192.0.2.5.*allow_lab=True uses it",
    ):
        check_lab(lab, "bundle")
    remember_lab(lab)
    check_lab(lab, "bundle")
    with pytest.raises(InputError, match="allow_lab=True uses it"):
        check_lab(lab_of(tmp_path, LAB.replace("id > owned", "other")), "bundle")


@pytest.mark.parametrize("text", ["", INSIDE])
def test_a_lab_of_namespaces_alone_needs_no_permission(tmp_path: Path, text: str) -> None:
    check_lab(lab_of(tmp_path, text) if text else VIRTUAL, "bundle")


class ReachedError(LabNotReadyError):
    """Raised in place of the first step that would look for phones and programs."""


def reached(*_: object) -> None:
    raise ReachedError("the lab would be used now")


def test_resume_uses_their_lab_only_when_it_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = their_run(tmp_path)
    before = sorted(path.name for path in directory.path.iterdir())
    monkeypatch.setattr(ready, "check_ready_for", reached)
    refused = CliRunner().invoke(app, ["resume", str(directory.path)])
    assert isinstance(refused.exception, InputError)
    assert "root_shell runs on this host: sh -c" in str(refused.exception)
    assert str(refused.exception).endswith("Read lab.yaml; --allow-lab uses it")
    assert sorted(path.name for path in directory.path.iterdir()) == before
    allowed = CliRunner().invoke(app, ["resume", str(directory.path), "--allow-lab"])
    assert isinstance(allowed.exception, ReachedError)


def test_reproduce_uses_their_lab_only_when_it_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = their_run(tmp_path)
    monkeypatch.setattr(ready, "check_ready_for", reached)

    bundle: Any = SimpleNamespace(
        archive=Path("theirs.tar.gz"), run=SimpleNamespace(directory=directory.path, counts={"ok": 1})
    )
    with pytest.raises(InputError, match=r"theirs.tar.gz: lab.yaml: .*allow_lab=True uses it, lab=FILE another one$"):
        plan_again(bundle, runs=tmp_path)
    with pytest.raises(InputError, match=r"--allow-lab uses it, --lab FILE another one$"), naming_options():
        plan_again(bundle, runs=tmp_path)
    with pytest.raises(ReachedError):
        plan_again(bundle, runs=tmp_path, allow_lab=True)
