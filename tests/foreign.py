"""Install plug-ins of other distributions for a test, in this process and in its children."""

import itertools
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from mplab.base.plugins import REGISTRIES
from mplab.lab.catalog import catalog

_PACKAGES = itertools.count(1)


class Foreign:
    """Folder on the search path with distributions, each with the plug-ins of one name.

    Args:
        folder: see `installed`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, group: str, name: str, modules: Mapping[str, str]) -> Path:
        """Install a distribution that registers a package with one plug-in, and replace an earlier one of this name.

        Args:
            group: group of entry points, for example ``mplab.scenarios``.
            name: name of the plug-in and of the distribution, whose version is 1.0.
            modules: name of a module → its text.

        Returns:
            Folder of the plug-in.
        """
        package = f"{name}_{next(_PACKAGES)}"  # a unique name, because Python imports a module only once
        folder = self.folder / package / name
        folder.mkdir(parents=True)
        for module, text in {"__init__": "", **modules}.items():
            (folder / f"{module}.py").write_text(text)
        self.register(group, name, package)
        return folder

    def module(self, group: str, name: str, text: str) -> Path:
        """Install a plug-in that is a single module, and return its file. See `add`."""
        package = f"{name}_{next(_PACKAGES)}"
        path = self.folder / package / f"{name}.py"
        path.parent.mkdir()
        path.write_text(text)
        self.register(group, name, package)
        return path

    def figure(self, name: str, text: str) -> Path:
        """Install a figure, and return its file."""
        return self.module("mplab.figures", name, text)

    def register(self, group: str, name: str, value: str) -> None:
        """Install a distribution with one entry point, and replace an earlier one of this name."""
        metadata = self.folder / f"{name}-1.0.dist-info"
        metadata.mkdir(exist_ok=True)
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[{group}]\n{name} = {value}\n")
        refresh()

    def scenario(self, name: str, scores: str, **modules: str) -> Path:
        """Install a scenario that has only scores, and return its folder."""
        return self.add("mplab.scenarios", name, {"scores": scores, **modules})


@contextmanager
def installed(folder: Path) -> Iterator[Foreign]:
    """Put a folder first on the search path; a distribution in it hides others of the same name."""
    folder.mkdir(parents=True, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
        refresh()
        yield Foreign(folder)
    refresh()


def refresh() -> None:
    """Make every registry read the entry points again, and the catalog the registries."""
    for registry in REGISTRIES:
        registry.refresh()
    catalog.cache_clear()
