"""What a run with a real phone asks of its lab file, and what of a link condition it has to refuse."""

from collections.abc import Collection, Iterator
from ipaddress import IPv4Address

from mplab.format.link import LinkCondition
from mplab.userfiles.check import Checker
from mplab.userfiles.lab import LabFile


def check_real_lab(lab: LabFile, phone: str, checker: Checker) -> None:
    """Note what keeps a run from using a phone with ``driver: adb``: how it reaches its proxy has to be said."""
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


def real_refusals(link: LinkCondition, phone: str, shaped: Collection[str]) -> Iterator[str]:
    """What of a condition no lab with a real phone can make, beside what its shapers cannot.

    Args:
        link: the condition.
        phone: its name in the lab file.
        shaped: paths that something shapes: ``wifi``, ``lte``.
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


def unrooted_refusals(link: LinkCondition, phone: str) -> Iterator[str]:
    """What of a condition's changes root alone could make on a phone."""
    for moment in link.changes:
        made = {
            "interface": moment.interface,
            "access_point": moment.access_point,
            "route": moment.default_route,
            "multipath": moment.multipath,
        }
        for kind in (name for name, asked in made.items() if asked):
            yield (
                f"{moment.path} at {moment.at_s:g} s: {kind}: needs root, and {phone} is used without: "
                "allowed: values of the path, radio"
            )
