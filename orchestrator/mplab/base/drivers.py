"""Load the drivers of a registry on first use. A driver is the object that a plug-in defines."""

from collections.abc import Iterator, Mapping
from typing import Protocol, TypeVar

from mplab.base.errors import LabNotReadyError
from mplab.base.plugins import Registry


class Named(Protocol):
    """An object that has an attribute `name`. Every driver has one."""

    @property
    def name(self) -> str:
        """Name under which the driver is registered."""


Driver = TypeVar("Driver", bound=Named, covariant=True)  # noqa: PLC0105 - as users read it


class Drivers(Mapping[str, Driver]):
    """Map the name of every plug-in of a registry to its driver, sorted by name.

    A driver is imported when it is looked up. A driver that cannot be imported therefore fails only where it is used.

    Args:
        registry: registry of the plug-ins.
        kind: class that every driver must be an instance of.
        attribute: attribute of the module that holds the driver.
        module: module of the plug-in's package that has this attribute; default: the registry's `member`.
    """

    def __init__(self, registry: Registry, kind: type[Driver], attribute: str = "DRIVER", module: str = "") -> None:
        self._registry = registry
        self._kind = kind
        self._attribute = attribute
        self._module = module

    def load(self, name: str) -> Driver:
        """Import the driver that is registered under `name`, and return it.

        Raises:
            InputError: no plug-in has this name.
            LabNotReadyError: the driver cannot be imported, is no instance of `kind`, or has a name other than the
                registered one.
        """
        plugin = self._registry[name]
        module = "" if plugin.attribute else self._module or self._registry.member
        driver = plugin.load(self._attribute, module)
        subject = f"{self._registry.what} {name}"
        if not isinstance(driver, self._kind):
            where = ".".join(filter(None, (plugin.module, module)))
            raise LabNotReadyError(
                f"{subject}: {plugin.attribute or self._attribute} of {where} is of type {type(driver).__name__}. "
                f"Derive its class from {self._kind.__module__}.{self._kind.__name__}"
            )
        if driver.name != name:
            called = (
                f"is called {driver.name}. Register it by that name" if driver.name else f"needs 'name = \"{name}\"'"
            )
            raise LabNotReadyError(f"{subject}: its driver {called}")
        return driver

    def __getitem__(self, name: str) -> Driver:
        """Return the driver that is registered under `name`, as `load` does.

        Raises:
            KeyError: no plug-in has this name.
            LabNotReadyError: see `load`.
        """
        if name not in self._registry:
            raise KeyError(name)
        return self.load(name)

    def importable(self) -> dict[str, Driver]:
        """Return the drivers that can be imported, by name; `mplab doctor` reports the others."""
        return self._registry.importable(self.load)

    def __contains__(self, name: object) -> bool:
        """Return whether a driver is registered, without importing it."""
        return name in self._registry

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, sorted."""
        return iter(self._registry)

    def __len__(self) -> int:
        """Return the number of registered drivers."""
        return len(self._registry.plugins)
