"""Kinds of phone that a lab file can name as `driver`: what reading a lab file needs to know of one.

They are found by name in the registry ``mplab.phones``, and imported when a lab file names them.
"""

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, ClassVar

from mplab.base.drivers import Drivers
from mplab.base.plugins import PHONES
from mplab.base.suggest import describe, did_you_mean

if TYPE_CHECKING:
    from mplab.format.link import LinkCondition
    from mplab.userfiles.check import Checker
    from mplab.userfiles.lab import LabFile, PhoneFile


def unknown_driver(found: object) -> str:
    """Return the message for a driver that is not registered."""
    hint = did_you_mean(found, PHONES) if isinstance(found, str) else ""
    return f"found {describe(found)}.{hint} Allowed: {', '.join(PHONES)}"


class PhoneKind:
    """A kind of phone, as far as lab files and link conditions go; `mplab.lab.driver.PhoneDriver` has the rest.

    The defaults are those of a phone that is a node of the virtual lab.
    """

    name: ClassVar[str] = ""
    """The name that it is registered by, which a lab file gives as `driver`."""
    title: ClassVar[str]
    """For editors of lab files: ``an emulated Android device, by adb``."""
    settings: ClassVar[type["PhoneFile"]]
    """Model of such a phone in a lab file."""
    real: ClassVar[bool] = False
    """Its packets take real networks: nothing of it is in namespaces, and a path without a place is not shaped."""
    same_clock: ClassVar[bool] = False
    """The phone has the clock of its proxy: both are on this machine."""
    android: ClassVar[bool] = False
    """It has Android apps of its own."""
    own_shell: ClassVar[bool] = False
    """Runs have a root shell on it without `root_shell`, unless it is used without root."""

    def check_file(self, lab: "LabFile", name: str, checker: "Checker") -> None:
        """Note what is wrong with such a phone in a lab file, beyond its own keys.

        Args:
            lab: the lab file.
            name: the phone's.
            checker: takes the problems.
        """

    def check_use(self, lab: "LabFile", name: str, checker: "Checker") -> None:
        """Note what keeps a run from using such a phone; arguments as of `check_file`."""

    def refusals(
        self, link: "LinkCondition", name: str, settings: "PhoneFile", shaped: Collection[str]
    ) -> Iterator[str]:
        """Yield what of a link condition no lab with such a phone can make, whatever shapes its paths.

        Args:
            link: the condition.
            name: the phone's in the lab file.
            settings: what the lab file says of it.
            shaped: paths that something shapes: ``wifi``, ``lte``.
        """
        yield from ()

    def resources(self, name: str, settings: "PhoneFile") -> Iterator[str]:
        """Yield the names that a run with such a real phone locks, without those of other shapers and of containers."""
        yield from ()

    def uses(self, name: str, settings: "PhoneFile") -> str:
        """Return what such a phone is beyond the namespaces of a virtual lab, as one phrase, or "".

        Users read it before they allow a lab file that came with a run or bundle.
        """
        return ""


_KINDS = Drivers(PHONES, PhoneKind)


def phone_kind(name: str) -> PhoneKind:
    """Return a kind of phone by the name that a lab file gives as `driver`.

    Raises:
        InputError: there is none.
        LabNotReadyError: it cannot be imported, or is no `PhoneKind` of this name.
    """
    return _KINDS.load(name)


def drivers_that(condition: Callable[[PhoneKind], bool]) -> list[str]:
    """Return the names of the kinds for which a condition holds, sorted, without those that cannot be imported."""
    return [name for name, kind in _KINDS.importable().items() if condition(kind)]


def drivers_text(names: Collection[str]) -> str:
    """``'driver: adb' or 'driver: emulated'``."""
    return " or ".join(f"'driver: {name}'" for name in names)
