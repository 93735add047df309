"""Names of system packages in each distribution."""

import platform
import re

import pytest

from mplab.base import packages, programs
from mplab.base.packages import distribution, install
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
    used = [*programs.ALL, *programs.OF_VIRTUAL_ROUTER, programs.ADB, programs.FIREFOX]
    used += [program for name in scenario_names() for program in programs_of(load_scenario(name))]
    names = {program.package for program in used if program.package}
    rows = [line.split() for line in packages._TABLE.read_text().splitlines() if re.match(r"[^#]", line)]
    assert {len(row) for row in rows} == {5}
    assert names <= {row[1] for row in rows}
