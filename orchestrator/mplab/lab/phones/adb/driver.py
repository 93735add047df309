"""Register real Android phones, on a cable or over TCP: routers, servers or the phone itself shape its paths."""

from collections.abc import Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING

from pydantic import BaseModel

from mplab.base.deferred import deferred
from mplab.base.errors import MplabError
from mplab.base.findings import Finding
from mplab.base.programs import ADB, Program
from mplab.drivers.phone.kernel import PhoneFacts
from mplab.drivers.phone.settings import AdbPhoneFile
from mplab.drivers.shaper.adb.driver import adb_where
from mplab.drivers.shaper.driver import phone_driver_of
from mplab.drivers.shaper.owner import shaping_resource
from mplab.drivers.transport import DRIVERS
from mplab.format.link import LinkCondition
from mplab.lab.driver import Identity, PhoneDriver
from mplab.lab.phones.adb.rules import check_real_lab, check_serials, real_refusals
from mplab.lab.phones.rooting import BY_SOCKS, unrooted_finding, unrooted_refusals
from mplab.userfiles.check import Checker
from mplab.userfiles.lab import LabFile, PhoneFile
from mplab.userfiles.labuse import LabUse
from mplab.userfiles.machines import ShapingMachine

if TYPE_CHECKING:
    from mplab.drivers.phone.adb.phone import AdbPhone
    from mplab.lab.protocol import Lab
    from mplab.lab.settings import LabSettings


class AdbPhones(PhoneDriver):
    """Real phones on adb; see `BenchLab`."""

    name = "adb"
    title = "a real Android phone, on a cable or over TCP"
    settings = AdbPhoneFile
    real = True
    android = True
    own_shell = True

    def open_lab(self, settings: "LabSettings") -> "Lab":
        """See `PhoneDriver`."""
        with deferred("Docker's client is slow to import"):
            from mplab.lab.phones.adb.lab import BenchLab
        return BenchLab(settings)

    def check_file(self, lab: LabFile, name: str, checker: Checker) -> None:
        """See `PhoneKind`. Check the phone's serial number."""
        check_serials(lab, name, checker)

    def check_use(self, lab: LabFile, name: str, checker: Checker) -> None:
        """See `PhoneKind`. Check that the lab file has a proxy that the phone can reach."""
        check_real_lab(lab, name, checker)

    def refusals(self, link: LinkCondition, name: str, settings: PhoneFile, shaped: Collection[str]) -> Iterator[str]:
        """See `PhoneKind`. Also yield the changes that need root, if runs use the phone without root."""
        yield from real_refusals(link, name, shaped)
        if settings.unrooted:
            yield from unrooted_refusals(link, name)

    def uses(self, name: str, settings: PhoneFile) -> str:
        """See `PhoneKind`."""
        return f"phones.{name} is the Android device {_adb(settings).serial or 'that is connected'}"

    def programs(self, settings: PhoneFile | None) -> list[Program]:
        """See `PhoneDriver`: adb."""
        return [ADB]

    def facts(self, settings: PhoneFile | None) -> PhoneFacts:
        """See `PhoneDriver`. Only root is known; the kernel is unknown before the phone is connected."""
        return PhoneFacts(rooted=settings is None or not settings.unrooted)

    def resources(self, name: str, settings: PhoneFile) -> Iterator[str]:
        """See `PhoneKind`: the phone and, if it shapes itself through adb, the phone as a shaper."""
        serial = _adb(settings).serial
        yield _adb(settings).resource(name)
        by_adb = settings.root_shell is None and any(place.at for place in settings.attachments().values())
        if by_adb and serial is not None:
            yield shaping_resource(adb_where(serial))

    def measure_readiness(self, use: LabUse) -> Identity:
        """See `PhoneDriver`."""
        with deferred("Docker's client is slow to import"):
            from mplab.lab.phones.adb.lab import look_at_phone
        return look_at_phone(use)

    def check(self, lab: LabFile, name: str, lab_file: str) -> Iterator[Finding]:
        """See `PhoneDriver`. Check that the phone answers, is rooted and ready, and has a proxy that it can reach.

        Files that are copied to the phone are removed again.
        """
        what, settings = f"phone {name}", _adb(lab.phones[name])
        if ADB.find() is None:
            yield Finding(f"{what}: adb", "missing", f"not found ({ADB.purpose})", ADB.remedy)
            return
        with deferred("slow to import, needed by few labs"):
            from mplab.drivers.phone.adb import open_phone
        try:
            with open_phone(name, settings) as phone:
                yield from _findings(phone, settings, lab.by_itself(name))
        except MplabError as error:
            yield Finding(what, "missing", str(error), "see the message")
        if lab.proxy is None or not lab.proxy.listen:
            yield Finding(
                f"{what}: proxy",
                "warning",
                "the lab file names no address at which this phone reaches a proxy: runs cannot use it",
                "add 'proxy: {driver: docker, engine: …, listen: [ADDRESS]}'",
            )


def _findings(phone: "AdbPhone", settings: AdbPhoneFile, itself: ShapingMachine[BaseModel] | None) -> Iterator[Finding]:
    with deferred("slow to import"):
        from mplab.drivers.phone.adb.readiness import default_thresholds, measure_readiness
    what, found = f"phone {phone.name}", phone.identity()
    yield Finding(what, "ok", f"{phone.serial} answers: {found.model}, {found.os}")
    if settings.unrooted:
        yield unrooted_finding(phone.name)
    elif not phone.rooted:
        remedy = f"root it, or allow root in its root manager: docs/phones.md; or {BY_SOCKS}"
        yield Finding(f"{what}: root", "missing", "none: a run needs root for its traffic", remedy)
    else:
        yield from _rooted_findings(phone, itself)
    problems = measure_readiness(phone, settings.ready or default_thresholds(), settings.apps).problems
    for problem in problems:
        yield Finding(f"{what}: ready", "missing", problem, "see 'ready' in the lab file")
    if not problems:
        yield Finding(f"{what}: ready", "ok", "charged, cool, awake, idle, its clock and both networks are there")


def _rooted_findings(phone: "AdbPhone", itself: ShapingMachine[BaseModel] | None) -> Iterator[Finding]:
    """Yield the findings that need root: on each transport, and on shaping on the phone itself."""
    with deferred("slow to import"):
        from mplab.drivers.phone.adb.kernel import read_kernel
    what = f"phone {phone.name}"
    yield Finding(f"{what}: root", "ok", f"by '{phone.root.value}'")
    for transport, driver in DRIVERS.importable().items():
        if reason := driver.check_phone(partial(read_kernel, phone)):
            yield Finding(f"{what}: {transport}", "warning", reason, f"cells with {driver.title} will fail")
    if itself is not None:
        yield from phone_driver_of(itself).check(phone, itself)


def _adb(settings: PhoneFile | None) -> AdbPhoneFile:
    assert isinstance(settings, AdbPhoneFile)  # noqa: S101 - the model of this kind
    return settings


DRIVER = AdbPhones()
