"""Plug-ins: scenarios, transports, shapers, phones, proxies, services and figures, found by entry points.

Each kind is one group of entry points (``mplab.scenarios``). An entry point names one plug-in or a package of plug-ins:

* ``my-tunnel = "my_package.tunnel:TRANSPORT"``: the object is the plug-in; its name is that of the entry point.
* ``mine = "my_package.transports"``: a package of plug-ins. Each sub-package that has the group's ``member`` module is
  one plug-in. Its name is that of the sub-package, with ``-`` for ``_``: ``udp_jitter`` is ``udp-jitter``. In a group
  without a ``member`` (``mplab.figures``), each module of the package is one plug-in.

mplab's own plug-ins are registered in the same way, in ``pyproject.toml``.
"""

import importlib
import importlib.util
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.machinery import ModuleSpec
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TypeVar

from mplab.base.errors import InputError, LabNotReadyError
from mplab.base.extras import advice
from mplab.base.suggest import unknown

Loaded = TypeVar("Loaded")


@dataclass(frozen=True)
class Plugin:
    """One registered plug-in. It has not been imported, and its import may fail.

    Attributes:
        name: name that users write.
        what: kind of the plug-in, for messages: ``scenario``.
        module: module of the plug-in; for a sub-package of a registered package, the sub-package.
        attribute: attribute of `module` that its entry point names; "": the entry point names a package of plug-ins.
        distribution: distribution that registers the plug-in, with version: ``mplab 0.1.0``.
    """

    name: str
    what: str
    module: str
    attribute: str
    distribution: str

    @property
    def foreign(self) -> bool:
        """Return whether a distribution other than mplab registers the plug-in."""
        return self.distribution.partition(" ")[0] != "mplab"

    def load(self, attribute: str, module: str = "") -> object:
        """Import an object of the plug-in.

        Args:
            attribute: name of the object; ignored if the entry point names one.
            module: module in the plug-in's package: ``scores``; "": the plug-in's own module.

        Raises:
            LabNotReadyError: the module cannot be imported, or has no such object.
        """
        where = f"{self.module}.{module}" if module else self.module
        try:
            content = importlib.import_module(where)
        except Exception as error:
            problem = advice(error) or f"{type(error).__name__}: {error}"
            raise LabNotReadyError(
                f"{self.what} {self.name}: {where} (of {self.distribution}) cannot be imported: {problem}"
            ) from error
        loaded: object = getattr(content, self.attribute or attribute, None)
        if loaded is None:
            raise LabNotReadyError(
                f"{self.what} {self.name}: {where} (of {self.distribution}) has no {self.attribute or attribute}"
            )
        return loaded

    def folder(self) -> Path:
        """Return the folder of the plug-in's package, without importing it.

        Raises:
            LabNotReadyError: the plug-in is not a package on disk.
        """
        folders = _folders(self.module)
        if not folders:
            raise LabNotReadyError(f"{self.what} {self.name}: {self.module} (of {self.distribution}) is no package")
        return folders[0]

    def sources(self) -> list[Path]:
        """Return the folders of the plug-in's package, or the file of its module; empty: neither was found."""
        spec = _find(self.module)
        if spec is None:
            return []
        return [Path(location) for location in spec.submodule_search_locations or (spec.origin or "",) if location]

    def has(self, module: str) -> bool:
        """Return whether the plug-in's package has a module of this name, without importing it.

        Raises:
            LabNotReadyError: the plug-in is not a package on disk.
        """
        return (self.folder() / f"{module}.py").is_file()


@dataclass(frozen=True)
class Registry:
    """All plug-ins of one kind.

    Attributes:
        group: group of the entry points: ``mplab.scenarios``.
        what: singular of the kind, for messages: ``scenario``.
        member: module that makes a sub-package of a registered package a plug-in: ``scenario``; "": each module of a
            registered package is a plug-in, except modules whose names begin with ``_``.
        objects: objects that a plug-in in a registered package must define: module ("": its own) and attribute of
            each.
    """

    group: str
    what: str
    member: str
    objects: tuple[tuple[str, str], ...] = ()

    @cached_property
    def plugins(self) -> Mapping[str, Plugin]:
        """Name → plug-in, sorted by name. Entry points are read once; see `refresh`.

        Raises:
            InputError: two distributions register the same name.
        """
        registered: dict[str, Plugin] = {}
        for point in entry_points(group=self.group):
            for plugin in self._of(point):
                other = registered.setdefault(plugin.name, plugin)
                if other != plugin:
                    raise InputError(
                        f"{self.what} {plugin.name}: registered twice, by {other.distribution} ({other.module}) and "
                        f"{plugin.distribution} ({plugin.module}). Remove one of them"
                    )
        return dict(sorted(registered.items()))

    def refresh(self) -> None:
        """Read the entry points again on next use. Call after a distribution was installed or removed."""
        importlib.invalidate_caches()
        vars(self).pop("plugins", None)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, sorted."""
        return iter(self.plugins)

    def __contains__(self, name: object) -> bool:
        """Return whether a name is registered."""
        return name in self.plugins

    def __getitem__(self, name: str) -> Plugin:
        """Return a plug-in by its name.

        Raises:
            InputError: no plug-in has this name; the message lists the registered names.
        """
        if name not in self.plugins:
            raise InputError(unknown(self.what, name, self.plugins))
        return self.plugins[name]

    def load(self, name: str, attribute: str) -> object:
        """Import an object of a plug-in, and return it.

        The object is the one that the plug-in's entry point names. If the entry point names a package, the object is
        `attribute` of the module `member` in the plug-in's package.

        Raises:
            InputError: no plug-in has this name.
            LabNotReadyError: the module cannot be imported, or has no such object.
        """
        plugin = self[name]
        return plugin.load(attribute, "" if plugin.attribute else self.member)

    def importable(self, load: Callable[[str], Loaded]) -> dict[str, Loaded]:
        """Return name → result of `load`, sorted by name, for every plug-in that can be imported.

        The others are left out: they fail where they are used.

        Args:
            load: loads one plug-in by its name; may raise LabNotReadyError.
        """
        loaded = {}
        for name in self:
            with suppress(LabNotReadyError):
                loaded[name] = load(name)
        return loaded

    def check(self, name: str) -> None:
        """Check that a plug-in defines every required object, by importing them.

        Raises:
            InputError: no plug-in has this name.
            LabNotReadyError: an object cannot be imported, or is missing.
        """
        plugin = self[name]
        for module, attribute in [("", "")] if plugin.attribute else self.objects:
            plugin.load(attribute, module)

    def _of(self, point: EntryPoint) -> Iterator[Plugin]:
        dist = point.dist
        distribution = f"{dist.name} {dist.version}" if dist is not None else "an unknown distribution"
        if point.attr:
            yield Plugin(point.name, self.what, point.module, point.attr, distribution)
            return
        folders = _folders(point.module)
        if not folders:  # `Plugin.load` reports why
            yield Plugin(point.name, self.what, point.module, "", distribution)
        for folder in folders:
            for path in folder.glob(f"*/{self.member}.py" if self.member else "[!_]*.py"):
                own = path.parent.name if self.member else path.stem
                yield Plugin(own.replace("_", "-"), self.what, f"{point.module}.{own}", "", distribution)


def _folders(package: str) -> list[Path]:
    """Return the folders of a package without importing it; empty: there is no package of this name."""
    spec = _find(package)
    return [Path(location) for location in (spec.submodule_search_locations or ())] if spec is not None else []


def _find(module: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(module)
    except Exception:  # noqa: BLE001, RUF100 - the packages around it are imported, and may be broken
        return None


_DRIVER = (("driver", "DRIVER"),)

SCENARIOS = Registry(
    "mplab.scenarios", "scenario", "scores", (("scores", "METRICS"), ("scores", "score"), ("scenario", "SCENARIO"))
)
"""Apps: ``scenario`` (``SCENARIO``) and ``scores`` (``METRICS``, ``score``); optional: ``android`` and ``app.yaml``."""
SERVICES = Registry("mplab.services", "service", "service", (("service", "SERVICE"),))
"""Services that the origin runs in addition to web sites and files: ``SERVICE``."""
TRANSPORTS = Registry("mplab.transports", "transport", "driver", _DRIVER)
"""Transports of the phone's TCP traffic to the proxy: ``DRIVER``."""
SHAPERS = Registry("mplab.shapers", "shaper", "driver", _DRIVER)
"""Shapers of paths, and the kinds of machine that they run on: ``DRIVER``."""
PHONES = Registry("mplab.phones", "phone", "driver", _DRIVER)
"""Kinds of phone, by the value of ``driver`` in a lab file: ``DRIVER``."""
PROXIES = Registry("mplab.proxies", "proxy", "driver", _DRIVER)
"""Kinds of proxy, by the value of ``driver`` in a lab file: ``DRIVER``."""
FIGURES = Registry("mplab.figures", "figure", "", (("", "FIGURE"),))
"""Figures of the report: ``FIGURE``."""
REGISTRIES = (SCENARIOS, SERVICES, TRANSPORTS, SHAPERS, PHONES, PROXIES, FIGURES)
