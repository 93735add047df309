"""Check what a lab file must define for real phones, and which link conditions their labs cannot make."""

from collections.abc import Collection, Iterator
from ipaddress import IPv4Address

from mplab.drivers.phone.settings import AdbPhoneFile
from mplab.format.link import LinkCondition
from mplab.userfiles.check import Checker
from mplab.userfiles.lab import LabFile


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
        for place, address in enumerate(lab.proxy.listen):
            if IPv4Address(address).is_loopback:
                text = f"address '{address}': is this machine's own loopback, which no real phone can reach"
                checker.add(("proxy", "listen", place), text)


def check_serials(lab: LabFile, name: str, checker: Checker) -> None:
    """Add a problem if a phone's serial number is needed and missing, or is that of an earlier phone."""
    by_adb = {other: phone.serial for other, phone in lab.phones.items() if isinstance(phone, AdbPhoneFile)}
    serial = by_adb[name]
    if serial is None and len(by_adb) > 1:
        checker.add(("phones", name), "key 'serial' is missing: there are several phones with 'driver: adb'")
    elif serial is not None:
        first = next(other for other, its in by_adb.items() if its == serial)
        if first != name:
            checker.add(("phones", name, "serial"), f"'{serial}' is that of {first} already")


def real_refusals(link: LinkCondition, phone: str, shaped: Collection[str]) -> Iterator[str]:
    """Yield the parts of a condition that no lab with a real phone can make, with any shapers.

    Args:
        link: the condition.
        phone: its name in the lab file.
        shaped: paths with a shaper: ``wifi``, ``lte``.
    """
    if link.core_rtt_ms:
        yield (
            "core_rtt: what lies behind the proxy is shaped by nobody in a lab with a real phone: leave it out, "
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
            yield f"{where}: radio: nothing shapes this path of {phone}, so that nothing can make it lose everything"
