"""Versions of programs, and the parts of mplab that need them."""

import sys
from pathlib import Path

import pytest

from mplab.base import programs
from mplab.base.programs import Program
from mplab.lab import doctor
from mplab.lab.catalog import load_scenario, programs_of
from mplab.run.hostside.host import describe_versions

SHELL = Program("shell", ("sh",), (), "dash", "runs scripts")


def test_a_program_that_does_not_tell_its_version_has_that_of_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    script = "print('Version 3.1.4 of it')"
    monkeypatch.setattr(programs, "_PACKAGE_VERSION", (sys.executable, "-c", script))
    assert SHELL.version() == "3.1.4"


def test_what_is_not_from_a_package_has_no_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "sh"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o700)
    monkeypatch.setenv("MPLAB_SHELL", str(own))
    assert SHELL.find() == own
    assert SHELL.version() == ""


def test_the_manifest_names_what_the_scenarios_of_a_run_need() -> None:
    needed = {name: {program.name for program in programs_of(load_scenario(name))} for name in ("radio", "messenger")}
    assert {"pulseaudio", "parec", "icecast2", "ffmpeg"} <= needed["radio"]
    assert needed["messenger"] == {"prosody"}
    versions = describe_versions(programs_of(load_scenario("radio")))
    assert needed["radio"] <= set(versions)
    assert "prosody" not in versions
    assert {"appium", "dashjs", "@xmpp/client", "chromium", "nginx"} <= set(versions)


def test_the_doctor_tells_of_every_program_that_some_scenario_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(programs, "_SYSTEM_PATH", ())
    checks = {check.name: check for check in doctor._optional_programs()}
    assert {"prosody", "turnserver", "icecast2", "ffmpeg", "iperf3", "espeak-ng", "pulseaudio", "firefox"} <= set(
        checks
    )
    check = checks["icecast2"]
    assert check.level == "warning", "other scenarios can be run without it"
    assert check.found == "not found (the radio station; only for radio, spotify)"
    assert check.remedy == "install it: apt-get install icecast2"
    assert not {"curl", "nginx"} & set(checks), "every lab needs them"


def test_a_program_that_is_asked_its_version_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "TMPDIR", "XDG_CONFIG_HOME"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setattr("tempfile.tempdir", None)
    program = tmp_path / "messy"
    program.write_text('#!/bin/sh\ntouch "$HOME/a" "$TMPDIR/b" "$XDG_CONFIG_HOME/c"; echo messy 1.2.3\n')
    program.chmod(0o755)
    assert Program("messy", (str(program),), ("--version",), "", "").version() == "1.2.3"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [program]
