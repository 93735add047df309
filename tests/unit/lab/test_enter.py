"""On a machine without namespaces, the message names the missing permission or program."""

import os
from pathlib import Path

import pytest

from mplab.base import enter
from mplab.base.errors import LabNotReadyError


@pytest.fixture
def refusing_unshare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "unshare"
    program.write_text("#!/bin/sh\necho 'unshare: unshare failed: Operation not permitted' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("MPLAB_UNSHARE", str(program))


def status(folder: Path, *, effective: str) -> Path:
    """Write a file like ``/proc/self/status`` for a process with these effective capabilities."""
    path = folder / "status"
    path.write_text(f"CapPrm:\tffffffffffffffff\nCapEff:\t{effective}\nCapBnd:\tffffffffffffffff\n")
    return path


@pytest.mark.usefixtures("refusing_unshare")
def test_root_in_a_container_is_told_of_capabilities(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(enter, "_STATUS", status(tmp_path, effective="ffffffffffffffff"))
    with pytest.raises(LabNotReadyError, match=r"Operation not permitted.*--cap-add SYS_ADMIN"):
        enter.check_namespaces()


def test_a_missing_capability_of_root_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(enter, "_STATUS", status(tmp_path, effective="00000000a80425fb"))  # Docker's default
    with pytest.raises(LabNotReadyError, match=r"here: SYS_ADMIN, NET_ADMIN\. .*--cap-add SYS_ADMIN"):
        enter.check_namespaces()


@pytest.mark.usefixtures("refusing_unshare")
def test_an_ordinary_user_is_told_of_user_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(enter, "_CONTAINER_FILES", ())
    with pytest.raises(LabNotReadyError, match=r"Operation not permitted.*[Rr]un as root"):
        enter.check_namespaces()


@pytest.mark.usefixtures("refusing_unshare")
def test_an_ordinary_user_in_a_container_is_told_of_its_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(enter, "_KNOBS", ())
    monkeypatch.setattr(enter, "_CONTAINER_FILES", (tmp_path,))
    with pytest.raises(LabNotReadyError, match=r"seccomp=unconfined --security-opt systempaths=unconfined"):
        enter.check_namespaces()


def test_only_an_ordinary_user_needs_a_user_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "--user" in enter.unshare_argv()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert "--user" not in enter.unshare_argv()


def test_what_runs_outside_a_lab_knows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(enter.IN_LAB_VARIABLE, raising=False)
    assert not enter.in_lab()
    monkeypatch.setenv(enter.IN_LAB_VARIABLE, "abcd1234")
    assert enter.in_lab()
