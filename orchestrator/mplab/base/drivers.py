"""Drivers of a registry, each imported when it is used."""

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
    """Name → ``DRIVER`` of every plug-in of a registry, sorted by name.

    A driver is imported when it is looked up, so that one that cannot be imported harms only those who name it.

    Args:
        registry: of the plug-ins.
        kind: the class that every driver must be an instance of.
    """

    def __init__(self, registry: Registry, kind: type[Driver]) -> None:
        self._registry = registry
        self._kind = kind

    def __getitem__(self, name: str) -> Driver:
        """Return a driver. Raises LabNotReadyError when it cannot be imported, or is none."""
        if name not in self._registry:
            raise KeyError(name)
        found = self._registry.load(name, "DRIVER")
        what = f"{self._registry.what} {name}"
        if not isinstance(found, self._kind):
            raise LabNotReadyError(f"{what}: found {type(found).__name__}. Register a {self._kind.__name__}")
        if found.name != name:
            raise LabNotReadyError(f"{what}: its driver is called {found.name}. Register it by that name")
        return found

    def importable(self) -> dict[str, Driver]:
        """Return those that can be imported, by name; `mplab doctor` reports the others."""
        return self._registry.importable(self.__getitem__)

    def __contains__(self, name: object) -> bool:
        """Tell whether a driver is registered; it is not imported."""
        return name in self._registry

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, sorted."""
        return iter(self._registry)

    def __len__(self) -> int:
        """Return how many are registered."""
        return len(self._registry.plugins)
