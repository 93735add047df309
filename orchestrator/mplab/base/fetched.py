"""Fetch Appium and the other Node programs of ``tools/appium/package.json``: versions and checksums are locked.

They are in `programs.APPIUM_DIR`. Scenarios with a browser need them; scenarios without a user interface do not.
"""

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

from mplab.base.errors import LabNotReadyError
from mplab.base.lock import resource_lock
from mplab.base.places import INSTALLED, ROOT
from mplab.base.programs import APPIUM_DIR, NODE

DOWNLOAD_MB, DISK_MB = 117, 340
"""Size of the packages of November 2026, MB."""
SETUP = "mplab setup" if INSTALLED else "make setup"
"""Command that fetches them."""

_SHIPPED = ROOT / "tools" / "appium"
_FILES = ("package.json", "package-lock.json", "har.mjs")
_MODULES = "node_modules"
_MARK = ".mplab"
"""File in `_MODULES` with the digest of the lock file and of har.mjs from which the packages were fetched."""
_OLDEST_NODE = (20, 19)
"""Oldest version of Node.js that Appium accepts."""
_TIMEOUT_S = 1800.0


def wrong() -> list[str]:
    """Return the Node packages that are missing or have another version than the locked one; []: all are there.

    If only packages that other packages need have changed, or har.mjs, it returns the name of the lock file.
    """
    needed: dict[str, str] = json.loads((_SHIPPED / "package.json").read_text(encoding="utf-8"))["dependencies"]
    found = {name: APPIUM_DIR / _MODULES / name / "package.json" for name in needed}
    wrong = [
        f"{name} {version}"
        for name, version in needed.items()
        if not found[name].is_file() or json.loads(found[name].read_text(encoding="utf-8"))["version"] != version
    ]
    mark = APPIUM_DIR / _MODULES / _MARK
    same = mark.is_file() and mark.read_text(encoding="utf-8") == _digest()
    return wrong or ([] if same else ["package-lock.json"])


def _digest() -> str:
    content = (_SHIPPED / name for name in ("package-lock.json", "har.mjs"))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in content)).hexdigest()


def check_node() -> None:
    """Raise LabNotReadyError if Node.js is missing or too old for Appium."""
    NODE.path()
    version = NODE.version()
    if not version:
        raise LabNotReadyError(f"the version of {NODE.path()} is unknown: it does not start; {NODE.remedy}")
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if numbers < _OLDEST_NODE:
        oldest = ".".join(map(str, _OLDEST_NODE))
        raise LabNotReadyError(f"node {version} is too old: Appium needs {oldest} or later; {NODE.remedy}")


def npm() -> list[str]:
    """Return the command of npm: the one that came with Node.js, or the one of PATH. Raises LabNotReadyError."""
    bundled = NODE.path().resolve().parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if bundled.is_file():
        return [str(NODE.path()), str(bundled)]
    if npm := shutil.which("npm"):
        return [npm]
    raise LabNotReadyError(f"npm was not found next to {NODE.path()} or in PATH; {NODE.remedy}")


def fetch() -> None:
    """Fetch the Node packages. They appear only when all of them are complete; older ones are replaced.

    Raises:
        LabNotReadyError: Node.js or npm is missing, or npm failed.
    """
    check_node()
    partial = APPIUM_DIR / "fetched.partial"
    with resource_lock("setup"):
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        try:
            _fetch_into(partial)
            shutil.rmtree(APPIUM_DIR / _MODULES, ignore_errors=True)
            for name in (*(_FILES if APPIUM_DIR != _SHIPPED else ()), _MODULES):
                (partial / name).rename(APPIUM_DIR / name)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def _fetch_into(folder: Path) -> None:
    for name in _FILES:
        shutil.copy(_SHIPPED / name, folder)
    # Scripts of packages are not run: none of these packages needs one.
    argv = [*npm(), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    environment = {**os.environ, "PATH": os.pathsep.join([str(NODE.path().parent), os.environ.get("PATH", os.defpath)])}
    try:
        result = subprocess.run(
            argv, cwd=folder, env=environment, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LabNotReadyError(f"Appium was not fetched: {error}") from error
    if result.returncode != 0:
        words = " ".join((result.stderr or result.stdout).split())[-500:]
        raise LabNotReadyError(f"Appium was not fetched: npm failed ({result.returncode}): {words or 'no message'}")
    (folder / _MODULES / _MARK).write_text(_digest(), encoding="utf-8")


def remove() -> bool:
    """Remove the Node packages; return whether there were any."""
    with resource_lock("setup"):
        there = (APPIUM_DIR / _MODULES).is_dir()
        shutil.rmtree(APPIUM_DIR / _MODULES if APPIUM_DIR == _SHIPPED else APPIUM_DIR, ignore_errors=True)
    return there
