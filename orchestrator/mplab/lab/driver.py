"""A kind of phone as labs use it: what it needs, how it is checked, and the lab around it.

A kind is a package with a module `driver` that has an object `DRIVER`, registered in the group ``mplab.phones``. It is
named by the `driver` of a phone in a lab file. A module `driver` is imported whenever a lab file names its kind, and
imports slow modules only when it uses them.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from mplab.base.drivers import Drivers
from mplab.base.findings import Finding
from mplab.base.plugins import PHONES
from mplab.base.programs import Program
from mplab.drivers.phone.kernel import PhoneFacts
from mplab.userfiles.lab import LabFile, PhoneFile
from mplab.userfiles.labuse import LabUse
from mplab.userfiles.phone import PhoneKind

if TYPE_CHECKING:
    from mplab.lab.protocol import Lab
    from mplab.lab.settings import LabSettings

Identity = Mapping[str, str | Sequence[str]]
"""What a phone says of itself: ``identity`` in manifest.json."""


class PhoneDriver(PhoneKind, ABC):
    """One kind of phone; see `PhoneKind` for its attributes and for what it checks in lab files.

    The defaults are those of a phone that is a node of the virtual lab.
    """

    @abstractmethod
    def open_lab(self, settings: "LabSettings") -> "Lab":
        """Return a lab around such a phone, to be entered."""

    @abstractmethod
    def check(self, lab: LabFile, name: str, lab_file: str) -> Iterator[Finding]:
        """Check one phone for `mplab doctor`; change nothing, raise nothing.

        Args:
            lab: the lab file.
            name: the phone's in it.
            lab_file: path of the lab file, for remedies.
        """

    def programs(self, settings: PhoneFile | None) -> Sequence[Program]:
        """Return the programs of this machine that such a phone needs, next to those of every lab."""
        return ()

    def facts(self, settings: PhoneFile | None) -> PhoneFacts:
        """Return what is known of such a phone before it is there: which transports it can run depends on it."""
        return PhoneFacts()

    def called(self, name: str, settings: PhoneFile | None) -> str:
        """Return what messages call such a phone: ``phone 'one'``."""
        return f"phone '{name}'"

    def look(self, use: LabUse) -> Identity:
        """Check that a run can use the phone, before anything of it is started; return its identity.

        Returns:
            {}: such a phone is there only when its lab is.

        Raises:
            LabNotReadyError: it is not there, in use, or not rooted as it should be.
        """
        return {}


DRIVERS = Drivers(PHONES, PhoneDriver)  # type: ignore[type-abstract]
"""Name → kind of phone, of all that are installed."""


def phone_driver(name: str) -> PhoneDriver:
    """Return a kind of phone by the name that a lab file gives as `driver`.

    Raises:
        InputError: there is none.
        LabNotReadyError: it cannot be imported, or is no `PhoneDriver` of this name.
    """
    return DRIVERS.load(name)
