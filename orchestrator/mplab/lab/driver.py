"""Define a kind of phone: the programs that it needs, its checks, and the lab around it.

A kind is a package with a module `driver` that has an object `DRIVER`, registered in the group ``mplab.phones``. The
key `driver` of a phone in a lab file names it. The module is imported whenever a lab file names its kind, and imports
slow modules only when it uses them.
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
"""Identity that a phone reports: ``identity`` in manifest.json."""


class PhoneDriver(PhoneKind, ABC):
    """One kind of phone; see `PhoneKind` for its attributes and its checks of lab files.

    The defaults are those of a phone that is a node of the virtual lab.
    """

    @abstractmethod
    def open_lab(self, settings: "LabSettings") -> "Lab":
        """Return a lab around a phone of this kind, not yet entered."""

    @abstractmethod
    def check(self, lab: LabFile, name: str, lab_file: str) -> Iterator[Finding]:
        """Check one phone for `mplab doctor`. Change nothing, raise nothing.

        Args:
            lab: the lab file.
            name: name of the phone in it.
            lab_file: path of the lab file, for remedies.
        """

    def programs(self, settings: PhoneFile | None) -> Sequence[Program]:
        """Return the programs of this machine that such a phone needs, in addition to those of every lab."""
        return ()

    def facts(self, settings: PhoneFile | None) -> PhoneFacts:
        """Return the facts known before the phone is up: they decide which transports it can run."""
        return PhoneFacts()

    def called(self, name: str, settings: PhoneFile | None) -> str:
        """Return the name of the phone in messages: ``phone 'one'``."""
        return f"phone '{name}'"

    def look(self, use: LabUse) -> Identity:
        """Check that a run can use the phone, before any part of the run starts. Return the phone's identity.

        Returns:
            {}: the phone exists only while its lab is up.

        Raises:
            LabNotReadyError: the phone is missing, in use, or not rooted as required.
        """
        return {}


DRIVERS = Drivers(PHONES, PhoneDriver)  # type: ignore[type-abstract]
"""Name → kind of phone, for all installed kinds."""


def phone_driver(name: str) -> PhoneDriver:
    """Return the kind of phone that a lab file names as `driver`.

    Raises:
        InputError: there is no such kind.
        LabNotReadyError: it cannot be imported, or is not a `PhoneDriver` of this name.
    """
    return DRIVERS.load(name)
