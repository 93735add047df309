"""Register the phone kind ``adb``: real Android phones on USB or TCP.

Routers, servers or the phone itself shape the paths of such a phone.
"""

from collections.abc import Collection, Iterator
from functools import partial
from ipaddress import IPv4Address
from typing import TYPE_CHECKING

from pydantic import BaseModel

from mplab.base.deferred import deferred
from mplab.base.errors import MplabError
from mplab.base.extras import require
from mplab.base.findings import Finding
from mplab.base.programs import ADB, Program
from mplab.drivers.phone.kernel import PhoneFacts
from mplab.drivers.phone.settings import AdbPhoneFile
from mplab.drivers.shaper.adb.driver import adb_where
from mplab.drivers.shaper.driver import phone_driver_of
from mplab.drivers.shaper.owner import shaping_resource
from mplab.drivers.transport import DRIVERS
from mplab.format.link import LinkCondition
from mplab.lab.driver import Identity, LabSettings, PhoneDriver
from mplab.lab.phones.rooting import BY_SOCKS, unrooted_finding, unrooted_refusals
from mplab.userfiles.labs.lab import LabFile, PhoneFile
from mplab.userfiles.labs.labuse import LabUse
from mplab.userfiles.labs.machines import ShapingMachine
from mplab.userfiles.strict.check import Checker

if TYPE_CHECKING:
    from mplab.drivers.phone.adb.phone import AdbPhone
    from mplab.lab.protocol import Lab


class AdbPhones(PhoneDriver):
    """Driver of real phones on adb, each in a `BenchLab`."""

    name = "adb"
    title = "a real Android phone, on a cable or over TCP"
    settings = AdbPhoneFile
    real = True
    android = True
    own_shell = True

    def open_lab(self, settings: LabSettings) -> "Lab":
        """Return the lab, not yet started, around a real phone. See `PhoneDriver`."""
        with deferred("Docker's client is slow to import"):
            from mplab.lab.phones.adb.lab import BenchLab
        return BenchLab(settings)

    def check_file(self, lab: LabFile, name: str, checker: Checker) -> None:
        """Check the phone's serial number in the lab file. See `PhoneKind`."""
        check_serials(lab, name, checker)

    def check_use(self, lab: LabFile, name: str, checker: Checker) -> None:
        """Check that the lab file has a proxy that the phone can reach. See `PhoneKind`."""
        check_real_lab(lab, name, checker)

    def refusals(self, link: LinkCondition, name: str, settings: PhoneFile, shaped: Collection[str]) -> Iterator[str]:
        """Yield the parts of a link condition that no lab with this phone can make. See `PhoneKind`.

        If runs use the phone without root, these include the changes that need root.
        """
        yield from real_refusals(link, name, shaped)
        if settings.unrooted:
            yield from unrooted_refusals(link, name)

    def uses(self, name: str, settings: PhoneFile) -> str:
        """Return a phrase that names the phone by its serial. See `PhoneKind`."""
        return f"phones.{name} is the Android device {_adb(settings).serial or 'that is connected'}"

    def programs(self, settings: PhoneFile | None) -> list[Program]:
        """Return adb. Raises LabNotReadyError without the extra ``phones``. See `PhoneDriver`."""
        require("phones")
        return [ADB]

    def facts(self, settings: PhoneFile | None) -> PhoneFacts:
        """Return whether runs use root; the kernel is unknown before the phone is connected. See `PhoneDriver`."""
        return PhoneFacts(rooted=settings is None or not settings.unrooted)

    def resources(self, name: str, settings: PhoneFile) -> Iterator[str]:
        """Yield the lock on the phone and, if it shapes its own paths through adb, the lock on it as a shaper.

        See `PhoneKind`.
        """
        serial = _adb(settings).serial
        yield _adb(settings).resource(name)
        by_adb = settings.root_shell is None and any(attachment.at for attachment in settings.attachments().values())
        if by_adb and serial is not None:
            yield shaping_resource(adb_where(serial))

    def identify(self, use: LabUse) -> Identity:
        """Check that a run can use the phone; return the phone's identity. Raises LabNotReadyError."""
        with deferred("Docker's client is slow to import"):
            from mplab.lab.phones.adb.lab import identify_phone
        return identify_phone(use)

    def check(self, lab: LabFile, name: str, lab_file: str) -> Iterator[Finding]:
        """Check that the phone answers, is rooted and ready, and has a proxy that it can reach. See `PhoneDriver`.

        Files that are copied to the phone are removed again.
        """
        subject, settings = f"phone {name}", _adb(lab.phones[name])
        if ADB.find() is None:
            yield Finding(f"{subject}: adb", "missing", f"not found ({ADB.purpose})", ADB.remedy)
            return
        with deferred("slow to import, needed by few labs"):
            from mplab.drivers.phone.adb import open_phone
        try:
            with open_phone(name, settings) as phone:
                yield from _findings(phone, settings, lab.by_itself(name))
        except MplabError as error:
            yield Finding(subject, "missing", str(error), "see the message")
        if lab.proxy is None or not lab.proxy.listen:
            yield Finding(
                f"{subject}: proxy",
                "warning",
                "the lab file names no address at which this phone reaches a proxy: runs cannot use it",
                "add 'proxy: {driver: docker, engine: …, listen: [ADDRESS]}'",
            )


def _findings(phone: "AdbPhone", settings: AdbPhoneFile, itself: ShapingMachine[BaseModel] | None) -> Iterator[Finding]:
    with deferred("slow to import"):
        from mplab.drivers.phone.adb.readiness import default_thresholds, measure_readiness
    subject, identity = f"phone {phone.name}", phone.identity()
    yield Finding(subject, "ok", f"{phone.serial} answers: {identity.model}, {identity.os}")
    if settings.unrooted:
        yield unrooted_finding(phone.name)
    elif not phone.rooted:
        remedy = f"root it, or allow root in its root manager: docs/how-to/phone.md; or {BY_SOCKS}"
        yield Finding(f"{subject}: root", "missing", "none: a run needs root for its traffic", remedy)
    else:
        yield from _rooted_findings(phone, itself)
    problems = measure_readiness(phone, settings.ready or default_thresholds(), settings.apps).problems
    for problem in problems:
        yield Finding(f"{subject}: ready", "missing", problem, "see 'ready' in the lab file")
    if not problems:
        yield Finding(f"{subject}: ready", "ok", "charged, cool, awake, idle, its clock and both networks are there")


def _rooted_findings(phone: "AdbPhone", itself: ShapingMachine[BaseModel] | None) -> Iterator[Finding]:
    """Yield the findings on a rooted phone: its root access, each transport, and shaping on the phone itself."""
    with deferred("slow to import"):
        from mplab.drivers.phone.adb.kernel import read_kernel
    subject = f"phone {phone.name}"
    yield Finding(f"{subject}: root", "ok", f"by '{phone.root.value}'")
    for transport, driver in DRIVERS.importable().items():
        if reason := driver.check_phone(partial(read_kernel, phone)):
            yield Finding(f"{subject}: {transport}", "warning", reason, f"cells with {driver.title} will fail")
    if itself is not None:
        yield from phone_driver_of(itself).check(phone, itself)


def _adb(settings: PhoneFile | None) -> AdbPhoneFile:
    assert isinstance(settings, AdbPhoneFile)  # noqa: S101 - the model of this kind
    return settings


DRIVER = AdbPhones()


def check_real_lab(lab: LabFile, phone: str, checker: Checker) -> None:
    """Add a problem if the lab file has no proxy address that a phone with ``driver: adb`` can reach."""
    if lab.proxy is None:
        checker.add(
            ("phones", phone, "driver"),
            "a run with a real phone needs a proxy that the phone can reach, and there is no 'proxy': "
            "'proxy: {driver: docker, engine: ssh://user@server, listen: [ADDRESS]}' names one",
        )
    elif not lab.proxy.listen:
        checker.add(
            ("proxy",),
            "key 'listen' is missing: the address of the engine's host at which the phone reaches the proxy",
        )
    else:
        for index, address in enumerate(lab.proxy.listen):
            if IPv4Address(address).is_loopback:
                text = f"address '{address}': is this machine's own loopback, which no real phone can reach"
                checker.add(("proxy", "listen", index), text)


def check_serials(lab: LabFile, name: str, checker: Checker) -> None:
    """Add a problem if phone `name` has the serial of an earlier phone, or has none although there are other phones."""
    by_adb = {other: phone.serial for other, phone in lab.phones.items() if isinstance(phone, AdbPhoneFile)}
    serial = by_adb[name]
    if serial is None and len(by_adb) > 1:
        checker.add(("phones", name), "key 'serial' is missing: there are several phones with 'driver: adb'")
    elif serial is not None:
        first = next(other for other, its in by_adb.items() if its == serial)
        if first != name:
            checker.add(("phones", name, "serial"), f"'{serial}' is that of {first} already")


def real_refusals(link: LinkCondition, phone: str, shaped: Collection[str]) -> Iterator[str]:
    """Yield the parts of a link condition that no lab with a real phone can make, whatever its shapers are.

    Args:
        link: the link condition.
        phone: name of the phone in the lab file.
        shaped: paths with a shaper: ``wifi``, ``lte``.
    """
    if link.core_rtt_ms:
        yield (
            "core_rtt: a lab with a real phone cannot shape the path behind the proxy: leave it out, "
            "or use the virtual lab"
        )
    for moment in link.changes:
        where = f"{moment.path} at {moment.at_s:g} s"
        if moment.interface or moment.access_point:
            kind = "interface" if moment.interface else "access_point"
            yield (
                f"{where}: {kind}: the Android of {phone} switches its interfaces itself: "
                "allowed: values of the path, radio, route, multipath"
            )
        elif moment.radio and moment.path not in shaped:
            yield f"{where}: radio: no shaper on this path of {phone} can drop its packets"
