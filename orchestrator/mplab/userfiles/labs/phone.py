"""Kinds of phone that a lab file can name as `driver`: the part of them that is needed to read lab files.

Kinds are registered in ``mplab.phones`` and imported when a lab file names them.
"""

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, ClassVar

from mplab.base.drivers import Drivers
from mplab.base.plugins import PHONES
from mplab.base.suggest import describe, did_you_mean

if TYPE_CHECKING:
    from mplab.format.link import LinkCondition
    from mplab.userfiles.labs.lab import LabFile, PhoneFile
    from mplab.userfiles.strict.check import Checker


def unknown_driver(value: object) -> str:
    """Return the error message for the value of a phone's `driver` that names no registered kind of phone."""
    hint = did_you_mean(value, PHONES) if isinstance(value, str) else ""
    return f"found {describe(value)}.{hint} Allowed: {', '.join(PHONES)}"


class PhoneKind:
    """A kind of phone, as far as lab files and link conditions need it; `mplab.lab.driver.PhoneDriver` adds the rest.

    The default attributes and methods are those of a phone that is a node of the virtual lab.
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
    """True if it has Android apps, real or emulated."""
    own_shell: ClassVar[bool] = False
    """True if runs have a root shell on it without `root_shell`, unless it is used without root."""

    def check_file(self, lab: "LabFile", name: str, checker: "Checker") -> None:
        """Check the entry of a phone of this kind. Add to `checker` the problems that the entry's model cannot find.

        Args:
            lab: lab file.
            name: name of the phone.
            checker: collects the problems.
        """

    def check_use(self, lab: "LabFile", name: str, checker: "Checker") -> None:
        """Add to `checker` the problems that prevent runs from using such a phone; arguments as in `check_file`."""

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
        """Yield the names of the locks that a run takes for such a phone; none if the phone is not real."""
        yield from ()

    def uses(self, name: str, settings: "PhoneFile") -> str:
        """Return a phrase that names the resources outside the virtual lab that a run with such a phone uses.

        "": the run uses nothing outside.

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
    """Return the names of the kinds of phone for which `condition` is true, sorted; only those that can be imported."""
    return [name for name, kind in _KINDS.importable().items() if condition(kind)]


def drivers_text(names: Collection[str]) -> str:
    """Return names of drivers as text for messages: ``'driver: adb' or 'driver: emulated'``."""
    return " or ".join(f"'driver: {name}'" for name in names)
