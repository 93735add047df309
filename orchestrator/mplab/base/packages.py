"""Name the system packages that are missing, and the command that installs them, for this distribution.

Programs name their Debian packages (`mplab.base.programs.Program.package`). The table ``system-packages.txt`` gives
the names of other distributions.
"""

import platform
from collections.abc import Iterable
from functools import cache
from pathlib import Path

_TABLE = Path(__file__).with_name("system-packages.txt")
_COLUMNS = {"debian": 1, "ubuntu": 2, "fedora": 3}
_INSTALL = {"debian": "apt-get install", "ubuntu": "apt-get install", "fedora": "dnf install"}
_NONE = "-"


@cache
def distribution() -> str:
    """Return ``debian``, ``ubuntu`` or ``fedora``: this distribution, or the one that it derives from.

    Return ``debian`` if it derives from none of them.
    """
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return "debian"
    names = [release.get("ID", ""), *release.get("ID_LIKE", "").split()]
    return next((name for name in names if name in _COLUMNS), "debian")


@cache
def _names(system: str) -> dict[str, list[str]]:
    """Return Debian package → packages of a distribution that replace it."""
    names: dict[str, list[str]] = {}
    for line in _TABLE.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            columns = line.split()
            names.setdefault(columns[_COLUMNS["debian"]], []).append(columns[_COLUMNS[system]])
    return names


def packages(debian: Iterable[str], system: str = "") -> tuple[list[str], list[str]]:
    """Return the packages of a distribution, and the Debian packages that it does not have.

    Args:
        debian: names of Debian packages. A name that is not in the table is the same in all distributions.
        system: the distribution, see `distribution`; "": this one.
    """
    names = _names(system or distribution())
    there: list[str] = []
    lacking: list[str] = []
    for name in debian:
        for package in names.get(name, [name]):
            (lacking if package == _NONE else there).append(name if package == _NONE else package)
    return list(dict.fromkeys(there)), list(dict.fromkeys(lacking))


def install(*debian: str, system: str = "") -> str:
    """Return the command that installs packages, given by their Debian names: ``apt-get install nginx-light``.

    Packages that the distribution does not have are named after the command.
    """
    system = system or distribution()
    there, lacking = packages(debian, system)
    command = f"{_INSTALL[system]} {' '.join(there)}" if there else ""
    missing = f"{system.capitalize()} has no package that works in the lab: {', '.join(lacking)}" if lacking else ""
    return "; ".join(filter(None, (command, missing)))
