"""Plug-ins that are found by their folders: scenarios and services."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

from orchestrator.errors import LabNotReadyError


def load_folder(directory: Path, name: str, *, package: str, module: str, attribute: str, what: str) -> object:
    """What ``<directory>/<name>/<module>.py`` defines, imported as ``<package>.<name>.<module>``.

    Args:
        directory: folder of the plug-ins.
        name: of the plug-in's own folder.
        package: what all of them are imported under; the analysis may have made it already.
        module: the file.
        attribute: the object in it.
        what: what messages call it: ``scenario``.

    Raises:
        LabNotReadyError: it cannot be imported, or has no such object.
    """
    parent = sys.modules.setdefault(package, ModuleType(package))
    path = list(getattr(parent, "__path__", ()))
    if str(directory) not in path:
        parent.__path__ = [*path, str(directory)]
    try:
        found = getattr(importlib.import_module(f"{package}.{name}.{module}"), attribute, None)
    except ImportError as error:
        raise LabNotReadyError(f"{directory / name}: the {what} cannot be loaded: {error}") from error
    if found is None:
        raise LabNotReadyError(f"{directory / name / module}.py: no {attribute} in it")
    return found


def folders_with(directory: Path, module: str) -> list[str]:
    """The folders in which there is a ``<module>.py``, sorted."""
    return sorted(path.parent.name for path in directory.glob(f"*/{module}.py"))
