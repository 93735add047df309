"""What is recorded of the machine that a run is made on, so that somebody else can make it again."""

import contextlib
import importlib.metadata
import json
import os
import platform
import subprocess
from collections.abc import Iterable
from pathlib import Path

import psutil

from orchestrator import programs
from orchestrator.record.manifest import GitRecord, HostRecord

_OPTIONAL = ("pesqc2",)
"""Extras that scores use when they are there."""


def describe_host() -> HostRecord:
    """Kernel, processors, memory, distribution, MPTCP settings."""
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
    """Name → version of mplab, Python, and everything that a run runs or imports; "" where it is not known.

    Args:
        further: programs of the run beside those that every lab needs.
    """
    versions = {"mplab": importlib.metadata.version("mplab"), "python": platform.python_version()}
    versions |= programs.versions(further)
    for name in json.loads((programs.APPIUM_DIR / "package.json").read_text())["dependencies"]:
        package = programs.APPIUM_DIR / "node_modules" / name / "package.json"
        versions[name] = json.loads(package.read_text())["version"] if package.exists() else ""
    for name in _OPTIONAL:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    for requirement in sorted(importlib.metadata.requires("mplab") or []):
        if "extra ==" not in requirement:
            name = requirement.split(">=")[0].split("==")[0].split(";")[0].strip()
            versions[name] = importlib.metadata.version(name)
    return versions


def describe_git() -> GitRecord:
    """Commit of the checkout, and whether it has changes."""
    commit = _git("rev-parse", "HEAD")
    return GitRecord(commit=commit or None, dirty=bool(commit and _git("status", "--porcelain")))


def _git(*arguments: str) -> str:
    argv = ["git", "-C", str(programs.CHECKOUT), *arguments]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
