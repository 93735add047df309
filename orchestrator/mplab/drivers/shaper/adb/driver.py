"""Driver ``adb``: a phone that shapes its own paths while a run controls the phone by adb."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import BaseModel

from mplab.base.findings import Finding
from mplab.drivers.shaper.adb.phone import PhoneOnAdb
from mplab.drivers.shaper.adb.place import AdbShapingPhone, AdbShell
from mplab.drivers.shaper.driver import PhoneDriver
from mplab.drivers.shaper.tc.base import TC
from mplab.drivers.shaper.tc.capabilities import look
from mplab.drivers.shaper.tc.check import check_shaping
from mplab.userfiles.machines import Section, ShapingMachine

if TYPE_CHECKING:
    from mplab.drivers.shaper.adb.place import AdbShapingPhone
    from mplab.drivers.shaper.owner import Owner


class Adb(PhoneDriver[BaseModel, PhoneOnAdb]):
    """`PhoneDriver` for phones with ``driver: adb`` and root."""

    name = "adb"
    title = "a phone with driver: adb, by its own root shell"
    section: Section = "phones"
    settings = BaseModel
    method = "tc"
    abilities = TC

    def hold(self, phone: PhoneOnAdb, machine: ShapingMachine[BaseModel], owner: "Owner") -> "AdbShapingPhone":
        """See `PhoneDriver`."""
        return AdbShapingPhone(phone, owner=owner, interfaces=machine.interfaces)

    def check(self, phone: PhoneOnAdb, machine: ShapingMachine[BaseModel]) -> Iterator[Finding]:
        """See `PhoneDriver`."""
        return check_shaping(look(AdbShell(phone), machine.interfaces), machine.label)


DRIVER = Adb()
