"""Names of system packages in each distribution."""

import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from mplab.base import packages, programs
from mplab.base.packages import distribution, install
from mplab.base.places import ROOT
from mplab.base.programs import CHROMIUM
from mplab.lab.catalog import load_scenario, programs_of, scenario_names

FEDORA_LIKE = {"ID": "rocky", "ID_LIKE": "rhel centos fedora"}


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ({"ID": "debian"}, "debian"),
        ({"ID": "ubuntu", "ID_LIKE": "debian"}, "ubuntu"),
        ({"ID": "linuxmint", "ID_LIKE": "ubuntu debian"}, "ubuntu"),
        ({"ID": "fedora"}, "fedora"),
        (FEDORA_LIKE, "fedora"),
        ({"ID": "arch"}, "debian"),
    ],
)
def test_a_distribution_is_recognised(release: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: release)
    distribution.cache_clear()
    try:
        assert distribution() == expected
    finally:
        distribution.cache_clear()


def test_the_command_is_that_of_the_distribution() -> None:
    needed = ("iproute2", "nginx-light", "chromium")
    assert install(*needed, system="debian") == "apt-get install iproute2 nginx-light chromium"
    assert install(*needed, system="fedora") == "dnf install iproute iproute-tc nginx chromium"
    expected = "apt-get install iproute2 nginx-light; Ubuntu has no package that works in the lab: chromium"
    assert install(*needed, system="ubuntu") == expected


def test_a_program_without_a_package_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "distribution", lambda: "ubuntu")
    assert CHROMIUM.remedy.endswith("Install it yourself, or set MPLAB_CHROMIUM to its path")


def test_the_table_has_the_packages_of_all_programs() -> None:
    used = [*programs.ALL, *programs.OF_VIRTUAL_ROUTER, programs.ADB, programs.FIREFOX, programs.MPTCPIZE]
    used += [program for name in scenario_names() for program in programs_of(load_scenario(name))]
    names = {program.package for program in used if program.package}
    rows = [line.split() for line in packages._TABLE.read_text().splitlines() if re.match(r"[^#]", line)]
    assert {len(row) for row in rows} == {5}
    assert names <= {row[1] for row in rows}


def test_on_a_bare_machine_the_script_lists_every_package_and_a_path_in_a_variable_replaces_one(tmp_path: Path) -> None:
    """Without any of the programs in PATH, and with a stand-in for apt-get."""
    folder = tmp_path / "bin"
    folder.mkdir()
    of_the_script = "bash basename cat dirname env grep id mktemp python3 readlink rm sed sort sudo tail tr uname"
    for name in of_the_script.split():
        if path := shutil.which(name):
            (folder / name).symlink_to(path)
    (folder / "apt-get").write_text("#!/bin/sh\necho Need to get 5 MB of archives.\n")
    (folder / "apt-get").chmod(0o755)
    script = [str(folder / "bash"), str(ROOT / "tools" / "system-packages"), "--plan"]

    def listed(**variables: str) -> set[str]:
        done = subprocess.run(
            script, env={"PATH": str(folder), **variables}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return set(re.findall(r"^── System packages: (.*)$", done.stdout, re.MULTILINE)[0].split())

    programs_of_variables = {
        "MPLAB_USER_MODE_LINUX": "user-mode-linux",
        "MPLAB_FIREFOX": "firefox-esr",
        "MPLAB_ESPEAK_NG": "espeak-ng",
    }
    missing = listed()
    assert {*programs_of_variables.values(), "tshark", "adb"} <= missing
    for variable, package in programs_of_variables.items():
        assert listed(**{variable: "/opt/other"}) == missing - {package}
