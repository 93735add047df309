"""Fingerprint the software of a process; processes with equal fingerprints write the same bytes."""

import hashlib
import importlib.metadata
import platform
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import mplab.analysis
import mplab.base
import mplab.format
from mplab.analysis.errors import ProgramMissingError
from mplab.analysis.record.decode import find_mptrace
from mplab.base.plugins import FIGURES, SCENARIOS

PACKAGES = (
    "mplab", "cloudpickle", "dask", "distributed", "fsspec", "jinja2", "lxml", "matplotlib", "msgpack", "numpy",
    "polars", "pydantic", "scipy",
)  # fmt: skip
NONE = "none"
_CODE = {".py", ".j2", ".css", ".json", ".yaml"}


def fingerprint() -> Mapping[str, str]:
    """Return name → version or digest of the software with which this process analyses."""
    plugins = [*SCENARIOS.plugins.values(), *FIGURES.plugins.values()]
    return _fingerprint(tuple(path for plugin in plugins for path in plugin.sources()))


@cache
def _fingerprint(plugins: tuple[Path, ...]) -> Mapping[str, str]:
    versions = {"python": platform.python_version(), "machine": platform.machine()}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = NONE
    versions["analysis"] = _digest(Path(package.__path__[0]) for package in (mplab.analysis, mplab.base, mplab.format))
    versions["plug-ins"] = _digest(plugins)
    try:
        versions["mptrace"] = _short(find_mptrace().read_bytes())
    except ProgramMissingError:
        versions["mptrace"] = NONE
    return versions


def differences(ours: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    """Return the differences of two fingerprints as text: ``polars 2.1.0, there 2.0.0``; "" if they are equal."""
    names = sorted({*ours, *theirs})
    other = [name for name in names if ours.get(name, NONE) != theirs.get(name, NONE)]
    return ", ".join(f"{name} {ours.get(name, NONE)}, there {theirs.get(name, NONE)}" for name in other)


def _digest(places: Iterable[Path]) -> str:
    """Return one digest of all code files in ``places``, which are files and folders."""
    content = hashlib.sha256()
    for root in places:
        for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
            if path.suffix in _CODE and path.is_file():
                content.update(f"{path.relative_to(root.parent).as_posix()}\0".encode())
                content.update(hashlib.sha256(path.read_bytes()).digest())
    return content.hexdigest()[:12]


def _short(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]
