"""Everything that a lab file names, checked one by one, each with what to do when it is not there."""

from collections.abc import Iterator

from mplab.base.enter import check_namespaces
from mplab.base.errors import MplabError
from mplab.base.findings import Finding
from mplab.base.programs import ADB
from mplab.device.system.toolbox import NEEDED as DEVICE_PROGRAMS
from mplab.drivers.shaper.driver import driver_of, phone_driver_of
from mplab.lab.needs import missing_on_phone, phone_model
from mplab.userfiles.lab import LabFile, PhoneFile
from mplab.userfiles.labuse import LabUse
from mplab.userfiles.proxyfile import ProxyFile

_BY_SOCKS = "'root: none' in the lab file, for what can be told a SOCKS proxy"


def examine_lab(lab: LabFile, lab_file: str) -> Iterator[Finding]:
    """Finding every router, server and phone of a lab, yielding each finding as it is made; changes nothing.

    Args:
        lab: what the file says.
        lab_file: its name, for what to do.
    """
    machines = lab.machines().values()
    for machine in machines:
        if machine.section == "routers":
            yield from driver_of(machine).check(machine, lab_file)
    for name, phone in lab.phones.items():
        if phone.driver == "virtual":
            yield _virtual_phone(name)
        elif phone.driver == "emulated":
            yield from _emulated_phone(lab, name, lab_file)
        elif phone.driver == "adb":
            yield from _adb_phone(lab, name, phone)
    for machine in machines:
        if machine.section != "routers":
            yield from driver_of(machine).check(machine, lab_file)
    if lab.proxy is not None:
        yield from _proxy(lab.proxy, lab_file)


def _proxy(settings: ProxyFile, lab_file: str) -> Iterator[Finding]:
    """What `mplab proxy doctor` finds; services that do not run are started by runs."""
    from mplab.drivers.proxy.docker import DockerStack, StackSettings  # noqa: PLC0415 - slow to import
    from mplab.drivers.proxy.docker.doctor import examine  # noqa: PLC0415

    for finding in examine(DockerStack(StackSettings.of(settings))):
        remedy = "" if finding.ok else f"mplab proxy doctor --lab {lab_file}"
        yield Finding(f"proxy: {finding.what}", "ok" if finding.ok else "missing", finding.found, remedy)


def _virtual_phone(name: str) -> Finding:
    """What it needs is what every virtual lab needs."""
    what = f"phone {name}"
    try:
        check_namespaces()
    except MplabError as error:
        return Finding(what, "missing", str(error), "see the message")
    return Finding(what, "ok", "virtual: 'mplab doctor' checks what it needs")


def _unrooted(what: str) -> Finding:
    """A phone that is used without root, because its lab file says so."""
    found = "not used: runs take what can be told a proxy, and no Multipath TCP"
    return Finding(f"{what}: root", "warning", found, "see 'root' in the lab file")


def _emulated_phone(lab: LabFile, name: str, lab_file: str) -> Iterator[Finding]:
    """What it is made of; nothing is started."""
    yield _virtual_phone(name)
    what, use = f"phone {name}", LabUse(lab, phone=name)
    missing = [program for program in (*DEVICE_PROGRAMS, ADB) if program.find() is None]
    for program in missing:
        yield Finding(f"{what}: {program.name}", "missing", f"not found ({program.purpose})", program.remedy)
    model = phone_model(use)
    if missing or model is None:
        return
    if lab.phones[name].unrooted:
        yield _unrooted(what)
    elif model.root == "none":
        remedy = f"choose another model: mplab lab device list; or {_BY_SOCKS}"
        yield Finding(f"{what}: root", "missing", "not rooted: a run needs root for its traffic", remedy)
    if reason := missing_on_phone(use, "mptcp"):
        yield Finding(f"{what}: mptcp", "warning", reason, "cells with Multipath TCP will be skipped")
    found = f"{model.model}, Android {model.android}, emulated"
    yield Finding(what, "ok", found, f"to switch it on: mplab lab up --lab {lab_file}")


def _adb_phone(lab: LabFile, name: str, settings: PhoneFile) -> Iterator[Finding]:
    """Reachable, rooted, ready, and with a proxy that it can reach; what is brought there goes again."""
    from mplab.drivers.phone.adb.kernel import read_kernel  # noqa: PLC0415 - slow to import, needed by few labs
    from mplab.drivers.phone.adb.open import open_phone  # noqa: PLC0415
    from mplab.drivers.phone.adb.probe import missing_mptcp  # noqa: PLC0415
    from mplab.drivers.phone.adb.readiness import default_thresholds  # noqa: PLC0415
    from mplab.drivers.phone.adb.readiness import look as look_at  # noqa: PLC0415

    what = f"phone {name}"
    if ADB.find() is None:
        yield Finding(f"{what}: adb", "missing", f"not found ({ADB.purpose})", ADB.remedy)
        return
    try:
        with open_phone(name, settings) as phone:
            found = phone.identity()
            yield Finding(what, "ok", f"{phone.serial} answers: {found.model}, {found.os}")
            if settings.unrooted:
                yield _unrooted(what)
            elif not phone.rooted:
                remedy = f"root it, or allow root in its root manager: docs/phones.md; or {_BY_SOCKS}"
                yield Finding(f"{what}: root", "missing", "none: a run needs root for its traffic", remedy)
            else:
                yield Finding(f"{what}: root", "ok", f"by '{phone.root.value}'")
                if reason := missing_mptcp(read_kernel(phone)):
                    yield Finding(f"{what}: mptcp", "warning", reason, "cells with Multipath TCP will fail")
                if (itself := lab.by_itself(name)) is not None:
                    yield from phone_driver_of(itself).check(phone, itself)
            problems = look_at(phone, settings.ready or default_thresholds(), settings.apps).problems
            for problem in problems:
                yield Finding(f"{what}: ready", "missing", problem, "see 'ready' in the lab file")
            if not problems:
                yield Finding(
                    f"{what}: ready", "ok", "charged, cool, awake, idle, its clock and both networks are there"
                )
    except MplabError as error:
        yield Finding(what, "missing", str(error), "see the message")
    if lab.proxy is None or not lab.proxy.listen:
        yield Finding(
            f"{what}: proxy",
            "warning",
            "the lab file names no address at which this phone reaches a proxy: runs cannot use it",
            "add 'proxy: {driver: docker, engine: …, listen: [ADDRESS]}'",
        )
