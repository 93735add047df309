"""Locate mplab's data files and programs, and the folders into which it writes.

A wheel has the data files and programs in the package's folder ``_data``, in the same subfolders as a checkout.
"""

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_SHIPPED = _PACKAGE / "_data"

INSTALLED = _SHIPPED.is_dir()
"""Whether this package was installed from a wheel; False: it runs from a checkout."""
ROOT = _SHIPPED if INSTALLED else _PACKAGE.parents[1]
"""Folder of all data files and programs: ``mplab/_data`` of an installed wheel, or the root of the checkout."""
PACKAGES = (
    (_PACKAGE.parent,)
    if INSTALLED
    else tuple(ROOT / part for part in ("orchestrator", "analysis", "ui-scenarios", "proxy-docker", "phone-emulator"))
)
"""Folders that hold parts of the package ``mplab``."""
BIN = ROOT / "build" / "bin"
"""Folder of mplab's Go programs for this machine."""
EXPERIMENTS = ROOT / "experiments"
"""Folder of the experiment files that come with mplab."""
LABS = ROOT / "router-configs" / "labs"
"""Folder of the lab files that come with mplab."""


def by_name(given: Path, folder: Path, base: Path = Path()) -> Path:
    """Return the YAML file that a user names by its path or by its name without ``.yaml``.

    Args:
        given: the path or name. For ``demo``, the files ``demo`` and ``demo.yaml`` of `base` are preferred to the file
            of `folder`.
        folder: folder with files that come with mplab.
        base: base of a relative path.

    Returns:
        The file; `given` below `base` if it is no name, or no file has this name.
    """
    path = base / given
    if len(given.parts) != 1 or given.suffix or not given.name:
        return path
    candidates = (path, path.with_suffix(".yaml"), folder / f"{given}.yaml")
    return next((path for path in candidates if path.is_file()), path)


def part(name: str, package: str) -> Path:
    """Return the folder of a package ``mplab.PACKAGE``, for example ``services``.

    Args:
        name: folder of a checkout that has the package: ``proxy-docker``.
        package: name of the package below ``mplab``.
    """
    return (_PACKAGE if INSTALLED else ROOT / name / "mplab") / package


def cache_folder(name: str) -> Path:
    """Return the folder for files that mplab can make again.

    It is ``build/NAME`` of a checkout, otherwise ``$XDG_CACHE_HOME/mplab/NAME`` (by default ``~/.cache/mplab/NAME``).
    """
    return _user_folder("XDG_CACHE_HOME", ".cache", name) if INSTALLED else ROOT / "build" / name


def fetched_folder(name: str, in_checkout: str) -> Path:
    """Return the folder for programs that ``mplab setup`` fetches.

    It is the folder `in_checkout` of a checkout, otherwise ``$XDG_DATA_HOME/mplab/NAME`` (by default
    ``~/.local/share/mplab/NAME``).
    """
    return _user_folder("XDG_DATA_HOME", ".local/share", name) if INSTALLED else ROOT / in_checkout


def _user_folder(variable: str, default: str, name: str) -> Path:
    return Path(os.environ.get(variable) or Path.home() / default) / "mplab" / name
