"""Drivers of a registry, each imported when it is used: the one loader of every kind of plug-in that has a class."""

from collections.abc import Iterator, Mapping
from typing import Protocol, TypeVar

from mplab.base.errors import LabNotReadyError
from mplab.base.plugins import Registry


class Named(Protocol):
    """A driver, which knows its own name."""

    @property
    def name(self) -> str:
        """The name that it is registered by."""


Driver = TypeVar("Driver", bound=Named, covariant=True)  # noqa: PLC0105 - as users read it


class Drivers(Mapping[str, Driver]):
    """Name → driver of every plug-in of a registry, sorted by name.

    A driver is imported when it is looked up, so that one that cannot be imported harms only those who name it.

    Args:
        registry: of the plug-ins.
        kind: the class that every driver must be an instance of.
        attribute: what the driver is called in its module.
        module: the module of the plug-in's package that has it; default: the registry's own.
    """

    def __init__(self, registry: Registry, kind: type[Driver], attribute: str = "DRIVER", module: str = "") -> None:
        self._registry = registry
        self._kind = kind
        self._attribute = attribute
        self._module = module

    def load(self, name: str) -> Driver:
        """Return a driver.

        Raises:
            InputError: there is no plug-in of this name.
            LabNotReadyError: it cannot be imported, has another class, or another name than it is registered by.
        """
        plugin = self._registry[name]
        module = "" if plugin.attribute else self._module or self._registry.member
        found = plugin.load(self._attribute, module)
        what = f"{self._registry.what} {name}"
        if not isinstance(found, self._kind):
            where = ".".join(filter(None, (plugin.module, module)))
            raise LabNotReadyError(
                f"{what}: {plugin.attribute or self._attribute} of {where} is of type {type(found).__name__}. "
                f"Derive its class from {self._kind.__module__}.{self._kind.__name__}"
            )
        if found.name != name:
            called = f"is called {found.name}. Register it by that name" if found.name else f"needs 'name = \"{name}\"'"
            raise LabNotReadyError(f"{what}: its driver {called}")
        return found

    def __getitem__(self, name: str) -> Driver:
        """Return a driver; see `load`."""
        if name not in self._registry:
            raise KeyError(name)
        return self.load(name)

    def importable(self) -> dict[str, Driver]:
        """Return those that can be used, by name; `mplab doctor` reports the others."""
        return self._registry.importable(self.load)

    def __contains__(self, name: object) -> bool:
        """Tell whether a driver is registered; it is not imported."""
        return name in self._registry

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, sorted."""
        return iter(self._registry)

    def __len__(self) -> int:
        """Return how many are registered."""
        return len(self._registry.plugins)
