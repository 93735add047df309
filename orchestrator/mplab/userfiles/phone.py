"""Kinds of phone that a lab file can name as `driver`: the part that is needed to read lab files.

Kinds are registered in ``mplab.phones`` and imported when a lab file names them.
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


def unknown_driver(value: object) -> str:
    """Return the message for a driver that is not registered."""
    hint = did_you_mean(value, PHONES) if isinstance(value, str) else ""
    return f"found {describe(value)}.{hint} Allowed: {', '.join(PHONES)}"


class PhoneKind:
    """A kind of phone, for lab files and link conditions; `mplab.lab.driver.PhoneDriver` has the rest.

    The defaults are those of a phone that is a node of the virtual lab.
    """

    name: ClassVar[str] = ""
    """Name under which the kind is registered, the value of `driver` in a lab file."""
    title: ClassVar[str]
    """Description for editors of lab files: ``an emulated Android device, by adb``."""
    settings: ClassVar[type["PhoneFile"]]
    """Model of such a phone in a lab file."""
    real: ClassVar[bool] = False
    """True if its packets cross real networks: it is in no namespace, and a path without an attachment is unshaped."""
    same_clock: ClassVar[bool] = False
    """True if phone and proxy have the same clock, because both are on this machine."""
    android: ClassVar[bool] = False
    """True if it has real Android apps."""
    own_shell: ClassVar[bool] = False
    """True if runs have a root shell on it without `root_shell`, unless it is used without root."""

    def check_file(self, lab: "LabFile", name: str, checker: "Checker") -> None:
        """Add the problems of such a phone in a lab file that its model does not find.

        Args:
            lab: lab file.
            name: name of the phone.
            checker: collects the problems.
        """

    def check_use(self, lab: "LabFile", name: str, checker: "Checker") -> None:
        """Add the problems that prevent a run from using such a phone; arguments as in `check_file`."""

    def refusals(
        self, link: "LinkCondition", name: str, settings: "PhoneFile", shaped: Collection[str]
    ) -> Iterator[str]:
        """Yield the parts of a link condition that no lab with such a phone can make, with any shaper.

        Args:
            link: link condition.
            name: name of the phone in the lab file.
            settings: entry of the phone in the lab file.
            shaped: paths that have a shaper: ``wifi``, ``lte``.
        """
        yield from ()

    def resources(self, name: str, settings: "PhoneFile") -> Iterator[str]:
        """Yield the names of the locks that a run takes for a real phone; other machines have their own locks."""
        yield from ()

    def uses(self, name: str, settings: "PhoneFile") -> str:
        """Return, as one phrase, what a run with such a phone uses outside the namespaces of a virtual lab, or "".

        Users read the phrase before they allow a lab file that came with a run or bundle.
        """
        return ""


_KINDS = Drivers(PHONES, PhoneKind)


def phone_kind(name: str) -> PhoneKind:
    """Return a kind of phone by the value of `driver` in a lab file.

    Raises:
        InputError: no kind has this name.
        LabNotReadyError: the kind cannot be imported, or is no `PhoneKind` of this name.
    """
    return _KINDS.load(name)


def drivers_that(condition: Callable[[PhoneKind], bool]) -> list[str]:
    """Return the names of the kinds that satisfy a condition, sorted. Kinds that cannot be imported are left out."""
    return [name for name, kind in _KINDS.importable().items() if condition(kind)]


def drivers_text(names: Collection[str]) -> str:
    """Return ``'driver: adb' or 'driver: emulated'``."""
    return " or ".join(f"'driver: {name}'" for name in names)
