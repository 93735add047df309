"""Describe the machine of a run for its manifest, so that others can reproduce the run."""

import contextlib
import importlib.metadata
import json
import os
import platform
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

import psutil
from packaging.requirements import Requirement

from mplab.base import places, programs
from mplab.base.extras import EXTRAS
from mplab.format.manifest import GitRecord, HostRecord

_OPTIONAL = ("pesqc2",)
"""Extras that scores use if they are installed."""

LOCKS = ("requirements/lock.txt", "go.mod", "go.sum", "tools/appium/package.json", "tools/appium/package-lock.json")
"""Files that pin the versions that a checkout installs, with checksums."""


def describe_host() -> HostRecord:
    """Return kernel, processors, memory, distribution and MPTCP settings of this host."""
    directory = Path("/proc/sys/net/mptcp")
    return HostRecord(
        kernel=platform.release(),
        cpus=os.cpu_count() or 1,
        memory_bytes=psutil.virtual_memory().total,
        distribution=platform.freedesktop_os_release().get("PRETTY_NAME", "unknown"),
        mptcp={path.name: _read(path) for path in sorted(directory.glob("*"))} if directory.exists() else {},
    )


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def describe_versions(further: Iterable[programs.Program] = ()) -> dict[str, str]:
    """Return name → version of mplab, Python, and everything that a run executes or imports; "" if unknown.

    Args:
        further: programs that this run needs and that not every lab needs.
    """
    versions = {"mplab": importlib.metadata.version("mplab"), "python": platform.python_version()}
    versions |= programs.versions(further)
    for name in json.loads((places.ROOT / "tools/appium/package.json").read_text())["dependencies"]:
        package = programs.APPIUM_DIR / "node_modules" / name / "package.json"
        versions[name] = json.loads(package.read_text())["version"] if package.exists() else ""
    names = {
        requirement.name
        for requirement in map(Requirement, importlib.metadata.requires("mplab") or ())
        if requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in EXTRAS)
    }
    for name in sorted({*names, *_OPTIONAL} - {"mplab"}):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions


def describe_git() -> GitRecord:
    """Return the commit of the checkout from which mplab runs, and whether it has local changes."""
    commit = _git("rev-parse", "HEAD")
    return GitRecord(commit=commit or None, dirty=bool(commit and _git("status", "--porcelain")))


def describe_locks(commit: str | None) -> tuple[dict[str, bytes], str]:
    """Return path → content of the files that pin all versions, and a phrase that names their source tree.

    Args:
        commit: commit of the wanted tree; None, or unknown in this checkout: return the current files of this checkout.
    """
    if commit and re.fullmatch(r"[0-9a-f]{7,64}", commit):
        contents = {name: _git_output("show", f"{commit}:{name}") for name in LOCKS}
        if all(contents.values()):
            return contents, f"commit {commit}"
    paths = {name: places.ROOT / name for name in LOCKS}
    contents_here = {name: path.read_bytes() for name, path in paths.items() if path.is_file()}
    where = "installed mplab" if places.INSTALLED else "checkout"
    return contents_here, f"the {where} that the bundle was made with, since it has not got the commit of the run"


def _git(*arguments: str) -> str:
    return _git_output(*arguments).decode(errors="replace").strip()


def _git_output(*arguments: str) -> bytes:
    """Return the standard output of a git command in this checkout; b"" outside of a checkout, or if git fails."""
    if places.INSTALLED:
        return b""
    argv = ["git", "-C", str(places.ROOT), *arguments]
    try:
        completed = subprocess.run(argv, capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return b""
    return completed.stdout if completed.returncode == 0 else b""
